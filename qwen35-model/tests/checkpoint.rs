//! Checkpoints in every form that is published, and in forms that are not.

#![cfg(test)]

mod support;

use qwen35_model::checkpoint::{Checkpoint, CheckpointError, TensorProblem, Verified};
use qwen35_model::config::tiny::{Hidden, ValueHeads, Vocab};
use qwen35_model::{Qwen35_0_8B, Tiny};
use safetensors::Dtype;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use support::{Copy, Stored, TINY, Tensors, write};
use tt_backend_cpu::CpuReference;
use tt_dsl::{Backend, Bf16, Dtype as _, F32, Shape, Tensor};

const INDEX: &str = "model.safetensors.index.json";

/// What `verify` says of a copy, as it would be printed.
fn refusal(copy: &Copy) -> String {
    let refused =
        Checkpoint::open(copy.path()).and_then(|checkpoint| checkpoint.verify::<Tiny>().map(|_| ()));
    let text = refused.unwrap_err().to_string();
    text.replace(&copy.path().display().to_string(), "DIR")
}

/// Replaces the one file by shards of every other tensor, and an index of them.
fn shard(copy: &Copy, change: impl FnOnce(&mut Value)) {
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let mut shards = [Tensors::new(), Tensors::new()];
    let mut index = json!({"metadata": {}, "weight_map": {}});
    copy.tensors(|tensors| {
        for (i, (name, stored)) in tensors.iter().enumerate() {
            shards[i % 2].insert(name.clone(), stored.clone());
            index["weight_map"][name] = json!(names[i % 2]);
        }
    });
    for (name, shard) in names.iter().zip(&shards) {
        fs::write(copy.path().join(name), write(shard)).unwrap();
    }
    change(&mut index);
    fs::write(copy.path().join(INDEX), index.to_string()).unwrap();
    fs::remove_file(copy.path().join("model.safetensors")).unwrap();
}

/// F32 to BF16 by leaving out the lower half.
fn narrow(stored: &mut Stored) {
    stored.dtype = Dtype::BF16;
    stored.bytes = stored.bytes.chunks(4).flat_map(|word| [word[2], word[3]]).collect();
}

#[test]
fn the_tiny_checkpoint_is_tiny_and_no_other() {
    let checkpoint = Checkpoint::open(TINY).unwrap();
    let verified = checkpoint.verify::<Tiny>().unwrap();
    assert!(verified.widened().is_empty());
    assert_eq!(verified.passed_over(), 0);
    assert_eq!(
        verified.bytes(),
        checkpoint.tensors().values().map(|t| t.bytes.as_slice().len() as u64).sum::<u64>()
    );
    assert!(matches!(checkpoint.verify::<Qwen35_0_8B>(), Err(CheckpointError::Config(_))));
}

#[test]
fn shards_are_one_checkpoint() {
    let copy = Copy::new();
    shard(&copy, |_| ());
    let (sharded, whole) = (Checkpoint::open(copy.path()).unwrap(), Checkpoint::open(TINY).unwrap());
    sharded.verify::<Tiny>().unwrap();
    assert_eq!(sharded.tensors().len(), whole.tensors().len());
    for (name, tensor) in whole.tensors() {
        assert_eq!(sharded.tensors()[name].bytes.as_slice(), tensor.bytes.as_slice(), "{name}");
    }
}

