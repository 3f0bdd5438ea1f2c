//! `config.json`, compared key by key with a [`Config`]. A key that defines the mathematics must
//! be there: the class defaults of the reference are wrong for real checkpoints.

use super::error::CheckpointError;
use super::files::Checkpoint;
use super::problem::Listed;
use crate::config::Config;
use core::fmt;
use serde_json::{Map, Value, json};
use tt_dsl::Dim;

/// Model types of the two forms of the file: text alone, and text beside a vision encoder.
const TEXT_ONLY: &str = "qwen3_5_text";
const WITH_VISION: &str = "qwen3_5";

/// One key of which `config.json` and the types disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDifference {
    /// The key, with those that it is nested in.
    pub key: String,
    /// What the types say, as JSON.
    pub expected: String,
    /// What stands there, as JSON, if the key is there.
    pub found: Option<String>,
    /// Whether it is one of the sizes that tell configurations apart.
    pub is_size: bool,
}

impl fmt::Display for ConfigDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.as_deref().unwrap_or("no such key");
        write!(f, "{}: expected {}, found {found}", self.key, self.expected)
    }
}

/// A `config.json` that was parsed and holds a text configuration in one of the two forms.
pub struct ConfigJson {
    place: String,
    top: Map<String, Value>,
    /// Where the text keys are: `""` or `"text_config."`.
    prefix: &'static str,
}

impl ConfigJson {
    /// Reads a checkpoint's `config.json`.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        let (place, bytes) = checkpoint.config_bytes()?;
        Self::parse(place, &bytes)
    }

    /// Parses the bytes of a `config.json` that is at `place`.
    pub fn parse(place: String, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| CheckpointError::format(&place, "valid JSON", error))?;
        let Value::Object(top) = value else {
            return Err(CheckpointError::format(&place, "a JSON object", kind(&value)));
        };
        let prefix = match top.get("text_config") {
            None => "",
            Some(Value::Object(_)) => "text_config.",
            Some(other) => {
                return Err(CheckpointError::format(&place, "an object `text_config`", kind(other)));
            }
        };
        Ok(Self { place, top, prefix })
    }

    /// The file.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Refuses the file unless it is one of configuration `C`.
    pub fn check<C: Config>(&self) -> Result<(), CheckpointError> {
        let problems = self.differences::<C>();
        if problems.is_empty() {
            return Ok(());
        }
        let summary = format!("keys differ from those of {}", C::NAME);
        Err(CheckpointError::Config(Listed { place: self.place.clone(), summary, problems }))
    }

    /// Every key in which the file differs from configuration `C`.
    pub fn differences<C: Config>(&self) -> Vec<ConfigDifference> {
        let model_type = if self.prefix.is_empty() { TEXT_ONLY } else { WITH_VISION };
        let mut differences = Vec::new();
        differences.extend(self.compare("model_type".to_owned(), &Rule::must(model_type), false));
        for (key, size) in sizes::<C>() {
            differences.extend(self.compare(format!("{}{key}", self.prefix), &Rule::must(size), true));
        }
        differences.extend(self.layer_types::<C>());
        for (key, rule) in text_rules::<C>() {
            differences.extend(self.compare(format!("{}{key}", self.prefix), &rule, false));
        }
        // It is the text model's own or the whole model's, and published files have it at the top.
        for key in self.tie_keys() {
            differences.extend(self.compare(key, &Rule::must(C::TIED), false));
        }
        differences
    }

    fn compare(&self, key: String, rule: &Rule, is_size: bool) -> Option<ConfigDifference> {
        let found = self.get(&key);
        if rule.holds(found) {
            return None;
        }
        Some(ConfigDifference { key, expected: rule.expected.to_string(), found: found.map(brief), is_size })
    }

    /// The difference in `layer_types`, if there is one: the first layer that is of another type.
    fn layer_types<C: Config>(&self) -> Option<ConfigDifference> {
        let key = format!("{}layer_types", self.prefix);
        let difference = |key: String, expected: String, found: Option<String>| {
            Some(ConfigDifference { key, expected, found, is_size: false })
        };
        let types = match self.get(&key) {
            Some(Value::Array(types)) if types.len() == C::LAYERS => types,
            Some(Value::Array(types)) => {
                return difference(key, format!("{} layers", C::LAYERS), Some(format!("{}", types.len())));
            }
            other => return difference(key, "an array".to_owned(), other.map(brief)),
        };
        types.iter().enumerate().find_map(|(index, found)| {
            let expected = if C::is_full_attention(index) { "full_attention" } else { "linear_attention" };
            if found == expected {
                return None;
            }
            difference(format!("{key}[{index}]"), json!(expected).to_string(), Some(brief(found)))
        })
    }

    /// Where `tie_word_embeddings` is; where it should be if it is nowhere.
    fn tie_keys(&self) -> Vec<String> {
        let nested = format!("{}tie_word_embeddings", self.prefix);
        let mut keys = vec!["tie_word_embeddings".to_owned()];
        if !self.prefix.is_empty() && self.get(&nested).is_some() {
            if self.get(&keys[0]).is_none() {
                keys.clear();
            }
            keys.push(nested);
        }
        keys
    }

    /// The value at a dotted key.
    fn get(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let first = self.top.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }
}

