//! A whole model against the CPU's reference.

use crate::tiny::{Bucket, Loader, Tiny, prompt};
use crate::tolerance::{self, CHUNKED_LOGITS, HIFI4_LOGITS};
use tt_backend_cpu::CpuReference;
use tt_backend_tenstorrent::{Fidelity, Numerics, Session, SessionOptions, Tenstorrent};
use tt_dsl::parity::Tolerance;
use tt_dsl::shadow::{Finding, Mode, Shadow};
use tt_dsl::{Backend, One};

fn device(options: SessionOptions) -> Tenstorrent {
    Tenstorrent::new(Session::open(options).unwrap())
}

/// The logits after each token of a prompt, decoded one by one.
fn decoded<B: Backend>(b: &B, ids: &[u32]) -> Vec<Vec<f32>> {
    let model = Tiny::load(&mut Loader::new(b, 11)).unwrap();
    let mut states = model.states(b);
    ids.iter().enumerate().map(|(i, id)| model.logits::<One>(b, &mut states, &[*id], i).unwrap()).collect()
}

/// The logits after a prompt, in one pass.
fn prefilled<B: Backend>(b: &B, ids: &[u32]) -> Vec<f32> {
    let model = Tiny::load(&mut Loader::new(b, 11)).unwrap();
    model.logits::<Bucket>(b, &mut model.states(b), ids, 0).unwrap()
}

/// The error's rms by the logits' own.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    let square: f32 = expected.iter().map(|v| v * v).sum();
    let error: f32 = found.iter().zip(expected).map(|(f, e)| (f - e) * (f - e)).sum();
    (error / square).sqrt()
}

#[test]
fn fast_decoding_is_the_reference_bit_for_bit() {
    let ids = prompt(12);
    let found = decoded(&device(SessionOptions::fast()), &ids);
    assert_eq!(found, decoded(&CpuReference::with_threads(1), &ids));
}

#[test]
fn one_pass_and_many_steps_agree() {
    let ids = prompt(12);
    for numerics in [Numerics::Fast, Numerics::Tensix] {
        let options = SessionOptions { numerics, ..SessionOptions::default() };
        let steps = decoded(&device(options), &ids);
        // Every op's row depends on that row and the state alone, and the state's sums run row by
        // row, so this is equality.
        assert_eq!(prefilled(&device(options), &ids), steps[11]);
    }
    let chunked = prefilled(&CpuReference::with_threads(1), &ids);
    let found = prefilled(&device(SessionOptions::fast()), &ids);
    assert!(distance(&found, &chunked) < CHUNKED_LOGITS, "{}", distance(&found, &chunked));
}

#[test]
fn fidelity_is_accuracy() {
    let ids = prompt(12);
    let expected = prefilled(&CpuReference::with_threads(1), &ids);
    let distances: Vec<f32> = [Fidelity::LoFi, Fidelity::HiFi2, Fidelity::HiFi3, Fidelity::HiFi4]
        .into_iter()
        .map(|fidelity| {
            let found = prefilled(&device(SessionOptions { fidelity, ..SessionOptions::default() }), &ids);
            distance(&found, &expected)
        })
        .collect();
    println!("distance of the logits, LoFi to HiFi4: {distances:.4?}");
    assert!(distances[0] > distances[1] && distances[3] < HIFI4_LOGITS, "{distances:?}");
}

/// Two decode steps with every op compared: the first beyond the tolerance.
fn first_beyond(options: SessionOptions, tolerance: &Tolerance) -> Option<Finding> {
    let shadow = Shadow::new(CpuReference::with_threads(1), device(options), Mode::Both);
    let model = Tiny::load(&mut Loader::new(&shadow, 11)).unwrap();
    let mut states = model.states(&shadow);
    for (i, id) in prompt(2).iter().enumerate() {
        model.next::<One>(&shadow, &mut states, &[*id], i).unwrap();
    }
    assert!(shadow.report().records.len() > 200);
    shadow.first_beyond(tolerance)
}

#[test]
fn a_shadow_names_the_first_op_that_differs() {
    let found = first_beyond(SessionOptions::fast(), &tolerance::bits());
    assert!(found.is_none(), "{}", found.unwrap());
    let lofi = SessionOptions { fidelity: Fidelity::LoFi, ..SessionOptions::default() };
    let found = first_beyond(lofi, &tolerance::one_phase()).unwrap();
    assert_eq!((found.record.op, found.mode), ("linear", Mode::Local));
}
