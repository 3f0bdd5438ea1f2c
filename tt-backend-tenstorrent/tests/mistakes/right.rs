//! What the mistakes beside it were meant to be.

use half::bf16;
use std::sync::Arc;
use tt_backend_tenstorrent::{Error, Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, By, Master, Tensor, Two, dim};

dim! { Rows = 4; Heads = 2; Width = 8; }

enum Left {}
enum Right {}

struct Sequence<'b> {
    backend: &'b Tenstorrent<Left>,
    state: Tensor<Tenstorrent<Left>, (Rows, Width), Bf16>,
}

impl<'b> Sequence<'b> {
    fn new(backend: &'b Tenstorrent<Left>) -> Self {
        Self { backend, state: backend.zeros() }
    }
}

fn main() -> Result<(), Error> {
    let left = Tenstorrent::<Left>::identified(Session::open(SessionOptions::default())?);
    let right = Tenstorrent::<Right>::identified(Session::open(SessionOptions::default())?);
    let master = Master::<(Rows, Width), Bf16>::from_vec(vec![bf16::ONE; 32]).unwrap();
    let a = left.stage(&master);
    let b = right.stage(&master);

    // Each session's tensors with its own backend.
    let _ = left.add::<Rows, Width>(&a, &a);
    let _ = right.add::<Rows, Width>(&b, &b);

    // What was read back is a master, and is staged to be used.
    let read = left.download(&a)?;
    let _ = left.add::<Rows, Width>(&a, &left.stage(&read));

    // A view is read by the ops that take one.
    let pairs: Tensor<_, (Rows, By<Heads, By<Two, Width>>), Bf16> = left.zeros();
    let whole: Tensor<_, (Rows, By<Heads, Width>), Bf16> = left.zeros();
    let _ = left.sigmoid_gate::<Rows, Heads, Width, _>(&whole, pairs.second_of_pairs());

    // A sequence that borrows its backend ends before it; its state may go on.
    let sequence = Sequence::new(&left);
    sequence.backend.submit()?;
    let state = sequence.state;

    // A tensor keeps its session alive.
    let session = Arc::downgrade(left.session());
    drop(left);
    assert!(session.upgrade().is_some());
    drop((a, pairs, whole, state));
    assert!(session.upgrade().is_none());
    Ok(())
}
