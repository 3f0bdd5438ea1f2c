//! A backend that runs two and compares them after every op.
//!
//! [`Shadow<R, S>`] is a backend in place of the subject `S`: what is read back is the subject's,
//! so that a model behaves as it does on the subject alone. Beside it the reference `R` computes
//! each op twice: from the subject's inputs (*local*, which finds the op that is wrong) and in a
//! chain of its own (*global*, which shows how errors grow). States are compared too, and a local
//! comparison starts from the subject's state before the op.
//!
//! It reads every result back, weights once when they are staged included: a tool for finding
//! faults, not for running.

mod pair;
mod record;

pub use pair::Pair;
pub use record::{Finding, Mode, Record, ShadowReport};

use crate::backend::{Backend, GdnGates, Qkv, Rotary};
use crate::decorator::{Side, decorated_ops};
use crate::dim::{By, Dim, One, Two};
use crate::dtype::{Bf16, Dtype, F32, U32};
use crate::fact::{AtLeast, Is, IsDim, MultipleOf, TileAligned};
use crate::host::Master;
use crate::logits::LogitsF32;
use crate::parity::{Comparison, Tolerance};
use crate::shape::Shape;
use crate::state::{ConvState, DeltaState, KvCache};
use crate::step::{Span, Step, Tokens};
use crate::tensor::Tensor;
use crate::view::{Layout, View};
use crate::weight::{PlainNorm, ZeroCentredNorm};
use pair::{Global, Local, Subject, Valid};
use std::cell::{Cell, RefCell};

/// An error of one of the two backends.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError<R, S> {
    /// Of the reference.
    #[error("reference: {0}")]
    Reference(#[source] R),
    /// Of the subject.
    #[error("subject: {0}")]
    Subject(#[source] S),
}

/// Runs a reference and a subject and compares their results after every op.
///
/// Comparing reads results back, which may fail inside ops that cannot: the first such error is
/// kept, and the next [`submit`](Backend::submit) returns it.
pub struct Shadow<R: Backend, S: Backend> {
    reference: R,
    subject: S,
    mode: Mode,
    calls: Cell<usize>,
    report: RefCell<ShadowReport>,
    failed: RefCell<Option<ErrorOf<R, S>>>,
}

type ErrorOf<R, S> = ShadowError<<R as Backend>::Error, <S as Backend>::Error>;

impl<R: Backend, S: Backend> Shadow<R, S> {
    /// Compares `subject` with `reference` from now on.
    pub fn new(reference: R, subject: S, mode: Mode) -> Self {
        Self {
            reference,
            subject,
            mode,
            calls: Cell::new(0),
            report: RefCell::default(),
            failed: RefCell::new(None),
        }
    }

    /// Everything compared so far.
    pub fn report(&self) -> ShadowReport {
        self.report.borrow().clone()
    }

    /// The first result beyond the tolerance.
    pub fn first_beyond(&self, tolerance: &Tolerance) -> Option<Finding> {
        self.report.borrow().first_beyond(tolerance)
    }

    /// Forgets what was compared so far; ordinals go on.
    pub fn clear(&self) {
        self.report.borrow_mut().records.clear();
    }

    /// Keeps the first error for the next submit.
    fn keep(&self, error: ErrorOf<R, S>) {
        self.failed.borrow_mut().get_or_insert(error);
    }

    fn on_reference<Sh: Shape, E: Dtype>(&self, tensor: &Tensor<R, Sh, E>) -> Option<Master<Sh, E>> {
        self.reference.download(tensor).map_err(|error| self.keep(ShadowError::Reference(error))).ok()
    }

    /// A staged or zeroed tensor: one that is computed from nothing.
    fn bring<Sh: Shape, E: Dtype>(
        &self,
        op: &'static str,
        reference: Tensor<R, Sh, E>,
        subject: Tensor<S, Sh, E>,
    ) -> Tensor<Self, Sh, E> {
        let call = Call::new(self, op, &["out"]);
        let ours = call.on_subject(&subject);
        let same = match (self.on_reference(&reference), &ours) {
            (Some(reference), Some(ours)) => {
                let compared = call.compare(Some(&reference), Some(ours), Sh::NUMEL);
                call.record::<Sh>(Sh::SIZES[0], compared, compared);
                reference.bytes().as_slice() == ours.bytes().as_slice()
            }
            _ => false,
        };
        let pair = Pair::new::<Sh>(subject.into_buffer(), Some(reference.into_buffer()), None);
        Tensor::from_buffer(pair.known_equal(same))
    }
}

/// One call of an op, whose results are compared one after the other.
struct Call<'s, R: Backend, S: Backend> {
    shadow: &'s Shadow<R, S>,
    op: &'static str,
    ordinal: usize,
    results: Cell<&'static [&'static str]>,
    valid: Option<Valid>,
}

