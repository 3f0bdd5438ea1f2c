//! The self-check: one-shot prefill, bucketed prefill and token-by-token decode must agree, in
//! their logits and in every layer's state.

use crate::golden::Golden;
use crate::parity::ParityError;
use qwen35_model::layers::LayerState;
use qwen35_model::{Config, Model, Prefill, Sequence};
use serde::Serialize;
use tt_dsl::parity::{Comparison, LogitsComparison, Metric, Tolerance};
use tt_dsl::{Backend, Dim};

/// What a run leaves behind: its logits, and the tensors that a sequence remembers by name.
struct Left {
    logits: Vec<f32>,
    states: Vec<(String, Vec<f32>)>,
}

/// The largest differences between the ways to read a prompt.
#[derive(Debug, Clone, Serialize)]
pub struct SelfCheck {
    /// Whether all stayed within tolerance.
    pub pass: bool,
    /// Prompts whose best token is the same in all three.
    pub tokens_equal: usize,
    /// Largest relative L2 distance of logits.
    pub logits: f64,
    /// Largest relative L2 distance of a state tensor.
    pub states: f64,
    /// What first went out of tolerance.
    pub violation: Option<String>,
}

/// How far apart two of our runs may be, in units of the reference's own bf16 error: two runs that
/// each err by as much, in their own ways, are the square root of 2 apart, and the recurrent state is
/// made of products of two projections, each with that error, which is the same factor again.
const APART: f64 = 2.0;

/// Runs every prompt three ways.
///
/// The chunked delta rule and the recurrent one are the same mathematics in another order, and a
/// difference in the last f32 bit becomes one in bf16 wherever it crosses a rounding boundary. What
/// such crossings amount to grows with the layers, as does what rounding costs the reference: the
/// tolerance is `APART` times the distance of its bf16 run from its f32 run after the last layer. A
/// wrong state or a lost row is orders of magnitude above it.
pub fn self_check<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
) -> Result<SelfCheck, ParityError> {
    let allowed = APART * reference_error(golden)?;
    let tolerance = Tolerance::finite().with(Metric::Pcc, 0.999).with(Metric::RelativeL2, allowed);
    let mut result = SelfCheck { pass: true, tokens_equal: 0, logits: 0.0, states: 0.0, violation: None };
    for (index, prompt) in golden.prompts.iter().enumerate() {
        let steps = left_by(b, model, &prompt.ids, Prefill::TokenByToken)?;
        let mut same_token = true;
        for (prefill, name) in [(Prefill::OneShot, "one-shot"), (Prefill::Buckets, "bucketed")] {
            let ours = left_by(b, model, &prompt.ids, prefill)?;
            let mut judge = |what: &str, verdict: Result<(), String>| {
                if let Err(violations) = verdict {
                    result.pass = false;
                    let text =
                        || format!("prompt {index}, {name} against token by token, {what}: {violations}");
                    result.violation.get_or_insert_with(text);
                }
            };
            let logits = LogitsComparison::of(&steps.logits, &ours.logits)?;
            judge("logits", tolerance.check(&logits).map_err(|v| v.to_string()));
            same_token &= logits.top1;
            let mut states = 0f64;
            for ((what, theirs), (_, ours)) in steps.states.iter().zip(&ours.states) {
                let comparison = Comparison::of(theirs, ours)?;
                judge(what, tolerance.check(&comparison).map_err(|v| v.to_string()));
                states = states.max(comparison.relative_l2);
            }
            result.logits = result.logits.max(logits.values.relative_l2);
            result.states = result.states.max(states);
        }
        result.tokens_equal += usize::from(same_token);
    }
    result.pass &= result.tokens_equal == golden.prompts.len();
    Ok(result)
}

/// Relative L2 distance of the reference's bf16 run from its f32 run after the last layer, the largest
/// of the golden's prompts. A golden without layers allows no difference.
fn reference_error(golden: &Golden) -> Result<f64, ParityError> {
    let mut error = 0f64;
    for (half, full) in golden.layer_outputs.iter().filter_map(|outputs| outputs.layers.last()) {
        let half: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
        error = error.max(Comparison::of(full, &half)?.relative_l2);
    }
    Ok(error)
}

fn left_by<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    ids: &[u32],
    prefill: Prefill,
) -> Result<Left, ParityError> {
    let mut sequence = Sequence::new(b, model);
    let logits = sequence.append(ids, prefill).map_err(ParityError::run)?;
    let logits = b.download(logits.tensor()).map_err(ParityError::run)?.values().into_owned();
    let mut states = Vec::new();
    for (layer, state) in sequence.state().layers().iter().enumerate() {
        match state {
            LayerState::DeltaNet(state) => {
                let conv = b.download(&state.conv.0).map_err(ParityError::run)?;
                let conv = conv.values().iter().map(|x| x.to_f32()).collect();
                states.push((format!("layer {layer} convolution state"), conv));
                let delta = b.download(&state.delta.0).map_err(ParityError::run)?;
                states.push((format!("layer {layer} recurrent state"), delta.values().into_owned()));
            }
            LayerState::Attention(cache) => {
                for (name, tensor) in [("keys", &cache.k), ("values", &cache.v)] {
                    let cache = b.download(tensor).map_err(ParityError::run)?;
                    // (Kv, Ctx, D): of each head the positions that are in use.
                    let head = C::Context::SIZE * C::HeadDim::SIZE;
                    let used = ids.len() * C::HeadDim::SIZE;
                    let rows = cache
                        .values()
                        .chunks(head)
                        .flat_map(|head| &head[..used])
                        .map(|x| x.to_f32())
                        .collect();
                    states.push((format!("layer {layer} {name}"), rows));
                }
            }
        }
    }
    Ok(Left { logits, states })
}
