//! The model: embedding, layers, final norm, head.

use crate::Config;
use crate::checkpoint::{CheckpointError, Weights};
use crate::layers::{Layer, LayerState, Residual};
use tt_dsl::{Backend, Bf16, Dim, LogitsF32, Step, Tensor, Tokens, ZeroCentredNorm};

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError<E: std::error::Error + 'static> {
    /// The checkpoint is not this model.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The backend could not take the weights.
    #[error("cannot stage {what}: {source}")]
    Stage {
        /// Which part of the model was being staged.
        what: String,
        /// The backend's own error.
        source: E,
    },
}

/// Where the head's weight is.
enum Head<B: Backend, C: Config> {
    /// It is the embedding table.
    Tied,
    /// A matrix of its own.
    Own(Tensor<B, (C::Vocab, C::Hidden), Bf16>),
}

/// A Qwen3.5 text model of configuration `C` whose weights are on backend `B`.
pub struct Model<B: Backend, C: Config> {
    embed_tokens: Tensor<B, (C::Vocab, C::Hidden), Bf16>,
    layers: Vec<Layer<B, C>>,
    norm: ZeroCentredNorm<B, C::Hidden>,
    head: Head<B, C>,
}

/// What the model remembers of one sequence: a state for each layer.
pub struct State<B: Backend, C: Config> {
    layers: Vec<LayerState<B, C>>,
}

impl<B: Backend, C: Config> State<B, C> {
    /// Makes it what it was before the first token, in the memory that it has.
    pub fn restart(&mut self, b: &B) {
        self.layers.iter_mut().for_each(|layer| layer.restart(b));
    }

    /// The layers' states, first layer first.
    pub fn layers(&self) -> &[LayerState<B, C>] {
        &self.layers
    }
}

impl<B: Backend, C: Config> Model<B, C> {
    /// Stages the weights of a checkpoint, one submit for each layer and one for the rest.
    pub fn load(b: &B, weights: &Weights<'_, B>) -> Result<Self, LoadError<B::Error>> {
        let submit = |what: String| b.submit().map_err(|source| LoadError::Stage { what, source });
        let embed_tokens = weights.tensor("embed_tokens.weight")?;
        let norm = ZeroCentredNorm(weights.tensor("norm.weight")?);
        let head = if C::TIED { Head::Tied } else { Head::Own(weights.head("lm_head.weight")?) };
        submit("the embedding table".into())?;

        let mut layers = Vec::with_capacity(C::LAYERS);
        for index in 0..C::LAYERS {
            layers.push(Layer::load(index, &weights.at("layers").at(index))?);
            submit(format!("layer {index}"))?;
        }
        Ok(Self { embed_tokens, layers, norm, head })
    }

    /// The state before the first token.
    pub fn new_state(&self, b: &B) -> State<B, C> {
        State { layers: self.layers.iter().map(|layer| layer.new_state(b)).collect() }
    }

    /// The residual stream after the last layer. `visit` sees it before the first layer (index 0)
    /// and after each (index 1 and up), and may fail.
    ///
    /// One submit a layer; the last layer's commands are left for the caller's next submit or
    /// download, so that the head can join them. After an error the state is not to be used again.
    pub fn forward<T: Dim>(
        &self,
        b: &B,
        tokens: &Tokens<B, T, C::Vocab>,
        state: &mut State<B, C>,
        mut visit: impl FnMut(usize, &Residual<B, T, C>) -> Result<(), B::Error>,
    ) -> Result<Residual<B, T, C>, B::Error> {
        let step = tokens.step();
        let rotary = b.rotary(step, C::ROPE_THETA);
        let mut h = b.embed(tokens, &self.embed_tokens);
        visit(0, &h)?;
        for (index, (layer, state)) in self.layers.iter().zip(&mut state.layers).enumerate() {
            if index > 0 {
                b.submit()?;
            }
            h = layer.forward(b, &h, &rotary, state, step);
            visit(index + 1, &h)?;
        }
        Ok(h)
    }

    /// The logits that follow the last valid row.
    pub fn logits<T: Dim>(&self, b: &B, h: &Residual<B, T, C>, step: &Step<B, T>) -> LogitsF32<B, C::Vocab> {
        let last = b.rms_norm(&b.last_row(h, step), &self.norm, C::RMS_EPS);
        match &self.head {
            Head::Tied => b.lm_head(&last, &self.embed_tokens),
            Head::Own(weight) => b.lm_head(&last, weight),
        }
    }
}
