//! The operations that a model is written in, and what each of them promises.
//!
//! The doc of a method is the op's contract: shapes, dtypes, rounding points, source. `bf(x)` is
//! rounding to the nearest bf16, ties to even; everything between two `bf` is f32. Matrix products
//! take bf16, accumulate in f32 and round once. `rope`, `§3` and the like refer to the published
//! Qwen3.5 definition (Hugging Face transformers 5.24, `models/qwen3_5`).
//!
//! `impl Is<(T, K)>` is the shape `(T, K)`, said such that a mistake is told by name
//! ([`crate::fact`]).
//!
//! Rows of a step past its valid ones are padding: an op may leave anything in them (but must not
//! fail on it), and they never reach a valid row or a state.

use crate::dim::{By, Dim, One, Plus, Two};
use crate::dtype::{Bf16, Dtype, F32, U32};
use crate::fact::{AtLeast, Is, IsDim, MultipleOf, TileAligned};
use crate::host::Master;
use crate::logits::LogitsF32;
use crate::shape::Shape;
use crate::state::{ConvState, DeltaState, KvCache};
use crate::step::{Span, Step, Tokens};
use crate::tensor::Tensor;
use crate::view::{Layout, View};
use crate::weight::{PlainNorm, ZeroCentredNorm};

/// Channels of Gated DeltaNet's convolution: queries and keys of `Hk` heads of `Dk`, then values
/// of `Hv` heads of `Dv`.
pub type Qkv<Hk, Dk, Hv, Dv> = Plus<By<Hk, Dk>, Plus<By<Hk, Dk>, By<Hv, Dv>>>;

/// Cosines and sines of a step's positions, bf16, `(T, R)` each. Column `j` and column `j + R/2`
/// hold the same value, as in the reference.
pub struct Rotary<B: Backend, T: Dim, R: Dim> {
    /// `bf(cos(position * inv_freq))`.
    pub cos: Tensor<B, (T, R), Bf16>,
    /// `bf(sin(position * inv_freq))`.
    pub sin: Tensor<B, (T, R), Bf16>,
}

/// The gates of the delta rule, one per row and value head.
pub struct GdnGates<B: Backend, T: Dim, Hv: Dim> {
    /// The write strength, `bf(sigmoid(b))`.
    pub beta: Tensor<B, (T, Hv), Bf16>,
    /// The logarithm of the decay, `-exp(A_log) * softplus(a + dt_bias)`, kept in f32.
    pub log_decay: Tensor<B, (T, Hv), F32>,
}

