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

/// Where a backend rounds, which decides what its layers can be held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// At the reference's places and in its way: held against the reference's bf16 run.
    AsTheReference,
    /// In a way of its own, as the card's packer: held against the f32 run, to which it must be about
    /// as near as the reference's own bf16 run is.
    ItsOwn,
}

/// How much further from the f32 run than the reference's own bf16 run a backend of its own rounding
/// may be, layer by layer. HiFi3 and HiFi4 with f32 destination stay below 1.1.
const OWN_ROUNDING: f64 = 1.25;

/// What is wrong with the residual stream after `layers` layers, if anything.
///
/// Where both round at the same places, sums in another order move a rounding here and there, and
/// what is moved grows from layer to layer: the CPU backends stay at half of the bound or less. There
/// is no bound on single elements: one rounding of the stream's largest is a multiple of its mean
/// square.
fn violation(layers: usize, rounding: Rounding, place: &Place) -> Option<String> {
    let (tolerance, against, figures) = match (layers, rounding) {
        // The embedding is a copy.
        (0, _) => (Tolerance::exact(), "bf16", &place.to_bf16),
        (_, Rounding::AsTheReference) => {
            let tolerance = Tolerance::finite().with(Metric::Pcc, 0.999);
            (tolerance.with(Metric::RelativeL2, 2.5e-3 * layers as f64), "bf16", &place.to_bf16)
        }
        (_, Rounding::ItsOwn) => {
            let allowed = OWN_ROUNDING * place.reference.relative_l2;
            (Tolerance::finite().with(Metric::RelativeL2, allowed), "f32", &place.to_f32)
        }
    };
    let violations = tolerance.check(figures).err()?;
    Some(format!("against the {against} run: {violations}"))
}

/// One place of the residual stream, compared.
struct Place {
    to_bf16: Comparison,
    to_f32: Comparison,
    /// The reference's bf16 run against its f32 run.
    reference: Comparison,
}

/// Every layer of the golden's layer prompts, in order.
pub fn layers<B: Backend, C: Config>(
    b: &B,
    model: &Model<B, C>,
    golden: &Golden,
    rounding: Rounding,
) -> Result<Vec<LayerFigures>, ParityError> {
    let mut figures = Vec::new();
    for outputs in &golden.layer_outputs {
        let ours = residual_stream(b, model, golden, outputs)?;
        for (index, (ours, (half, full))) in ours.iter().zip(&outputs.layers).enumerate() {
            let compared = Place {
                to_bf16: Comparison::of(half, ours)?,
                to_f32: Comparison::of(full, ours)?,
                reference: Comparison::of(full, half)?,
            };
            figures.push(LayerFigures {
                prompt: outputs.prompt,
                place: place::<C>(index),
                violation: violation(index, rounding, &compared),
                to_bf16: compared.to_bf16,
                to_f32: compared.to_f32,
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
