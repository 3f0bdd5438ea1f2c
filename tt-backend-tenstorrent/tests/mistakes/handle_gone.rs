//! A sequence that borrows the backend, kept when the backend is gone. (Its state alone could be kept:
//! a tensor shares the session.)

use std::sync::Arc;
use tt_backend_tenstorrent::{Error, Session, Tenstorrent};
use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! { Rows = 4; Width = 8; }

struct Sequence<'b> {
    backend: &'b Tenstorrent,
    state: Tensor<Tenstorrent, (Rows, Width), Bf16>,
}

impl<'b> Sequence<'b> {
    fn new(backend: &'b Tenstorrent) -> Self {
        Self { backend, state: backend.zeros() }
    }
}

fn kept(session: &Arc<Session>) -> Result<(), Error> {
    let sequence = {
        let backend = Tenstorrent::new(Arc::clone(session));
        Sequence::new(&backend)
    };
    sequence.backend.download(&sequence.state).map(drop)
}

fn main() {}
