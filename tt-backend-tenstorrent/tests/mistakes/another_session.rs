//! A tensor of one session given to an op of another.

use tt_backend_tenstorrent::Tenstorrent;
use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! { Rows = 4; Width = 8; }

enum Left {}
enum Right {}

fn mixed(left: &Tenstorrent<Left>, a: &Tensor<Tenstorrent<Right>, (Rows, Width), Bf16>) {
    let _ = left.add::<Rows, Width>(a, a);
}

fn main() {}
