//! A tensor on one backend given to an op of another.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
}

fn residual<Cpu: Backend, Card: Backend, T: Dim>(
    card: &Card,
    x: &Tensor<Card, (T, Hidden), Bf16>,
    y: &Tensor<Cpu, (T, Hidden), Bf16>,
) -> Tensor<Card, (T, Hidden), Bf16> {
    card.add(x, y)
}

fn main() {}
