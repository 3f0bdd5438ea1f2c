//! The backend: every op a recorded command.

use crate::bridge::ffi::{Command, Op, Spec};
use crate::buffer::{Buffer, Origin, dim, spec, step_spec};
use crate::error::Error;
use crate::session::Session;
use crate::stats;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;
use tt_dsl::{
    AtLeast, Backend, Bf16, By, ConvState, DeltaState, Dim, Dtype, F32, GdnGates, Geometry, Is, IsDim,
    KvCache, Layout, LogitsF32, Master, MultipleOf, One, PlainNorm, Qkv, Rotary, Shape, Span, Step, Tensor,
    TileAligned, Tokens, Two, U32, View, ZeroCentredNorm,
};

/// The identity of a session that is the only one of its program.
#[derive(Debug)]
pub enum Only {}

/// A handle on a session, and the backend that records on it.
///
/// Programs with several sessions can tell them apart in types: tensors of `Tenstorrent<A>` are not
/// tensors of `Tenstorrent<B>`. Two handles of one `Id` on different sessions are told apart when a
/// tensor is used, as [`Error::ForeignTensor`] of the next crossing.
pub struct Tenstorrent<Id = Only> {
    session: Arc<Session>,
    of: PhantomData<fn() -> Id>,
}

impl Tenstorrent {
    /// The backend on a session.
    pub fn new(session: Arc<Session>) -> Self {
        Self::identified(session)
    }
}

impl<Id: 'static> Tenstorrent<Id> {
    /// The backend on a session, with an identity of its own.
    pub fn identified(session: Arc<Session>) -> Self {
        Self { session, of: PhantomData }
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Wraps slots that this session has just made.
    fn wrap<S: Shape, E: Dtype>(&self, slot: u32, spec: Spec, origin: Origin) -> Tensor<Self, S, E> {
        Tensor::from_buffer(Buffer::new(Arc::clone(&self.session), slot, spec, origin))
    }

    /// Records a command with one output.
    fn record<S: Shape, E: Dtype, const N: usize>(
        &self,
        op: Op,
        inputs: [Input<'_>; N],
    ) -> Recording<'_, S, E, Id> {
        Recording { backend: self, command: self.command(op, inputs), inputs: N, of: PhantomData }
    }

    fn command<const N: usize>(&self, op: Op, inputs: [Input<'_>; N]) -> Command {
        let mut operands = [u32::MAX; 7];
        for (operand, input) in operands.iter_mut().zip(&inputs) {
            if !Arc::ptr_eq(input.session, &self.session) {
                self.session.fail(Error::ForeignTensor { operation: stats::name(op).to_owned() });
            }
            *operand = input.slot;
        }
        Command { op, operands, dims: [0; 5], scalar: 0.0 }
    }
}

/// An operand of a command.
struct Input<'a> {
    session: &'a Arc<Session>,
    slot: u32,
}

impl<'a, E: Dtype> From<&'a Buffer<E>> for Input<'a> {
    fn from(buffer: &'a Buffer<E>) -> Self {
        Self { session: buffer.session(), slot: buffer.slot() }
    }
}

/// A command about to be recorded, with an output of shape `S` and dtype `E`.
struct Recording<'a, S: Shape, E: Dtype, Id: 'static> {
    backend: &'a Tenstorrent<Id>,
    command: Command,
    inputs: usize,
    of: PhantomData<fn() -> (S, E)>,
}

impl<S: Shape, E: Dtype, Id: 'static> Recording<'_, S, E, Id> {
    fn dims<const N: usize>(mut self, dims: [usize; N]) -> Self {
        for (to, from) in self.command.dims.iter_mut().zip(dims) {
            *to = dim(from);
        }
        self
    }

    fn scalar(mut self, scalar: f64) -> Self {
        self.command.scalar = scalar;
        self
    }

    fn output(self) -> Tensor<Tenstorrent<Id>, S, E> {
        let spec = spec::<S, E>();
        let [slot] = self.backend.session.record(self.command, self.inputs, [spec]);
        self.backend.wrap(slot, spec, Origin::Planned)
    }

