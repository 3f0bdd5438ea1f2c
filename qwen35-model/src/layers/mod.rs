//! The layers of Qwen3.5. Each reads like its definition: shapes in the types, roundings in the
//! contracts of the ops, no arithmetic on sizes anywhere.

mod attention;
mod block;
mod delta_net;
mod mlp;

pub use attention::Attention;
pub use block::{Layer, LayerState, Mixer};
pub use delta_net::{DeltaNet, DeltaNetState};
pub use mlp::Mlp;

use tt_dsl::{Backend, Bf16, Tensor};

/// A linear layer's weight as it lies in the checkpoint: `[out, in]`.
type Weight<B, Out, In> = Tensor<B, (Out, In), Bf16>;

/// Activations: `T` rows of the residual stream of configuration `C`.
pub type Residual<B, T, C> = Tensor<B, (T, <C as crate::Config>::Hidden), Bf16>;

/// The loading half of a layer: its weights by name.
trait Load<B: Backend>: Sized {
    /// Stages the weights that stand at `at`.
    fn load(at: &crate::checkpoint::Weights<'_, B>) -> Result<Self, crate::checkpoint::CheckpointError>;
}
