//! [`tt_dsl::Backend`] on the CPU.
//!
//! An operation runs when it is called: nothing is recorded, and [`submit`](Backend::submit) has
//! nothing to do. What an operation computes is written at the trait, and how in [`kernels`].
//!
//! [`kernels`]: crate::kernels

use half::bf16;
use tt_dsl::{
    AtLeast, Backend, Bf16, By, ConvState, DeltaState, Dim, Dtype, F32, GdnGates, Is, IsDim, KvCache, Layout,
    LengthError, LogitsF32, Master, MultipleOf, One, PlainNorm, Qkv, Rotary, Shape, Span, Step, Tensor,
    TileAligned, Tokens, Two, U32, View, ZeroCentredNorm,
};

use crate::buffer::Buffer;
use crate::kernels::{
    self, AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, Kernels,
    LinearDims, Plain, RopeDims, Rows, Simd,
};
use crate::pool::Pool;

/// The CPU with the fast kernels.
pub type Cpu = CpuBackend<Simd>;

/// The CPU with the plain kernels: what every other backend is compared with.
pub type CpuReference = CpuBackend<Plain>;

/// Kernels that make a backend.
pub trait CpuKernels: Kernels + Default {
    /// The backend's name.
    const NAME: &'static str;
}

impl CpuKernels for Simd {
    const NAME: &'static str = "cpu";
}

impl CpuKernels for Plain {
    const NAME: &'static str = "cpu-reference";
}

/// The CPU, with a set of kernels and the threads they share.
pub struct CpuBackend<K: CpuKernels> {
    kernels: K,
    pool: Pool,
}

impl<K: CpuKernels> CpuBackend<K> {
    /// As many threads as the CPU can run at once.
    #[must_use]
    pub fn new() -> Self {
        Self::with_pool(Pool::with_all_cores())
    }

    /// `threads` threads, the caller's included. The results are the same for every number.
    #[must_use]
    pub fn with_threads(threads: usize) -> Self {
        Self::with_pool(Pool::new(threads))
    }

    /// The threads of a pool.
    #[must_use]
    pub fn with_pool(pool: Pool) -> Self {
        Self { kernels: K::default(), pool }
    }
}

impl<K: CpuKernels> Default for CpuBackend<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// What can go wrong where data crosses to the CPU and back: nothing, unless a tensor or a step
/// was put together from a buffer of the wrong length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// A tensor's buffer does not have the length of its shape.
    #[error(transparent)]
    Length(#[from] LengthError),
    /// Token ids were not padded to the capacity of their step.
    #[error("expected {expected} token ids, padding included, found {found}")]
    Ids {
        /// The capacity dim's size.
        expected: usize,
        /// How many there were.
        found: usize,
    },
}

/// A tensor of what `fill` writes: every element, for there is anything in it before.
fn output<B, S, E>(fill: impl FnOnce(&mut [E::Repr])) -> Tensor<B, S, E>
where
    B: Backend<Buffer<E> = Buffer<E>>,
    S: Shape,
    E: Dtype,
{
    let mut values = Buffer::unwritten(S::NUMEL);
    fill(values.as_mut_slice());
    Tensor::from_buffer(values)
}

fn slice<B, S, E>(tensor: &Tensor<B, S, E>) -> &[E::Repr]
where
    B: Backend<Buffer<E> = Buffer<E>>,
    S: Shape,
    E: Dtype,
{
    tensor.buffer().as_slice()
}

fn slice_mut<B, S, E>(tensor: &mut Tensor<B, S, E>) -> &mut [E::Repr]
where
    B: Backend<Buffer<E> = Buffer<E>>,
    S: Shape,
    E: Dtype,
{
    tensor.buffer_mut().as_mut_slice()
}

/// A view's vectors, `count` of `width`, as rows.
fn vectors<'a, B, S, L>(view: View<'a, B, S, Bf16, L>, count: usize, width: usize) -> Rows<'a>
where
    B: Backend<Buffer<Bf16> = Buffer<Bf16>>,
    S: Shape,
    L: Layout,
{
    let geometry = view.geometry();
    // A run is a vector, or the whole tensor: then the vectors follow each other.
    let stride = if geometry.run == width { geometry.stride } else { width };
    Rows::strided(view.buffer().as_slice(), count, width, stride, geometry.offset)
}

