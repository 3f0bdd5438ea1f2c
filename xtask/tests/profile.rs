//! The profile: the counted facts of the tiny model in exact numbers, and the page. No test looks at
//! a time.

#![cfg(test)]

use qwen35_model::Tiny;
use qwen35_model::checkpoint::Checkpoint;
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tt_backend_cpu::Cpu;
use tt_backend_tenstorrent::{Session, SessionOptions, StagingStats, Tenstorrent};
use xtask::golden::Golden;
use xtask::parity::layers::Rounding;
use xtask::profile::facts::Facts;
use xtask::profile::measure::{BackendProfile, Plan, profile};
use xtask::profile::phase::{Crossing, Place};
use xtask::profile::{Profile, html, table};

const LAYERS: u64 = 8;

/// 14 in each of six DeltaNet layers, 11 in each of two attention layers, the embedding and the last
/// norm.
const TENSORS: u64 = 14 * 6 + 11 * 2 + 2;

/// Rotary tables and embedding; 17 in a DeltaNet layer, 18 in an attention layer; last row, norm, head
/// and argmax.
const COMMANDS: u64 = 2 + 17 * 6 + 18 * 2 + 4;

/// A prefill of one pass of 8 rows, 5 of them valid.
const PROMPT: [u32; 5] = [50, 78, 296, 259, 86];

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens/tiny")
}

fn plan() -> Plan {
    Plan { prompt: PROMPT.to_vec(), warm_up: 1, steps: 4 }
}

fn on_tt(against: Option<(&Golden, Rounding)>, options: SessionOptions) -> BackendProfile {
    let session = Session::open(options).unwrap();
    let checkpoint = Checkpoint::open(tiny()).unwrap();
    let b = Tenstorrent::new(Arc::clone(&session));
    profile::<_, Tiny>("tt", b, Some(&session), &checkpoint, against, &plan()).unwrap()
}

fn on_cpu(label: &str, against: Option<(&Golden, Rounding)>) -> BackendProfile {
    let checkpoint = Checkpoint::open(tiny()).unwrap();
    profile::<_, Tiny>(label, Cpu::with_threads(2), None, &checkpoint, against, &plan()).unwrap()
}

fn facts() -> Facts {
    on_tt(None, SessionOptions::default()).facts.unwrap()
}

/// Counters without the one that is a time.
fn untimed(stats: &StagingStats) -> StagingStats {
    StagingStats { device_nanos: 0, ..*stats }
}

#[test]
fn at_load_each_weight_crosses_once_in_one_call_a_layer() {
    let bytes = std::fs::read(tiny().join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.len() as u64, TENSORS);
    let all_weights: usize = file.iter().map(|(_, view)| view.data().len()).sum();
    assert_eq!(all_weights, 7_916_560);
    let expected = StagingStats {
        // Device, queue and program cache, when the session is opened.
        handle_resolutions: 3,
        staging_calls: LAYERS + 1,
        h2d_writes: TENSORS,
        h2d_bytes: all_weights as u64,
        submits: LAYERS + 1,
        allocations: TENSORS,
        ..StagingStats::default()
    };
    assert_eq!(untimed(&facts().load), expected);
}

#[test]
fn a_decode_step_after_the_first_writes_its_token_and_reads_the_next() {
    let expected = StagingStats {
        handle_resolutions: 0,
        staging_calls: 0,
        h2d_writes: 1,
        // Position, number of rows and id, of four bytes each.
        h2d_bytes: 4 * 3,
        d2h_reads: 1,
        d2h_bytes: 4,
        f32_staged_bytes: 0,
        submits: LAYERS,
        commands: COMMANDS,
        allocations: 0,
        program_cache_hits: COMMANDS,
        program_cache_misses: 0,
        device_nanos: 0,
    };
    let facts = facts();
    assert_eq!(facts.steps.len(), 4);
    for step in &facts.steps {
        assert_eq!(untimed(step), expected);
    }
    // The first one makes its programs and its places, and crosses no more than the others.
    let first = untimed(&facts.first_step);
    assert_eq!(first.program_cache_hits + first.program_cache_misses, COMMANDS);
    let StagingStats { allocations, program_cache_hits, program_cache_misses, .. } = first;
    assert_eq!(first, StagingStats { allocations, program_cache_hits, program_cache_misses, ..expected });
}

