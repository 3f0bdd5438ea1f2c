//! The gate as a program: what it prints, and its exit codes.

#![cfg(test)]

use std::path::Path;
use std::process::{Command, Output};

fn parity(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .arg("parity")
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = parity(&[&["--json", "--strict"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every prompt, every cell, nothing excused; and the logits' bits do not depend on the threads.
#[test]
fn the_cpu_writes_the_references_tokens_with_any_number_of_threads() {
    let reports = ["1", "2", "3"].map(|threads| json(&["--backend", "cpu", "--threads", threads]));
    for report in &reports {
        let backend = &report["backends"][0];
        assert_eq!(backend["prompts_equal"], 16);
        assert_eq!(backend["cells"], 256);
        assert_eq!(backend["cells_equal"], 256);
        assert_eq!(backend["cells_equal_teacher_forced"], 256);
        assert_eq!(backend["cells_excused"].as_array().unwrap().len(), 0);
        assert_eq!(backend["self_check"]["pass"], true);
        assert_eq!(backend["first_divergence"], serde_json::Value::Null);
        assert!(backend["quality_ratio"].as_f64().unwrap() <= 1.0);
        assert_eq!(backend["logits_sha256"], reports[0]["backends"][0]["logits_sha256"]);
    }
}

/// With the card's arithmetic at HiFi3 and HiFi4 into f32; a coarser one must not pass.
#[test]
fn the_device_model_writes_the_references_tokens() {
    let report = json(&["--backend", "tt", "--fidelity", "hifi3,hifi4"]);
    let backends = report["backends"].as_array().unwrap();
    assert_eq!(backends.len(), 2);
    for backend in backends {
        assert_eq!(backend["prompts_equal"], 16);
        assert_eq!(backend["cells_equal"], 256);
        assert_eq!(backend["cells_excused"].as_array().unwrap().len(), 0);
        assert_eq!(backend["self_check"]["pass"], true);
    }
    let coarse = parity(&["--backend", "tt", "--fidelity", "lofi"]);
    assert_eq!(coarse.status.code(), Some(1));
    assert!(String::from_utf8(coarse.stdout).unwrap().contains("first layer out of tolerance: layer 0"));
}

#[test]
fn layers_are_printed_and_named() {
    let output = parity(&["--backend", "cpu", "--layers"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("layer 3 (attention)"), "{text}");
    assert!(text.contains("every layer is within tolerance"), "{text}");
}

#[test]
fn a_golden_that_is_not_there_is_one_line() {
    let output = parity(&["--golden", "no/such/folder"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: cannot read no/such/folder/manifest.json: "), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn a_failed_check_is_exit_code_one() {
    let output = parity(&["--backend", "cpu", "--max-quality-ratio", "0.01"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("quality ratio: expected at most 0.01"));
}
