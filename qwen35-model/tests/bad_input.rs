//! Bad input to the command: one line that says what is wrong, exit code 1, no panic.

#![cfg(test)]

#[path = "support/command.rs"]
mod command;
mod support;

use command::run;
use safetensors::Dtype;
use serde_json::json;
use std::path::Path;
use support::Copy;

/// Runs the command and checks that it refuses in one line, with all of `words` in it.
fn refuses(arguments: &[&str], input: &[u8], words: &[&str]) {
    let output = run(arguments, input);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&output.stdout));
    assert!(error.starts_with("error: ") && error.ends_with('\n') && error.lines().count() == 1, "{error}");
    assert!(!error.contains("panicked"), "{error}");
    for word in words {
        assert!(error.contains(word), "expected `{word}` in: {error}");
    }
}

/// [`refuses`] for a prompt that would be right and a checkpoint that is not.
fn refuses_model(dir: &Path, words: &[&str]) {
    refuses(&["generate", "Alice was", "--model", dir.to_str().unwrap()], b"", words);
}

#[test]
fn no_such_directory() {
    let copy = Copy::new();
    refuses_model(
        &copy.path().join("absent"),
        &["absent", "expected a checkpoint directory", "no such directory"],
    );
}

#[test]
fn no_weights() {
    let copy = Copy::new();
    std::fs::remove_file(copy.path().join("model.safetensors")).unwrap();
    refuses_model(copy.path(), &["model.safetensors", "model.safetensors.index.json", "found neither"]);
}

#[test]
fn truncated_safetensors() {
    let copy = Copy::new();
    let mut whole = 0;
    copy.bytes("model.safetensors", |bytes| {
        whole = bytes.len();
        bytes.truncate(whole - 100);
    });
    refuses_model(copy.path(), &["model.safetensors: expected", "bytes of tensors", "found"]);
    copy.bytes("model.safetensors", |bytes| bytes.truncate(50));
    refuses_model(copy.path(), &["expected a safetensors header of", "found 42 bytes"]);
    copy.bytes("model.safetensors", Vec::clear);
    refuses_model(copy.path(), &["model.safetensors: expected", "found 0 bytes"]);
}

#[test]
fn header_that_lies_about_lengths() {
    let copy = Copy::new();
    copy.bytes("model.safetensors", |bytes| {
        let at = bytes.windows(10).position(|window| window == b"[1024,192]").unwrap();
        bytes[at..at + 10].copy_from_slice(b"[1025,192]");
    });
    refuses_model(copy.path(), &["model.safetensors: expected a valid safetensors header", "shape"]);
    copy.bytes("model.safetensors", |bytes| bytes[7] = 0x7f);
    refuses_model(copy.path(), &["expected a safetensors header of 9151314442816"]);
}

#[test]
fn a_tensor_of_another_dtype() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        let stored = tensors.get_mut("model.norm.weight").unwrap();
        stored.dtype = Dtype::F32;
        stored.bytes = stored.bytes.chunks(2).flat_map(|half| [0, 0, half[0], half[1]]).collect();
    });
    refuses_model(
        copy.path(),
        &["`model.norm.weight`", "expected dtype BF16", "found F32", "model.safetensors"],
    );
}

#[test]
fn a_tensor_of_another_shape() {
    let copy = Copy::new();
    copy.tensors(|tensors| tensors.get_mut("model.layers.0.mlp.down_proj.weight").unwrap().shape.reverse());
    let words =
        ["`model.layers.0.mlp.down_proj.weight`", "[192, 384] = (Hidden, Intermediate)", "found [384, 192]"];
    refuses_model(copy.path(), &words);
}

#[test]
fn a_tensor_missing() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        tensors.remove("model.layers.3.self_attn.q_norm.weight").unwrap();
    });
    let words = [
        "`model.layers.3.self_attn.q_norm.weight`",
        "expected BF16 [128] = (HeadDim,)",
        "found no such tensor",
    ];
    refuses_model(copy.path(), &words);
}

#[test]
fn a_tensor_too_many() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        let head = tensors["model.embed_tokens.weight"].clone();
        tensors.insert("lm_head.weight".to_owned(), head);
    });
    refuses_model(copy.path(), &["`lm_head.weight`", "expected no such tensor", "found BF16"]);
}

