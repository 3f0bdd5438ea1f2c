//! A shadow must name the op that is wrong, and must not blame one that is right.

use crate::model::{Hidden, Rows, generate};
use crate::naive::{Fault, Naive, NaiveError, master};
use tt_dsl::parity::Tolerance;
use tt_dsl::shadow::{Mode, ShadowError};
use tt_dsl::{Backend, Bf16, Shadow, Tensor};

fn shadow(fault: Fault, mode: Mode) -> Shadow<Naive, Naive> {
    Shadow::new(Naive::new(Fault::Nothing), Naive::new(fault), mode)
}

/// A whole model with a faulty subject: what its shadow saw.
fn run(fault: Fault, mode: Mode) -> Shadow<Naive, Naive> {
    let shadow = shadow(fault, mode);
    generate(&shadow, 2).expect("no fault of these is an error");
    shadow
}

#[test]
fn equal_backends_agree_exactly_and_as_without_a_shadow() {
    let alone = generate(&Naive::new(Fault::Nothing), 2).unwrap();
    for mode in [Mode::Local, Mode::Global, Mode::Both] {
        let shadow = shadow(Fault::Nothing, mode);
        assert_eq!(generate(&shadow, 2).unwrap(), alone);
        assert_eq!(shadow.first_beyond(&Tolerance::exact()), None);
        let report = shadow.report();
        assert!(report.records.iter().all(|r| r.local.is_some() == (mode != Mode::Global)));
        assert!(report.records.iter().all(|r| r.global.is_some() == (mode != Mode::Local)));
    }
}

#[test]
fn every_op_is_compared() {
    let records = run(Fault::Nothing, Mode::Both).report().records;
    let mut ops: Vec<_> = records.iter().map(|r| r.op).collect();
    ops.sort_unstable();
    ops.dedup();
    let expected = [
        "add",
        "argmax",
        "attention",
        "causal_conv",
        "embed",
        "gated_delta",
        "gated_linear",
        "gated_norm",
        "gdn_gates",
        "last_row",
        "linear",
        "lm_head",
        "rms_norm",
        "rms_norm_heads",
        "rope",
        "rotary",
        "sigmoid_gate",
        "stage",
        "zeros",
    ];
    assert_eq!(ops, expected);
    let states: Vec<_> = records.iter().filter(|r| r.op == "attention").map(|r| r.result).collect();
    assert_eq!(states[..3], ["out", "k cache", "v cache"]);
}

/// Local mode blames the three norms of each pass and nothing else, wrong inputs or not.
#[test]
fn local_mode_finds_the_very_op() {
    let shadow = run(Fault::NormWithoutOne, Mode::Local);
    let finding = shadow.first_beyond(&Tolerance::default()).unwrap();
    assert_eq!((finding.record.op, finding.mode), ("rms_norm", Mode::Local));

    let tolerance = Tolerance::default();
    let wrong = |r: &&tt_dsl::shadow::Record| tolerance.check(&r.local.unwrap()).is_err();
    let records = shadow.report().records;
    assert_eq!(records.iter().filter(wrong).count(), 9);
    assert!(records.iter().filter(wrong).all(|r| r.op == "rms_norm"));
}

/// Global mode starts at the same op and shows everything downstream of it.
#[test]
fn global_mode_shows_what_became_of_it() {
    let shadow = run(Fault::NormWithoutOne, Mode::Global);
    let finding = shadow.first_beyond(&Tolerance::default()).unwrap();
    assert_eq!((finding.record.op, finding.mode), ("rms_norm", Mode::Global));
    let tolerance = Tolerance::default();
    let records = shadow.report().records;
    assert!(records.iter().any(|r| r.op == "gated_linear" && tolerance.check(&r.global.unwrap()).is_err()));
}

/// The output of the op is right; only the state it leaves behind is not.
#[test]
fn states_are_compared_and_start_from_the_subjects() {
    let shadow = run(Fault::StaleConvState, Mode::Both);
    let finding = shadow.first_beyond(&Tolerance::default()).unwrap();
    assert_eq!((finding.record.op, finding.record.result), ("causal_conv", "state"));

    let tolerance = Tolerance::default();
    let records = shadow.report().records;
    let outputs = || records.iter().filter(|r| r.op == "causal_conv" && r.result == "out");
    assert!(outputs().all(|r| tolerance.check(&r.local.unwrap()).is_ok()));
    assert!(outputs().any(|r| tolerance.check(&r.global.unwrap()).is_err()));
}

#[test]
fn staging_and_zeroing_are_compared_bit_for_bit() {
    for (fault, op) in [(Fault::LossyStage, "stage"), (Fault::DirtyZeros, "zeros")] {
        for mode in [Mode::Local, Mode::Global] {
            let finding = run(fault, mode).first_beyond(&Tolerance::exact()).unwrap();
            assert_eq!(finding.record.op, op);
        }
    }
    // A weight that did not arrive as it was is what the subject's ops are judged by, all the same.
    let shadow = run(Fault::LossyStage, Mode::Local);
    let wrong = shadow.report().records.into_iter().find(|r| r.op != "stage" && !r.local.unwrap().is_exact());
    assert_eq!(wrong, None);
}

#[test]
fn padding_is_not_compared() {
    let shadow = run(Fault::NanInPadding, Mode::Both);
    assert_eq!(shadow.first_beyond(&Tolerance::exact()), None);
    let prefill = shadow.report().records.into_iter().find(|r| r.op == "add").unwrap();
    assert_eq!((prefill.rows, prefill.shape.as_str()), (3, "(Rows, Hidden)"));
}

#[test]
fn an_error_inside_an_op_comes_out_of_the_next_submit() {
    let shadow = shadow(Fault::DownloadFails, Mode::Local);
    let x: Tensor<_, (Rows, Hidden), Bf16> = shadow.stage(&master(|i| i as f32));
    let _ = shadow.add(&x, &x);
    assert!(matches!(shadow.submit(), Err(ShadowError::Subject(NaiveError("the device is gone")))));
    assert!(shadow.submit().is_ok(), "an error is returned once");
    assert!(shadow.report().records.iter().all(|r| r.local.is_none()));
}

/// Shadows of shadows and the same tensor twice in one op: a decorator is a backend like any other.
#[test]
fn decorators_nest() {
    let inner = shadow(Fault::Nothing, Mode::Local);
    let nested = Shadow::new(Naive::new(Fault::Nothing), inner, Mode::Both);
    let x: Tensor<_, (Rows, Hidden), Bf16> = nested.stage(&master(|i| i as f32));
    let sum = nested.add(&x, &x);
    nested.submit().unwrap();
    assert_eq!(nested.download(&sum).unwrap().values()[5].to_f32(), 10.0);
}

#[test]
fn the_table_is_plain() {
    let shadow = shadow(Fault::Nothing, Mode::Local);
    let x: Tensor<_, (Rows, Hidden), Bf16> = shadow.stage(&master(|i| i as f32));
    let _ = shadow.add(&x, &x);
    let lines = [
        " call  result                      local l2       ulp   global l2       ulp  non-finite  shape",
        "    0  stage.out                     0.00e0       0.0           -         -           0  (Rows, Hidden)",
        "    1  add.out                       0.00e0       0.0           -         -           0  (Rows, Hidden)",
    ];
    assert_eq!(shadow.report().to_string(), lines.map(|line| format!("{line}\n")).concat());
}
