//! What backends that wrap other backends share: how an op of the decorator is given to the
//! backend inside.
//!
//! A decorator's tensor holds buffers of inner backends. A `Side` is one inner backend together
//! with the rule that finds its buffer in a decorator's buffer; `decorated_ops!` writes every op
//! once in terms of a side, and the decorator decides how often an op is run, on which sides, and
//! what becomes of the results.

use crate::backend::{Backend, GdnGates, Rotary};
use crate::dim::Dim;
use crate::dtype::Dtype;
use crate::logits::LogitsF32;
use crate::shape::Shape;
use crate::state::KvCache;
use crate::step::{Step, Tokens};
use crate::tensor::Tensor;
use crate::weight::{PlainNorm, ZeroCentredNorm};
use std::cell::{Ref, RefCell};

/// A place for a buffer of an inner backend, which is lent to that backend's ops.
pub struct Slot<B: Backend, E: Dtype>(RefCell<Option<B::Buffer<E>>>);

impl<B: Backend, E: Dtype> Slot<B, E> {
    pub(crate) fn new(buffer: Option<B::Buffer<E>>) -> Self {
        Self(RefCell::new(buffer))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_none()
    }

    /// The buffer in its place, for ops that take a tensor by reference.
    pub(crate) fn borrow(&self) -> Ref<'_, B::Buffer<E>> {
        Ref::map(self.0.borrow(), |buffer| buffer.as_ref().expect(LENT))
    }

    /// The buffer itself, for ops that take it as a part of something: a norm weight, a step.
    pub(crate) fn take(&self) -> B::Buffer<E> {
        self.0.borrow_mut().take().expect(LENT)
    }

    pub(crate) fn put(&self, buffer: B::Buffer<E>) {
        *self.0.borrow_mut() = Some(buffer);
    }
}

/// Reached only when one tensor is given to one op both in its place and as a part of a state, a
/// step, gates or rotary tables, which the shapes of the ops rule out for dims of different names.
const LENT: &str = "a buffer that is not part of another argument of the same op";

/// One inner backend of a decorator.
pub(crate) trait Side {
    /// The decorator.
    type Outer: Backend;
    /// The backend inside.
    type Inner: Backend;

    fn inner(&self) -> &Self::Inner;

    /// Where this side's buffer lies in the decorator's.
    fn slot<'a, E: Dtype>(&self, buffer: &'a <Self::Outer as Backend>::Buffer<E>)
    -> &'a Slot<Self::Inner, E>;

    /// Takes a state's tensor, which the op will replace.
    fn state<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self::Outer, S, E>) -> Tensor<Self::Inner, S, E> {
        self.take(tensor)
    }

    /// Told which rows of a step are valid, for decorators that look at results.
    fn sees_rows(&self, _valid: usize, _of: usize) {}

    fn buffer<'a, E: Dtype>(
        &self,
        buffer: &'a <Self::Outer as Backend>::Buffer<E>,
    ) -> Ref<'a, <Self::Inner as Backend>::Buffer<E>> {
        self.slot(buffer).borrow()
    }

    fn tensor<'a, S: Shape, E: Dtype>(
        &self,
        tensor: &'a Tensor<Self::Outer, S, E>,
    ) -> Ref<'a, Tensor<Self::Inner, S, E>> {
        Ref::map(self.buffer(tensor.buffer()), Tensor::from_buffer_ref)
    }

    fn take<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self::Outer, S, E>) -> Tensor<Self::Inner, S, E> {
        Tensor::from_buffer(self.slot(tensor.buffer()).take())
    }

    fn put<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self::Outer, S, E>, lent: Tensor<Self::Inner, S, E>) {
        self.slot(tensor.buffer()).put(lent.into_buffer());
    }

    fn zero_centred<D: Dim, O>(
        &self,
        w: &ZeroCentredNorm<Self::Outer, D>,
        op: impl FnOnce(&ZeroCentredNorm<Self::Inner, D>) -> O,
    ) -> O {
        let lent = ZeroCentredNorm(self.take(&w.0));
        let out = op(&lent);
        self.put(&w.0, lent.0);
        out
    }

    fn plain<D: Dim, O>(
        &self,
        w: &PlainNorm<Self::Outer, D>,
        op: impl FnOnce(&PlainNorm<Self::Inner, D>) -> O,
    ) -> O {
        let lent = PlainNorm(self.take(&w.0));
        let out = op(&lent);
        self.put(&w.0, lent.0);
        out
    }

    fn logits<V: Dim, O>(
        &self,
        logits: &LogitsF32<Self::Outer, V>,
        op: impl FnOnce(&LogitsF32<Self::Inner, V>) -> O,
    ) -> O {
        let lent = LogitsF32::from_accumulators(self.take(logits.tensor()));
        let out = op(&lent);
        self.put(logits.tensor(), lent.into_tensor());
        out
    }

    fn rotary<T: Dim, R: Dim, O>(
        &self,
        rotary: &Rotary<Self::Outer, T, R>,
        op: impl FnOnce(&Rotary<Self::Inner, T, R>) -> O,
    ) -> O {
        let lent = Rotary { cos: self.take(&rotary.cos), sin: self.take(&rotary.sin) };
        let out = op(&lent);
        self.put(&rotary.cos, lent.cos);
        self.put(&rotary.sin, lent.sin);
        out
    }

    fn gates<T: Dim, Hv: Dim, O>(
        &self,
        gates: &GdnGates<Self::Outer, T, Hv>,
        op: impl FnOnce(&GdnGates<Self::Inner, T, Hv>) -> O,
    ) -> O {
        let lent = GdnGates { beta: self.take(&gates.beta), log_decay: self.take(&gates.log_decay) };
        let out = op(&lent);
        self.put(&gates.beta, lent.beta);
        self.put(&gates.log_decay, lent.log_decay);
        out
    }

    fn step<T: Dim, O>(&self, step: &Step<Self::Outer, T>, op: impl FnOnce(&Step<Self::Inner, T>) -> O) -> O {
        self.sees_rows(step.span().rows(), T::SIZE);
        let slot = self.slot(step.buffer());
        let lent = Step::from_parts(slot.take(), step.span());
        let out = op(&lent);
        slot.put(lent.into_buffer());
        out
    }

    fn tokens<T: Dim, V: Dim, O>(
        &self,
        tokens: &Tokens<Self::Outer, T, V>,
        op: impl FnOnce(&Tokens<Self::Inner, T, V>) -> O,
    ) -> O {
        let step = tokens.step();
        self.sees_rows(step.span().rows(), T::SIZE);
        let slot = self.slot(step.buffer());
        let lent = Tokens::from_step(Step::from_parts(slot.take(), step.span()));
        let out = op(&lent);
        slot.put(lent.into_step().into_buffer());
        out
    }

    fn cache<Kv: Dim, D: Dim, Ctx: Dim>(
        &self,
        cache: &KvCache<Self::Outer, Kv, D, Ctx>,
    ) -> KvCache<Self::Inner, Kv, D, Ctx> {
        KvCache { k: self.state(&cache.k), v: self.state(&cache.v) }
    }
}

