//! The messages of a conversation.

use minijinja::Value;

/// What opens and closes a thought, in the text of a reply.
const THINK: [&str; 2] = ["<think>", "</think>"];

/// One message, as templates read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: &'static str,
    /// What is said.
    pub content: String,
    /// What an assistant thought before it spoke.
    pub reasoning_content: Option<String>,
}

impl Message {
    fn to_value(&self) -> Value {
        let reasoning = self.reasoning_content.as_ref().map(|text| ("reasoning_content", Value::from(text)));
        let pairs = [("role", Value::from(self.role)), ("content", Value::from(&self.content))];
        Value::from_pairs(pairs.into_iter().chain(reasoning))
    }
}

/// A reply in its two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The thought, if there was one.
    pub reasoning: Option<String>,
    /// What was said.
    pub content: String,
}

impl Reply {
    /// Divides a generated text where the thought ends. `opened` says that the prompt ended with an
    /// open thought: then the text begins inside of it, and is all thought if it never ends.
    #[must_use]
    pub fn parse(text: &str, opened: bool) -> Self {
        let [open, close] = THINK;
        let own = text.trim_start().strip_prefix(open);
        let begins_inside = opened || own.is_some();
        let inner = own.unwrap_or(text);
        match inner.split_once(close) {
            Some((thought, said)) if begins_inside => Self {
                reasoning: Some(thought.trim_matches('\n').to_owned()),
                content: said.trim_start_matches('\n').to_owned(),
            },
            None if begins_inside => {
                Self { reasoning: Some(inner.trim_matches('\n').to_owned()), content: String::new() }
            }
            _ => Self { reasoning: None, content: text.to_owned() },
        }
    }

    /// Whether a prompt ends with an open thought.
    #[must_use]
    pub fn is_opened_by(prompt: &str) -> bool {
        prompt.trim_end().ends_with(THINK[0])
    }
}

/// The messages so far.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// 1 if the first message is the system's, which outlives a reset.
    system: usize,
    messages: Vec<Message>,
}

impl Conversation {
    /// A conversation that begins with a system message, if one is given.
    #[must_use]
    pub fn new(system: Option<&str>) -> Self {
        let message = system.map(|text| message("system", text.to_owned()));
        Self { system: usize::from(message.is_some()), messages: message.into_iter().collect() }
    }

    /// What the user says next.
    pub fn user(&mut self, text: impl Into<String>) {
        self.messages.push(message("user", text.into()));
    }

    /// What the assistant replied.
    pub fn assistant(&mut self, reply: Reply) {
        let Reply { reasoning, content } = reply;
        self.messages.push(Message { reasoning_content: reasoning, ..message("assistant", content) });
    }

    /// Takes the last message back.
    pub fn take_back(&mut self) {
        if self.messages.len() > self.system {
            self.messages.pop();
        }
    }

    /// Forgets all but the system message.
    pub fn reset(&mut self) {
        self.messages.truncate(self.system);
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The messages as a template reads them.
    pub fn to_value(&self) -> Value {
        self.messages.iter().map(Message::to_value).collect()
    }
}

fn message(role: &'static str, content: String) -> Message {
    Message { role, content, reasoning_content: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(reasoning: Option<&str>, content: &str) -> Reply {
        Reply { reasoning: reasoning.map(str::to_owned), content: content.to_owned() }
    }

    #[test]
    fn a_reply_is_divided_where_the_thought_ends() {
        assert_eq!(Reply::parse("a\nb\n</think>\n\nc\n", true), reply(Some("a\nb"), "c\n"));
        assert_eq!(Reply::parse("<think>\na\n</think>\n\nc", false), reply(Some("a"), "c"));
        assert_eq!(Reply::parse("cut off", true), reply(Some("cut off"), ""));
        assert_eq!(Reply::parse("no thought", false), reply(None, "no thought"));
        // A text about the tag is no thought.
        assert_eq!(Reply::parse("`</think>` ends one", false), reply(None, "`</think>` ends one"));
        assert!(Reply::is_opened_by("<|im_start|>assistant\n<think>\n"));
        assert!(!Reply::is_opened_by("<think>\n\n</think>\n\n"));
    }

    #[test]
    fn a_reset_keeps_the_system_message() {
        let mut conversation = Conversation::new(Some("Be brief."));
        conversation.user("Hello");
        conversation.assistant(reply(Some("They greet."), "Hello."));
        assert_eq!(conversation.messages().len(), 3);
        conversation.reset();
        conversation.take_back();
        assert_eq!(conversation.messages().len(), 1);
        let mut bare = Conversation::new(None);
        bare.user("Hello");
        bare.take_back();
        assert!(bare.messages().is_empty());
    }
}