#[test]
fn a_config_of_another_size() {
    let copy = Copy::new();
    copy.json("config.json", |config| config["hidden_size"] = json!(2048));
    let words = [
        "Tiny (hidden_size: expected 192, found 2048)",
        "Qwen3.5-0.8B (vocab_size: expected 248320, found 1024",
    ];
    refuses_model(copy.path(), &words);
    copy.json("config.json", |config| *config = json!({}));
    refuses_model(copy.path(), &["config.json", "Tiny", "found no such key"]);
    copy.bytes("config.json", |bytes| bytes.truncate(1));
    refuses_model(copy.path(), &["config.json: expected valid JSON"]);
}

#[test]
fn another_rope_theta() {
    let copy = Copy::new();
    copy.json("config.json", |config| config["rope_parameters"]["rope_theta"] = json!(10000));
    refuses_model(
        copy.path(),
        &["config.json: rope_parameters.rope_theta: expected 10000000", "found 10000"],
    );
    copy.json("config.json", |config| {
        config["rope_parameters"].as_object_mut().unwrap().remove("rope_theta");
        config["rope_theta"] = json!(10000000);
    });
    refuses_model(copy.path(), &["rope_parameters.rope_theta: expected 10000000", "found no such key"]);
}

#[test]
fn a_tokenizer_of_another_vocabulary() {
    let copy = Copy::new();
    copy.json("tokenizer.json", |tokenizer| tokenizer["model"]["vocab"]["far"] = json!(4000));
    refuses_model(
        copy.path(),
        &["tokenizer.json: expected the vocabulary of Tiny (ids below 1024)", "found id 4000"],
    );
    copy.bytes("tokenizer.json", |bytes| bytes.truncate(100));
    refuses_model(copy.path(), &["tokenizer.json: expected a byte-level BPE tokenizer"]);
    std::fs::remove_file(copy.path().join("tokenizer.json")).unwrap();
    refuses_model(copy.path(), &["tokenizer.json: expected a readable file"]);
}

#[test]
fn prompts() {
    refuses(&["generate", ""], b"", &["prompt: expected text, found none"]);
    refuses(&["generate"], b"", &["prompt: expected text, found none"]);
    refuses(&["generate", "-"], b"\n", &["prompt: expected text, found none"]);
    refuses(&["generate"], b"Alice \xc3\x28", &["standard input: expected UTF-8 text", "at byte 6"]);
    let long = "Alice was beginning to get very tired. ".repeat(200);
    refuses(
        &["generate"],
        long.as_bytes(),
        &["prompt: expected at most 512 tokens, the context of Tiny, found"],
    );
}

#[test]
fn sampling_parameters() {
    refuses(
        &["generate", "Alice", "--temperature", "0"],
        b"",
        &["temperature: expected a finite number above 0"],
    );
    refuses(&["generate", "Alice", "--temperature=NaN"], b"", &["temperature", "found NaN"]);
    refuses(&["generate", "Alice", "--top-k", "0"], b"", &["top-k: expected at least 1"]);
    refuses(&["generate", "Alice", "--top-p", "1.5"], b"", &["top-p: expected", "found 1.5"]);
}

#[test]
fn wrong_arguments_are_usage_errors() {
    for arguments in [
        &["generate", "Alice", "--threads", "0"][..],
        &["generate", "Alice", "--max-tokens", "x"],
        &["train"],
    ] {
        assert_eq!(run(arguments, b"").status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn info_reports_and_tells_by_its_exit_code() {
    let output = run(&["info"], b"");
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("(By<Heads, By<Two, HeadDim>>, Hidden)"), "{report}");

    let copy = Copy::new();
    copy.json("config.json", |config| config["hidden_size"] = json!(256));
    copy.tensors(|tensors| {
        tensors.remove("model.norm.weight").unwrap();
    });
    let output = run(&["info", "--model", copy.path().to_str().unwrap()], b"");
    let (report, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(report.contains("hidden_size: expected 192, found 256"), "{report}");
    assert!(
        report.contains("tensor `model.norm.weight`: expected BF16 [192] = (Hidden,), found no such"),
        "{report}"
    );
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    assert!(
        error.contains("expected Tiny, found differences in config.json (1) and in the tensors (1)"),
        "{error}"
    );
}
