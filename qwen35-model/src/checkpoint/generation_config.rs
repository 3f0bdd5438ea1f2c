//! `generation_config.json`: how a checkpoint's makers want its tokens chosen, and where to stop.
//!
//! | key | what becomes of it |
//! |---|---|
//! | `eos_token_id` (an id or a list) | stop ids, beside `config.json`'s |
//! | `do_sample` | whether `chat` draws tokens; absent is no |
//! | `temperature`, `top_k` (0 is none), `top_p` | used when tokens are drawn; absent is no filter, where the reference's classes have `top_k` 50 |
//! | `repetition_penalty`, `presence_penalty` | used when tokens are drawn |
//! | other keys that change which token is chosen | listed by [`GenerationConfig::ignored`] unless they are neutral |
//! | all other keys | not read: they concern batches, beams, caches and lengths |

use super::error::CheckpointError;
use super::files::Checkpoint;
use crate::sampling::Random;
use core::fmt;
use serde_json::{Map, Value};

const FILE: &str = "generation_config.json";

/// Keys that change which token is chosen and that nothing here does, with the value at which they do
/// nothing. Null does nothing either.
const NOT_DONE: [(&str, f64); 12] = [
    ("min_p", 0.0),
    ("typical_p", 1.0),
    ("top_h", 0.0),
    ("epsilon_cutoff", 0.0),
    ("eta_cutoff", 0.0),
    ("frequency_penalty", 0.0),
    ("encoder_repetition_penalty", 1.0),
    ("no_repeat_ngram_size", 0.0),
    ("num_beams", 1.0),
    ("penalty_alpha", 0.0),
    ("guidance_scale", 1.0),
    ("exponential_decay_length_penalty", 0.0),
];

/// The same, for keys that hold lists: an empty one does nothing.
const LISTS_NOT_DONE: [&str; 5] =
    ["bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias", "stop_strings"];

/// A key that asks for what is not done.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignored {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.value)
    }
}

/// A `generation_config.json` that was parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationConfig {
    place: String,
    stop: Vec<u32>,
    sampling: Option<Random>,
    ignored: Vec<Ignored>,
}

impl GenerationConfig {
    /// Reads a checkpoint's `generation_config.json`, if it has one.
    pub fn of(checkpoint: &Checkpoint) -> Result<Option<Self>, CheckpointError> {
        let file = checkpoint.optional_file(FILE)?;
        file.map(|(place, bytes)| Self::parse(place, &bytes)).transpose()
    }

    /// Parses the bytes of a `generation_config.json` that is at `place`.
    pub fn parse(place: String, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let top: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|error| CheckpointError::format(&place, "a JSON object", error))?;
        let keys = Keys { place: &place, top: &top };
        let stop = keys.ids("eos_token_id")?;
        let draws = keys.get("do_sample").map_or(Ok(false), |value| {
            value.as_bool().ok_or_else(|| keys.refuse("do_sample", "true or false", value))
        })?;
        let sampling = if draws { Some(keys.sampling()?) } else { None };
        let ignored = keys.ignored();
        Ok(Self { place, stop, sampling, ignored })
    }

    /// The file.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Ids that end a text.
    pub fn stop(&self) -> &[u32] {
        &self.stop
    }

    /// How to draw tokens, seed 0; none if the likeliest is to be taken.
    pub fn sampling(&self) -> Option<Random> {
        self.sampling
    }

    /// What it asks for and nothing here does. The text differs from the reference's for it.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }
}

/// The file's keys.
struct Keys<'a> {
    place: &'a str,
    top: &'a Map<String, Value>,
}

