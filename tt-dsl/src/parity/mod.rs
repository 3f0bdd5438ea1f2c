//! How far two tensors are apart, and how far they may be.
//!
//! The correlation that users know (PCC) ignores scale and offset, so it is one figure among
//! several here, and no figure hides a NaN: a non-finite element on either side fails every
//! [`Tolerance`].
//!
//! ```
//! use tt_dsl::parity::{Comparison, Metric, Tolerance};
//!
//! let reference = [1.0f32, -2.0, 0.5, 3.0];
//! let doubled = reference.map(|x| 2.0 * x);
//! let found = Comparison::of(&reference, &doubled)?;
//! assert_eq!(found.pcc, Some(1.0));
//! let violations = Tolerance::default().check(&found).unwrap_err();
//! assert_eq!(violations.0[0].metric, Metric::RelativeL2);
//! # Ok::<(), tt_dsl::parity::CompareError>(())
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `tensor` | [`Comparison`]: the figures of two tensors |
//! | `logits` | [`LogitsComparison`]: those, top-1, top-5 and KL; near ties |
//! | `tolerance` | [`Tolerance`]: bounds on figures, and what violates them |

mod logits;
mod tensor;
mod tolerance;

pub use logits::{LogitsComparison, near_tie_gap};
pub use tensor::{CompareError, Comparison, bf16_ulps};
pub use tolerance::{Measures, Metric, Tolerance, Violation, Violations};