#[test]
fn an_index_that_contradicts_its_shards_is_refused() {
    let refusal_of = |change: fn(&mut Value)| {
        let copy = Copy::new();
        shard(&copy, change);
        refusal(&copy)
    };
    assert_eq!(
        refusal_of(|index| index["weight_map"]["model.norm.weight"] = json!("model-00003.safetensors")),
        format!(
            "DIR/{INDEX}: expected the shard `model-00003.safetensors` that the index names, found no such file"
        )
    );
    assert_eq!(
        refusal_of(|index| index["weight_map"]["model.more"] = json!("model-00001-of-00002.safetensors")),
        "DIR/model-00001-of-00002.safetensors: expected tensor `model.more`, which the index places there, \
         found no such tensor"
    );
    assert_eq!(
        refusal_of(|index| {
            index["weight_map"].as_object_mut().unwrap().remove("model.embed_tokens.weight");
        }),
        "DIR/model-00001-of-00002.safetensors: expected the tensors that the index lists, \
         found tensor `model.embed_tokens.weight`, which the index does not place there"
    );
    for path in [json!("../model.safetensors"), json!("/etc/passwd"), json!(""), json!(".."), json!(7)] {
        let copy = Copy::new();
        shard(&copy, |index| index["weight_map"]["model.norm.weight"] = path);
        let refusal = refusal(&copy);
        assert!(
            refusal.contains("expected a file name as the shard of tensor `model.norm.weight`"),
            "{refusal}"
        );
    }
    assert_eq!(
        refusal_of(|index| *index = json!({})),
        format!("DIR/{INDEX}: expected an object `weight_map`, found none")
    );
}

#[test]
fn the_published_names_are_read_and_other_models_passed_over() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        let renamed = |name: &str| name.replacen("model.", "model.language_model.", 1);
        *tensors = tensors.iter().map(|(name, stored)| (renamed(name), stored.clone())).collect();
        let other = Stored { dtype: Dtype::F16, shape: vec![1], bytes: vec![0; 2] };
        for name in ["model.visual.patch_embed.weight", "visual.x", "mtp.layers.0.norm.weight"] {
            tensors.insert(name.to_owned(), other.clone());
        }
    });
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    assert_eq!(checkpoint.verify::<Tiny>().unwrap().passed_over(), 3);

    copy.tensors(|tensors| {
        let stranger = tensors["model.visual.patch_embed.weight"].clone();
        tensors.insert("model.norm.weight".to_owned(), stranger);
    });
    assert_eq!(
        refusal(&copy),
        "DIR: tensor `model.norm.weight`: expected no such tensor, found F16 [1] in model.safetensors"
    );
}

#[test]
fn a_name_with_line_breaks_is_an_error_of_one_line() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        let stored = tensors["model.norm.weight"].clone();
        tensors.insert("model.a\nerror: \u{1b}[2Jb".to_owned(), stored);
    });
    assert_eq!(
        refusal(&copy),
        "DIR: tensor `model.a\\nerror: \\u{1b}[2Jb`: expected no such tensor, found BF16 [192] in model.safetensors"
    );
}

#[test]
fn names_of_no_known_form_are_refused() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        *tensors =
            tensors.iter().map(|(name, stored)| (name.replacen("model.", "m.", 1), stored.clone())).collect();
    });
    assert_eq!(
        refusal(&copy),
        "DIR: expected tensor names that start with `model.language_model.` or `model.`, \
         found `m.embed_tokens.weight`"
    );
}

#[test]
fn a_log_and_the_gated_norm_may_be_bf16_and_nothing_else_may_change() {
    let copy = Copy::new();
    copy.tensors(|tensors| tensors.values_mut().filter(|stored| stored.dtype == Dtype::F32).for_each(narrow));
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    let verified: Verified<'_, Tiny> = checkpoint.verify().unwrap();
    assert_eq!(verified.widened().len(), 12);
    assert_eq!(verified.widened()[0], "model.layers.0.linear_attn.A_log");

    copy.tensors(|tensors| {
        let stored = tensors.get_mut("model.layers.0.linear_attn.dt_bias").unwrap();
        stored.dtype = Dtype::F32;
        stored.bytes = stored.bytes.chunks(2).flat_map(|half| [0, 0, half[0], half[1]]).collect();
    });
    assert_eq!(
        refusal(&copy),
        "DIR: tensor `model.layers.0.linear_attn.dt_bias`: expected dtype BF16, found F32 in model.safetensors"
    );
    copy.tensors(|tensors| {
        let stored = tensors.get_mut("model.layers.0.linear_attn.A_log").unwrap();
        stored.dtype = Dtype::F16;
        tensors.get_mut("model.layers.0.linear_attn.dt_bias").unwrap().dtype = Dtype::I32;
    });
    assert!(refusal(&copy).contains("expected dtype F32 or BF16, found F16"));
}

