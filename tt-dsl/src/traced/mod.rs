//! A backend that counts: calls and time of each op, and every crossing.
//!
//! [`Traced<B>`] is a backend in place of `B`. Where it does not stand, there is nothing of it.

mod report;

pub use report::{Crossings, OpTrace, TraceReport};

use crate::backend::{Backend, GdnGates, Qkv, Rotary};
use crate::decorator::{Side, Slot, decorated_ops};
use crate::dim::{By, Dim, One, Two};
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
use std::cell::RefCell;
use std::time::Instant;

/// Forwards each op to `B` and keeps count.
///
/// The time of an op is the host's: for a backend that records, that of recording, and what the
/// device takes shows at `submit` and `download`.
pub struct Traced<B: Backend> {
    inner: B,
    report: RefCell<TraceReport>,
}

impl<B: Backend> Traced<B> {
    /// Counts from now on what `inner` does.
    pub fn new(inner: B) -> Self {
        Self { inner, report: RefCell::default() }
    }

    /// The backend inside.
    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// What was counted so far, the longest op first.
    pub fn report(&self) -> TraceReport {
        let mut report = self.report.borrow().clone();
        report.ops.sort_by(|a, b| b.time.cmp(&a.time).then(a.op.cmp(b.op)));
        report
    }

    /// Starts to count anew, as after a warm-up.
    pub fn reset(&self) {
        *self.report.borrow_mut() = TraceReport::default();
    }

    /// Runs `f` on the clock of `op` and counts its crossings, also of one that fails.
    fn timed<O>(&self, op: &'static str, crossings: Crossings, f: impl FnOnce(&B) -> O) -> O {
        let start = Instant::now();
        let out = f(&self.inner);
        self.report.borrow_mut().add(op, start.elapsed(), crossings);
        out
    }
}

/// The one side of a traced backend.
struct Inner<'a, B: Backend>(&'a Traced<B>);

impl<B: Backend> Side for Inner<'_, B> {
    type Outer = Traced<B>;
    type Inner = B;

    fn inner(&self) -> &B {
        &self.0.inner
    }

    fn slot<'a, E: Dtype>(&self, buffer: &'a Slot<B, E>) -> &'a Slot<B, E> {
        buffer
    }
}

/// Results of an inner backend as results of its decorator.
trait Wrap {
    type Traced;
    fn wrap(self) -> Self::Traced;
}

impl<B: Backend, S: Shape, E: Dtype> Wrap for Tensor<B, S, E> {
    type Traced = Tensor<Traced<B>, S, E>;

    fn wrap(self) -> Self::Traced {
        Tensor::from_buffer(Slot::new(Some(self.into_buffer())))
    }
}

impl<X: Wrap, Y: Wrap> Wrap for (X, Y) {
    type Traced = (X::Traced, Y::Traced);

    fn wrap(self) -> Self::Traced {
        (self.0.wrap(), self.1.wrap())
    }
}

macro_rules! run {
    ($traced:expr, $op:literal [$($name:literal),+], |$on:ident| $body:expr) => {
        $traced
            .timed($op, Crossings::default(), |_| {
                let $on = Inner($traced);
                $body
            })
            .wrap()
    };
}

impl<B: Backend> Backend for Traced<B> {
    const NAME: &'static str = "traced";
    type Buffer<E: Dtype> = Slot<B, E>;
    type Error = B::Error;

    fn stage<S: Shape, E: Dtype>(&self, master: &Master<S, E>) -> Tensor<Self, S, E> {
        self.timed("stage", Crossings::write(S::NUMEL * E::BYTES), |b| b.stage(master)).wrap()
    }

    fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E> {
        self.timed("zeros", Crossings::default(), |b| b.zeros::<S, E>()).wrap()
    }

    fn submit(&self) -> Result<(), B::Error> {
        self.timed("submit", Crossings::submit(), |b| b.submit())
    }

    fn upload_tokens<T: Dim>(&self, ids: &[u32], span: Span<T>) -> Result<Slot<B, U32>, B::Error> {
        let crossing = Crossings::write(ids.len() * U32::BYTES);
        let buffer = self.timed("upload_tokens", crossing, |b| b.upload_tokens(ids, span))?;
        Ok(Slot::new(Some(buffer)))
    }

    fn download<S: Shape, E: Dtype>(&self, tensor: &Tensor<Self, S, E>) -> Result<Master<S, E>, B::Error> {
        let crossing = Crossings::read(S::NUMEL * E::BYTES);
        self.timed("download", crossing, |b| b.download(&Inner(self).tensor(tensor)))
    }

    decorated_ops!(run);
}