#[test]
fn a_prefill_of_one_pass_crosses_as_a_step_does() {
    let prefill = facts().prefill;
    assert_eq!((prefill.handle_resolutions, prefill.staging_calls, prefill.f32_staged_bytes), (0, 0, 0));
    // Eight rows, of which five are ids and the others padding.
    assert_eq!((prefill.h2d_writes, prefill.h2d_bytes), (1, 4 * (2 + 8)));
    assert_eq!((prefill.d2h_reads, prefill.d2h_bytes), (1, 4));
    assert_eq!((prefill.submits, prefill.commands), (LAYERS, COMMANDS));
}

#[test]
fn parts_are_the_whole_and_calls_the_same_on_both_backends() {
    let (cpu, tt) = (on_cpu("cpu", None), on_tt(None, SessionOptions::fast()));
    for backend in [&cpu, &tt] {
        for phase in [&backend.prefill, &backend.step] {
            let parts: std::time::Duration = phase.parts.iter().map(|part| part.time).sum();
            // Means are rounded down, a nanosecond a part at most.
            assert!(parts <= phase.wall && (phase.wall - parts).as_nanos() <= phase.parts.len() as u128);
        }
        let crossing = |kind, count, written, read| Crossing { kind, count, written, read };
        assert_eq!(
            backend.step.crossings,
            [
                crossing("token uploads", 1, 4, 0),
                crossing("submits", LAYERS, 0, 0),
                crossing("reads", 1, 0, 4)
            ]
        );
        let staged =
            backend.load_crossings.iter().find(|crossing| crossing.kind == "staged masters").unwrap();
        assert_eq!((staged.count, staged.written), (TENSORS, 7_916_560));
    }
    assert_eq!(cpu.step.calls, tt.step.calls);
    let commands = tt.step.parts.iter().filter(|part| part.place == Place::Op).map(|part| part.calls);
    assert_eq!(commands.sum::<u64>(), COMMANDS);
    assert!(tt.host_share.is_some() && cpu.host_share.is_none() && cpu.facts.is_none());
}

/// The tags of a page close in the order in which they open.
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("a tag without an end: {piece}"));
        assert!(!text.contains('>'), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{piece}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn the_page_is_complete_in_itself_and_escapes_its_labels() {
    let golden = Golden::open(&tiny()).unwrap();
    let tt = on_tt(Some((&golden, Rounding::AsTheReference)), SessionOptions::fast());
    let label = r#"<b>"cpu" & 'co'</b>"#;
    let cpu = on_cpu(label, Some((&golden, Rounding::AsTheReference)));
    let parity = cpu.parity.as_ref().unwrap();
    assert_eq!(parity.maps.len(), golden.layer_outputs.len());
    for map in &parity.maps {
        assert_eq!(map.places.len() as u64, LAYERS + 1);
        assert!(map.places.iter().all(|place| place.len() == golden.prompts[map.prompt].ids.len()));
        // The embedding is a copy.
        assert!(map.places[0].iter().all(|value| *value == 0.0));
    }
    assert_eq!(parity.reference.len(), parity.layers.len());

    let profile = Profile { model: "Tiny", layers: 8, plan: plan(), backends: vec![cpu, tt] };
    let page = html::page(&profile);
    assert_well_formed(&page);
    // A bar a backend, a chart a prompt, a map a backend and prompt.
    assert_eq!(page.matches("<svg").count(), 2 + 2 + 4);
    assert!(page.contains("&lt;b&gt;&quot;cpu&quot; &amp; &#39;co&#39;&lt;/b&gt;"));
    assert!(!page.contains("<b>"));
    for foreign in ["<script", "<link", "<img", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("program-cache misses") && page.contains("layer 3 (attention)"));
    assert!(table::tables(&profile).contains("host work outside the device's op time: "));
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .arg("profile")
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn what_cannot_be_profiled_is_one_line() {
    let long = "a prompt of 37 tokens, 4 warm-up steps and 500 measured ones are more than the 512 positions \
                that Tiny keeps";
    let cases: [(&[&str], &str); 5] = [
        (&["--golden", "no/such/folder"], "cannot read no/such/folder/manifest.json: "),
        (&["--checkpoint", "no/such/folder"], "no/such/folder: expected a checkpoint directory"),
        (&["--prompt", "16"], "prompt 16: expected one of the golden's 16, counted from 0"),
        (&["--steps", "500"], long),
        (
            &["--backend", "cpu", "--steps", "1", "--report", "no/such/folder/page.html"],
            "cannot write no/such/folder/page.html: ",
        ),
    ];
    for (arguments, message) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(&format!("error: {message}")), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(output.stdout, b"");
    }
}

#[test]
fn no_steps_are_refused() {
    for argument in ["--steps", "--warm-up"] {
        let output = run(&[argument, "0"]);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(&format!("error: invalid value '0' for '{argument} ")), "{text}");
    }
}
