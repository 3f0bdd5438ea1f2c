//! Conversations: from messages to the text that the model was trained to read, and back.
//!
//! ```text
//! TokenizerConfig::of(&checkpoint)      special tokens by role      checkpoint::tokenizer_config
//! ChatTemplate::of(&checkpoint, ..)     found and compiled          template, source
//!     .render(&Request)                 messages to text            environment, python, clock
//! Conversation                          the messages so far         conversation
//! ```
//!
//! A chat template is a Jinja program that comes with the checkpoint and was written for Python's
//! `jinja2` as Hugging Face transformers sets it up. [`ChatTemplate`] sets `minijinja` up to the same
//! effect: the same functions, filters and white space, and Python's ways where a template can see
//! them (JSON, numbers, string methods). Rendering is compared byte for byte with transformers'
//! in this crate's tests.

mod clock;
mod conversation;
mod environment;
mod python;
mod source;
mod stops;
mod template;

pub use clock::Clock;
pub use conversation::{Conversation, Message, Reply};
pub use source::{TemplateSource, find};
pub use stops::stop_tokens;
pub use template::{ChatTemplate, Request, TemplateError};
