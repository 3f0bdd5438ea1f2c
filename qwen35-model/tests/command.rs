//! The command at work.

#![cfg(test)]

#[path = "support/command.rs"]
mod command;

use command::run;
use safetensors::SafeTensors;
use std::path::Path;
use std::process::{Command, Stdio};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../goldens/tiny");

/// The text on standard output of a run that succeeds.
fn text(arguments: &[&str], input: &str) -> String {
    let output = run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The first golden prompt, and the text of its sixteen golden tokens.
fn golden() -> (String, String) {
    let read = |name: &str| std::fs::read(Path::new(TINY).join(name)).unwrap();
    let prompts: Vec<String> = serde_json::from_slice(&read("prompts.json")).unwrap();
    let file = read("golden.safetensors");
    let tokens = SafeTensors::deserialize(&file).unwrap().tensor("bf16.tokens").unwrap();
    let ids: Vec<u32> =
        tokens.data().chunks(4).take(16).map(|id| u32::from_le_bytes(id.try_into().unwrap())).collect();
    let tokenizer = tokenizers::Tokenizer::from_bytes(read("tokenizer.json")).unwrap();
    (prompts[0].clone(), tokenizer.decode(&ids, true).unwrap())
}

#[test]
fn the_golden_text_is_written_and_nothing_else() {
    let (prompt, continuation) = golden();
    let expected = continuation + "\n";
    assert_eq!(text(&["generate", &prompt, "--max-tokens", "16"], ""), expected);
    // By another way to each of the same inputs.
    let named =
        ["generate", "--max-tokens", "16", "--model", TINY, "--backend", "cpu-reference", "--threads", "2"];
    assert_eq!(text(&named, &format!("{prompt}\n")), expected);
}

#[test]
fn the_device_model_writes_the_same_text() {
    let (prompt, continuation) = golden();
    for numerics in ["tensix", "fast"] {
        let arguments =
            ["generate", &prompt, "--max-tokens", "16", "--backend", "tt", "--numerics", numerics];
        assert_eq!(text(&arguments, ""), format!("{continuation}\n"), "{numerics}");
    }
}

#[test]
fn statistics_of_a_device_count_what_crossed() {
    let output = run(&["generate", "Alice was", "--max-tokens", "5", "--stats", "--backend", "tt"], "");
    let stats = String::from_utf8(output.stderr).unwrap();
    // 108 weights and the state's zeros are made in 9 calls; 5 passes write 5 steps and read 5 ids.
    assert!(stats.contains("to device      113 writes") && stats.contains("in 9 staging calls"), "{stats}");
    assert!(stats.contains("; 0 bytes through f32") && stats.contains("from device      5 reads"), "{stats}");
}

#[test]
fn statistics_go_to_standard_error() {
    let output = run(&["generate", "Alice was", "--max-tokens", "5", "--stats"], "");
    let stats = String::from_utf8(output.stderr).unwrap();
    let line = |name: &str| stats.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("prefill").ends_with("tok/s") && line("decode").contains(" 4 tokens"), "{stats}");
}

#[test]
fn a_seed_gives_the_same_text_again() {
    let draw = |seed: &str| {
        text(
            &[
                "generate",
                "Alice",
                "--max-tokens",
                "12",
                "--temperature",
                "2.5",
                "--top-k",
                "500",
                "--seed",
                seed,
            ],
            "",
        )
    };
    assert_eq!(draw("7"), draw("7"));
    assert_ne!(draw("7"), draw("8"));
}

#[test]
fn a_single_candidate_is_the_greedy_text() {
    let greedy = text(&["generate", "Alice was", "--max-tokens", "8"], "");
    assert_eq!(
        text(&["generate", "Alice was", "--max-tokens", "8", "--top-k", "1", "--seed", "3"], ""),
        greedy
    );
    assert_eq!(text(&["generate", "Alice was", "--max-tokens", "0"], ""), "\n");
}

/// The text comes first, whole, then the reason why it stops there.
#[test]
fn the_end_of_the_context_is_an_error_after_the_text() {
    let output = run(&["generate", "Alice was", "--max-tokens", "100000"], "");
    assert_eq!(output.status.code(), Some(1));
    let expected =
        "error: the context is full: 1 more tokens after position 512, but Tiny keeps 512 positions\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with('\n') && text.split_whitespace().count() > 200, "{text}");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_qwen35"))
        .args(["generate", "Alice was", "--max-tokens", "50"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