/// Writes the ops of a decorator. `$run!(decorator, "op" [names of its results], |on| body)` is
/// the decorator's own: it runs `body`, which yields a tensor or nested pairs of tensors of the
/// inner backend, on each of its sides, and makes decorator's tensors of them. An op that updates a
/// state takes the old one and yields the new one as a result.
macro_rules! decorated_ops {
    ($run:ident) => {
        fn embed<T: Dim, V: Dim, H: Dim>(
            &self,
            tokens: &Tokens<Self, T, V>,
            table: &Tensor<Self, impl Is<(V, H)>, Bf16>,
        ) -> Tensor<Self, (T, H), Bf16> {
            $run!(self, "embed" ["out"], |on| on
                .tokens(tokens, |tokens| on.inner().embed(tokens, &on.tensor(table))))
        }

        fn linear<T: Dim, K: Dim, N: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
            w: &Tensor<Self, impl Is<(N, K)>, Bf16>,
        ) -> Tensor<Self, (T, N), Bf16> {
            $run!(self, "linear" ["out"], |on| on.inner().linear(&on.tensor(x), &on.tensor(w)))
        }

        fn add<T: Dim, D: Dim>(
            &self,
            a: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            b: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        ) -> Tensor<Self, (T, D), Bf16> {
            $run!(self, "add" ["out"], |on| on.inner().add(&on.tensor(a), &on.tensor(b)))
        }

        fn rms_norm<T: Dim, D: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            w: &ZeroCentredNorm<Self, impl IsDim<D>>,
            eps: f32,
        ) -> Tensor<Self, (T, D), Bf16> {
            $run!(self, "rms_norm" ["out"], |on| on
                .zero_centred(w, |w| on.inner().rms_norm(&on.tensor(x), w, eps)))
        }

        fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
            &self,
            x: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
            w: &ZeroCentredNorm<Self, impl IsDim<D>>,
            eps: f32,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            $run!(self, "rms_norm_heads" ["out"], |on| on.zero_centred(w, |w| {
                let x = on.buffer(x.buffer());
                on.inner().rms_norm_heads(View::<_, (T, By<H, D>), _, L>::new(&*x), w, eps)
            }))
        }

        fn swiglu<T: Dim, I: Dim>(
            &self,
            gate: &Tensor<Self, impl Is<(T, I)>, Bf16>,
            up: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        ) -> Tensor<Self, (T, I), Bf16> {
            $run!(self, "swiglu" ["out"], |on| on.inner().swiglu(&on.tensor(gate), &on.tensor(up)))
        }

        fn gated_linear<T: Dim, K: Dim, I: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
            gate: &Tensor<Self, impl Is<(I, K)>, Bf16>,
            up: &Tensor<Self, impl Is<(I, K)>, Bf16>,
        ) -> Tensor<Self, (T, I), Bf16> {
            $run!(self, "gated_linear" ["out"], |on| on
                .inner()
                .gated_linear(&on.tensor(x), &on.tensor(gate), &on.tensor(up)))
        }

        fn rotary<T: Dim, Rd: Dim + MultipleOf<Two>>(
            &self,
            step: &Step<Self, impl IsDim<T>>,
            theta: f64,
        ) -> Rotary<Self, T, Rd> {
            let (cos, sin) = $run!(self, "rotary" ["cos", "sin"], |on| {
                let Rotary { cos, sin } = on.step(step, |step| on.inner().rotary::<T, Rd>(step, theta));
                (cos, sin)
            });
            Rotary { cos, sin }
        }

        fn rope<T: Dim, H: Dim, D: Dim + AtLeast<Rd>, Rd: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            rotary: &Rotary<Self, impl IsDim<T>, Rd>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            $run!(self, "rope" ["out"], |on| on
                .rotary(rotary, |rotary| on.inner().rope::<T, H, D, Rd>(&on.tensor(x), rotary)))
        }

        fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
            &self,
            q: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            k: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
            v: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
            cache: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
            step: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            let (out, (k, v)) = $run!(self, "attention" ["out", "k cache", "v cache"], |on| {
                let mut cache = on.cache(cache);
                let out = on.step(step, |step| {
                    let (q, k, v) = (on.tensor(q), on.tensor(k), on.tensor(v));
                    on.inner().attention::<T, H, Kv, D, Ctx>(&q, &k, &v, &mut cache, step)
                });
                (out, (cache.k, cache.v))
            });
            *cache = KvCache { k, v };
            out
        }

        fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
            &self,
            x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            gate: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            $run!(self, "sigmoid_gate" ["out"], |on| {
                let gate = on.buffer(gate.buffer());
                on.inner().sigmoid_gate(&on.tensor(x), View::<_, (T, By<H, D>), _, L>::new(&*gate))
            })
        }

        fn causal_conv<T: Dim, C: Dim, K: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, C)>, Bf16>,
            w: &Tensor<Self, impl Is<(C, One, K)>, Bf16>,
            state: &mut ConvState<Self, impl IsDim<C>, impl IsDim<K>>,
            step: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, C), Bf16> {
            let (out, new) = $run!(self, "causal_conv" ["out", "state"], |on| {
                let mut state = ConvState(on.state(&state.0));
                let out = on.step(step, |step| {
                    on.inner().causal_conv(&on.tensor(x), &on.tensor(w), &mut state, step)
                });
                (out, state.0)
            });
            state.0 = new;
            out
        }

        fn gdn_gates<T: Dim, Hv: Dim>(
            &self,
            a: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
            b: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
            a_log: &Tensor<Self, impl Is<(Hv,)>, F32>,
            dt_bias: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
        ) -> GdnGates<Self, T, Hv> {
            let (beta, log_decay) = $run!(self, "gdn_gates" ["beta", "log_decay"], |on| {
                let (a, b) = (on.tensor(a), on.tensor(b));
                let gates = on.inner().gdn_gates(&a, &b, &on.tensor(a_log), &on.tensor(dt_bias));
                (gates.beta, gates.log_decay)
            });
            GdnGates { beta, log_decay }
        }

        fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
            &self,
            qkv: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
            gates: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
            state: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
            step: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
            let (out, new) = $run!(self, "gated_delta" ["out", "state"], |on| {
                let mut state = DeltaState(on.state(&state.0));
                let out = on.gates(gates, |gates| {
                    on.step(step, |step| {
                        let qkv = on.tensor(qkv);
                        on.inner().gated_delta::<T, Hk, Dk, Hv, Dv>(&qkv, gates, &mut state, step)
                    })
                });
                (out, state.0)
            });
            state.0 = new;
            out
        }

        fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
            &self,
            o: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
            z: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
            w: &PlainNorm<Self, impl IsDim<Dv>>,
            eps: f32,
        ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
            $run!(self, "gated_norm" ["out"], |on| on
                .plain(w, |w| on.inner().gated_norm(&on.tensor(o), &on.tensor(z), w, eps)))
        }

        fn last_row<T: Dim, D: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            step: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (One, D), Bf16> {
            $run!(self, "last_row" ["out"], |on| on
                .step(step, |step| on.inner().last_row(&on.tensor(x), step)))
        }

        fn lm_head<H: Dim, V: Dim>(
            &self,
            x: &Tensor<Self, impl Is<(One, H)>, Bf16>,
            w: &Tensor<Self, impl Is<(V, H)>, Bf16>,
        ) -> LogitsF32<Self, V> {
            LogitsF32::from_accumulators($run!(self, "lm_head" ["out"], |on| on
                .inner()
                .lm_head(&on.tensor(x), &on.tensor(w))
                .into_tensor()))
        }

        fn argmax<V: Dim>(&self, logits: &LogitsF32<Self, V>) -> Tensor<Self, (One,), U32> {
            $run!(self, "argmax" ["out"], |on| on.logits(logits, |logits| on.inner().argmax(logits)))
        }
    };
}

pub(crate) use decorated_ops;
