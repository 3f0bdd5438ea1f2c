//! What can be wrong with one tensor, and how a list of such things reads.

use super::error::one_line;
use core::fmt;
use safetensors::Dtype;

/// One tensor of which the checkpoint and the types disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorProblem {
    /// The types ask for it, and no file has it.
    Missing {
        /// The full name looked for.
        name: String,
        /// The dtypes it may have.
        dtypes: String,
        /// The sizes that the types ask for.
        expected: &'static [usize],
        /// The shape as a layer writes it.
        notation: String,
    },
    /// A file has it, and the types do not ask for it.
    Surplus {
        /// The full name found.
        name: String,
        /// The file that has it.
        file: String,
        /// Its dtype there.
        dtype: Dtype,
        /// Its shape there.
        shape: Vec<usize>,
    },
    /// It is there with another shape.
    Shape {
        /// The full name.
        name: String,
        /// The file that has it.
        file: String,
        /// The sizes that the types ask for.
        expected: &'static [usize],
        /// The shape as a layer writes it.
        notation: String,
        /// Its shape there.
        found: Vec<usize>,
    },
    /// It is there with a dtype that is not a declared one.
    Dtype {
        /// The full name.
        name: String,
        /// The file that has it.
        file: String,
        /// The dtypes it may have.
        expected: String,
        /// Its dtype there.
        found: Dtype,
    },
}

impl fmt::Display for TensorProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Missing { name, .. }
        | Self::Surplus { name, .. }
        | Self::Shape { name, .. }
        | Self::Dtype { name, .. }) = self;
        write!(f, "tensor `{}`: ", one_line(name))?;
        match self {
            Self::Missing { dtypes, expected, notation, .. } => {
                write!(f, "expected {dtypes} {expected:?} = {notation}, found no such tensor")
            }
            Self::Surplus { file, dtype, shape, .. } => {
                write!(f, "expected no such tensor, found {dtype} {shape:?} in {file}")
            }
            Self::Shape { file, expected, notation, found, .. } => {
                write!(f, "expected shape {expected:?} = {notation}, found {found:?} in {file}")
            }
            Self::Dtype { file, expected, found, .. } => {
                write!(f, "expected dtype {expected}, found {found} in {file}")
            }
        }
    }
}

/// Problems of one kind in one place. A single one is a line of its own; several are a summary
/// line and an indented line each, so that all can be mended at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<P> {
    /// Where: a file or a directory.
    pub place: String,
    /// What the several are, as `tensors differ from those of tiny`.
    pub summary: String,
    /// The problems; never none.
    pub problems: Vec<P>,
}

impl<P> Listed<P> {
    /// A single problem.
    pub(super) fn one(place: &str, problem: P) -> Self {
        Self { place: place.to_owned(), summary: String::new(), problems: vec![problem] }
    }
}

impl<P: fmt::Display> fmt::Display for Listed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.problems.as_slice() {
            return write!(f, "{}: {only}", self.place);
        }
        write!(f, "{}: {} {}", self.place, self.problems.len(), self.summary)?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}