impl Keys<'_> {
    /// A value that is there and not null.
    fn get(&self, key: &str) -> Option<&Value> {
        self.top.get(key).filter(|value| !value.is_null())
    }

    fn refuse(&self, key: &str, expected: &str, found: &Value) -> CheckpointError {
        CheckpointError::format(self.place, format!("{expected} as `{key}`"), found)
    }

    /// An id or a list of ids.
    fn ids(&self, key: &str) -> Result<Vec<u32>, CheckpointError> {
        let refuse = |found: &Value| self.refuse(key, "a token id or a list of them", found);
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(ids)) => {
                ids.iter().map(|value| id(value).ok_or_else(|| refuse(value))).collect()
            }
            Some(value) => id(value).map(|id| vec![id]).ok_or_else(|| refuse(value)),
        }
    }

    fn number(&self, key: &str, default: f64) -> Result<f64, CheckpointError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_f64().ok_or_else(|| self.refuse(key, "a number", value))
    }

    fn sampling(&self) -> Result<Random, CheckpointError> {
        let default = Random::default();
        let top_k = match self.get("top_k") {
            None => None,
            Some(value) => {
                let k = value.as_u64().and_then(|k| usize::try_from(k).ok());
                Some(k.ok_or_else(|| self.refuse("top_k", "a whole number", value))?)
            }
        };
        let sampling = Random {
            temperature: self.number("temperature", default.temperature)?,
            top_k: top_k.filter(|k| *k > 0),
            top_p: self.number("top_p", default.top_p)?,
            repetition_penalty: self.number("repetition_penalty", default.repetition_penalty)?,
            presence_penalty: self.number("presence_penalty", default.presence_penalty)?,
            seed: default.seed,
        };
        sampling.check().map_err(|error| CheckpointError::format(self.place, "a way to sample", error))?;
        Ok(sampling)
    }

    fn ignored(&self) -> Vec<Ignored> {
        let asks = |key: &str, neutral: f64| {
            self.get(key).filter(|value| value.as_f64() != Some(neutral) && **value != Value::Bool(false))
        };
        let numbers = NOT_DONE.iter().filter_map(|(key, neutral)| Some((*key, asks(key, *neutral)?)));
        let is_empty = |value: &Value| {
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
        };
        let lists = LISTS_NOT_DONE
            .iter()
            .filter_map(|key| Some((*key, self.get(key).filter(|value| !is_empty(value))?)));
        numbers.chain(lists).map(|(key, value)| Ignored { key, value: value.clone() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: &Value) -> Result<GenerationConfig, String> {
        GenerationConfig::parse("g".to_owned(), value.to_string().as_bytes())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_published_file_is_read() {
        let found = parse(&json!({
            "bos_token_id": 248044, "do_sample": true, "eos_token_id": [248046, 248044], "pad_token_id": 248044,
            "temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "5.0.0",
        }))
        .unwrap();
        assert_eq!(found.stop(), [248_046, 248_044]);
        let expected = Random { temperature: 0.6, top_k: Some(20), top_p: 0.95, ..Random::default() };
        assert_eq!(found.sampling(), Some(expected));
        assert!(found.ignored().is_empty());
    }

    #[test]
    fn what_is_absent_or_neutral_does_nothing() {
        let found = parse(&json!({
            "eos_token_id": 7, "temperature": 0.1, "top_k": null, "min_p": 0, "num_beams": 1, "typical_p": 1.0,
            "stop_strings": [], "no_repeat_ngram_size": null,
        }))
        .unwrap();
        assert_eq!((found.stop(), found.sampling()), (&[7][..], None));
        assert!(found.ignored().is_empty());
        assert!(parse(&json!({})).unwrap().stop().is_empty());
        let all = parse(&json!({"do_sample": true, "top_k": 0})).unwrap();
        assert_eq!(all.sampling(), Some(Random::default()));
    }

    #[test]
    fn penalties_are_used_and_the_rest_is_named() {
        let found = parse(&json!({
            "do_sample": true, "repetition_penalty": 1.05, "presence_penalty": 1.5, "min_p": 0.05,
            "stop_strings": ["END"],
        }))
        .unwrap();
        let expected = Random { repetition_penalty: 1.05, presence_penalty: 1.5, ..Random::default() };
        assert_eq!(found.sampling(), Some(expected));
        let ignored: Vec<String> = found.ignored().iter().map(ToString::to_string).collect();
        assert_eq!(ignored, ["min_p 0.05", "stop_strings [\"END\"]"]);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (value, expected) in [
            (
                json!({"eos_token_id": -1}),
                "g: expected a token id or a list of them as `eos_token_id`, found -1",
            ),
            (
                json!({"eos_token_id": [1, "a"]}),
                "g: expected a token id or a list of them as `eos_token_id`, found \"a\"",
            ),
            (json!({"do_sample": "yes"}), "g: expected true or false as `do_sample`, found \"yes\""),
            (json!({"do_sample": true, "top_k": -1}), "g: expected a whole number as `top_k`, found -1"),
            (
                json!({"do_sample": true, "temperature": 0}),
                "g: expected a way to sample, found temperature: expected a finite number above 0, found 0",
            ),
        ] {
            assert_eq!(parse(&value).unwrap_err(), expected);
        }
        assert!(parse(&json!([])).unwrap_err().starts_with("g: expected a JSON object, found "));
    }
}
