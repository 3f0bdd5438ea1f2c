//! `cargo xtask tokenizer`: the whole vocabulary against the ids of the reference.
//!
//! The goldens have a tokenizer.json with those tokens alone that their texts can come to, for tests
//! that need nothing else. This command runs the same cases on a whole one, which
//! `goldens/scripts/tokenizer.py convert` makes, or on a published checkpoint's.

use qwen35_model::tokenizer::{Tokenizer, TokenizerError};
use serde::Deserialize;
use std::fs;
use std::path::PathBuf;
use thiserror::Error;

/// What can be said on the command line.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A tokenizer.json of the whole vocabulary.
    #[arg(long, value_name = "FILE")]
    vocab: PathBuf,
    /// The folder with texts.json and prompts.json.
    #[arg(long, default_value = "goldens/tokenizer")]
    golden: PathBuf,
}

/// Why nothing was compared.
#[derive(Debug, Error)]
pub enum Failure {
    /// A file that cannot be read.
    #[error("{}: expected a readable file, found: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file of the goldens that is none.
    #[error("{}: expected cases of a tokenizer, found: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: serde_json::Error,
    },
    /// The vocabulary was refused, or a text could not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// texts.json.
#[derive(Deserialize)]
struct Golden {
    texts: Vec<Text>,
    apart: Vec<Apart>,
    bytes: Vec<Bytes>,
    decode: Vec<Text>,
}

/// A text and its ids.
#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
}

/// A text for which the references differ; these are the ids of the model's own.
#[derive(Deserialize)]
struct Apart {
    text: String,
    tokenizers: Vec<u32>,
}

/// Bytes that are no UTF-8, in hexadecimal.
#[derive(Deserialize)]
struct Bytes {
    hex: String,
    ids: Vec<u32>,
}

/// Compares, prints a line a kind of case and one for each difference, and says whether there is none.
pub fn command(arguments: &Arguments) -> Result<bool, Failure> {
    let place = arguments.vocab.display().to_string();
    let tokenizer = Tokenizer::of_any_model(&place, &read(&arguments.vocab)?)?;
    let Golden { texts, apart, bytes, decode } = parse(arguments.golden.join("texts.json"))?;
    let prompts: Vec<Text> = parse(arguments.golden.join("prompts.json"))?;

    let mut report = Report { equal: true };
    let encoded =
        |text: &Text| Ok((format!("{:?}", text.text), tokenizer.encode(&text.text)?, text.ids.clone()));
    report.compare("texts", texts.iter().map(encoded))?;
    report.compare("prompts", prompts.iter().map(encoded))?;
    let encoded = |text: &Apart| {
        Ok((format!("{:?}", text.text), tokenizer.encode(&text.text)?, text.tokenizers.clone()))
    };
    report.compare("texts with marks after special tokens", apart.iter().map(encoded))?;
    let replaced =
        |case: &Bytes| Ok((case.hex.clone(), tokenizer.encode_bytes(&unhex(&case.hex))?, case.ids.clone()));
    report.compare("byte strings that are not UTF-8", bytes.iter().map(replaced))?;
    let decoded = |case: &Text| {
        let mut stream = tokenizer.stream_with_special();
        let mut text: String = case.ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        Ok((format!("{:?}", case.ids), text, case.text.clone()))
    };
    report.compare("decoded id sequences", decode.iter().map(decoded))?;
    Ok(report.equal)
}

/// The comparison so far.
struct Report {
    equal: bool,
}

impl Report {
    /// Cases are what they are named by, what was found and what was expected.
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        kind: &str,
        cases: impl Iterator<Item = Result<(String, T, T), TokenizerError>>,
    ) -> Result<(), TokenizerError> {
        let [mut all, mut equal] = [0, 0];
        for case in cases {
            let (name, found, expected) = case?;
            all += 1;
            if found == expected {
                equal += 1;
            } else {
                println!("{kind}: {name}: expected {expected:?}, found {found:?}");
            }
        }
        self.equal &= equal == all && all > 0;
        println!("{kind}: {equal} of {all} as the reference");
        Ok(())
    }
}

/// The bytes that hexadecimal digits stand for, as far as they are such.
fn unhex(digits: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map_while(pair).collect()
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|reason| Failure::Io { path: path.clone(), reason })
}

fn parse<T: for<'de> Deserialize<'de>>(path: PathBuf) -> Result<T, Failure> {
    serde_json::from_slice(&read(&path)?).map_err(|reason| Failure::Format { path, reason })
}
