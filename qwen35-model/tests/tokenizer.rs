//! The tokenizer: round trips, streaming, and the vocabularies that it refuses.

#![cfg(test)]

use proptest::prelude::*;
use qwen35_model::Tiny;
use qwen35_model::tokenizer::Tokenizer;
use serde_json::{Value, json};
use std::sync::LazyLock;

const FILE: &[u8] = include_bytes!("../../goldens/tiny/tokenizer.json");

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::parse::<Tiny>("tiny", FILE).unwrap());

/// The library's own decoder, of which ours must be the streaming form.
static LIBRARY: LazyLock<tokenizers::Tokenizer> =
    LazyLock::new(|| tokenizers::Tokenizer::from_bytes(FILE).unwrap());

fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_slice(FILE).unwrap();
    change(&mut value);
    Tokenizer::parse::<Tiny>("t", value.to_string().as_bytes()).err().unwrap().to_string()
}

#[test]
fn text_comes_back() {
    for text in
        ["Alice was beginning", " ", "\n\n", "na\u{ef}ve \u{1f600}, 1865!", "tab\tand\r\nbreak", "\u{fffd}"]
    {
        let ids = TOKENIZER.encode(text).unwrap();
        assert!(!ids.is_empty());
        assert_eq!(TOKENIZER.decode(&ids), text);
    }
    assert!(TOKENIZER.encode("").unwrap().is_empty());
}

#[test]
fn a_character_appears_whole_or_not_at_all() {
    let ids = TOKENIZER.encode("\u{1f600}!").unwrap();
    assert!(ids.len() > 2, "the book knows no such character, so its bytes are tokens of their own");
    let mut stream = TOKENIZER.stream();
    let pieces: Vec<String> = ids.iter().map(|&id| stream.push(id)).collect();
    assert_eq!(pieces.iter().filter(|piece| !piece.is_empty()).count(), 2, "{pieces:?}");
    assert_eq!(pieces.concat(), "\u{1f600}!");
    assert_eq!(stream.finish(), "");

    let mut cut = TOKENIZER.stream();
    assert_eq!(cut.push(ids[0]), "");
    assert_eq!(cut.finish(), "\u{fffd}");
}

#[test]
fn special_tokens_are_not_text() {
    let mut ids = TOKENIZER.encode("end").unwrap();
    ids.push(1023);
    assert_eq!(TOKENIZER.decode(&ids), "end");
    assert_eq!(TOKENIZER.decode(&[5000, u32::MAX]), "");
}

#[test]
fn a_vocabulary_that_is_not_the_models_is_refused() {
    let far = refusal(|value| value["model"]["vocab"]["far"] = json!(4000));
    assert_eq!(far, "t: expected the vocabulary of Tiny (ids below 1024), found id 4000 (`far`)");

    let few = refusal(|value| {
        let vocab = value["model"]["vocab"].as_object().unwrap().clone();
        value["model"]["vocab"] = vocab.into_iter().filter(|(_, id)| id.as_u64() < Some(900)).collect();
        value["model"]["merges"] = json!([]);
    });
    assert_eq!(few, "t: expected the vocabulary of Tiny (at least 921 tokens for 1024 rows), found 901");

    let no_end = refusal(|value| value["added_tokens"] = json!([]));
    assert_eq!(
        no_end,
        "t: expected the vocabulary of Tiny (a special token with the end-of-sequence id 1023), \
         found no token with that id"
    );
    let ordinary = refusal(|value| value["added_tokens"][0]["special"] = json!(false));
    assert!(ordinary.ends_with("found the ordinary token `<|endoftext|>`"), "{ordinary}");
}

#[test]
fn what_is_no_tokenizer_is_refused() {
    let error = |bytes: &[u8]| Tokenizer::parse::<Tiny>("t", bytes).err().unwrap().to_string();
    assert!(error(b"").starts_with("t: expected a byte-level BPE tokenizer, found: "));
    assert!(error(b"{}").starts_with("t: expected a byte-level BPE tokenizer, found: "));
    assert!(error(b"\xff\xfe").starts_with("t: expected a byte-level BPE tokenizer, found: "));
    // Cut inside a part for whose damage the library panics.
    let decoder = FILE.windows(9).position(|window| window == b"\"decoder\"").unwrap();
    assert!(error(&FILE[..decoder + 20]).contains("EOF while parsing"));
    let prefix = refusal(|value| value["model"]["continuing_subword_prefix"] = json!("##"));
    assert_eq!(prefix, "t: expected a byte-level BPE tokenizer, found: a model that is not plain BPE");
    let normalizer = refusal(|value| value["normalizer"] = json!(null));
    assert!(normalizer.ends_with("a normalizer that is not NFC"), "{normalizer}");
    let decoder = refusal(|value| value["decoder"] = json!({"type": "Fuse"}));
    assert_eq!(decoder, "t: expected a byte-level BPE tokenizer, found: a decoder that is not byte-level");
}