#[test]
fn every_problem_is_listed_at_once() {
    let copy = Copy::new();
    copy.tensors(|tensors| {
        tensors.remove("model.layers.3.self_attn.q_proj.weight").unwrap();
        tensors.get_mut("model.layers.1.mlp.up_proj.weight").unwrap().shape.reverse();
        tensors.get_mut("model.norm.weight").unwrap().dtype = Dtype::F16;
        let head = tensors["model.embed_tokens.weight"].clone();
        tensors.insert("lm_head.weight".to_owned(), head);
    });
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    let Err(CheckpointError::Tensors(listed)) = checkpoint.verify::<Tiny>() else {
        panic!("expected a list of tensors");
    };
    let kinds = listed.problems.iter().map(|problem| match problem {
        TensorProblem::Missing { .. } => "missing",
        TensorProblem::Surplus { .. } => "surplus",
        TensorProblem::Shape { .. } => "shape",
        TensorProblem::Dtype { .. } => "dtype",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["shape", "missing", "dtype", "surplus"]);
    assert_eq!(
        refusal(&copy),
        "DIR: 4 tensors differ from those of Tiny\n  \
         tensor `model.layers.1.mlp.up_proj.weight`: expected shape [384, 192] = (Intermediate, Hidden), \
         found [192, 384] in model.safetensors\n  \
         tensor `model.layers.3.self_attn.q_proj.weight`: \
         expected BF16 [1024, 192] = (By<Heads, By<Two, HeadDim>>, Hidden), found no such tensor\n  \
         tensor `model.norm.weight`: expected dtype BF16, found F16 in model.safetensors\n  \
         tensor `lm_head.weight`: expected no such tensor, found BF16 [1024, 192] in model.safetensors"
    );
}

#[test]
fn a_place_that_is_no_checkpoint_is_refused() {
    let copy = Copy::new();
    let open = |name: &str| Checkpoint::open(copy.path().join(name)).err().unwrap();
    assert!(matches!(open("nowhere"), CheckpointError::Directory { found: "no such directory", .. }));
    assert!(matches!(open("config.json"), CheckpointError::Directory { found: "a file", .. }));
    fs::remove_file(copy.path().join("model.safetensors")).unwrap();
    assert!(matches!(open(""), CheckpointError::NoWeights { .. }));
    fs::create_dir(copy.path().join("model.safetensors")).unwrap();
    assert!(matches!(open(""), CheckpointError::Io { .. }));
}

#[test]
fn a_missing_or_damaged_config_is_refused() {
    let copy = Copy::new();
    copy.bytes("config.json", |bytes| bytes.truncate(40));
    assert!(refusal(&copy).starts_with("DIR/config.json: expected valid JSON, found "));
    fs::remove_file(copy.path().join("config.json")).unwrap();
    assert!(refusal(&copy).starts_with("DIR/config.json: expected a readable file, found: "));
    fs::write(copy.path().join("config.json"), "{}").unwrap();
    copy.json("config.json", |value| *value = json!({"model_type": "llama"}));
    assert!(refusal(&copy).contains("model_type: expected \"qwen3_5_text\", found \"llama\""));
}

/// The bytes of a staged tensor.
fn bytes<S: Shape, E: tt_dsl::Dtype>(b: &CpuReference, tensor: &Tensor<CpuReference, S, E>) -> Vec<u8> {
    b.download(tensor).unwrap().bytes().as_slice().to_vec()
}

#[test]
fn names_are_walked_to_tensors() {
    let checkpoint = Checkpoint::open(TINY).unwrap();
    let verified = checkpoint.verify::<Tiny>().unwrap();
    let b = CpuReference::with_threads(1);
    let staged = RefCell::new(Vec::new());
    let progress = |tensor: qwen35_model::checkpoint::Staged<'_>| {
        staged.borrow_mut().push((tensor.name.to_owned(), tensor.bytes));
    };
    let weights = verified.weights(&b).with_progress(&progress);

    let embed: Tensor<_, (Vocab, Hidden), Bf16> = weights.tensor("embed_tokens.weight").unwrap();
    let at = weights.at("layers").at(5).at("linear_attn");
    let dt_bias: Tensor<_, (ValueHeads,), Bf16> = at.tensor("dt_bias").unwrap();
    b.submit().unwrap();
    let stored = |name: &str| checkpoint.tensors()[name].bytes.as_slice();
    assert_eq!(bytes(&b, &embed), stored("model.embed_tokens.weight"));
    assert_eq!(bytes(&b, &dt_bias), stored("model.layers.5.linear_attn.dt_bias"));
    assert_eq!(
        staged.into_inner(),
        [("embed_tokens.weight".to_owned(), 393_216), ("layers.5.linear_attn.dt_bias".to_owned(), 8)]
    );
}

