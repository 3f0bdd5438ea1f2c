//! `tokenizer_config.json`: special tokens by their roles, and the chat template.

use super::error::CheckpointError;
use super::files::Checkpoint;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const FILE: &str = "tokenizer_config.json";

/// The roles of special tokens that templates may name.
const ROLES: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A `tokenizer_config.json` that was parsed. How to tokenize stands in `tokenizer.json`; of this
/// file only what is named here is read.
#[derive(Debug, Clone)]
pub struct TokenizerConfig {
    place: String,
    special_tokens: BTreeMap<String, String>,
    chat_template: Option<String>,
}

impl TokenizerConfig {
    /// Reads a checkpoint's `tokenizer_config.json`, if it has one.
    pub fn of(checkpoint: &Checkpoint) -> Result<Option<Self>, CheckpointError> {
        let file = checkpoint.optional_file(FILE)?;
        file.map(|(place, bytes)| Self::parse(place, &bytes)).transpose()
    }

    /// Parses the bytes of a `tokenizer_config.json` that is at `place`.
    pub fn parse(place: String, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let top: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|error| CheckpointError::format(&place, "a JSON object", error))?;
        let mut special_tokens = BTreeMap::new();
        for role in ROLES {
            if let Some(token) = special_token(&place, role, top.get(role))? {
                special_tokens.insert(role.to_owned(), token);
            }
        }
        let chat_template = chat_template(&place, top.get("chat_template"))?;
        Ok(Self { place, special_tokens, chat_template })
    }

    /// The file.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Special tokens by their roles, as `eos_token`.
    pub fn special_tokens(&self) -> &BTreeMap<String, String> {
        &self.special_tokens
    }

    /// The chat template: the only one, or the one named `default`.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }
}

/// A token is its text, or an object that has the text as `content`.
fn special_token(place: &str, role: &str, value: Option<&Value>) -> Result<Option<String>, CheckpointError> {
    let value = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let text = value.as_str().or_else(|| value.get("content")?.as_str());
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        CheckpointError::format(place, format!("a text or an object with `content` as `{role}`"), value)
    })
}

fn chat_template(place: &str, value: Option<&Value>) -> Result<Option<String>, CheckpointError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(named)) => {
            let is_default = |entry: &&Value| entry.get("name").is_some_and(|name| name == "default");
            let template = named.iter().find(is_default).and_then(|entry| entry.get("template")?.as_str());
            template.map(|text| Some(text.to_owned())).ok_or_else(|| {
                let names: Vec<&str> = named.iter().filter_map(|entry| entry.get("name")?.as_str()).collect();
                let found = format!("those named `{}`", names.join("`, `"));
                CheckpointError::format(place, "a template named `default` in `chat_template`", found)
            })
        }
        Some(_) => {
            let expected = "a text or a list of named templates as `chat_template`";
            Err(CheckpointError::format(place, expected, "neither"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: &Value) -> Result<TokenizerConfig, String> {
        TokenizerConfig::parse("t".to_owned(), value.to_string().as_bytes())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_of_both_are_read() {
        let found = parse(&json!({
            "eos_token": "<|im_end|>", "pad_token": {"content": "<|endoftext|>", "special": true},
            "bos_token": null, "chat_template": "a", "clean_up_tokenization_spaces": false,
        }))
        .unwrap();
        let tokens: Vec<_> =
            found.special_tokens().iter().map(|(role, token)| format!("{role} {token}")).collect();
        assert_eq!(tokens, ["eos_token <|im_end|>", "pad_token <|endoftext|>"]);
        assert_eq!(found.chat_template(), Some("a"));
        let named = json!({"chat_template": [
            {"name": "tool_use", "template": "b"}, {"name": "default", "template": "c"}]});
        assert_eq!(parse(&named).unwrap().chat_template(), Some("c"));
        assert_eq!(parse(&json!({})).unwrap().chat_template(), None);
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(parse(&json!([])).unwrap_err().starts_with("t: expected a JSON object, found "));
        assert_eq!(
            parse(&json!({"eos_token": 3})).unwrap_err(),
            "t: expected a text or an object with `content` as `eos_token`, found 3"
        );
        assert_eq!(
            parse(&json!({"chat_template": [{"name": "rag", "template": "x"}]})).unwrap_err(),
            "t: expected a template named `default` in `chat_template`, \
             found those named `rag`"
        );
        assert_eq!(
            parse(&json!({"chat_template": 1})).unwrap_err(),
            "t: expected a text or a list of named templates as `chat_template`, found neither"
        );
    }
}