/// A place that holds tensors and computes with them.
///
/// Once its types hold, an op cannot fail: it computes, or it records a command. What can fail
/// fails where commands are submitted or data crosses, as a `Result`. An op that a backend cannot
/// do is missing at compile time; none falls back to the host.
pub trait Backend: Sized + 'static {
    /// The name in tables and messages.
    const NAME: &'static str;
    /// Storage of elements of one dtype.
    type Buffer<E: Dtype>: 'static;
    /// What staging, submitting and reading back can fail with.
    type Error: std::error::Error + Send + Sync + 'static;

    // --- Crossings -------------------------------------------------------------------------

    /// Brings a host master to the backend, bit for bit. May only be recorded: the bytes have
    /// arrived, or the failure is known, when the next [`submit`](Self::submit) returns.
    fn stage<S: Shape, E: Dtype>(&self, master: &Master<S, E>) -> Tensor<Self, S, E>;

    /// A tensor of zeros. Recorded like [`stage`](Self::stage).
    fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E>;

    /// Hands over what was recorded since the last call: one crossing for a whole layer.
    fn submit(&self) -> Result<(), Self::Error>;

    /// Uploads ids (already padded to `T`) together with their position. Call
    /// [`Tokens::upload`], which checks the ids first.
    fn upload_tokens<T: Dim>(&self, ids: &[u32], span: Span<T>) -> Result<Self::Buffer<U32>, Self::Error>;

    /// Reads a tensor back, bit for bit, after everything recorded before it.
    fn download<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self, S, E>) -> Result<Master<S, E>, Self::Error>;

    // --- Every layer -----------------------------------------------------------------------

    /// Row `id` of the table for each token. Exact. (Skeleton, `h = embed[token]`.)
    fn embed<T: Dim, V: Dim, H: Dim>(
        &self,
        tokens: &Tokens<Self, T, V>,
        table: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> Tensor<Self, (T, H), Bf16>;

    /// `bf(x w^T)`, `w` as it lies in the checkpoint, `[out, in]`. A row of the result depends on
    /// that row of `x` alone, bit for bit, whatever `T` is.
    fn linear<T: Dim, K: Dim, N: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
        w: &Tensor<Self, impl Is<(N, K)>, Bf16>,
    ) -> Tensor<Self, (T, N), Bf16>;

    /// `bf(a + b)`.
    fn add<T: Dim, D: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, D)>, Bf16>,
    ) -> Tensor<Self, (T, D), Bf16>;

    /// `bf(x * rsqrt(mean(x^2) + eps) * (1 + w))` over each row. (RMSNorm, zero-centred.)
    fn rms_norm<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, D), Bf16>;

    /// [`rms_norm`](Self::rms_norm) over each head of each row. Takes a view, so that the query
    /// half of a query/gate projection is normed where it lies.
    fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<H, D>), Bf16>;

    /// `g = bf(silu(gate)); bf(g * up)`: two roundings. (MLP.)
    fn swiglu<T: Dim, I: Dim>(
        &self,
        gate: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        up: &Tensor<Self, impl Is<(T, I)>, Bf16>,
    ) -> Tensor<Self, (T, I), Bf16>;

    /// The gated half of an MLP, `swiglu(x gate^T, x up^T)`. A backend that has both weights in one
    /// place, or a fused kernel, may override it; the roundings are those of the parts.
    fn gated_linear<T: Dim, K: Dim, I: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
        gate: &Tensor<Self, impl Is<(I, K)>, Bf16>,
        up: &Tensor<Self, impl Is<(I, K)>, Bf16>,
    ) -> Tensor<Self, (T, I), Bf16> {
        self.swiglu(&self.linear(x, gate), &self.linear(x, up))
    }

    // --- Full attention ----------------------------------------------------------------------

    /// `inv_freq[j] = theta^(-2j/R)`, `angle = position * inv_freq[j]`, then `bf(cos)`, `bf(sin)`;
    /// f32 before the rounding. (Full attention, step 3.)
    fn rotary<T: Dim, R: Dim + MultipleOf<Two>>(
        &self,
        step: &Step<Self, impl IsDim<T>>,
        theta: f64,
    ) -> Rotary<Self, T, R>;

    /// Rotates the first `R` elements of each head, pairs `j` and `j + R/2`:
    /// `out[j] = bf(bf(x[j] c) + bf(-x[j+R/2] s))`, `out[j+R/2] = bf(bf(x[j+R/2] c) + bf(x[j] s))`;
    /// the others pass. (Full attention, step 3.)
    fn rope<T: Dim, H: Dim, D: Dim + AtLeast<R>, R: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        rotary: &Rotary<Self, impl IsDim<T>, R>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16>;

    /// Stores the step's `k` and `v` at their positions, then `bf(softmax(q k^T / sqrt(D)) v)` over
    /// all positions up to each row's own; query head `h` uses kv head `h / (H/Kv)`. Scores,
    /// exponentials and their sum are f32; the exponentials are rounded to bf16 for the product
    /// with `v` alone; the division by the f32 sum precedes the one rounding of the output.
    /// The step must end within `Ctx`; the caller checks. (Full attention, steps 4 and 5.)
    fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
        &self,
        q: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        k: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        v: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        cache: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16>;

    /// `bf(x * bf(sigmoid(gate)))`. (Full attention, step 6.)
    fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        gate: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16>;

    // --- Gated DeltaNet ----------------------------------------------------------------------

    /// Causal depthwise convolution of kernel `K`, then silu: `c = bf(sum_j w[j] m[t-K+1+j])`,
    /// `bf(silu(c))`. Columns before the step come from `state`, which afterwards holds the last
    /// `K - 1` valid ones. `T = One` is the step form, larger `T` the sequence form; they agree
    /// bit for bit. (Gated DeltaNet, step 1.)
    fn causal_conv<T: Dim, C: Dim, K: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, C)>, Bf16>,
        w: &Tensor<Self, impl Is<(C, One, K)>, Bf16>,
        state: &mut ConvState<Self, impl IsDim<C>, impl IsDim<K>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, C), Bf16>;

    /// `beta = bf(sigmoid(b))`; `log_decay = -exp(a_log) * softplus(a + dt_bias)` in f32, where
    /// `softplus(x) = x` above 20. (Gated DeltaNet, step 2.)
    fn gdn_gates<T: Dim, Hv: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        a_log: &Tensor<Self, impl Is<(Hv,)>, F32>,
        dt_bias: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
    ) -> GdnGates<Self, T, Hv>;

    /// The gated delta rule over the convolved channels, in f32 throughout, one rounding of the
    /// output. Queries and keys are scaled to unit length (`u * rsqrt(sum(u^2) + 1e-6)`), queries
    /// also by `1/sqrt(Dk)`; value head `h` uses key head `h / (Hv/Hk)`. `T = One` is the recurrent
    /// step, larger `T` the chunked form; the same mathematics, not the same rounding.
    /// (Gated DeltaNet, steps 3 to 5.)
    fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
        &self,
        qkv: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
        gates: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
        state: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16>;

    /// Over each value head: `n = bf(o * rsqrt(mean(o^2) + eps)); n = bf(w n); bf(n * silu(z))`,
    /// silu in f32. (Gated DeltaNet, step 6.)
    fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
        &self,
        o: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        z: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        w: &PlainNorm<Self, impl IsDim<Dv>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16>;

    // --- The end of a pass -------------------------------------------------------------------

    /// The last valid row. Exact.
    fn last_row<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (One, D), Bf16>;

    /// `x w^T`, the f32 accumulators themselves.
    fn lm_head<H: Dim, V: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(One, H)>, Bf16>,
        w: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> LogitsF32<Self, V>;

    /// The index of the largest logit; the lowest index wins a tie, and a NaN never wins unless
    /// all are NaN (then 0).
    fn argmax<V: Dim>(&self, logits: &LogitsF32<Self, V>) -> Tensor<Self, (One,), U32>;
}
