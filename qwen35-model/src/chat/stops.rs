//! Where a text ends.

use crate::checkpoint::{CheckpointError, GenerationConfig, TokenizerConfig};
use crate::config::Config;
use crate::tokenizer::Tokenizer;
use tt_dsl::Dim;

/// The ids that end a text besides [`Config::EOS`]: `eos_token_id` of `generation_config.json`, and,
/// for a conversation, `eos_token` of `tokenizer_config.json`, which ends an assistant's turn.
pub fn stop_tokens<C: Config>(
    generation: Option<&GenerationConfig>,
    turns: Option<(&TokenizerConfig, &Tokenizer)>,
) -> Result<Vec<u32>, CheckpointError> {
    let mut stops = Vec::new();
    if let Some(generation) = generation {
        let rows = C::Vocab::SIZE;
        if let Some(id) = generation.stop().iter().find(|id| **id as usize >= rows) {
            let expected = format!("ids below {rows}, the vocabulary of {}, as `eos_token_id`", C::NAME);
            return Err(CheckpointError::format(generation.place(), expected, id));
        }
        stops.extend(generation.stop());
    }
    if let Some((config, tokenizer)) = turns
        && let Some(token) = config.special_tokens().get("eos_token")
    {
        let id = tokenizer.id_of(token).ok_or_else(|| {
            let expected = "a token of tokenizer.json as `eos_token`";
            CheckpointError::format(config.place(), expected, format!("`{token}`"))
        })?;
        stops.push(id);
    }
    Ok(stops)
}