    /// For commands with a second output.
    fn outputs<S2: Shape, E2: Dtype>(
        self,
    ) -> (Tensor<Tenstorrent<Id>, S, E>, Tensor<Tenstorrent<Id>, S2, E2>) {
        let specs = [spec::<S, E>(), spec::<S2, E2>()];
        let [first, second] = self.backend.session.record(self.command, self.inputs, specs);
        let backend = self.backend;
        (backend.wrap(first, specs[0], Origin::Planned), backend.wrap(second, specs[1], Origin::Planned))
    }
}

/// Heads and width, then how the heads lie in their owner.
fn head_dims(heads: usize, width: usize, geometry: Geometry) -> [usize; 5] {
    [heads, width, geometry.run, geometry.stride, geometry.offset]
}

impl<Id: 'static> Backend for Tenstorrent<Id> {
    const NAME: &'static str = "tenstorrent";
    type Buffer<E: Dtype> = Buffer<E>;
    type Error = Error;

    fn stage<S: Shape, E: Dtype>(&self, master: &Master<S, E>) -> Tensor<Self, S, E> {
        let spec = spec::<S, E>();
        let slot = self.session.stage(spec, master.bytes().clone());
        self.wrap(slot, spec, Origin::Owned)
    }

    fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E> {
        let spec = spec::<S, E>();
        self.wrap(self.session.create(spec), spec, Origin::Owned)
    }

    fn submit(&self) -> Result<(), Error> {
        self.session.submit()
    }

    fn upload_tokens<T: Dim>(&self, ids: &[u32], span: Span<T>) -> Result<Buffer<U32>, Error> {
        let spec = step_spec(T::SIZE);
        let mut words = Vec::with_capacity(ids.len() + 2);
        words.extend([dim(span.start()), dim(span.rows())]);
        words.extend(ids);
        let slot = self.session.write(spec, bytemuck::cast_slice(&words))?;
        Ok(Buffer::new(Arc::clone(&self.session), slot, spec, Origin::Planned))
    }

    fn download<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self, S, E>) -> Result<Master<S, E>, Error> {
        let buffer = tensor.buffer();
        if !Arc::ptr_eq(buffer.session(), &self.session) {
            return Err(Error::ForeignTensor { operation: "download".to_owned() });
        }
        let mut values = vec![bytemuck::Zeroable::zeroed(); S::NUMEL];
        self.session.read(buffer.slot(), bytemuck::cast_slice_mut(&mut values))?;
        Master::from_vec(values).map_err(|error| Error::Invalid { reason: error.to_string() })
    }

    fn embed<T: Dim, V: Dim, H: Dim>(
        &self,
        tokens: &Tokens<Self, T, V>,
        table: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> Tensor<Self, (T, H), Bf16> {
        self.record(Op::Embed, [tokens.step().buffer().into(), table.buffer().into()]).output()
    }

    fn linear<T: Dim, K: Dim, N: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
        w: &Tensor<Self, impl Is<(N, K)>, Bf16>,
    ) -> Tensor<Self, (T, N), Bf16> {
        self.record(Op::Linear, [x.buffer().into(), w.buffer().into()]).output()
    }

    fn add<T: Dim, D: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, D)>, Bf16>,
    ) -> Tensor<Self, (T, D), Bf16> {
        self.record(Op::Add, [a.buffer().into(), b.buffer().into()]).output()
    }

    fn rms_norm<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, D), Bf16> {
        self.record(Op::RmsNorm, [x.buffer().into(), w.0.buffer().into()])
            .dims(head_dims(1, D::SIZE, x.view().geometry()))
            .scalar(eps.into())
            .output()
    }

    fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        self.record(Op::RmsNorm, [x.buffer().into(), w.0.buffer().into()])
            .dims(head_dims(H::SIZE, D::SIZE, x.geometry()))
            .scalar(eps.into())
            .output()
    }

    fn swiglu<T: Dim, I: Dim>(
        &self,
        gate: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        up: &Tensor<Self, impl Is<(T, I)>, Bf16>,
    ) -> Tensor<Self, (T, I), Bf16> {
        self.record(Op::Swiglu, [gate.buffer().into(), up.buffer().into()]).output()
    }

    fn rotary<T: Dim, R: Dim + MultipleOf<Two>>(
        &self,
        step: &Step<Self, impl IsDim<T>>,
        theta: f64,
    ) -> Rotary<Self, T, R> {
        let (cos, sin) =
            self.record(Op::Rotary, [step.buffer().into()]).dims([R::SIZE]).scalar(theta).outputs();
        Rotary { cos, sin }
    }

    fn rope<T: Dim, H: Dim, D: Dim + AtLeast<R>, R: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        rotary: &Rotary<Self, impl IsDim<T>, R>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        self.record(Op::Rope, [x.buffer().into(), rotary.cos.buffer().into(), rotary.sin.buffer().into()])
            .dims([H::SIZE, D::SIZE, R::SIZE])
            .output()
    }

    fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
        &self,
        q: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        k: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        v: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        cache: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let inputs = [
            q.buffer().into(),
            k.buffer().into(),
            v.buffer().into(),
            cache.k.buffer().into(),
            cache.v.buffer().into(),
            step.buffer().into(),
        ];
        self.record(Op::Attention, inputs).dims([H::SIZE, Kv::SIZE, D::SIZE, Ctx::SIZE]).output()
    }

    fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        gate: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        self.record(Op::SigmoidGate, [x.buffer().into(), gate.buffer().into()])
            .dims(head_dims(H::SIZE, D::SIZE, gate.geometry()))
            .output()
    }

    fn causal_conv<T: Dim, C: Dim, K: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, C)>, Bf16>,
        w: &Tensor<Self, impl Is<(C, One, K)>, Bf16>,
        state: &mut ConvState<Self, impl IsDim<C>, impl IsDim<K>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, C), Bf16> {
        let inputs = [x.buffer().into(), w.buffer().into(), state.0.buffer().into(), step.buffer().into()];
        self.record(Op::CausalConv, inputs).dims([K::SIZE]).output()
    }

    fn gdn_gates<T: Dim, Hv: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        a_log: &Tensor<Self, impl Is<(Hv,)>, F32>,
        dt_bias: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
    ) -> GdnGates<Self, T, Hv> {
        let inputs = [a.buffer().into(), b.buffer().into(), a_log.buffer().into(), dt_bias.buffer().into()];
        let (beta, log_decay) = self.record(Op::GdnGates, inputs).outputs();
        GdnGates { beta, log_decay }
    }

    fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
        &self,
        qkv: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
        gates: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
        state: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        let inputs = [
            qkv.buffer().into(),
            gates.beta.buffer().into(),
            gates.log_decay.buffer().into(),
            state.0.buffer().into(),
            step.buffer().into(),
        ];
        self.record(Op::GatedDelta, inputs).dims([Hk::SIZE, Dk::SIZE, Hv::SIZE, Dv::SIZE]).output()
    }

    fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
        &self,
        o: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        z: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        w: &PlainNorm<Self, impl IsDim<Dv>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        self.record(Op::GatedNorm, [o.buffer().into(), z.buffer().into(), w.0.buffer().into()])
            .dims([Hv::SIZE, Dv::SIZE])
            .scalar(eps.into())
            .output()
    }

    fn last_row<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (One, D), Bf16> {
        self.record(Op::LastRow, [x.buffer().into(), step.buffer().into()]).output()
    }

    fn lm_head<H: Dim, V: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(One, H)>, Bf16>,
        w: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> LogitsF32<Self, V> {
        LogitsF32::from_accumulators(self.record(Op::LmHead, [x.buffer().into(), w.buffer().into()]).output())
    }

    fn argmax<V: Dim>(&self, logits: &LogitsF32<Self, V>) -> Tensor<Self, (One,), U32> {
        self.record(Op::Argmax, [logits.tensor().buffer().into()]).output()
    }
}

impl<Id> Clone for Tenstorrent<Id> {
    fn clone(&self) -> Self {
        Self { session: Arc::clone(&self.session), of: PhantomData }
    }
}

impl<Id> fmt::Debug for Tenstorrent<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tenstorrent").field(&self.session).finish()
    }
}
