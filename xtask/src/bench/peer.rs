//! Another program on the same weights.

use std::process::{Command, Stdio};
use std::str::FromStr;

/// A program to run in turn with ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    name: String,
    command: String,
}

/// What a peer said of its speed, in tokens a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Speeds {
    /// Of a prompt.
    pub prefill: Option<f64>,
    /// Of one token after the other.
    pub decode: Option<f64>,
}

/// A peer that is none, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Not of the form.
    #[error("expected NAME=COMMAND, found `{0}`")]
    Form(String),
    /// The shell did not start.
    #[error("peer {name}: cannot start `{command}`: {source}")]
    Start {
        /// Its name.
        name: String,
        /// Its command.
        command: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It ended badly.
    #[error("peer {name}: `{command}` failed with {status}")]
    Failed {
        /// Its name.
        name: String,
        /// Its command.
        command: String,
        /// How it ended.
        status: String,
    },
    /// It said nothing of its speed.
    #[error(
        "peer {name}: expected a line like `decode 8.3 tok/s` or llama-bench's JSON lines, found {found}"
    )]
    Silent {
        /// Its name.
        name: String,
        /// What it printed last.
        found: String,
    },
}

impl FromStr for Peer {
    type Err = PeerError;

    fn from_str(text: &str) -> Result<Self, PeerError> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && !command.is_empty() => {
                Ok(Self { name: name.to_owned(), command: command.to_owned() })
            }
            _ => Err(PeerError::Form(text.to_owned())),
        }
    }
}

impl Peer {
    /// What it is called in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it to its end and reads its speeds off what it prints on standard output. Its standard
    /// error is not looked at.
    pub fn run(&self) -> Result<Speeds, PeerError> {
        let (name, command) = (self.name.clone(), self.command.clone());
        let output = Command::new("sh")
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|source| PeerError::Start { name: name.clone(), command: command.clone(), source })?;
        if !output.status.success() {
            return Err(PeerError::Failed { name, command, status: output.status.to_string() });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let speeds = speeds(&text);
        if speeds == Speeds::default() {
            let found = text.lines().next_back().map_or("nothing".to_owned(), |line| format!("`{line}`"));
            return Err(PeerError::Silent { name, found });
        }
        Ok(speeds)
    }
}

/// The last speed of each kind.
fn speeds(text: &str) -> Speeds {
    let mut speeds = Speeds::default();
    for line in text.lines() {
        let found = json_line(line).unwrap_or_else(|| plain_line(line));
        speeds.prefill = found.prefill.or(speeds.prefill);
        speeds.decode = found.decode.or(speeds.decode);
    }
    speeds
}

/// A line of llama-bench: a test with a prompt, or one with generated tokens, and its mean speed.
fn json_line(line: &str) -> Option<Speeds> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let count = |key: &str| value.get(key).and_then(serde_json::Value::as_u64);
    let speed = value.get("avg_ts")?.as_f64()?;
    match (count("n_prompt")?, count("n_gen")?) {
        (1.., 0) => Some(Speeds { prefill: Some(speed), decode: None }),
        (0, 1..) => Some(Speeds { prefill: None, decode: Some(speed) }),
        _ => None,
    }
}

/// `prefill 72.1 tok/s` or `decode 8.3 tok/s`, with anything between the word and the number.
fn plain_line(line: &str) -> Speeds {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "tok/s");
    let speed = at.and_then(|at| words.get(at.checked_sub(1)?)?.parse::<f64>().ok());
    match words.first() {
        Some(&"prefill") => Speeds { prefill: speed, decode: None },
        Some(&"decode") => Speeds { prefill: None, decode: speed },
        _ => Speeds::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let both = Speeds { prefill: Some(72.1), decode: Some(8.3) };
        assert_eq!(speeds("load 3 s\nprefill     512 tokens  72.1 tok/s\ndecode 8.3 tok/s\n"), both);
        let json = r#"{"n_prompt": 512, "n_gen": 0, "avg_ts": 72.1}
            {"n_prompt": 0, "n_gen": 32, "avg_ts": 8.3}"#;
        assert_eq!(speeds(json), both);
        assert_eq!(speeds(r#"{"n_prompt": 512, "n_gen": 32, "avg_ts": 1.0}"#), Speeds::default());
    }

    #[test]
    fn a_peer_that_is_none_is_an_error() {
        assert_eq!("x".parse::<Peer>().unwrap_err().to_string(), "expected NAME=COMMAND, found `x`");
        let run =
            |command: &str| format!("p={command}").parse::<Peer>().unwrap().run().unwrap_err().to_string();
        assert_eq!(run("exit 3"), "peer p: `exit 3` failed with exit status: 3");
        assert!(run("echo hello").ends_with("JSON lines, found `hello`"));
        assert!(run("true").ends_with("found nothing"));
    }
}