/// What a key must be.
struct Rule {
    expected: Value,
    may_be_absent: bool,
}

impl Rule {
    fn must(expected: impl Into<Value>) -> Self {
        Self { expected: expected.into(), may_be_absent: false }
    }

    /// For keys that have one meaning in every checkpoint of the family, and that older or smaller
    /// files leave out: absent is fine, another value is another model.
    fn if_there(expected: impl Into<Value>) -> Self {
        Self { expected: expected.into(), may_be_absent: true }
    }

    fn holds(&self, found: Option<&Value>) -> bool {
        match (found, self.expected.as_f64()) {
            (None, _) => self.may_be_absent,
            // 10000000 and 1e7 are one number; both sides are far below 2^53.
            (Some(found), Some(expected)) => found.as_f64() == Some(expected),
            (Some(found), None) => *found == self.expected,
        }
    }
}

/// The keys by which configurations are told apart.
fn sizes<C: Config>() -> [(&'static str, usize); 12] {
    [
        ("vocab_size", C::Vocab::SIZE),
        ("hidden_size", C::Hidden::SIZE),
        ("intermediate_size", C::Intermediate::SIZE),
        ("num_hidden_layers", C::LAYERS),
        ("num_attention_heads", C::Heads::SIZE),
        ("num_key_value_heads", C::KvHeads::SIZE),
        ("head_dim", C::HeadDim::SIZE),
        ("linear_num_key_heads", C::KeyHeads::SIZE),
        ("linear_num_value_heads", C::ValueHeads::SIZE),
        ("linear_key_head_dim", C::KeyDim::SIZE),
        ("linear_value_head_dim", C::ValueDim::SIZE),
        ("linear_conv_kernel_dim", C::ConvKernel::SIZE),
    ]
}

/// The other text keys.
fn text_rules<C: Config>() -> Vec<(&'static str, Rule)> {
    vec![
        ("full_attention_interval", Rule::if_there(C::FULL_ATTENTION_INTERVAL)),
        ("rms_norm_eps", Rule::must(decimal(C::RMS_EPS))),
        ("rope_parameters.rope_type", Rule::must("default")),
        ("rope_parameters.rope_theta", Rule::must(C::ROPE_THETA)),
        ("rope_parameters.partial_rotary_factor", Rule::must(C::PARTIAL_ROTARY_FACTOR)),
        ("max_position_embeddings", Rule::must(C::MAX_POSITIONS)),
        ("eos_token_id", Rule::must(C::EOS)),
        ("hidden_act", Rule::must("silu")),
        ("attn_output_gate", Rule::must(true)),
        ("attention_bias", Rule::if_there(false)),
        ("mamba_ssm_dtype", Rule::if_there("float32")),
    ]
}

/// An f32 as the shortest decimal that is it: 1e-6 and not 9.999999974752427e-7, which is what a
/// file says.
fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// A JSON value on one line of bounded length.
fn brief(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// What a JSON value is, for messages about one that should have been an object.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tiny;

    fn tiny() -> Value {
        json!({
            "model_type": "qwen3_5_text", "vocab_size": 1024, "hidden_size": 192, "intermediate_size": 384,
            "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128,
            "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 64,
            "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,
            "layer_types": [
                "linear_attention", "linear_attention", "linear_attention", "full_attention",
                "linear_attention", "linear_attention", "linear_attention", "full_attention"],
            "rms_norm_eps": 1e-6, "max_position_embeddings": 512, "eos_token_id": 1023, "hidden_act": "silu",
            "attn_output_gate": true, "tie_word_embeddings": true,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25},
        })
    }

    /// The differences from `Tiny`, one a line.
    fn differences(value: &Value) -> String {
        let json = ConfigJson::parse("c".to_owned(), value.to_string().as_bytes()).unwrap();
        json.differences::<Tiny>().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn nested(mut text: Value) -> Value {
        text["model_type"] = json!("qwen3_5_text");
        let tied = text.as_object_mut().unwrap().remove("tie_word_embeddings");
        json!({"model_type": "qwen3_5", "text_config": text, "vision_config": {}, "tie_word_embeddings": tied})
    }

    #[test]
    fn both_published_forms_are_read() {
        assert_eq!(differences(&tiny()), "");
        let mut published = nested(tiny());
        assert_eq!(differences(&published), "");
        published["text_config"]["tie_word_embeddings"] = json!(true);
        assert_eq!(differences(&published), "");
        published["tie_word_embeddings"].take();
        published.as_object_mut().unwrap().remove("tie_word_embeddings");
        assert_eq!(differences(&published), "");
    }

    #[test]
    fn every_key_is_needed_and_none_defaulted() {
        let keys: Vec<String> = tiny().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let mut without = tiny();
            without.as_object_mut().unwrap().remove(&key);
            let found = differences(&without);
            assert!(found.contains(&key) && found.contains("found no such key"), "{key}: {found}");
        }
        for key in ["rope_type", "rope_theta", "partial_rotary_factor"] {
            let mut without = tiny();
            without["rope_parameters"].as_object_mut().unwrap().remove(key);
            let found = differences(&without);
            assert!(found.starts_with(&format!("rope_parameters.{key}: expected ")), "{found}");
        }
        // A theta outside its object is the one that a careless reader would default.
        let mut flat = tiny();
        flat["rope_theta"] = flat["rope_parameters"]["rope_theta"].take();
        flat["rope_parameters"].as_object_mut().unwrap().remove("rope_theta");
        assert_eq!(differences(&flat), "rope_parameters.rope_theta: expected 10000000.0, found no such key");
    }

    #[test]
    fn all_differences_are_listed() {
        let mut other = nested(tiny());
        other["text_config"]["hidden_size"] = json!(256);
        other["text_config"]["layer_types"][3] = json!("linear_attention");
        other["text_config"]["rms_norm_eps"] = json!(1e-5);
        other["text_config"]["mamba_ssm_dtype"] = json!("bfloat16");
        other["text_config"]["eos_token_id"] = json!("1023");
        let found = differences(&other);
        for line in [
            "text_config.hidden_size: expected 192, found 256",
            "text_config.rms_norm_eps: expected 1e-6, found 0.00001",
            "text_config.mamba_ssm_dtype: expected \"float32\", found \"bfloat16\"",
            "text_config.eos_token_id: expected 1023, found \"1023\"",
            "text_config.layer_types[3]: expected \"full_attention\", found \"linear_attention\"",
        ] {
            assert!(found.contains(line), "{line}\n{found}");
        }
        assert_eq!(found.lines().count(), 5);
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let error = |bytes: &[u8]| ConfigJson::parse("c".to_owned(), bytes).err().unwrap().to_string();
        assert!(error(b"{").starts_with("c: expected valid JSON, found "));
        assert!(error(b"\xff").starts_with("c: expected valid JSON, found "));
        assert_eq!(error(b"[]"), "c: expected a JSON object, found an array");
        assert_eq!(error(br#"{"text_config": 1}"#), "c: expected an object `text_config`, found a number");
        assert!(differences(&json!({})).lines().count() > 20);
    }
}