fn span<B: Backend, T: Dim>(step: &Step<B, T>) -> kernels::Span {
    kernels::Span { start: step.span().start(), rows: step.span().rows() }
}

impl<K: CpuKernels> Backend for CpuBackend<K> {
    const NAME: &'static str = K::NAME;
    type Buffer<E: Dtype> = Buffer<E>;
    type Error = CpuError;

    fn stage<S: Shape, E: Dtype>(&self, master: &Master<S, E>) -> Tensor<Self, S, E> {
        Tensor::from_buffer(Buffer::from_bytes(master.bytes().clone()))
    }

    fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E> {
        Tensor::from_buffer(Buffer::zeros(S::NUMEL))
    }

    fn submit(&self) -> Result<(), CpuError> {
        Ok(())
    }

    fn upload_tokens<T: Dim>(&self, ids: &[u32], _span: Span<T>) -> Result<Buffer<U32>, CpuError> {
        if ids.len() != T::SIZE {
            return Err(CpuError::Ids { expected: T::SIZE, found: ids.len() });
        }
        Ok(ids.to_vec().into())
    }

    fn download<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self, S, E>) -> Result<Master<S, E>, CpuError> {
        let master = match tensor.buffer().shared() {
            Some(bytes) => Master::from_bytes(bytes.clone()),
            None => Master::from_vec(slice(tensor).to_vec()),
        };
        Ok(master?)
    }

    fn embed<T: Dim, V: Dim, H: Dim>(
        &self,
        tokens: &Tokens<Self, T, V>,
        table: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> Tensor<Self, (T, H), Bf16> {
        let ids = tokens.step().buffer().as_slice();
        output(|out| self.kernels.embed(ids, slice(table), H::SIZE, out))
    }

    fn linear<T: Dim, In: Dim, N: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, In)>, Bf16>,
        w: &Tensor<Self, impl Is<(N, In)>, Bf16>,
    ) -> Tensor<Self, (T, N), Bf16> {
        let dims = LinearDims { rows: T::SIZE, inputs: In::SIZE, outputs: N::SIZE };
        output(|out| self.kernels.linear(&self.pool, dims, slice(x), slice(w), out))
    }

    fn add<T: Dim, D: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, D)>, Bf16>,
    ) -> Tensor<Self, (T, D), Bf16> {
        output(|out| self.kernels.add(&self.pool, slice(a), slice(b), out))
    }

    fn rms_norm<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, D), Bf16> {
        let rows = Rows::contiguous(slice(x), T::SIZE, D::SIZE);
        output(|out| self.kernels.rms_norm(&self.pool, rows, slice(&w.0), eps, out))
    }

    fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let heads = vectors(x, T::SIZE * H::SIZE, D::SIZE);
        output(|out| self.kernels.rms_norm(&self.pool, heads, slice(&w.0), eps, out))
    }

    fn swiglu<T: Dim, I: Dim>(
        &self,
        gate: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        up: &Tensor<Self, impl Is<(T, I)>, Bf16>,
    ) -> Tensor<Self, (T, I), Bf16> {
        output(|out| self.kernels.swiglu(&self.pool, slice(gate), slice(up), out))
    }

    fn rotary<T: Dim, R: Dim + MultipleOf<Two>>(
        &self,
        step: &Step<Self, impl IsDim<T>>,
        theta: f64,
    ) -> Rotary<Self, T, R> {
        let (mut cos, mut sin) = (self.zeros(), self.zeros());
        // The reference raises an f32 of the base to an f32 power.
        let theta = theta as f32;
        let start = step.span().start();
        self.kernels.rope_tables(start, R::SIZE, theta, slice_mut(&mut cos), slice_mut(&mut sin));
        Rotary { cos, sin }
    }

    fn rope<T: Dim, H: Dim, D: Dim + AtLeast<R>, R: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        rotary: &Rotary<Self, impl IsDim<T>, R>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let dims = RopeDims { heads: H::SIZE, head_dim: D::SIZE, rotary: R::SIZE };
        output(|rotated| {
            rotated.copy_from_slice(slice(x));
            self.kernels.rope(&self.pool, dims, slice(&rotary.cos), slice(&rotary.sin), rotated);
        })
    }

    fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
        &self,
        q: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        k: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        v: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        cache: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let dims =
            AttentionDims { heads: H::SIZE, kv_heads: Kv::SIZE, head_dim: D::SIZE, context: Ctx::SIZE };
        let inputs = AttentionInputs { q: slice(q), k: slice(k), v: slice(v) };
        let cache = AttentionCache { k: slice_mut(&mut cache.k), v: slice_mut(&mut cache.v) };
        output(|out| self.kernels.attention(&self.pool, dims, span(step), inputs, cache, out))
    }

    fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        gate: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let gate = vectors(gate, T::SIZE * H::SIZE, D::SIZE);
        output(|out| self.kernels.sigmoid_gate(&self.pool, slice(x), gate, out))
    }

    fn causal_conv<T: Dim, C: Dim, Taps: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, C)>, Bf16>,
        w: &Tensor<Self, impl Is<(C, One, Taps)>, Bf16>,
        state: &mut ConvState<Self, impl IsDim<C>, impl IsDim<Taps>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, C), Bf16> {
        let dims = ConvDims { rows: step.span().rows(), channels: C::SIZE, kernel: Taps::SIZE };
        let state = slice_mut(&mut state.0);
        output(|out| self.kernels.causal_conv(&self.pool, dims, slice(x), slice(w), state, out))
    }

    fn gdn_gates<T: Dim, Hv: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        a_log: &Tensor<Self, impl Is<(Hv,)>, F32>,
        dt_bias: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
    ) -> GdnGates<Self, T, Hv> {
        let (mut beta, mut log_decay) = (self.zeros(), self.zeros());
        self.kernels.gdn_gates(
            slice(a),
            slice(b),
            slice(a_log),
            slice(dt_bias),
            slice_mut(&mut beta),
            slice_mut(&mut log_decay),
        );
        GdnGates { beta, log_decay }
    }

    fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
        &self,
        qkv: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
        gates: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
        state: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        let dims =
            DeltaDims { key_heads: Hk::SIZE, value_heads: Hv::SIZE, key_dim: Dk::SIZE, value_dim: Dv::SIZE };
        let inputs = DeltaInputs { qkv: slice(qkv), beta: slice(&gates.beta), g: slice(&gates.log_decay) };
        let state = slice_mut(&mut state.0);
        output(|out| {
            if T::SIZE == 1 {
                self.kernels.delta_step(&self.pool, dims, inputs, state, out);
            } else {
                let rows = step.span().rows();
                self.kernels.delta_chunk(&self.pool, dims, rows, inputs, state, out);
            }
        })
    }

    fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
        &self,
        o: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        z: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        w: &PlainNorm<Self, impl IsDim<Dv>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        output(|out| self.kernels.gated_norm(&self.pool, slice(o), slice(z), slice(&w.0), eps, out))
    }

    fn last_row<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (One, D), Bf16> {
        let end = step.span().rows() * D::SIZE;
        output(|out: &mut [bf16]| out.copy_from_slice(&slice(x)[end - D::SIZE..end]))
    }

    fn lm_head<H: Dim, V: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(One, H)>, Bf16>,
        w: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> LogitsF32<Self, V> {
        let dims = LinearDims { rows: 1, inputs: H::SIZE, outputs: V::SIZE };
        LogitsF32::from_accumulators(output(|out| {
            self.kernels.linear_f32(&self.pool, dims, slice(x), slice(w), out);
        }))
    }

    fn argmax<V: Dim>(&self, logits: &LogitsF32<Self, V>) -> Tensor<Self, (One,), U32> {
        let index = self.kernels.argmax(slice(logits.tensor()));
        // A vocabulary has at most 2^24 entries.
        output(|out: &mut [u32]| out[0] = index as u32)
    }
}
