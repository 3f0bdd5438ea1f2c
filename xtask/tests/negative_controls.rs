//! The gate must fail, and say where, when something is wrong: each test alters the trained
//! checkpoint or the golden in one place.

#![cfg(test)]

use half::bf16;
use qwen35_model::Tiny;
use qwen35_model::checkpoint::Checkpoint;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tt_backend_cpu::Cpu;
use tt_backend_tenstorrent::{Session, SessionOptions, Tenstorrent};
use xtask::golden::Golden;
use xtask::parity::layers::Rounding;
use xtask::parity::report::{BackendReport, Limits};
use xtask::parity::run;

const LIMITS: Limits = Limits { strict: true, quality_ratio: 1.0 };

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens/tiny")
}

/// The reports of both backends: the CPU, and the device model with the card's arithmetic.
fn parity(golden: &Path, checkpoint: &Path) -> [BackendReport; 2] {
    let golden = Golden::open(golden).unwrap();
    let checkpoint = Checkpoint::open(checkpoint).unwrap();
    let cpu = Cpu::with_threads(2);
    let tt = Tenstorrent::new(Session::open(SessionOptions::default()).unwrap());
    [
        run::<_, Tiny>("cpu", Rounding::AsTheReference, &cpu, &checkpoint, &golden).unwrap(),
        run::<_, Tiny>("tt", Rounding::ItsOwn, &tt, &checkpoint, &golden).unwrap(),
    ]
}

/// A copy of the tiny checkpoint in which one bf16 tensor was changed.
fn altered(name: &str, change: impl FnOnce(&mut [bf16])) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in ["config.json", "tokenizer.json"] {
        fs::copy(tiny().join(file), dir.path().join(file)).unwrap();
    }
    let bytes = fs::read(tiny().join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = stored
        .iter()
        .map(|(name, view)| (name.to_owned(), (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
        .collect();
    let (dtype, _, data) = tensors.get_mut(name).unwrap();
    assert_eq!(*dtype, Dtype::BF16);
    let mut values: Vec<bf16> = bytemuck::pod_collect_to_vec(data);
    change(&mut values);
    data.copy_from_slice(bytemuck::cast_slice(&values));
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    serialize_to_file(views, None, &dir.path().join("model.safetensors")).unwrap();
    dir
}

fn assert_fail_at(reports: &[BackendReport], place: &str) {
    for report in reports {
        assert_fails_at(report, place);
    }
}

fn assert_fails_at(report: &BackendReport, place: &str) {
    let failures = report.failures(LIMITS);
    assert!(!failures.is_empty(), "{}", report.name);
    assert_eq!(report.first_layer_out().map(|figures| figures.place.as_str()), Some(place), "{failures:#?}");
}

#[test]
fn an_unaltered_copy_passes() {
    let copy = altered("model.norm.weight", |_| ());
    for report in parity(&tiny(), copy.path()) {
        assert_eq!(report.failures(LIMITS), Vec::<String>::new(), "{}", report.name);
    }
}

#[test]
fn a_flipped_exponent_bit_in_one_weight() {
    let copy = altered("model.layers.2.mlp.down_proj.weight", |w| {
        w[1234] = bf16::from_bits(w[1234].to_bits() ^ 0x4000)
    });
    assert_fail_at(&parity(&tiny(), copy.path()), "layer 2 (delta net)");
}

#[test]
fn two_swapped_query_heads() {
    let copy = altered("model.layers.3.self_attn.q_proj.weight", |w| {
        // Query and gate of a head: 256 rows of the 1024.
        let (first, second) = w.split_at_mut(256 * 192);
        first.swap_with_slice(&mut second[..256 * 192]);
    });
    assert_fail_at(&parity(&tiny(), copy.path()), "layer 3 (attention)");
}

/// `x * (1 + (w - 1))` is `x * w`.
#[test]
fn a_plain_norm_for_a_zero_centred_one() {
    let copy = altered("model.layers.1.post_attention_layernorm.weight", |w| {
        w.iter_mut().for_each(|w| *w = bf16::from_f32(w.to_f32() - 1.0));
    });
    assert_fail_at(&parity(&tiny(), copy.path()), "layer 1 (delta net)");
}

#[test]
fn one_prompt_token_changed() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(tiny().join("golden.safetensors"), dir.path().join("golden.safetensors")).unwrap();
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(tiny().join("manifest.json")).unwrap()).unwrap();
    manifest["prompts"][0]["ids"][2] = 77.into();
    fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    let reports = parity(dir.path(), &tiny());
    assert_fail_at(&reports, "embedding");
    assert!(reports.iter().all(|report| report.token_mismatches == [0]));
}
