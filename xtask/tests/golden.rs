//! Goldens that are not what they say: each is an error that names the place, and none a panic.

#![cfg(test)]

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use xtask::golden::{Golden, GoldenError, hex};

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn floats(shape: &[usize], values: impl Iterator<Item = f32>) -> (Dtype, Vec<usize>, Vec<u8>) {
    let values: Vec<f32> = values.take(shape.iter().product()).collect();
    (Dtype::F32, shape.to_vec(), bytemuck::cast_slice(&values).to_vec())
}

fn ids(shape: &[usize], values: impl Iterator<Item = i32>) -> (Dtype, Vec<usize>, Vec<u8>) {
    let values: Vec<i32> = values.take(shape.iter().product()).collect();
    (Dtype::I32, shape.to_vec(), bytemuck::cast_slice(&values).to_vec())
}

/// Two prompts of two tokens, of which the three largest of eight logits were kept.
fn manifest() -> Value {
    json!({
        "format": 2,
        "model": "small",
        "captured": true,
        "logits": {"largest": 3},
        "files": {},
        "prompts": [
            {"text": "a", "ids": [1, 2], "tokens": [3, 4]},
            {"text": "b", "ids": [5], "tokens": [6, 7]},
        ],
        "layer_prompts": [0],
    })
}

fn tensors() -> Tensors {
    let up = || (0..).map(|i| i as f32 * 0.25);
    let list = [
        ("bf16.top_ids", ids(&[2, 2, 3], (0..8).cycle())),
        ("bf16.top_logprobs", floats(&[2, 2, 3], up())),
        ("largest.ids", ids(&[2, 2, 3], (0..8).cycle())),
        ("f32.largest", floats(&[2, 2, 3], up())),
        ("f32.rest", floats(&[2, 2], up())),
        ("bf16.largest", floats(&[2, 2, 3], up())),
        ("bf16.rest", floats(&[2, 2], up())),
        ("layers.00.bf16", floats(&[3, 2, 4], up())),
        ("layers.00.f32", floats(&[3, 2, 4], up())),
    ];
    list.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect()
}

fn written(manifest: &Value, tensors: &Tensors) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    fs::write(dir.path().join("golden.safetensors"), serialize(views, None).unwrap()).unwrap();
    fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    dir
}

