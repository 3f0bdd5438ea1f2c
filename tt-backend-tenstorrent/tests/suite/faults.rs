//! Each fault ends in its error, and what is said to stay usable does.

use crate::tiny::{Loader, Tiny, prompt};
use half::bf16;
use std::time::Duration;
use tt_backend_tenstorrent::{Error, InjectedFault, Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, Master, Tensor, TokensError, dim};

dim! { Rows = 40; Cols = 72; }

type Matrix = Tensor<Tenstorrent, (Rows, Cols), Bf16>;

/// Bytes of a `Matrix` on the device: 2 x 3 tiles.
const PADDED: u64 = 6 * 2048;

fn open() -> Tenstorrent {
    let options = SessionOptions { timeout: Duration::from_millis(5), ..SessionOptions::default() };
    Tenstorrent::new(Session::open(options).unwrap())
}

fn ones() -> Master<(Rows, Cols), Bf16> {
    Master::from_vec(vec![bf16::ONE; 40 * 72]).unwrap()
}

fn backend_error<T: std::fmt::Debug>(result: Result<T, TokensError<Error>>) -> Error {
    match result {
        Err(TokensError::Backend(error)) => error,
        other => panic!("expected an error of the backend, found {other:?}"),
    }
}

#[test]
fn no_device() {
    let error =
        Session::open(SessionOptions { device_present: false, ..SessionOptions::default() }).unwrap_err();
    assert_eq!(error, Error::NoDevice { reason: "no device answers".to_owned() });
}

#[test]
fn out_of_memory_says_what_was_asked_and_leaves_the_rest() {
    let options = SessionOptions { dram_bytes: 3 * PADDED - 64, ..SessionOptions::default() };
    let backend = Tenstorrent::new(Session::open(options).unwrap());
    let a: Matrix = backend.stage(&ones());
    backend.submit().unwrap();
    let (b, c): (Matrix, Matrix) = (backend.stage(&ones()), backend.stage(&ones()));
    let error = backend.submit().unwrap_err();
    let expected = Error::OutOfMemory {
        requested: PADDED,
        free: PADDED - 64,
        largest: PADDED - 64,
        tensor: "BF16 [1, 40, 72]".to_owned(),
    };
    assert_eq!(error, expected);
    // None of the failed list exists, not even what there was room for; the session goes on.
    assert_eq!(backend.session().used_bytes(), PADDED);
    assert!(matches!(backend.download(&b), Err(Error::Unbacked { .. })));
    drop((b, c));
    let again: Matrix = backend.stage(&ones());
    assert_eq!(backend.download(&again).unwrap().values()[0], bf16::ONE);
    assert_eq!(backend.download(&a).unwrap().values()[0], bf16::ONE);
}

#[test]
fn out_of_memory_at_a_given_byte_of_a_load() {
    let backend = open();
    let whole = {
        let _model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
        backend.session().used_bytes()
    };
    backend.submit().unwrap();
    assert_eq!(backend.session().used_bytes(), 0);
    for limit in [0, whole / 3, whole - 1] {
        backend.session().inject(InjectedFault::OutOfMemoryAt(limit));
        let result = Tiny::load(&mut Loader::new(&backend, 1));
        assert!(matches!(result.err(), Some(Error::OutOfMemory { .. })), "at {limit}");
    }
    backend.session().inject(InjectedFault::OutOfMemoryAt(u64::MAX));
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    model.generate(&backend, &prompt(5), 2).unwrap();
}

#[test]
fn a_refused_submit_can_be_tried_again() {
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    let expected = model.generate(&backend, &prompt(5), 5).unwrap();
    // At every place of a run: in its prefill, in a decode step, in the crossing that reads.
    for after in [0, 3, 8, 12, 20, 30] {
        backend.session().inject(InjectedFault::SubmitFailsAfter(after));
        let error = backend_error(model.generate(&backend, &prompt(5), 5));
        assert!(matches!(error, Error::Submit { .. }), "{error}");
        assert_eq!(model.generate(&backend, &prompt(5), 5).unwrap(), expected, "after {after}");
    }
}

#[test]
fn a_failed_transfer_can_be_tried_again() {
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    let expected = model.generate(&backend, &prompt(5), 5).unwrap();
    for after in 0..6 {
        backend.session().inject(InjectedFault::TransferFailsAfter(after));
        let error = backend_error(model.generate(&backend, &prompt(5), 5));
        assert!(matches!(error, Error::Transfer { .. }), "{error}");
        assert_eq!(model.generate(&backend, &prompt(5), 5).unwrap(), expected, "after {after}");
    }
    let bytes = 2 * 40 * 72;
    backend.session().inject(InjectedFault::TransferFailsAfter(0));
    let tensor: Matrix = backend.stage(&ones());
    let error = backend.submit().unwrap_err();
    assert_eq!(error, Error::Transfer { bytes, reason: "a staging call failed".to_owned() });
    assert!(matches!(backend.download(&tensor), Err(Error::Unbacked { .. })));
}

#[test]
fn a_hanging_submit_loses_the_session_and_says_so() {
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    backend.session().inject(InjectedFault::SubmitHangsAfter(4));
    let error = backend_error(model.generate(&backend, &prompt(5), 5));
    assert_eq!(error, Error::Timeout { reason: "the queue did not finish within 5 ms".to_owned() });
    let error = backend_error(model.generate(&backend, &prompt(5), 5));
    assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
}

#[test]
fn a_device_that_disappears_mid_step() {
    let expected = {
        let backend = open();
        let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
        model.generate(&backend, &prompt(5), 5).unwrap()
    };
    let lost = open();
    let model = Tiny::load(&mut Loader::new(&lost, 1)).unwrap();
    lost.session().inject(InjectedFault::DeviceLostAfter(200));
    let error = backend_error(model.generate(&lost, &prompt(5), 5));
    assert_eq!(error, Error::DeviceLost { reason: "the device disappeared".to_owned() });
    let tensor: Matrix = lost.stage(&ones());
    assert!(matches!(lost.submit(), Err(Error::DeviceLost { .. })));
    assert!(matches!(lost.download(&tensor), Err(Error::DeviceLost { .. })));
    drop(model);
    drop(lost);
    // The masters are still there: on another session the same run gives the same tokens.
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    assert_eq!(model.generate(&backend, &prompt(5), 5).unwrap(), expected);
}

#[test]
fn a_position_past_the_context_is_refused() {
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    let mut states = model.states(&backend);
    let error = backend_error(model.next::<tt_dsl::One>(&backend, &mut states, &[1], 512));
    let reason = "Attention: expected positions within the context".to_owned();
    assert_eq!(error, Error::Invalid { reason });
    let error = backend_error(model.next::<tt_dsl::One>(&backend, &mut states, &[1], usize::MAX - 1));
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    model.generate(&backend, &prompt(5), 2).unwrap();
}
