//! Reading a `tokenizer.json`: the vocabulary straight into the model, the rest by the library.
//!
//! Left to itself, the library keeps a model's whole text as untyped values before it looks at it.
//! With a quarter of a million tokens and more merges that takes seconds and hundreds of megabytes, which
//! is most of the time from start to first token.

use ahash::AHashMap;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use tokenizers::models::bpe::BPE;
use tokenizers::{AddedToken, Tokenizer};

/// A token that is found in a text before anything else.
#[derive(Deserialize)]
pub(super) struct Added {
    /// Its id in the file.
    pub(super) id: u32,
    #[serde(flatten)]
    pub(super) token: AddedToken,
}

#[derive(Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(flatten)]
    around: Around,
}

/// What is around the model. Truncation and padding are for batches and are left out: a prompt that is
/// too long is an error elsewhere, never cut.
#[derive(Deserialize, Serialize)]
struct Around {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
}

#[derive(Deserialize)]
struct Model {
    r#type: String,
    #[serde(default)]
    dropout: Option<f32>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: Option<bool>,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default)]
    ignore_merges: Option<bool>,
    vocab: AHashMap<String, u32>,
    merges: Vec<Merge>,
}

/// Two tokens that become one, written as `["a", "b"]` or, in older files, as `"a b"`.
struct Merge(String, String);

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MergeVisitor)
    }
}

struct MergeVisitor;

impl<'de> Visitor<'de> for MergeVisitor {
    type Value = Merge;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two tokens, as a list or with a space between")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Merge, E> {
        match text.split_once(' ') {
            Some((a, b)) if !b.contains(' ') => Ok(Merge(a.to_owned(), b.to_owned())),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merge, A::Error> {
        let a = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let b = list.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        match list.next_element::<String>()? {
            None => Ok(Merge(a, b)),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}

impl Model {
    fn build(self) -> Result<BPE, String> {
        let merges = self.merges.into_iter().map(|Merge(a, b)| (a, b)).collect();
        let mut builder = BPE::builder()
            .vocab_and_merges(self.vocab, merges)
            .fuse_unk(self.fuse_unk.unwrap_or(false))
            .byte_fallback(self.byte_fallback.unwrap_or(false))
            .ignore_merges(self.ignore_merges.unwrap_or(false));
        if let Some(dropout) = self.dropout {
            builder = builder.dropout(dropout);
        }
        if let Some(token) = self.unk_token {
            builder = builder.unk_token(token);
        }
        if let Some(suffix) = self.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        builder.build().map_err(|error| error.to_string())
    }
}

/// The tokenizer, and the added tokens with the ids that the file gives them; or what is wrong.
///
/// What makes it the family's pipeline is looked at before the library sees it: for some damage in
/// exactly these parts its own deserialization panics instead of returning an error.
pub(super) fn read(bytes: &[u8]) -> Result<(Tokenizer, Vec<Added>), String> {
    let File { model, added_tokens, around } =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let is = |part: &Value, name: &str| part.get("type").is_some_and(|found| found == name);
    if !is(&around.normalizer, "NFC") {
        return Err("a normalizer that is not NFC".to_owned());
    }
    if !is(&around.decoder, "ByteLevel") {
        return Err("a decoder that is not byte-level".to_owned());
    }
    if model.r#type != "BPE"
        || model.continuing_subword_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
    {
        return Err("a model that is not plain BPE".to_owned());
    }
    let mut rest = serde_json::to_value(&around).map_err(|error| error.to_string())?;
    rest["version"] = around.version.map_or_else(|| "1.0".into(), Value::from);
    rest["model"] = serde_json::json!({ "type": "BPE", "vocab": {}, "merges": [] });
    let mut tokenizer: Tokenizer = rest.to_string().parse().map_err(|error| format!("{error}"))?;
    tokenizer.with_model(model.build()?);
    let tokens: Vec<AddedToken> = added_tokens.iter().map(|added| added.token.clone()).collect();
    tokenizer.add_tokens(&tokens);
    Ok((tokenizer, added_tokens))
}
