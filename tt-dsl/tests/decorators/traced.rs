//! A traced backend must count exactly, and change nothing.

use crate::model::{Hidden, Rows, generate};
use crate::naive::{Fault, Naive, NaiveError, master};
use tt_dsl::traced::Crossings;
use tt_dsl::{Backend, Bf16, Tensor, Traced};

#[test]
fn a_traced_model_says_the_same() {
    let traced = Traced::new(Naive::new(Fault::Nothing));
    assert_eq!(generate(&traced, 2).unwrap(), generate(traced.inner(), 2).unwrap());
}

#[test]
fn calls_and_crossings_are_exact() {
    let traced = Traced::new(Naive::new(Fault::Nothing));
    generate(&traced, 2).unwrap();
    let report = traced.report();
    let calls = |op: &str| report.op(op).map(|trace| trace.calls);

    // Three passes of one layer of each kind; 19 weights; two caches and two states.
    assert_eq!(calls("stage"), Some(19));
    assert_eq!(calls("zeros"), Some(4));
    assert_eq!(calls("embed"), Some(3));
    assert_eq!(calls("rms_norm"), Some(9));
    assert_eq!(calls("rms_norm_heads"), Some(6));
    assert_eq!(calls("linear"), Some(3 * 10));
    assert_eq!(calls("gated_linear"), Some(3));
    assert_eq!(calls("swiglu"), None, "the parts of a composed op are the inner backend's affair");

    // A bucket of four ids, then two of one id each; a token is four bytes.
    let uploads = report.op("upload_tokens").unwrap().crossings;
    assert_eq!(uploads, Crossings { writes: 3, written: 4 * (4 + 1 + 1), ..Crossings::default() });
    let downloads = report.op("download").unwrap().crossings;
    assert_eq!(downloads, Crossings { reads: 3, read: 12, ..Crossings::default() });
    assert_eq!(report.crossings.writes, 19 + 3);
    assert_eq!(report.crossings.reads, 3);
    assert_eq!(report.crossings.submits, 4);
    assert_eq!(report.time(), report.ops.iter().map(|op| op.time).sum());
    assert!(report.ops.is_sorted_by(|a, b| a.time >= b.time));
}

#[test]
fn counting_can_start_anew_and_counts_what_fails() {
    let traced = Traced::new(Naive::new(Fault::DownloadFails));
    let x: Tensor<_, (Rows, Hidden), Bf16> = traced.stage(&master(|i| i as f32));
    traced.reset();
    assert_eq!(traced.download(&x).unwrap_err(), NaiveError("the device is gone"));
    let report = traced.report();
    assert_eq!(report.ops.len(), 1);
    assert_eq!(report.crossings.reads, 1);
}
