//! Where a checkpoint keeps its chat template.

use crate::checkpoint::{Checkpoint, CheckpointError, TokenizerConfig};

/// A file of its own, which is how it is published today.
const FILE: &str = "chat_template.jinja";

/// A template's text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSource {
    /// The file, with the key if it is a part of one.
    pub place: String,
    /// The Jinja program.
    pub text: String,
}

/// The chat template of a checkpoint: `chat_template.jinja`, or else `chat_template` of
/// `tokenizer_config.json`, a text or a list of named ones of which `default` is taken.
///
/// That there is none is an error too, [`CheckpointError::Format`]: which layout of a conversation a
/// model knows cannot be guessed.
pub fn find(
    checkpoint: &Checkpoint,
    config: Option<&TokenizerConfig>,
) -> Result<TemplateSource, CheckpointError> {
    if let Some((place, bytes)) = checkpoint.optional_file(FILE)? {
        return match String::from_utf8(bytes) {
            Ok(text) => Ok(TemplateSource { place, text }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let found = format!("an invalid sequence at byte {at}");
                Err(CheckpointError::format(&place, "a template in UTF-8", found))
            }
        };
    }
    let template = config.and_then(|config| Some((config.place(), config.chat_template()?)));
    template
        .map(|(place, text)| TemplateSource {
            place: format!("{place}, chat_template"),
            text: text.to_owned(),
        })
        .ok_or_else(|| {
            let expected =
                format!("a chat template in `{FILE}` or as `chat_template` in `tokenizer_config.json`");
            CheckpointError::format(&checkpoint.place(), expected, "neither")
        })
}
