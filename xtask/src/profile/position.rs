//! The residual stream against the golden's, by layer and by token.

use crate::golden::Golden;
use crate::parity::ParityError;
use half::bf16;
use qwen35_model::{Config, Model, Prefill, Sequence};
use tt_dsl::parity::Comparison;
use tt_dsl::{Backend, Dim};

/// One prompt: relative L2 to the golden's bf16 run at each place and position.
#[derive(Debug, Clone, PartialEq)]
pub struct PositionMap {
    /// The prompt's index.
    pub prompt: usize,
    /// For index 0 the embedding, for index `i` the output of layer `i - 1`: a value a position.
    pub places: Vec<Vec<f64>>,
}

/// Whether a golden's layer outputs are of a model with the sizes of `C`.
pub fn fits<C: Config>(golden: &Golden) -> bool {
    golden.layer_outputs.iter().all(|outputs| {
        let elements = golden.prompts[outputs.prompt].ids.len() * C::Hidden::SIZE;
        outputs.layers.len() == C::LAYERS + 1
            && outputs.layers.iter().all(|(half, full)| half.len() == elements && full.len() == elements)
    })
}

/// Relative L2 of the golden's bf16 run to its f32 run at each place, prompt by prompt.
pub fn reference(golden: &Golden) -> Result<Vec<f64>, ParityError> {
    let places = golden.layer_outputs.iter().flat_map(|outputs| &outputs.layers);
    places.map(|(half, full)| Ok(Comparison::of(full, half)?.relative_l2)).collect()
}

/// A map of each of the golden's layer prompts. The golden must [fit](fits).
pub fn maps<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
) -> Result<Vec<PositionMap>, ParityError> {
    let width = C::Hidden::SIZE;
    let mut maps = Vec::new();
    for outputs in &golden.layer_outputs {
        let mut places = vec![Vec::new(); outputs.layers.len()];
        let mut failure = None;
        let mut visit = |index: usize, position: usize, values: &[bf16]| {
            let (Some(place), Some((reference, _))) = (places.get_mut(index), outputs.layers.get(index))
            else {
                return;
            };
            for (reference, ours) in reference[position * width..].chunks(width).zip(values.chunks(width)) {
                match Comparison::of(reference, ours) {
                    Ok(comparison) => place.push(comparison.relative_l2),
                    Err(error) => failure = Some(error),
                }
            }
        };
        let ids = &golden.prompts[outputs.prompt].ids;
        Sequence::new(b, model)
            .append_visited(ids, Prefill::Buckets, &mut visit)
            .map_err(|error| ParityError::Run(error.to_string()))?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        maps.push(PositionMap { prompt: outputs.prompt, places });
    }
    Ok(maps)
}
