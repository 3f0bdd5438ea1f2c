//! Synthetic weights: the same bits as the independent implementation in `goldens/scripts/synthetic.py`,
//! and a checkpoint that is read as a published one.

#![cfg(test)]

use qwen35_model::checkpoint::{Checkpoint, ConfigJson, inventory};
use qwen35_model::generate::{Generation, Stop};
use qwen35_model::known::Known;
use qwen35_model::sampling::Sampler;
use qwen35_model::synthetic::{PublishError, PublishOptions, Synthetic};
use qwen35_model::{Model, Qwen35_0_8B, Tiny};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tt_backend_cpu::Cpu;
use xtask::golden::hex;

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens")
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// What `synthetic.py` computed; `synthetic.py --config tiny --seed 7` prints the single sums.
#[test]
fn every_tensor_of_the_tiny_size_has_the_bits_that_numpy_gives() {
    let weights = Synthetic::<Tiny>::new(7);
    let mut whole = Sha256::new();
    for expected in inventory::<Tiny>() {
        whole.update(weights.tensor(&expected.name).unwrap());
    }
    let sum = |name| sha256(&weights.tensor(name).unwrap());
    assert_eq!(
        sum("embed_tokens.weight"),
        "9ae8c1e7516ffdfd8a6432dab28113542c836bf5c88d2413cece00e00f6cd48a"
    );
    assert_eq!(sum("norm.weight"), "31a458c1b218ee92ee36a312c658baaa8ed15176ce9d6efcaa80807a1908ed72");
    assert_eq!(hex(&whole.finalize()), "915d104363080bdb8096829447824e412a8d066c4a499d1d5a36cb086dd62736");
    assert!(weights.tensor("layers.8.mlp.up_proj.weight").is_none());
}

/// The sample of tensors in the golden's manifest: one of each kind but the embedding table, which is
/// a third of a gigabyte and checked with the rest by `cargo xtask parity`.
#[test]
fn tensors_of_the_full_size_have_the_bits_that_numpy_gives() {
    let text = fs::read(goldens().join("qwen35_greedy_0_8b_synthetic/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    let weights = Synthetic::<Qwen35_0_8B>::new(manifest["weights"]["seed"].as_u64().unwrap());
    let sums = manifest["weights"]["tensors"].as_object().unwrap();
    assert_eq!(sums.len(), 12);
    for (name, sum) in sums {
        assert_eq!(json!(sha256(&weights.tensor(name).unwrap())), *sum, "{name}");
    }
}

#[test]
fn another_seed_gives_other_weights() {
    let [a, b] = [0, 1].map(|seed| Synthetic::<Tiny>::new(seed).tensor("norm.weight").unwrap());
    assert_ne!(a, b);
}

/// Opens a checkpoint of the tiny size, and eight greedy tokens of it.
fn tokens(checkpoint: &Checkpoint) -> Vec<u32> {
    assert_eq!(Known::of(&ConfigJson::of(checkpoint).unwrap()).unwrap(), Known::Tiny);
    let verified = checkpoint.verify::<Tiny>().unwrap();
    assert_eq!(verified.widened(), Vec::<String>::new());
    let b = Cpu::with_threads(1);
    let model = Model::<_, Tiny>::load(&b, &verified.weights(&b)).unwrap();
    let stop = Stop::after::<Tiny>(8);
    Generation::start(&b, &model, &[1, 2, 3], Sampler::greedy(), stop).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_written_checkpoint_is_read_as_a_published_one() {
    let dir = tempfile::tempdir().unwrap();
    let weights = Synthetic::<Tiny>::new(3);
    let (one, three) = (dir.path().join("one"), dir.path().join("three"));
    let tokenizer = fs::read(goldens().join("tiny/tokenizer.json")).unwrap();
    let options = PublishOptions { tokenizer: Some(tokenizer.clone()), shards: None };
    let published = weights.write(&one, &options).unwrap();
    assert_eq!(
        published.files,
        ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"]
    );
    assert_eq!(published.tensors, inventory::<Tiny>().len());
    let cut = weights.write(&three, &PublishOptions { tokenizer: None, shards: Some(3) }).unwrap();
    assert_eq!(cut.files.len(), 3 + 3);
    assert_eq!(cut.bytes, published.bytes);
    assert!(cut.files.contains(&"model-00003-of-00003.safetensors".to_owned()), "{:?}", cut.files);

    let [one_file, shards] = [&one, &three].map(|dir| Checkpoint::open(dir).unwrap());
    assert_eq!(one_file.tokenizer_bytes().unwrap().1.as_ref(), tokenizer);
    assert_eq!(one_file.verify::<Tiny>().unwrap().passed_over(), 4);
    assert_eq!(one_file.verify::<Tiny>().unwrap().bytes(), published.bytes);
    let in_memory = weights.checkpoint(None);
    for (name, tensor) in in_memory.tensors() {
        for file in [&one_file, &shards] {
            let stored = &file.tensors()[name];
            assert!(stored.dtype == tensor.dtype && stored.shape == tensor.shape, "{name}");
            assert!(stored.bytes.as_slice() == tensor.bytes.as_slice(), "{name}");
        }
    }
    let found = tokens(&in_memory);
    assert_eq!(found.len(), 8);
    assert_eq!(tokens(&one_file), found);
    assert_eq!(tokens(&shards), found);
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let weights = Synthetic::<Tiny>::new(3);
    let write = |options: &PublishOptions| weights.write(dir.path(), options);
    for shards in [0, 10_000] {
        let error = write(&PublishOptions { tokenizer: None, shards: Some(shards) }).unwrap_err();
        assert!(matches!(error, PublishError::Shards { .. }), "{error}");
    }
    write(&PublishOptions::default()).unwrap();
    let error = write(&PublishOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("expected a folder without weights, found "), "{error}");
    let file = dir.path().join("config.json").join("below");
    assert!(matches!(weights.write(&file, &PublishOptions::default()), Err(PublishError::Write { .. })));
}

#[test]
fn the_command_says_what_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let run = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["synthesize", "--config", "tiny", "--seed", "9", "--out"]).arg(dir.path()).args(extra);
        command.output().unwrap()
    };
    let output = run(&["--tokenizer", "no/such/file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: cannot read no/such/file: "));
    let output = run(&[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(": synthetic Tiny of seed 9: 108 tensors, "), "{text}");
}