fn error(manifest: &Value, tensors: &Tensors) -> String {
    let dir = written(manifest, tensors);
    let text = Golden::open(dir.path()).err().expect("an error").to_string();
    text.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn the_largest_logits_of_every_cell_are_read() {
    let dir = written(&manifest(), &tensors());
    let mut golden = Golden::open(dir.path()).unwrap();
    assert_eq!((golden.prompts.len(), golden.recorded, golden.cells_per_prompt()), (2, 2, 2));
    assert_eq!(golden.top(1, 0)[0], (6, 1.5));
    assert_eq!(golden.layer_outputs[0].layers.len(), 3);
    let divergences = golden.divergences(1, 1, &[0.0; 8]).unwrap();
    assert_eq!(divergences.reference, 0.0);
    assert!(divergences.ours > 0.0);
    assert!(golden.divergences(1, 0, &[0.0; 7]).is_err(), "a token beyond our vocabulary");
    golden.keep_first(1);
    assert_eq!((golden.prompts.len(), golden.recorded, golden.layer_outputs.len()), (1, 2, 1));
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let cases: [(&str, Value, &str); 9] = [
        ("/format", json!(3), "manifest.json: expected format 1 or 2, found 3"),
        ("/prompts", json!([]), "manifest.json: expected prompts, found none"),
        ("/prompts/1/ids", json!([]), "manifest.json: prompt 1 has no ids"),
        (
            "/prompts/1/tokens",
            json!([6]),
            "manifest.json: prompt 1 has another number of tokens than prompt 0",
        ),
        (
            "/layer_prompts",
            json!([2]),
            "golden.safetensors: layer_prompts names prompt 2, which there is not",
        ),
        ("/layer_prompts", json!([1]), "golden.safetensors: layers.01.bf16: "),
        ("/prompts/0/ids/0", json!(-1), "manifest.json is not a golden manifest: "),
        ("/logits", json!({"smallest": 3}), "manifest.json is not a golden manifest: "),
        ("/logits/largest", json!(2), "golden.safetensors: largest.ids: expected 2 ids in cell 0, found 3"),
    ];
    for (place, value, expected) in cases {
        let mut manifest = manifest();
        *manifest.pointer_mut(place).unwrap() = value;
        let found = error(&manifest, &tensors());
        assert!(found.starts_with(expected), "{place}: {found}");
    }
    let mut manifest = manifest();
    for prompt in [0, 1] {
        manifest["prompts"][prompt]["tokens"] = json!([]);
    }
    let expected = "manifest.json: expected tokens after each prompt, found none";
    assert_eq!(error(&manifest, &tensors()), expected);
}

#[test]
fn data_that_does_not_fit_is_refused() {
    let cases: [(&str, (Dtype, Vec<usize>, Vec<u8>), &str); 8] = [
        ("f32.largest", floats(&[2, 2, 2], (0..).map(|i| i as f32)), "f32.largest: expected 3 values a cell"),
        (
            "f32.largest",
            floats(&[7], (0..).map(|i| i as f32)),
            "f32.largest: expected 4 rows, found 7 values",
        ),
        ("f32.rest", floats(&[2, 2, 2], (0..).map(|i| i as f32)), "f32.rest: expected one value a cell"),
        ("bf16.top_ids", ids(&[2, 2, 2], 0..), "bf16.top_ids and bf16.top_logprobs differ in shape"),
        ("bf16.top_ids", ids(&[2, 2, 3], -1..), "bf16.top_ids: negative id -1"),
        (
            "largest.ids",
            ids(&[2, 2, 3], std::iter::repeat(1)),
            "largest.ids: expected 3 ids in cell 0, found 1",
        ),
        ("largest.ids", floats(&[2, 2, 3], (0..).map(|i| i as f32)), "largest.ids: expected I32, found F32"),
        (
            "layers.00.bf16",
            floats(&[3, 1, 4], (0..).map(|i| i as f32)),
            "layers.00.bf16: expected [3, 2, hidden]",
        ),
    ];
    for (name, tensor, expected) in cases {
        let mut tensors = tensors();
        tensors.insert(name.to_owned(), tensor);
        let found = error(&manifest(), &tensors);
        assert!(found.starts_with(&format!("golden.safetensors: {expected}")), "{name}: {found}");
    }
    for name in tensors().keys() {
        let mut tensors = tensors();
        tensors.remove(name);
        let found = error(&manifest(), &tensors);
        assert!(found.starts_with("golden.safetensors: ") && found.contains(name), "{name}: {found}");
    }
}

#[test]
fn damaged_data_is_found_by_its_checksum_and_without_one_is_no_panic() {
    let dir = written(&manifest(), &tensors());
    let path = dir.path().join("golden.safetensors");
    let good = fs::read(&path).unwrap();
    let sum = hex(&Sha256::digest(&good));
    for cut in [0, 4, 8, 100, good.len() - 1] {
        fs::write(&path, &good[..cut]).unwrap();
        assert!(Golden::open(dir.path()).is_err(), "{cut}");
    }
    let mut manifest = manifest();
    manifest["files"]["golden.safetensors"] = json!({"sha256": sum});
    fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(&path, &good).unwrap();
    Golden::open(dir.path()).unwrap();
    let mut bad = good;
    *bad.last_mut().unwrap() ^= 1;
    fs::write(&path, bad).unwrap();
    assert!(matches!(Golden::open(dir.path()), Err(GoldenError::Checksum { .. })));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn parity(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .current_dir(root())
        .arg("parity")
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
    )
}

/// It is neither passed nor failed.
#[test]
fn a_golden_that_nobody_captured_is_skipped_and_counted() {
    let golden = manifest_without_data();
    let dir = golden.path().to_str().unwrap();
    let (code, text) = parity(&["--golden", dir]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("not captured: 2 prompts") && text.ends_with("skipped 1\n"), "{text}");
    let (code, text) = parity(&["--golden", dir, "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["captured"], &report["skipped"]), (&json!(false), &json!(1)));
}

fn manifest_without_data() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let prompts = json!([{"text": "a", "ids": [1]}, {"text": "b", "ids": [2]}]);
    let manifest = json!({"format": 2, "model": "m", "captured": false, "prompts": prompts});
    fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    dir
}

/// The real weights' golden, with or without its data: the origin's prompts.
#[test]
fn the_real_weights_golden_has_the_origins_prompts() {
    let text = fs::read(root().join("goldens/qwen35_greedy_0_8b/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    let prompts = manifest["prompts"].as_array().unwrap();
    assert_eq!(prompts.len(), 16);
    assert_eq!(prompts[0]["text"], "The capital of France is");
    assert_eq!(prompts[0]["ids"], json!([760, 6511, 314, 9338, 369]));
}

/// Weights that a formula makes otherwise than where the golden was made are not used.
#[test]
fn synthetic_weights_are_checked_against_the_golden() {
    let mut manifest = manifest();
    let weights = json!({"formula": 1, "config": "tiny", "seed": 7, "sha256": "00", "tensors": {}});
    for (change, expected) in [
        (("sha256", json!("00")), "synthetic weights: expected SHA-256 00, found "),
        (("formula", json!(0)), "synthetic weights: expected formula 0, found formula 1"),
        (("config", json!("3b")), "synthetic weights: expected one of tiny, "),
    ] {
        manifest["weights"] = weights.clone();
        manifest["weights"][change.0] = change.1;
        let dir = written(&manifest, &tensors());
        let (code, text) = parity(&["--golden", dir.path().to_str().unwrap()]);
        assert_eq!(code, Some(1));
        assert!(text.starts_with(&format!("error: {expected}")), "{text}");
    }
}

/// The first prompts alone, and the count in the report.
#[test]
fn some_prompts_are_counted_as_some() {
    let (code, text) = parity(&["--backend", "cpu", "--prompts", "2"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("golden goldens/tiny (tiny): 2 of 16 prompts x 16 tokens\n"), "{text}");
    assert!(text.contains(" 2/2 ") && text.contains(" 32/32 "), "{text}");
    assert!(text.contains("the whole run: ") && text.contains("peak resident memory"), "{text}");
}
