//! Whatever is dropped first, everything is freed once and nothing too early.

use crate::tiny::{Loader, Tiny, prompt};
use half::bf16;
use std::sync::Arc;
use tt_backend_tenstorrent::{Error, Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, Dim, Master, Tensor, dim};

dim! { Rows = 40; Cols = 72; Other = 48; }

type Matrix<B = Tenstorrent> = Tensor<B, (Rows, Cols), Bf16>;

fn open() -> Tenstorrent {
    Tenstorrent::new(Session::open(SessionOptions::default()).unwrap())
}

fn filled<S: tt_dsl::Shape>(value: f32) -> Master<S, Bf16> {
    Master::from_vec(vec![bf16::from_f32(value); S::NUMEL]).unwrap()
}

fn all(backend: &Tenstorrent, tensor: &Matrix) -> f32 {
    let values = backend.download(tensor).unwrap();
    let values = values.values();
    assert!(values.iter().all(|v| *v == values[0]));
    values[0].to_f32()
}

#[test]
fn a_tensor_outlives_the_handle_and_frees_itself() {
    let backend = open();
    let session = Arc::clone(backend.session());
    let tensor: Matrix = backend.stage(&filled(1.0));
    backend.submit().unwrap();
    drop(backend);
    assert_eq!(session.live_tensors(), 1);
    drop(tensor);
    session.submit().unwrap();
    assert_eq!((session.live_tensors(), session.used_bytes()), (0, 0));
}

#[test]
fn the_session_goes_with_its_last_tensor() {
    let backend = open();
    let tensor: Matrix = backend.stage(&filled(1.0));
    let pending: Matrix = backend.add(&tensor, &tensor);
    let session = Arc::downgrade(backend.session());
    drop(backend);
    drop(tensor);
    assert!(session.upgrade().is_some());
    drop(pending);
    assert!(session.upgrade().is_none(), "nothing else holds the session");
}

#[test]
fn an_operand_dropped_before_the_submit_is_still_read() {
    let backend = open();
    let a: Matrix = backend.stage(&filled(1.0));
    let b: Matrix = backend.stage(&filled(2.0));
    let sum = backend.add(&a, &b);
    drop((a, b));
    // A tensor made now must not take the place of what is still to be read.
    let later: Matrix = backend.stage(&filled(64.0));
    assert_eq!(all(&backend, &sum), 3.0);
    assert_eq!(all(&backend, &later), 64.0);
}

#[test]
fn a_place_is_taken_again_only_in_order() {
    let backend = open();
    let one: Matrix = backend.stage(&filled(1.0));
    let two = backend.add(&one, &one);
    let four = backend.add(&two, &two);
    drop(two);
    // Takes the place of `two`, which `four` reads first.
    let five = backend.add(&four, &one);
    assert_eq!(all(&backend, &four), 4.0);
    assert_eq!(all(&backend, &five), 5.0);
    // one, four, and one place for two and five.
    assert_eq!(backend.session().stats().allocations, 3);
}

#[test]
fn a_new_tensor_never_shows_its_place_s_last_tenant() {
    let backend = open();
    for _ in 0..3 {
        let full: Matrix = backend.stage(&filled(7.0));
        backend.submit().unwrap();
        drop(full);
        backend.submit().unwrap();
        assert_eq!(backend.session().used_bytes(), 0);
        // Of another shape, so that also what was padding is looked at.
        let empty: Tensor<Tenstorrent, (Other, Cols), Bf16> = backend.zeros();
        let values = backend.download(&empty).unwrap();
        assert!(values.values().iter().all(|v| v.to_bits() == 0));
        drop(empty);
        backend.submit().unwrap();
    }
}

#[test]
fn dropping_in_every_order_ends_with_nothing_on_the_device() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for submit_between in [false, true] {
        for order in orders {
            let backend = open();
            let session = Arc::clone(backend.session());
            let a: Matrix = backend.stage(&filled(1.0));
            let b: Matrix = backend.zeros();
            let c = backend.add(&a, &b);
            if submit_between {
                backend.submit().unwrap();
            }
            let mut held = [Some(a), Some(b), Some(c)];
            for i in order {
                held[i] = None;
            }
            session.submit().unwrap();
            // The sum's place is kept for the next one; the other two are gone.
            assert_eq!(session.live_tensors(), 1, "{order:?}");
        }
    }
}

#[test]
fn kept_places_make_room_when_memory_is_short() {
    // Room for four matrices of (Rows, Cols), padded to 2 x 3 tiles.
    let bytes = 4 * 6 * 2048;
    let options = SessionOptions { dram_bytes: bytes, ..SessionOptions::default() };
    let backend = Tenstorrent::new(Session::open(options).unwrap());
    let a: Matrix = backend.stage(&filled(1.0));
    let b = backend.add(&a, &a);
    let c = backend.add(&b, &b);
    backend.submit().unwrap();
    drop((b, c));
    assert_eq!(backend.session().used_bytes(), 3 * 6 * 2048);
    // Three more of another shape and the same size: only where the two kept places are given up.
    let others: Vec<Tensor<Tenstorrent, (Other, Cols), Bf16>> = (0..3).map(|_| backend.zeros()).collect();
    backend.submit().unwrap();
    assert_eq!(backend.session().used_bytes(), bytes);
    drop(others);
    assert_eq!(all(&backend, &a), 1.0);
}

#[test]
fn the_tensors_of_two_sessions_do_not_mix() {
    let (here, there) = (open(), open());
    let a: Matrix = here.stage(&filled(1.0));
    let b: Matrix = there.stage(&filled(1.0));
    let sum = here.add(&a, &b);
    assert_eq!(here.submit(), Err(Error::ForeignTensor { operation: "add".to_owned() }));
    assert!(matches!(there.download(&a), Err(Error::ForeignTensor { .. })));
    // The list was dropped; the sum is a tensor that never was.
    assert!(matches!(here.download(&sum), Err(Error::Unbacked { .. })));
    assert_eq!(all(&there, &b), 1.0);
}

#[test]
fn two_models_on_two_sessions_in_two_threads() {
    let run = || {
        let backend = open();
        let model = Tiny::load(&mut Loader::new(&backend, 3)).unwrap();
        model.generate(&backend, &prompt(5), 6).unwrap()
    };
    let other = std::thread::spawn(run);
    assert_eq!(run(), other.join().unwrap());
}

#[test]
fn two_sequences_on_one_session_do_not_disturb_each_other() {
    let backend = open();
    let model = Tiny::load(&mut Loader::new(&backend, 3)).unwrap();
    let alone = model.generate(&backend, &prompt(5), 6).unwrap();
    let (mut one, mut two) = (model.states(&backend), model.states(&backend));
    let mut found = [Vec::new(), Vec::new()];
    for i in 0..6 {
        for (states, found) in [&mut one, &mut two].into_iter().zip(&mut found) {
            let token = match i {
                0 => model.next::<crate::tiny::Bucket>(&backend, states, &prompt(5), 0),
                _ => model.next::<tt_dsl::One>(&backend, states, &[found[i - 1]], 4 + i),
            };
            found.push(token.unwrap());
        }
    }
    assert_eq!(found, [alone.clone(), alone]);
    assert_eq!(Rows::SIZE, 40);
}
