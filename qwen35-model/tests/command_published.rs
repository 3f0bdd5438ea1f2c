//! The commands on a directory as checkpoints are published: nested configuration, shards, tensors of
//! other models, and the files beside them.

#![cfg(test)]

#[path = "support/command.rs"]
mod command;
mod support;

use command::run;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;
use support::{Copy, Stored, TINY, Tensors};

/// A conversation as one text: what the tiny model, which knows one book, can go on with.
const PLAIN: &str = "{% for message in messages %}{{ message.content }}{% endfor %}";

/// Whether it succeeded, standard output and standard error.
fn outcome(output: Output) -> (bool, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// The greedy continuation of a text by so many tokens.
fn greedy(prompt: &str, tokens: &str) -> String {
    let (success, text, stderr) = outcome(run(&["generate", prompt, "--max-tokens", tokens], ""));
    assert!(success, "{stderr}");
    text.strip_suffix('\n').unwrap().to_owned()
}

fn put(copy: &Copy, name: &str, text: &str) {
    fs::write(copy.path().join(name), text).unwrap();
}

fn put_json(copy: &Copy, name: &str, value: &Value) {
    put(copy, name, &value.to_string());
}

/// The tiny checkpoint as a published one looks, without what is beside it.
fn published() -> Copy {
    let copy = Copy::new();
    copy.json("config.json", |config| {
        let text = config.clone();
        *config = json!({
            "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
            "tie_word_embeddings": true, "text_config": text,
            "vision_config": {"model_type": "qwen3_5", "depth": 12}, "image_token_id": 248056,
        });
    });
    copy.tensors(|tensors| {
        let renamed = std::mem::take(tensors).into_iter();
        tensors.extend(
            renamed.map(|(name, tensor)| (name.replacen("model.", "model.language_model.", 1), tensor)),
        );
        let other = tensors["model.language_model.norm.weight"].clone();
        tensors.insert("model.visual.patch_embed.proj.weight".to_owned(), other.clone());
        tensors.insert("mtp.layers.0.input_layernorm.weight".to_owned(), other);
    });
    copy
}

/// Its one file as two and an index.
fn shard(copy: &Copy) {
    let mut halves = [Tensors::new(), Tensors::new()];
    copy.tensors(|tensors| {
        for (i, (name, tensor)) in tensors.iter().enumerate() {
            halves[i % 2].insert(name.clone(), Stored { ..tensor.clone() });
        }
    });
    let files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let mut map = serde_json::Map::new();
    for (file, tensors) in files.iter().zip(&halves) {
        copy_bytes(copy, file, &support::write(tensors));
        map.extend(tensors.keys().map(|name| (name.clone(), json!(file))));
    }
    put_json(copy, "model.safetensors.index.json", &json!({"metadata": {}, "weight_map": map}));
    fs::remove_file(copy.path().join("model.safetensors")).unwrap();
}

fn copy_bytes(copy: &Copy, name: &str, bytes: &[u8]) {
    fs::write(copy.path().join(name), bytes).unwrap();
}

/// A published checkpoint that can converse.
fn conversing(template: &str) -> Copy {
    let copy = published();
    put(&copy, "chat_template.jinja", template);
    put_json(&copy, "tokenizer_config.json", &json!({"eos_token": "<|endoftext|>", "bos_token": null}));
    copy
}

fn chat(copy: &Copy, options: &[&str], input: &str) -> (bool, String, String) {
    let arguments = [&["chat", "--model", copy.path().to_str().unwrap()], options].concat();
    outcome(run(&arguments, input))
}

#[test]
fn generate_takes_a_published_directory() {
    let expected = greedy("Alice was", "8") + "\n";
    let copy = published();
    let arguments = ["generate", "Alice was", "--max-tokens", "8", "--model", copy.path().to_str().unwrap()];
    assert_eq!(outcome(run(&arguments, "")), (true, expected.clone(), String::new()));
    shard(&copy);
    assert_eq!(outcome(run(&arguments, "")), (true, expected.clone(), String::new()));
    // Sampling is what `chat` takes from there; `generate` stays greedy.
    put_json(&copy, "generation_config.json", &json!({"do_sample": true, "temperature": 5.0}));
    assert_eq!(outcome(run(&arguments, "")), (true, expected, String::new()));
}

#[test]
fn stop_ids_come_from_the_generation_config() {
    let tokenizer = tokenizers::Tokenizer::from_file(Path::new(TINY).join("tokenizer.json")).unwrap();
    let text = greedy("Alice was", "12");
    let ids = tokenizer.encode(text.as_str(), false).unwrap().get_ids().to_vec();
    let at = (3..ids.len()).find(|&at| !ids[..at].contains(&ids[at])).unwrap();
    let expected = tokenizer.decode(&ids[..at], true).unwrap() + "\n";

    let copy = published();
    let arguments = ["generate", "Alice was", "--max-tokens", "12", "--model", copy.path().to_str().unwrap()];
    for eos in [json!(ids[at]), json!([1023, ids[at]])] {
        put_json(&copy, "generation_config.json", &json!({"eos_token_id": eos}));
        assert_eq!(outcome(run(&arguments, "")), (true, expected.clone(), String::new()));
    }
    put_json(&copy, "generation_config.json", &json!({"eos_token_id": [1023, 1024]}));
    let (success, _, stderr) = outcome(run(&arguments, ""));
    let reason = "generation_config.json: expected ids below 1024, the vocabulary of Tiny, as `eos_token_id`, found 1024\n";
    assert!(!success && stderr.ends_with(reason), "{stderr}");
}

#[test]
fn a_conversation_that_goes_on_runs_only_what_is_new() {
    let copy = conversing(PLAIN);
    let first = greedy("Alice was", "8");
    let second = greedy(&format!("Alice was{first} and the"), "8");
    let (success, text, stderr) =
        chat(&copy, &["--max-tokens", "8", "--stats"], "Alice was\n\n and the\n/exit\nnot read\n");
    assert!(success, "{stderr}");
    assert_eq!(text, format!("{first}\n{second}\n"));
    let turns = stderr.lines().find(|line| line.starts_with("turns")).unwrap();
    assert!(turns.starts_with("turns    2, ") && turns.ends_with("; 0 restarts dropped 0"), "{turns}");
    // The first prompt and its reply, whose last token the second prefill runs.
    let kept: usize = turns["turns    2, ".len()..].split(' ').next().unwrap().parse().unwrap();
    let tokenizer = tokenizers::Tokenizer::from_file(Path::new(TINY).join("tokenizer.json")).unwrap();
    assert_eq!(kept, tokenizer.encode("Alice was", false).unwrap().len() + 7);
}

#[test]
fn a_template_that_drops_what_was_thought_begins_anew() {
    let template = format!("{PLAIN}{{% if enable_thinking %}}<think>\n{{% endif %}}");
    let copy = conversing(&template);
    let options = ["--max-tokens", "4", "--stats", "--thinking", "on", "--system", "Alice"];
    let (success, text, stderr) = chat(&copy, &options, " was\n very\n");
    assert!(success, "{stderr}");
    assert_eq!(text.matches("<think>\n").count(), 2, "{text}");
    assert!(stderr.contains("turns    2, 0 tokens kept from turn to turn; 1 restarts dropped "), "{stderr}");

    let (_, text, stderr) =
        chat(&copy, &["--max-tokens", "4", "--stats", "--thinking", "off"], "Alice was\n");
    assert_eq!(text, greedy("Alice was", "4") + "\n");
    assert!(stderr.contains("; 0 restarts dropped 0"), "{stderr}");
}

#[test]
fn a_reset_begins_a_new_conversation() {
    let copy = conversing(PLAIN);
    let options = ["--max-tokens", "6", "--system", "Alice"];
    let (success, text, stderr) = chat(&copy, &options, " was\n/reset\n was\n");
    assert!(success, "{stderr}");
    let reply = greedy("Alice was", "6");
    assert_eq!(text, format!("{reply}\n{reply}\n"));
}

#[test]
fn a_template_in_the_tokenizer_config_is_found() {
    let copy = published();
    let expected = greedy("Alice was", "4") + "\n";
    let named = json!([{"name": "tool_use", "template": "no"}, {"name": "default", "template": PLAIN}]);
    for template in [json!(PLAIN), named] {
        put_json(&copy, "tokenizer_config.json", &json!({"chat_template": template}));
        assert_eq!(chat(&copy, &["--max-tokens", "4"], "Alice was"), (true, expected.clone(), String::new()));
    }
    // A file of its own comes first.
    put(&copy, "chat_template.jinja", "Alice was{{ messages[0].content }}");
    assert_eq!(chat(&copy, &["--max-tokens", "4"], " "), (true, String::new(), String::new()));
    assert_eq!(chat(&copy, &["--max-tokens", "0"], "x").1, "\n");
}

#[test]
fn without_a_template_there_is_no_conversation() {
    let expected = "expected a chat template in `chat_template.jinja` or as `chat_template` in `tokenizer_config.json`, found neither\n";
    let (success, _, stderr) = outcome(run(&["chat"], "Hello\n"));
    assert_eq!((success, stderr), (false, format!("error: built-in checkpoint: {expected}")));
    let copy = published();
    let (success, _, stderr) = chat(&copy, &[], "Hello\n");
    assert_eq!((success, stderr), (false, format!("error: {}: {expected}", copy.path().display())));
}

#[test]
fn a_bad_template_is_refused_with_file_and_line() {
    let copy = conversing("{% for message in messages %}\n{{ message.content }\n{% endfor %}");
    let (success, _, stderr) = chat(&copy, &[], "Hello\n");
    let place = copy.path().join("chat_template.jinja").display().to_string();
    let start = format!("error: {place}, line 2: expected a Jinja template, found: syntax error");
    assert!(!success && stderr.starts_with(&start), "{stderr}");
    put(&copy, "chat_template.jinja", "");
    copy_bytes(&copy, "chat_template.jinja", b"a\xff");
    let (_, _, stderr) = chat(&copy, &[], "Hello\n");
    assert!(
        stderr.ends_with("expected a template in UTF-8, found an invalid sequence at byte 1\n"),
        "{stderr}"
    );
}

#[test]
fn a_message_that_fails_is_taken_back() {
    let template = format!(
        "{{% if 'no' in messages[-1].content %}}{{{{ raise_exception('Not that.') }}}}{{% endif %}}{PLAIN}"
    );
    let copy = conversing(&template);
    let (success, text, stderr) = chat(&copy, &["--max-tokens", "4"], "no\nAlice was\n");
    assert!(
        !success && stderr.ends_with("line 1: the template refuses this conversation: Not that.\n"),
        "{stderr}"
    );
    assert_eq!(text, greedy("Alice was", "4") + "\n");
    // So is one that the context does not hold.
    let (success, text, stderr) =
        chat(&copy, &["--max-tokens", "4"], &format!("{}\nAlice was\n", "Alice ".repeat(600)));
    assert!(
        !success && stderr.ends_with("keeps 512 positions; `/reset` begins a new conversation\n"),
        "{stderr}"
    );
    assert_eq!(text, greedy("Alice was", "4") + "\n");
}

#[test]
fn a_conversation_is_drawn_as_the_generation_config_says() {
    let copy = conversing(PLAIN);
    let sampling = json!({
        "do_sample": true, "temperature": 3.0, "top_k": 500, "top_p": 0.99, "presence_penalty": 0.5,
        "eos_token_id": [1023], "min_p": 0.1,
    });
    put_json(&copy, "generation_config.json", &sampling);
    let draw = |options: &[&str]| chat(&copy, &[&["--max-tokens", "12"], options].concat(), "Alice was\n");
    let (success, drawn, stderr) = draw(&[]);
    assert!(success, "{stderr}");
    let place = copy.path().join("generation_config.json").display().to_string();
    let note = format!(
        "note: {place}: tokens are drawn: temperature 3, top-k 500, top-p 0.99, presence penalty 0.5, seed 0; \
         `--greedy` takes the likeliest\nnote: {place}: not applied: min_p 0.1\n"
    );
    assert_eq!(stderr, note);
    assert_eq!(draw(&[]).1, drawn);
    assert_ne!(draw(&["--seed", "9"]).1, drawn);
    let greedy = greedy("Alice was", "12") + "\n";
    assert_ne!(drawn, greedy);
    assert_eq!(draw(&["--greedy"]), (true, greedy.clone(), String::new()));
    assert_eq!(draw(&["--top-k", "1", "--presence-penalty", "0"]).1, greedy);
    assert!(!draw(&["--greedy", "--seed", "1"]).0);
    assert!(!draw(&["--repetition-penalty", "0"]).0);
}

#[test]
fn what_is_beside_the_weights_is_checked() {
    for (file, value, reason) in [
        (
            "tokenizer_config.json",
            json!({"eos_token": "<|no|>"}),
            "expected a token of tokenizer.json as `eos_token`, found `<|no|>`\n",
        ),
        (
            "tokenizer_config.json",
            json!({"eos_token": 3}),
            "expected a text or an object with `content` as `eos_token`, found 3\n",
        ),
        (
            "generation_config.json",
            json!({"do_sample": true, "top_p": 0}),
            "expected a way to sample, found top-p: expected a number above 0 and at most 1, found 0\n",
        ),
    ] {
        let copy = conversing(PLAIN);
        put_json(&copy, file, &value);
        let (success, _, stderr) = chat(&copy, &[], "Hello\n");
        assert!(!success && stderr.contains(file) && stderr.ends_with(reason), "{stderr}");
    }
}