#[test]
fn a_tensor_is_staged_as_it_lies_also_at_an_odd_offset() {
    let copy = Copy::new();
    // Spaces after a header are part of the format; one moves every tensor by one byte.
    copy.bytes("model.safetensors", |bytes| {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        bytes[..8].copy_from_slice(&(length + 1).to_le_bytes());
        bytes.insert(8 + length as usize, b' ');
    });
    let (moved, whole) = (Checkpoint::open(copy.path()).unwrap(), Checkpoint::open(TINY).unwrap());
    let address = moved.tensors()["model.norm.weight"].bytes.as_slice().as_ptr() as usize;
    assert_eq!(address % Bf16::BYTES, 1);
    let b = CpuReference::with_threads(1);
    let embed = |checkpoint: &Checkpoint| {
        let verified = checkpoint.verify::<Tiny>().unwrap();
        let tensor: Tensor<_, (Vocab, Hidden), Bf16> =
            verified.weights(&b).tensor("embed_tokens.weight").unwrap();
        b.submit().unwrap();
        bytes(&b, &tensor)
    };
    assert_eq!(embed(&moved), embed(&whole));
}

#[test]
fn widening_is_exact() {
    let copy = Copy::new();
    let a_log = |checkpoint: &Checkpoint| {
        let verified = checkpoint.verify::<Tiny>().unwrap();
        let b = CpuReference::with_threads(1);
        let at = verified.weights(&b).at("layers").at(0).at("linear_attn");
        let tensor: Tensor<_, (ValueHeads,), F32> = at.widened("A_log").unwrap();
        b.submit().unwrap();
        bytes(&b, &tensor)
    };
    let published = a_log(&Checkpoint::open(copy.path()).unwrap());
    // The golden checkpoint's values are exact in BF16, so nothing is lost on the way there.
    copy.tensors(|tensors| narrow(tensors.get_mut("model.layers.0.linear_attn.A_log").unwrap()));
    assert_eq!(a_log(&Checkpoint::open(copy.path()).unwrap()), published);
}

#[test]
fn a_layer_that_asks_for_what_is_not_there_gets_an_error() {
    let checkpoint = Checkpoint::open(TINY).unwrap();
    let verified = checkpoint.verify::<Tiny>().unwrap();
    let b = CpuReference::with_threads(1);
    let weights = verified.weights(&b);
    let missing = weights.at("layers").at(3).tensor::<(Hidden,), Bf16>("no.weight").unwrap_err();
    assert!(
        missing
            .to_string()
            .contains("`model.layers.3.no.weight`: expected BF16 [192] = (Hidden,), found no such")
    );
    let shape = weights.tensor::<(Vocab,), Bf16>("norm.weight").unwrap_err();
    assert!(shape.to_string().contains("expected shape [1024] = (Vocab,), found [192] in model.safetensors"));
    let dtype = weights.tensor::<(Hidden,), F32>("norm.weight").unwrap_err();
    assert!(dtype.to_string().contains("expected dtype F32, found BF16 in model.safetensors"));
    // The head is at the top level, wherever the walk has come to.
    let head = weights.at("layers").head::<(Vocab, Hidden), Bf16>("lm_head.weight").unwrap_err();
    assert!(head.to_string().contains("tensor `lm_head.weight`: expected BF16"), "{head}");
}
