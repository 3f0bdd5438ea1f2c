//! The token checks: free running and teacher-forced, with the logits' quality on the way.

use crate::golden::{Golden, hex};
use crate::parity::ParityError;
use qwen35_model::{Config, Model, Prefill, Sequence};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tt_dsl::{Backend, LogitsF32};

/// Largest gap, in thousandths of a nat, between the reference's log-probs of its token and ours
/// at which the two count as a near tie.
pub const NEAR_TIE_MILLINATS: f64 = 500.0;

/// A cell where our token is not the reference's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// The prompt's index.
    pub prompt: usize,
    /// The token's index in the continuation.
    pub cell: usize,
    /// The reference's token.
    pub expected: u32,
    /// Ours.
    pub found: u32,
    /// The reference's log-prob of its token above that of ours, in thousandths of a nat; none
    /// when ours is not among the tokens it recorded.
    pub gap_millinats: Option<f64>,
}

impl Divergence {
    fn new(golden: &Golden, prompt: usize, cell: usize, found: u32) -> Self {
        let expected = golden.prompts[prompt].tokens[cell];
        let top = golden.top(prompt, cell);
        let log_prob = |id| top.iter().find(|entry| entry.0 == id).map(|entry| f64::from(entry.1));
        let gap_millinats =
            log_prob(expected).zip(log_prob(found)).map(|(ours, theirs)| (ours - theirs) * 1e3);
        Self { prompt, cell, expected, found, gap_millinats }
    }

    /// Whether the reference itself was almost undecided.
    pub fn is_near_tie(&self) -> bool {
        self.gap_millinats.is_some_and(|gap| gap <= NEAR_TIE_MILLINATS)
    }
}

/// Free running: each prompt continued by our own greedy tokens.
#[derive(Debug, Default)]
pub struct FreeRunning {
    /// Prompts whose continuation is the golden's.
    pub prompts_equal: usize,
    /// Tokens equal to the golden's at the same place.
    pub cells_equal: usize,
    /// The first difference of each prompt that has one.
    pub divergences: Vec<Divergence>,
}

/// Teacher-forced: at each cell the golden's own tokens before it.
#[derive(Debug, Default)]
pub struct TeacherForced {
    /// Cells where our token is the reference's.
    pub cells_equal: usize,
    /// The other cells.
    pub divergences: Vec<Divergence>,
    /// Mean KL of our logits to the f32 reference's, divided by that of the reference's own bf16
    /// logits.
    pub quality_ratio: f64,
    /// Logits that are NaN or infinite.
    pub non_finite: usize,
    /// SHA-256 of all logits' bits in order: equal exactly when the logits are.
    pub logits_sha256: String,
}

/// Continues every prompt with the backend's argmax.
pub fn free_running<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
) -> Result<FreeRunning, ParityError> {
    let mut result = FreeRunning::default();
    for (index, prompt) in golden.prompts.iter().enumerate() {
        let mut sequence = Sequence::new(b, model);
        let mut logits = sequence.append(&prompt.ids, Prefill::Buckets).map_err(ParityError::run)?;
        let mut first = None;
        for (cell, &expected) in prompt.tokens.iter().enumerate() {
            if cell > 0 {
                let last = argmax(b, &logits)?;
                logits = sequence.append(&[last], Prefill::Buckets).map_err(ParityError::run)?;
            }
            let found = argmax(b, &logits)?;
            if found == expected {
                result.cells_equal += 1;
            } else if first.is_none() {
                first = Some(Divergence::new(golden, index, cell, found));
            }
        }
        match first {
            None => result.prompts_equal += 1,
            Some(divergence) => result.divergences.push(divergence),
        }
    }
    Ok(result)
}

/// Feeds the golden's tokens and asks for ours at each cell.
pub fn teacher_forced<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
) -> Result<TeacherForced, ParityError> {
    let mut result = TeacherForced::default();
    let mut digest = Sha256::new();
    let (mut ours_total, mut reference_total) = (0.0, 0.0);
    for (index, prompt) in golden.prompts.iter().enumerate() {
        let mut sequence = Sequence::new(b, model);
        for (cell, &expected) in prompt.tokens.iter().enumerate() {
            let input = if cell == 0 { &prompt.ids[..] } else { &prompt.tokens[cell - 1..cell] };
            let logits = sequence.append(input, Prefill::Buckets).map_err(ParityError::run)?;
            let found = argmax(b, &logits)?;
            if found == expected {
                result.cells_equal += 1;
            } else {
                result.divergences.push(Divergence::new(golden, index, cell, found));
            }
            let logits = b.download(logits.tensor()).map_err(ParityError::run)?;
            let logits = logits.values();
            digest.update(bytemuck::cast_slice::<f32, u8>(&logits));
            result.non_finite += logits.iter().filter(|x| !x.is_finite()).count();
            let divergences = golden.divergences(index, cell, &logits)?;
            ours_total += divergences.ours;
            reference_total += divergences.reference;
        }
    }
    result.quality_ratio = ours_total / reference_total;
    result.logits_sha256 = hex(&digest.finalize());
    Ok(result)
}

fn argmax<B: Backend, C: tt_dsl::Dim>(b: &B, logits: &LogitsF32<B, C>) -> Result<u32, ParityError> {
    let id = b.download(&b.argmax(logits)).map_err(ParityError::run)?;
    Ok(id.values()[0])
}