impl<'s, R: Backend, S: Backend> Call<'s, R, S> {
    fn new(shadow: &'s Shadow<R, S>, op: &'static str, results: &'static [&'static str]) -> Self {
        let ordinal = shadow.calls.replace(shadow.calls.get() + 1);
        Self { shadow, op, ordinal, results: Cell::new(results), valid: None }
    }

    fn on_subject<Sh: Shape, E: Dtype>(&self, tensor: &Tensor<S, Sh, E>) -> Option<Master<Sh, E>> {
        let keep = |error| self.shadow.keep(ShadowError::Subject(error));
        self.shadow.subject.download(tensor).map_err(keep).ok()
    }

    /// Compares the first `elements`; nothing where a side could not be read.
    fn compare<Sh: Shape, E: Dtype>(
        &self,
        reference: Option<&Master<Sh, E>>,
        ours: Option<&Master<Sh, E>>,
        elements: usize,
    ) -> Option<Comparison> {
        let (reference, ours) = (reference?.values(), ours?.values());
        Comparison::of(reference.get(..elements)?, ours.get(..elements)?).ok()
    }

    fn record<Sh: Shape>(&self, rows: usize, local: Option<Comparison>, global: Option<Comparison>) {
        let (result, rest) = self.results.get().split_first().unwrap_or((&"out", &[]));
        self.results.set(rest);
        let record = Record {
            op: self.op,
            ordinal: self.ordinal,
            result,
            shape: Sh::notation(),
            rows,
            local: local.filter(|_| self.shadow.mode.has_local()),
            global: global.filter(|_| self.shadow.mode.has_global()),
        };
        self.shadow.report.borrow_mut().records.push(record);
    }
}

/// The results of an op on the subject, compared with the reference's and joined with them.
trait Join<R: Backend, S: Backend>: Sized {
    type OnReference;
    type Joined;
    fn join(
        self,
        call: &Call<'_, R, S>,
        local: Option<Self::OnReference>,
        global: Option<Self::OnReference>,
    ) -> Self::Joined;
}

impl<R: Backend, S: Backend, Sh: Shape, E: Dtype> Join<R, S> for Tensor<S, Sh, E> {
    type OnReference = Tensor<R, Sh, E>;
    type Joined = Tensor<Shadow<R, S>, Sh, E>;

    fn join(
        self,
        call: &Call<'_, R, S>,
        local: Option<Tensor<R, Sh, E>>,
        global: Option<Tensor<R, Sh, E>>,
    ) -> Self::Joined {
        // Activations have rank 2; a state may happen to have as many rows as a step.
        let valid = call.valid.filter(|valid| Sh::RANK == 2 && Sh::SIZES[0] == valid.of);
        let rows = valid.map_or(Sh::SIZES[0], |valid| valid.rows);
        let elements = rows * Sh::SIZES[1..].iter().product::<usize>();
        let ours = call.on_subject(&self);
        let against = |reference: Option<&Tensor<R, Sh, E>>| {
            let reference = reference.and_then(|tensor| call.shadow.on_reference(tensor));
            call.compare(reference.as_ref(), ours.as_ref(), elements)
        };
        call.record::<Sh>(rows, against(local.as_ref()), against(global.as_ref()));
        Tensor::from_buffer(Pair::new::<Sh>(self.into_buffer(), global.map(Tensor::into_buffer), valid))
    }
}

impl<R: Backend, S: Backend, X: Join<R, S>, Y: Join<R, S>> Join<R, S> for (X, Y) {
    type OnReference = (X::OnReference, Y::OnReference);
    type Joined = (X::Joined, Y::Joined);

    fn join(
        self,
        call: &Call<'_, R, S>,
        local: Option<Self::OnReference>,
        global: Option<Self::OnReference>,
    ) -> Self::Joined {
        let (local_x, local_y) = local.unzip();
        let (global_x, global_y) = global.unzip();
        (self.0.join(call, local_x, global_x), self.1.join(call, local_y, global_y))
    }
}

/// The local chain runs first: it copies the subject's states, which the other two take.
macro_rules! run {
    ($shadow:expr, $op:literal [$($result:literal),+], |$on:ident| $body:expr) => {{
        let mut call = Call::new($shadow, $op, &[$($result),+]);
        let local = $shadow.mode.has_local().then(|| {
            let $on = Local($shadow);
            $body
        });
        let global = $shadow.mode.has_global().then(|| {
            let $on = Global($shadow);
            $body
        });
        let $on = Subject { shadow: $shadow, valid: Cell::new(None) };
        let subject = $body;
        call.valid = $on.valid.get();
        subject.join(&call, local, global)
    }};
}

impl<R: Backend, S: Backend> Backend for Shadow<R, S> {
    const NAME: &'static str = "shadow";
    type Buffer<E: Dtype> = Pair<R, S, E>;
    type Error = ErrorOf<R, S>;

    fn stage<Sh: Shape, E: Dtype>(&self, master: &Master<Sh, E>) -> Tensor<Self, Sh, E> {
        self.bring("stage", self.reference.stage(master), self.subject.stage(master))
    }

    fn zeros<Sh: Shape, E: Dtype>(&self) -> Tensor<Self, Sh, E> {
        self.bring("zeros", self.reference.zeros(), self.subject.zeros())
    }

    fn submit(&self) -> Result<(), Self::Error> {
        self.subject.submit().map_err(ShadowError::Subject)?;
        self.reference.submit().map_err(ShadowError::Reference)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    fn upload_tokens<T: Dim>(&self, ids: &[u32], span: Span<T>) -> Result<Pair<R, S, U32>, Self::Error> {
        let subject = self.subject.upload_tokens(ids, span).map_err(ShadowError::Subject)?;
        let reference = self.reference.upload_tokens(ids, span).map_err(ShadowError::Reference)?;
        // What a step's buffer holds is a backend's own affair: each has its own, in every chain.
        Ok(Pair::new::<(T,)>(subject, Some(reference), None).known_equal(true))
    }

    fn download<Sh: Shape, E: Dtype>(
        &self,
        tensor: &Tensor<Self, Sh, E>,
    ) -> Result<Master<Sh, E>, Self::Error> {
        let subject = Subject { shadow: self, valid: Cell::new(None) };
        self.subject.download(&subject.tensor(tensor)).map_err(ShadowError::Subject)
    }

    decorated_ops!(run);
}
