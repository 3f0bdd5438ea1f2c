//! Half of a pair of vectors, staged as if it lay in one piece.

use tt_backend_tenstorrent::Tenstorrent;
use tt_dsl::{Backend, Bf16, By, Tensor, Two, dim};

dim! { Rows = 4; Heads = 2; Width = 8; }

fn staged(b: &Tenstorrent, pairs: &Tensor<Tenstorrent, (Rows, By<Heads, By<Two, Width>>), Bf16>) {
    let _ = b.stage(&pairs.first_of_pairs());
}

fn main() {}