proptest! {
    #[test]
    fn pieces_are_the_whole(ids in prop::collection::vec(0u32..1024, 0..40)) {
        let mut stream = TOKENIZER.stream();
        let mut pieces: Vec<String> = ids.iter().map(|&id| stream.push(id)).collect();
        pieces.push(stream.finish());
        let whole = LIBRARY.decode(&ids, true).unwrap();
        prop_assert_eq!(pieces.concat(), whole.clone());
        prop_assert_eq!(TOKENIZER.decode(&ids), whole);
    }

    #[test]
    fn any_normal_text_comes_back(text in "\\PC{0,40}") {
        // The pipeline normalises to NFC, so only text that is NFC already comes back as it was.
        let ids = TOKENIZER.encode(&text).unwrap();
        let once = TOKENIZER.decode(&ids);
        prop_assert_eq!(TOKENIZER.decode(&TOKENIZER.encode(&once).unwrap()), once);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn damage_never_panics(at in 0..FILE.len(), byte: u8, cut in 0usize..3) {
        let mut bytes = FILE.to_vec();
        bytes[at] = byte;
        if cut == 0 {
            bytes.truncate(at);
        }
        if let Ok(tokenizer) = Tokenizer::parse::<Tiny>("t", &bytes) {
            let ids = tokenizer.encode("Alice was beginning").unwrap_or_default();
            tokenizer.decode(&ids);
        }
    }
}

/// The real vocabulary, less the tokens that no text of the goldens can come to.
mod real {
    use super::*;

    const TEXTS: &str = include_str!("../../goldens/tokenizer/texts.json");
    const PROMPTS: &str = include_str!("../../goldens/tokenizer/prompts.json");
    const REDUCED: &[u8] = include_bytes!("../../goldens/tokenizer/tokenizer.json");

    static TOKENIZER: LazyLock<Tokenizer> =
        LazyLock::new(|| Tokenizer::of_any_model("reduced", REDUCED).unwrap());

    fn cases(name: &str) -> Vec<Value> {
        let texts: Value = serde_json::from_str(TEXTS).unwrap();
        texts[name].as_array().unwrap().clone()
    }

    fn ids(value: &Value) -> Vec<u32> {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn texts_have_the_references_ids() {
        let prompts: Vec<Value> = serde_json::from_str(PROMPTS).unwrap();
        assert_eq!(prompts.len(), 16);
        let cases = [cases("texts"), prompts].concat();
        assert!(cases.len() >= 60 + 16);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            assert_eq!(TOKENIZER.encode(text).unwrap(), ids(&case["ids"]), "{text:?}");
        }
        let france = TOKENIZER.encode("The capital of France is").unwrap();
        assert_eq!(france, [760, 6511, 314, 9338, 369]);
    }

    /// Where the two references part, the one that the model was trained with.
    #[test]
    fn normalization_stops_at_special_tokens() {
        let cases = cases("apart");
        assert_eq!(cases.len(), 1);
        for case in cases {
            let found = TOKENIZER.encode(case["text"].as_str().unwrap()).unwrap();
            assert_eq!(found, ids(&case["tokenizers"]));
            assert_ne!(found, ids(&case["ids"]));
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_as_in_python() {
        let cases = cases("bytes");
        assert!(cases.len() >= 9);
        for case in cases {
            let hex = case["hex"].as_str().unwrap();
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            assert_eq!(TOKENIZER.encode_bytes(&bytes).unwrap(), ids(&case["ids"]), "{hex}");
        }
    }

    #[test]
    fn ids_whose_bytes_are_no_text_decode_as_in_python() {
        let cases = cases("decode");
        let replaced = cases.iter().filter(|case| case["text"].as_str().unwrap().contains('\u{fffd}'));
        assert!(cases.len() >= 60 && replaced.count() >= 20);
        for case in cases {
            let ids = ids(&case["ids"]);
            let mut stream = TOKENIZER.stream_with_special();
            let mut pieces: String = ids.iter().map(|&id| stream.push(id)).collect();
            pieces.push_str(&stream.finish());
            assert_eq!(pieces, case["text"].as_str().unwrap(), "{ids:?}");
        }
    }

    #[test]
    fn it_is_no_vocabulary_of_a_model() {
        let error = Tokenizer::parse::<qwen35_model::Qwen35_0_8B>("t", REDUCED).err().unwrap().to_string();
        assert!(error.contains("at least 223488 tokens for 248320 rows"), "{error}");
    }

    /// The library numbers added tokens by itself when the vocabulary lacks them.
    #[test]
    fn an_added_token_that_would_get_another_id_is_refused() {
        let mut value: Value = serde_json::from_slice(REDUCED).unwrap();
        value["model"]["vocab"].as_object_mut().unwrap().remove("<|im_end|>").unwrap();
        let error = Tokenizer::of_any_model("t", value.to_string().as_bytes()).err().unwrap().to_string();
        assert!(error.contains("`<|im_end|>` with the id 248046"), "{error}");
    }
}
