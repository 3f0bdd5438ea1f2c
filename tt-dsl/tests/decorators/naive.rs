//! A backend for tests of what is generic over backends: vectors, loops, and faults on demand.
//!
//! Its results are those of the ops' contracts up to rounding; nothing is measured against it.

use half::bf16;
use std::cell::Cell;
use tt_dsl::*;

/// What is wrong with a [`Naive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// `rms_norm` multiplies by `w` where the weight is zero-centred (museum 17).
    NormWithoutOne,
    /// `causal_conv` leaves its state as it was; its output is right.
    StaleConvState,
    /// Staging loses the lowest bit of every element.
    LossyStage,
    /// `zeros` hands out what another tensor left behind (museum 11).
    DirtyZeros,
    /// `add` leaves NaN in the rows past the valid ones, which it may.
    NanInPadding,
    /// Reading back fails.
    DownloadFails,
}

pub(crate) struct Naive {
    pub(crate) fault: Fault,
    /// Valid rows of the step in progress: `add` gets no step and could not tell padding.
    rows: Cell<usize>,
}

impl Naive {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, rows: Cell::new(usize::MAX) }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct NaiveError(pub(crate) &'static str);

/// A host master of the given values.
pub(crate) fn master<S: Shape>(value: impl FnMut(usize) -> f32) -> Master<S, Bf16> {
    Master::from_vec((0..S::NUMEL).map(value).map(bf16::from_f32).collect())
        .expect("as many as the shape has")
}

fn tensor<S: Shape, E: Dtype>(values: Vec<E::Repr>) -> Tensor<Naive, S, E> {
    assert_eq!(values.len(), S::NUMEL);
    Tensor::from_buffer(values)
}

fn rounded<S: Shape>(values: impl IntoIterator<Item = f32>) -> Tensor<Naive, S, Bf16> {
    tensor(values.into_iter().map(bf16::from_f32).collect())
}

fn wide(values: &[bf16]) -> Vec<f32> {
    values.iter().map(|x| x.to_f32()).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The elements of a view, in order.
fn gather<S: Shape, L: Layout>(view: View<'_, Naive, S, Bf16, L>) -> Vec<f32> {
    let Geometry { run, stride, offset } = view.geometry();
    let at = |i: usize| view.buffer()[offset + i / run * stride + i % run].to_f32();
    (0..S::NUMEL).map(at).collect()
}

/// `x * rsqrt(mean(x^2) + eps) * weight(i)` over each vector of length `d`.
fn normed(x: &[f32], d: usize, eps: f32, weight: impl Fn(usize) -> f32) -> Vec<f32> {
    let vector = |v: &[f32]| {
        let scale = 1.0 / (dot(v, v) / d as f32 + eps).sqrt();
        v.iter().enumerate().map(|(i, x)| x * scale * weight(i)).collect::<Vec<_>>()
    };
    x.chunks_exact(d).flat_map(vector).collect()
}

fn unit(v: &[f32]) -> Vec<f32> {
    let scale = 1.0 / (dot(v, v) + 1e-6).sqrt();
    v.iter().map(|x| x * scale).collect()
}

impl Backend for Naive {
    const NAME: &'static str = "naive";
    type Buffer<E: Dtype> = Vec<E::Repr>;
    type Error = NaiveError;

    fn stage<S: Shape, E: Dtype>(&self, master: &Master<S, E>) -> Tensor<Self, S, E> {
        let mut bytes = master.bytes().as_slice().to_vec();
        if self.fault == Fault::LossyStage {
            bytes.iter_mut().step_by(E::BYTES).for_each(|lowest| *lowest &= !1);
        }
        tensor(bytemuck::pod_collect_to_vec(&bytes))
    }

    fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E> {
        let tenant: u8 = if self.fault == Fault::DirtyZeros { 0x3f } else { 0 };
        tensor(bytemuck::pod_collect_to_vec(&vec![tenant; S::NUMEL * E::BYTES]))
    }

    fn submit(&self) -> Result<(), NaiveError> {
        Ok(())
    }

    fn upload_tokens<T: Dim>(&self, ids: &[u32], span: Span<T>) -> Result<Vec<u32>, NaiveError> {
        self.rows.set(span.rows());
        Ok(ids.to_vec())
    }

    fn download<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self, S, E>) -> Result<Master<S, E>, NaiveError> {
        match self.fault {
            Fault::DownloadFails => Err(NaiveError("the device is gone")),
            _ => Master::from_vec(tensor.buffer().clone()).map_err(|_| NaiveError("length")),
        }
    }

    fn embed<T: Dim, V: Dim, H: Dim>(
        &self,
        tokens: &Tokens<Self, T, V>,
        table: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> Tensor<Self, (T, H), Bf16> {
        let row = |&id: &u32| table.buffer()[id as usize * H::SIZE..][..H::SIZE].to_vec();
        tensor(tokens.step().buffer().iter().flat_map(row).collect())
    }

    fn linear<T: Dim, K: Dim, N: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, K)>, Bf16>,
        w: &Tensor<Self, impl Is<(N, K)>, Bf16>,
    ) -> Tensor<Self, (T, N), Bf16> {
        let (x, w) = (wide(x.buffer()), wide(w.buffer()));
        let row = |x: &[f32]| w.chunks_exact(K::SIZE).map(|w| dot(x, w)).collect::<Vec<_>>();
        rounded(x.chunks_exact(K::SIZE).flat_map(row))
    }

    fn add<T: Dim, D: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, D)>, Bf16>,
    ) -> Tensor<Self, (T, D), Bf16> {
        let valid = match self.fault {
            Fault::NanInPadding => self.rows.get() * D::SIZE,
            _ => usize::MAX,
        };
        let sum = |(i, (a, b)): (usize, (&bf16, &bf16))| {
            if i < valid { a.to_f32() + b.to_f32() } else { f32::NAN }
        };
        rounded(a.buffer().iter().zip(b.buffer()).enumerate().map(sum))
    }

    fn rms_norm<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, D), Bf16> {
        let one = if self.fault == Fault::NormWithoutOne { 0.0 } else { 1.0 };
        let w = wide(w.0.buffer());
        rounded(normed(&wide(x.buffer()), D::SIZE, eps, |i| one + w[i]))
    }

    fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        w: &ZeroCentredNorm<Self, impl IsDim<D>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let w = wide(w.0.buffer());
        rounded(normed(&gather(x), D::SIZE, eps, |i| 1.0 + w[i]))
    }

    fn swiglu<T: Dim, I: Dim>(
        &self,
        gate: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        up: &Tensor<Self, impl Is<(T, I)>, Bf16>,
    ) -> Tensor<Self, (T, I), Bf16> {
        let (gate, up) = (wide(gate.buffer()), wide(up.buffer()));
        rounded(gate.iter().zip(&up).map(|(g, u)| g * sigmoid(*g) * u))
    }

    fn rotary<T: Dim, R: Dim + MultipleOf<Two>>(
        &self,
        step: &Step<Self, impl IsDim<T>>,
        theta: f64,
    ) -> Rotary<Self, T, R> {
        let angle = |i: usize| {
            let (row, pair) = (i / R::SIZE, i % R::SIZE % (R::SIZE / 2));
            let frequency = theta.powf(-2.0 * pair as f64 / R::SIZE as f64);
            ((step.span().start() + row) as f64 * frequency) as f32
        };
        let angles: Vec<f32> = (0..T::SIZE * R::SIZE).map(angle).collect();
        Rotary { cos: rounded(angles.iter().map(|a| a.cos())), sin: rounded(angles.iter().map(|a| a.sin())) }
    }

    fn rope<T: Dim, H: Dim, D: Dim + AtLeast<R>, R: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        rotary: &Rotary<Self, impl IsDim<T>, R>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let (cos, sin) = (wide(rotary.cos.buffer()), wide(rotary.sin.buffer()));
        let mut x = wide(x.buffer());
        for (i, head) in x.chunks_exact_mut(D::SIZE).enumerate() {
            let (row, half) = (i / H::SIZE * R::SIZE, R::SIZE / 2);
            for j in 0..half {
                let (a, b, c, s) = (head[j], head[j + half], cos[row + j], sin[row + j]);
                (head[j], head[j + half]) = (a * c - b * s, b * c + a * s);
            }
        }
        rounded(x)
    }

    fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
        &self,
        q: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        k: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        v: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
        cache: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        let (d, span) = (D::SIZE, step.span());
        for (row, position) in (span.start()..span.end()).enumerate() {
            for head in 0..Kv::SIZE {
                let (from, to) = ((row * Kv::SIZE + head) * d, (head * Ctx::SIZE + position) * d);
                cache.k.buffer_mut()[to..to + d].copy_from_slice(&k.buffer()[from..from + d]);
                cache.v.buffer_mut()[to..to + d].copy_from_slice(&v.buffer()[from..from + d]);
            }
        }
        let (keys, values) = (wide(cache.k.buffer()), wide(cache.v.buffer()));
        let mut out = vec![0.0; T::SIZE * H::SIZE * d];
        for (i, (q, out)) in wide(q.buffer()).chunks(d).zip(out.chunks_mut(d)).enumerate() {
            let (row, head) = (i / H::SIZE, i % H::SIZE / (H::SIZE / Kv::SIZE));
            if row >= span.rows() {
                break;
            }
            let of = |position: usize| (head * Ctx::SIZE + position) * d;
            let weights: Vec<f32> = (0..=span.start() + row)
                .map(|p| (dot(q, &keys[of(p)..][..d]) / (d as f32).sqrt()).exp())
                .collect();
            let sum: f32 = weights.iter().sum();
            for (p, weight) in weights.iter().enumerate() {
                for (out, v) in out.iter_mut().zip(&values[of(p)..][..d]) {
                    *out += weight / sum * v;
                }
            }
        }
        rounded(out)
    }

    fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
        &self,
        x: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
        gate: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
    ) -> Tensor<Self, (T, By<H, D>), Bf16> {
        rounded(wide(x.buffer()).iter().zip(gather(gate)).map(|(x, g)| x * sigmoid(g)))
    }

    fn causal_conv<T: Dim, C: Dim, K: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, C)>, Bf16>,
        w: &Tensor<Self, impl Is<(C, One, K)>, Bf16>,
        state: &mut ConvState<Self, impl IsDim<C>, impl IsDim<K>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, C), Bf16> {
        let past: Vec<bf16> = state.0.buffer().iter().chain(x.buffer()).copied().collect();
        let (m, w) = (wide(&past), wide(w.buffer()));
        if self.fault != Fault::StaleConvState {
            let kept = step.span().rows() * C::SIZE;
            let len = state.0.buffer().len();
            state.0.buffer_mut().copy_from_slice(&past[kept..kept + len]);
        }
        let at = |i: usize| {
            let c = i % C::SIZE;
            let sum: f32 = (0..K::SIZE).map(|j| w[c * K::SIZE + j] * m[i + j * C::SIZE]).sum();
            sum * sigmoid(sum)
        };
        rounded((0..T::SIZE * C::SIZE).map(at))
    }

    fn gdn_gates<T: Dim, Hv: Dim>(
        &self,
        a: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        b: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
        a_log: &Tensor<Self, impl Is<(Hv,)>, F32>,
        dt_bias: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
    ) -> GdnGates<Self, T, Hv> {
        let decay = |(i, a): (usize, f32)| {
            let head = i % Hv::SIZE;
            -a_log.buffer()[head].exp() * (a + dt_bias.buffer()[head].to_f32()).exp().ln_1p()
        };
        GdnGates {
            beta: rounded(wide(b.buffer()).into_iter().map(sigmoid)),
            log_decay: tensor(wide(a.buffer()).into_iter().enumerate().map(decay).collect()),
        }
    }

    fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
        &self,
        qkv: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
        gates: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
        state: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        let (dk, dv, keys) = (Dk::SIZE, Dv::SIZE, Hk::SIZE * Dk::SIZE);
        let mut out = vec![0.0; T::SIZE * Hv::SIZE * dv];
        for (row, x) in
            wide(qkv.buffer()).chunks(2 * keys + Hv::SIZE * dv).take(step.span().rows()).enumerate()
        {
            for head in 0..Hv::SIZE {
                let i = row * Hv::SIZE + head;
                let from = head / (Hv::SIZE / Hk::SIZE) * dk;
                let (q, k) = (unit(&x[from..][..dk]), unit(&x[keys + from..][..dk]));
                let v = &x[2 * keys + head * dv..][..dv];
                let (decay, beta) = (gates.log_decay.buffer()[i].exp(), gates.beta.buffer()[i].to_f32());
                let s = &mut state.0.buffer_mut()[head * dk * dv..][..dk * dv];
                s.iter_mut().for_each(|s| *s *= decay);
                for (c, v) in v.iter().enumerate() {
                    let read: f32 = (0..dk).map(|r| s[r * dv + c] * k[r]).sum();
                    (0..dk).for_each(|r| s[r * dv + c] += beta * (v - read) * k[r]);
                    out[i * dv + c] = (0..dk).map(|r| s[r * dv + c] * q[r]).sum::<f32>() / (dk as f32).sqrt();
                }
            }
        }
        rounded(out)
    }

    fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
        &self,
        o: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        z: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
        w: &PlainNorm<Self, impl IsDim<Dv>>,
        eps: f32,
    ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
        let n = normed(&wide(o.buffer()), Dv::SIZE, eps, |i| w.0.buffer()[i]);
        rounded(n.iter().zip(wide(z.buffer())).map(|(n, z)| n * z * sigmoid(z)))
    }

    fn last_row<T: Dim, D: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        step: &Step<Self, impl IsDim<T>>,
    ) -> Tensor<Self, (One, D), Bf16> {
        tensor(x.buffer()[(step.span().rows() - 1) * D::SIZE..][..D::SIZE].to_vec())
    }

    fn lm_head<H: Dim, V: Dim>(
        &self,
        x: &Tensor<Self, impl Is<(One, H)>, Bf16>,
        w: &Tensor<Self, impl Is<(V, H)>, Bf16>,
    ) -> LogitsF32<Self, V> {
        let x = wide(x.buffer());
        let logits = wide(w.buffer()).chunks_exact(H::SIZE).map(|w| dot(&x, w)).collect();
        LogitsF32::from_accumulators(tensor(logits))
    }

    fn argmax<V: Dim>(&self, logits: &LogitsF32<Self, V>) -> Tensor<Self, (One,), U32> {
        let logits = logits.tensor().buffer();
        let best = (1..V::SIZE).fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
        tensor(vec![best as u32])
    }
}
