//! A tensor language in which shapes, dtypes, layouts and backends are types.
//!
//! A layer is ordinary Rust over a [`Backend`]. What would be a wrong token at three in the
//! morning is a compile error that speaks of the dims as their author named them:
//!
//! ```
//! use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};
//!
//! dim! { pub Hidden = 1024; pub Inner = 3584; }
//!
//! pub struct Mlp<B: Backend> {
//!     gate: Tensor<B, (Inner, Hidden), Bf16>,
//!     up: Tensor<B, (Inner, Hidden), Bf16>,
//!     down: Tensor<B, (Hidden, Inner), Bf16>,
//! }
//!
//! impl<B: Backend> Mlp<B> {
//!     pub fn forward<T: Dim>(&self, b: &B, x: &Tensor<B, (T, Hidden), Bf16>) -> Tensor<B, (T, Hidden), Bf16> {
//!         let inner = b.gated_linear(x, &self.gate, &self.up);
//!         b.linear(&inner, &self.down)
//!     }
//! }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@dim`], [`fact`], [`shape`], [`dtype`] | the types that describe a tensor |
//! | [`tensor`], [`view`], [`host`] | tensors on a backend, views of them, masters in host memory |
//! | [`weight`], [`state`], [`step`], [`logits`] | the few kinds that a model needs beside plain tensors |
//! | [`backend`] | the operations and their contracts |
//! | [`parity`], [`shadow`], [`traced`] | how far two tensors are apart; backends that compare or count |
//! | [`mod@differential`] | tests of two closures that ought to agree |

pub mod backend;
pub mod decorator;
pub mod differential;
pub mod dim;
pub mod dtype;
pub mod fact;
pub mod host;
pub mod logits;
pub mod parity;
pub mod shadow;
pub mod shape;
pub mod state;
pub mod step;
pub mod tensor;
pub mod traced;
pub mod view;
pub mod weight;

pub use backend::{Backend, GdnGates, Qkv, Rotary};
pub use dim::{By, Dim, One, Plus, Pred, Two, TypeNum};
#[doc(hidden)]
pub use dim::{Digit, Push, ToBit};
pub use dtype::{Bf16, Dtype, F32, U32};
pub use fact::{AtLeast, Is, IsDim, MultipleOf, SameSize, TileAligned};
pub use host::{HostBytes, LengthError, Master};
pub use logits::LogitsF32;
pub use shadow::Shadow;
pub use shape::Shape;
pub use state::{ConvState, DeltaState, KvCache};
pub use step::{RowsError, Span, Step, Tokens, TokensError};
pub use tensor::Tensor;
pub use traced::Traced;
pub use view::{Contiguous, FirstOfPair, Geometry, Layout, SecondOfPair, View};
pub use weight::{PlainNorm, ZeroCentredNorm};

#[doc(hidden)]
pub use typenum as __typenum;
