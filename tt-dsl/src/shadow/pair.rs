//! A shadow's buffers, and the three ways to find one backend's in them.

use super::{Shadow, ShadowError};
use crate::backend::Backend;
use crate::decorator::{Side, Slot};
use crate::dtype::Dtype;
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::cell::Cell;

/// The valid rows of a tensor whose outermost dim has `of` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Valid {
    pub(super) rows: usize,
    pub(super) of: usize,
}

/// One tensor on both backends.
pub struct Pair<R: Backend, S: Backend, E: Dtype> {
    /// What the subject computed from its own inputs.
    subject: Slot<S, E>,
    /// What the reference computed from its own inputs; empty if it was not asked to.
    global: Slot<R, E>,
    /// The subject's buffer on the reference; empty until an op needs it.
    local: Slot<R, E>,
    /// The two backends hold the same bits, so that `global` serves as `local`.
    same: bool,
    valid: Option<Valid>,
    /// Brings the subject's buffer to the reference. It knows the shape, which a view does not.
    copy: ToReference<R, S, E>,
}

/// Monomorphic in the shape that the tensor had when it was made.
type ToReference<R, S, E> = fn(&Shadow<R, S>, &<S as Backend>::Buffer<E>) -> <R as Backend>::Buffer<E>;

impl<R: Backend, S: Backend, E: Dtype> Pair<R, S, E> {
    /// A tensor of shape `Sh`.
    pub(super) fn new<Sh: Shape>(
        subject: S::Buffer<E>,
        global: Option<R::Buffer<E>>,
        valid: Option<Valid>,
    ) -> Self {
        Self {
            subject: Slot::new(Some(subject)),
            global: Slot::new(global),
            local: Slot::new(None),
            same: false,
            valid,
            copy: copy::<R, S, Sh, E>,
        }
    }

    /// Says that both backends hold the same bits.
    pub(super) fn known_equal(self, same: bool) -> Self {
        Self { same, ..self }
    }
}

fn copy<R: Backend, S: Backend, Sh: Shape, E: Dtype>(
    shadow: &Shadow<R, S>,
    subject: &S::Buffer<E>,
) -> R::Buffer<E> {
    match shadow.subject.download(Tensor::<S, Sh, E>::from_buffer_ref(subject)) {
        Ok(master) => shadow.reference.stage(&master).into_buffer(),
        Err(error) => {
            shadow.keep(ShadowError::Subject(error));
            shadow.reference.zeros::<Sh, E>().into_buffer()
        }
    }
}

/// The subject, in its own chain. It also learns which rows of the results are valid.
pub(super) struct Subject<'s, R: Backend, S: Backend> {
    pub(super) shadow: &'s Shadow<R, S>,
    pub(super) valid: Cell<Option<Valid>>,
}

impl<R: Backend, S: Backend> Side for Subject<'_, R, S> {
    type Outer = Shadow<R, S>;
    type Inner = S;

    fn inner(&self) -> &S {
        &self.shadow.subject
    }

    fn slot<'a, E: Dtype>(&self, pair: &'a Pair<R, S, E>) -> &'a Slot<S, E> {
        if let Some(Valid { rows, of }) = pair.valid {
            self.sees_rows(rows, of);
        }
        &pair.subject
    }

    fn sees_rows(&self, rows: usize, of: usize) {
        let known = self.valid.get().map_or(rows, |valid| valid.rows.min(rows));
        self.valid.set(Some(Valid { rows: known, of }));
    }
}

/// The reference, in its own chain.
pub(super) struct Global<'s, R: Backend, S: Backend>(pub(super) &'s Shadow<R, S>);

impl<R: Backend, S: Backend> Side for Global<'_, R, S> {
    type Outer = Shadow<R, S>;
    type Inner = R;

    fn inner(&self) -> &R {
        &self.0.reference
    }

    fn slot<'a, E: Dtype>(&self, pair: &'a Pair<R, S, E>) -> &'a Slot<R, E> {
        &pair.global
    }
}

/// The reference, given the subject's inputs.
pub(super) struct Local<'s, R: Backend, S: Backend>(pub(super) &'s Shadow<R, S>);

impl<R: Backend, S: Backend> Side for Local<'_, R, S> {
    type Outer = Shadow<R, S>;
    type Inner = R;

    fn inner(&self) -> &R {
        &self.0.reference
    }

    fn slot<'a, E: Dtype>(&self, pair: &'a Pair<R, S, E>) -> &'a Slot<R, E> {
        if pair.same {
            return &pair.global;
        }
        if pair.local.is_empty() {
            pair.local.put((pair.copy)(self.0, &pair.subject.borrow()));
        }
        &pair.local
    }

    /// A copy of its own: the other chains take theirs after this one.
    fn state<Sh: Shape, E: Dtype>(&self, tensor: &Tensor<Self::Outer, Sh, E>) -> Tensor<R, Sh, E> {
        let pair = tensor.buffer();
        Tensor::from_buffer((pair.copy)(self.0, &pair.subject.borrow()))
    }
}
