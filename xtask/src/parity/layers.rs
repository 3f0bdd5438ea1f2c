//! The layer check: our residual stream against the reference's, layer by layer, so that a failure
//! has a place.

use crate::golden::{Golden, LayerOutputs};
use crate::parity::ParityError;
use half::bf16;
use qwen35_model::{Config, Model, Prefill, Sequence};
use tt_dsl::parity::{Comparison, Metric, Tolerance};
use tt_dsl::{Backend, Dim};

/// One place of the residual stream in one prompt.
#[derive(Debug, Clone)]
pub struct LayerFigures {
    /// The prompt's index.
    pub prompt: usize,
    /// `embedding`, or `layer 3 (attention)`.
    pub place: String,
    /// Against the reference's bf16 run.
    pub to_bf16: Comparison,
    /// Against the reference's f32 run.
    pub to_f32: Comparison,
    /// What is out of tolerance.
    pub violation: Option<String>,
}

/// How far a residual stream in bf16 may be from the reference's bf16 run after `layers` layers.
///
/// Both round at the same places; sums in another order move a rounding here and there, and what is
/// moved grows from layer to layer. Both CPU backends stay at half of these bounds or less. There is
/// none on single elements: one rounding of the stream's largest is a multiple of its mean square.
fn tolerance(layers: usize) -> Tolerance {
    match layers {
        // The embedding is a copy.
        0 => Tolerance::exact(),
        _ => Tolerance::finite().with(Metric::Pcc, 0.999).with(Metric::RelativeL2, 2.5e-3 * layers as f64),
    }
}

/// Every layer of the golden's layer prompts, in order.
pub fn layers<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
) -> Result<Vec<LayerFigures>, ParityError> {
    let mut figures = Vec::new();
    for outputs in &golden.layer_outputs {
        let ours = residual_stream(b, model, golden, outputs)?;
        for (index, (ours, (half, full))) in ours.iter().zip(&outputs.layers).enumerate() {
            let to_bf16 = Comparison::of(half, ours)?;
            figures.push(LayerFigures {
                prompt: outputs.prompt,
                place: place::<C>(index),
                to_bf16,
                to_f32: Comparison::of(full, ours)?,
                violation: tolerance(index).check(&to_bf16).err().map(|violations| violations.to_string()),
            });
        }
    }
    Ok(figures)
}

/// The values of all prompt tokens at every place of the residual stream.
fn residual_stream<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
    outputs: &LayerOutputs,
) -> Result<Vec<Vec<bf16>>, ParityError> {
    let ids = &golden.prompts[outputs.prompt].ids;
    let mut stream = vec![Vec::with_capacity(ids.len() * C::Hidden::SIZE); outputs.layers.len()];
    let mut visit = |index: usize, _position: usize, values: &[bf16]| {
        if let Some(place) = stream.get_mut(index) {
            place.extend_from_slice(values);
        }
    };
    Sequence::new(b, model).append_visited(ids, Prefill::Buckets, &mut visit).map_err(ParityError::run)?;
    Ok(stream)
}

fn place<C: Config>(index: usize) -> String {
    match index.checked_sub(1) {
        None => "embedding".into(),
        Some(layer) if C::is_full_attention(layer) => format!("layer {layer} (attention)"),
        Some(layer) => format!("layer {layer} (delta net)"),
    }
}
