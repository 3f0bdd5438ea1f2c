//! The reference's logits at each cell, and how far others are from them.

use super::files::Tensors;
use super::manifest::LogitsForm;
use tt_dsl::parity::{CompareError, LogitsComparison};

/// Kullback-Leibler divergences from the reference's f32 run at one cell, in nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Divergences {
    /// Of our logits.
    pub ours: f64,
    /// Of the reference's own bf16 run.
    pub reference: f64,
}

/// The recorded logits, a row for each cell.
pub(super) enum Logits {
    /// Of every token.
    Whole { full: Vec<Vec<f32>>, half: Vec<Vec<f32>> },
    /// Of the f32 run's likeliest tokens, whose ids are beside them; the last of a row is the logarithm
    /// of the summed exponentials of all others, as if they were one token. Divergences of such
    /// distributions are never above those of the whole ones, and for both runs the same is left out.
    Largest { ids: Vec<Vec<u32>>, full: Vec<Vec<f32>>, half: Vec<Vec<f32>> },
}

impl Logits {
    pub(super) fn read(tensors: &Tensors<'_>, form: LogitsForm) -> Result<Self, String> {
        match form {
            LogitsForm::Whole => {
                let (full, half) = (tensors.rows("f32.logits")?, tensors.rows("bf16.logits")?);
                same_width("f32.logits", &full, "bf16.logits", &half)?;
                Ok(Self::Whole { full, half })
            }
            LogitsForm::Largest(count) => {
                let ids = tensors.id_rows("largest.ids")?;
                for (cell, row) in ids.iter().enumerate() {
                    let mut sorted = row.clone();
                    sorted.sort_unstable();
                    sorted.dedup();
                    if sorted.len() != count {
                        let found = sorted.len();
                        return Err(format!(
                            "largest.ids: expected {count} ids in cell {cell}, found {found}"
                        ));
                    }
                }
                let run = |name: &str| {
                    let (largest, rest) = (format!("{name}.largest"), format!("{name}.rest"));
                    let (mut rows, rests) = (tensors.rows(&largest)?, tensors.rows(&rest)?);
                    same_width(&largest, &rows, "largest.ids", &ids)?;
                    for (row, rest) in rows.iter_mut().zip(&rests) {
                        let [rest] = rest[..] else {
                            return Err(format!("{name}.rest: expected one value a cell"));
                        };
                        row.push(rest);
                    }
                    Ok(rows)
                };
                Ok(Self::Largest { full: run("f32")?, half: run("bf16")?, ids })
            }
        }
    }

    /// How far `ours`, a logit for each token, and the bf16 run are from the f32 run at `cell`.
    pub(super) fn divergences(&self, cell: usize, ours: &[f32]) -> Result<Divergences, CompareError> {
        let (full, half, ours) = match self {
            Self::Whole { full, half } => (&full[cell], &half[cell], ours.into()),
            Self::Largest { ids, full, half } => {
                (&full[cell], &half[cell], std::borrow::Cow::Owned(gathered(&ids[cell], ours)?))
            }
        };
        Ok(Divergences {
            ours: LogitsComparison::of(full, &ours)?.kl,
            reference: LogitsComparison::of(full, half)?.kl,
        })
    }
}

fn same_width<T, U>(name: &str, rows: &[Vec<T>], other_name: &str, others: &[Vec<U>]) -> Result<(), String> {
    let width = |row: Option<usize>| row.unwrap_or(0);
    let (found, expected) = (width(rows.first().map(Vec::len)), width(others.first().map(Vec::len)));
    if found == expected {
        return Ok(());
    }
    Err(format!("{name}: expected {expected} values a cell, as in {other_name}, found {found}"))
}

/// The logits of `ids`, and the logarithm of the summed exponentials of all others.
fn gathered(ids: &[u32], logits: &[f32]) -> Result<Vec<f32>, CompareError> {
    let mut others = logits.to_vec();
    let mut out = Vec::with_capacity(ids.len() + 1);
    for &id in ids {
        let len = others.len();
        let place = others.get_mut(id as usize).ok_or(CompareError::Index { index: id as usize, len })?;
        out.push(std::mem::replace(place, f32::NEG_INFINITY));
    }
    let largest = others.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = if largest == f32::NEG_INFINITY {
        0.0
    } else {
        others.iter().map(|&x| (f64::from(x) - f64::from(largest)).exp()).sum()
    };
    out.push((f64::from(largest) + sum.ln()) as f32);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_one_token_of_all_its_probability() {
        // Probabilities 1/2, 1/4, 1/8, 1/8.
        let logits = [0.5f32, 0.25, 0.125, 0.125].map(f32::ln);
        let found = gathered(&[1, 0], &logits).unwrap();
        assert_eq!(found.len(), 3);
        for (found, expected) in found.iter().zip([0.25f32, 0.5, 0.25]) {
            assert!((found.exp() - expected).abs() < 1e-6);
        }
        assert_eq!(gathered(&[4], &logits), Err(CompareError::Index { index: 4, len: 4 }));
        assert!(gathered(&[0], &[1.0, f32::NAN, 2.0]).unwrap()[1].is_nan());
        assert_eq!(gathered(&[0], &[1.0]).unwrap(), [1.0, f32::NEG_INFINITY]);
    }

    /// Merging outcomes can only hide a difference; where the rest does not differ it hides nothing.
    #[test]
    fn a_divergence_among_the_largest_is_kept() {
        let (full, ours) = ([3.0f32, 1.0, 0.0, -1.0], [2.5f32, 1.5, 0.0, -1.0]);
        let whole = Logits::Whole { full: vec![full.to_vec()], half: vec![full.to_vec()] };
        let row = gathered(&[0, 1], &full).unwrap();
        let largest = Logits::Largest { ids: vec![vec![0, 1]], full: vec![row.clone()], half: vec![row] };
        let (whole, largest) = (whole.divergences(0, &ours).unwrap(), largest.divergences(0, &ours).unwrap());
        assert!(whole.ours > 0.01 && (whole.ours - largest.ours).abs() < 1e-6, "{whole:?} {largest:?}");
        assert_eq!((whole.reference, largest.reference), (0.0, 0.0));
    }
}
