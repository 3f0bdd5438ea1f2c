//! A chat template, compiled.

use super::clock::Clock;
use super::environment::{Raised, environment, without_generation_tags};
use super::source::TemplateSource;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, Value};
use std::collections::BTreeMap;

/// The one template of the environment.
const NAME: &str = "chat";

/// The names under which a message's reasoning is passed; templates read the first.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Why a template did not compile or render.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// It is no template.
    #[error("{place}, line {line}: expected a Jinja template, found: {reason}")]
    Syntax {
        /// Where the template is.
        place: String,
        /// Its line, from 1.
        line: usize,
        /// What the compiler said.
        reason: String,
    },
    /// The template refuses the conversation.
    #[error("{place}, line {line}: the template refuses this conversation: {message}")]
    Raised {
        /// Where the template is.
        place: String,
        /// The line of its `raise_exception`, from 1.
        line: usize,
        /// The message given there.
        message: String,
    },
    /// It failed.
    #[error("{place}, line {line}: the template failed: {reason}")]
    Render {
        /// Where the template is.
        place: String,
        /// The line, from 1.
        line: usize,
        /// What failed.
        reason: String,
    },
}

/// What is to be rendered: JSON values, as in the arguments of transformers'
/// `apply_chat_template`.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The messages: a list of objects, with `role` and `content` at least. Keys whose value is null
    /// are left out, and reasoning is passed under all of its names.
    pub messages: Value,
    /// JSON schemas of functions that the assistant may call; none is not the same as an empty list.
    pub tools: Option<Value>,
    /// Whether the text ends where the assistant begins to speak.
    pub add_generation_prompt: bool,
    /// What else the template may read, as `enable_thinking`. These come before the special tokens.
    pub variables: BTreeMap<String, Value>,
}

/// A chat template, compiled and ready to render.
pub struct ChatTemplate {
    place: String,
    environment: Environment<'static>,
    special_tokens: BTreeMap<String, String>,
}

impl ChatTemplate {
    /// Compiles a template. It can read `special_tokens` by their roles, as `eos_token`, and the
    /// time from `clock`.
    pub fn compile(
        source: &TemplateSource,
        special_tokens: BTreeMap<String, String>,
        clock: Clock,
    ) -> Result<Self, TemplateError> {
        let place = source.place.clone();
        let syntax = |error: Error| TemplateError::Syntax {
            place: place.clone(),
            line: error.line().unwrap_or(1),
            reason: reason(&error),
        };
        let mut environment = environment(clock).map_err(syntax)?;
        let text = without_generation_tags(&source.text);
        environment.add_template_owned(NAME, text).map_err(syntax)?;
        Ok(Self { place, environment, special_tokens })
    }

    /// The text of a conversation.
    pub fn render(&self, request: &Request) -> Result<String, TemplateError> {
        let failed = |error: Error| self.failed(&error);
        let mut context: BTreeMap<&str, Value> = BTreeMap::new();
        context.extend(self.special_tokens.iter().map(|(role, token)| (role.as_str(), Value::from(token))));
        context.extend(request.variables.iter().map(|(name, value)| (name.as_str(), value.clone())));
        context.insert("messages", normal_messages(&request.messages).map_err(failed)?);
        context.insert("tools", request.tools.clone().unwrap_or(Value::from(())));
        context.insert("documents", Value::from(()));
        context.insert("add_generation_prompt", Value::from(request.add_generation_prompt));
        let context = Value::from_pairs(context);
        self.environment.get_template(NAME).and_then(|template| template.render(context)).map_err(failed)
    }

    /// The innermost cause, which has the line where it happened.
    fn failed(&self, error: &Error) -> TemplateError {
        let place = self.place.clone();
        let mut line = error.line();
        let mut inner = error;
        let mut cause = std::error::Error::source(error);
        while let Some(this) = cause {
            if let Some(Raised(message)) = this.downcast_ref() {
                return TemplateError::Raised { place, line: line.unwrap_or(1), message: message.clone() };
            }
            if let Some(error) = this.downcast_ref::<Error>() {
                inner = error;
                line = error.line().or(line);
            }
            cause = this.source();
        }
        TemplateError::Render { place, line: line.unwrap_or(1), reason: reason(inner) }
    }
}

/// What an error says, without the place, which is said elsewhere.
fn reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// The messages as transformers hands them to a template: without keys whose value is null, and
/// with the reasoning under `reasoning_content` and `thinking`, whichever name it came by.
fn normal_messages(messages: &Value) -> Result<Value, Error> {
    messages.try_iter()?.checked().map(|message| normal_message(&message?)).collect()
}

fn normal_message(message: &Value) -> Result<Value, Error> {
    if message.kind() != ValueKind::Map {
        let what = format!("expected an object as a message, found a {}", message.kind());
        return Err(Error::new(minijinja::ErrorKind::InvalidOperation, what));
    }
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for key in message.try_iter()?.checked() {
        let key = key?;
        let value = message.get_item(&key)?;
        if !value.is_none() {
            pairs.push((key, value));
        }
    }
    let find = |name: &str| pairs.iter().position(|(key, _)| key.as_str() == Some(name));
    if let Some(reasoning) = REASONING.iter().find_map(|name| find(name)).map(|at| pairs[at].1.clone()) {
        match find(REASONING[0]) {
            Some(at) => pairs[at].1 = reasoning.clone(),
            None => pairs.push((Value::from(REASONING[0]), reasoning.clone())),
        }
        // This one comes first, wherever it was.
        let alias = pairs.iter().position(|(key, _)| key.as_str() == Some(REASONING[1]));
        let alias = alias.map_or_else(|| (Value::from(REASONING[1]), reasoning), |at| pairs.remove(at));
        pairs.insert(0, alias);
    }
    Ok(Value::from_pairs(pairs))
}
