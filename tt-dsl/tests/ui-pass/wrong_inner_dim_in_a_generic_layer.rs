//! What `ui/wrong_inner_dim_in_a_generic_layer.rs` should have been.
use tt_dsl::{Backend, Bf16, Dim, Tensor};

trait Config: 'static {
    type Hidden: Dim;
    type Inner: Dim;
}

struct Mlp<B: Backend, C: Config> {
    up: Tensor<B, (C::Inner, C::Hidden), Bf16>,
    down: Tensor<B, (C::Hidden, C::Inner), Bf16>,
}

impl<B: Backend, C: Config> Mlp<B, C> {
    fn forward<T: Dim>(&self, b: &B, x: &Tensor<B, (T, C::Hidden), Bf16>) -> Tensor<B, (T, C::Hidden), Bf16> {
        let inner = b.linear(x, &self.up);
        let _ = b.linear(&inner, &self.down);
        b.linear(&inner, &self.down)
    }
}

fn main() {}
