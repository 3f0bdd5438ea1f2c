//! Chat templates: the goldens of transformers, and templates that are none.

#![cfg(test)]

use minijinja::Value;
use qwen35_model::chat::{ChatTemplate, Clock, Request, TemplateError, TemplateSource};
use std::collections::BTreeMap;

const TEMPLATE: &str = include_str!("../../goldens/chat/template.jinja");
const CONVERSATIONS: &str = include_str!("../../goldens/chat/conversations.json");
const MANIFEST: &str = include_str!("../../goldens/chat/manifest.json");

fn compile(text: &str, clock: Clock) -> Result<ChatTemplate, TemplateError> {
    let source = TemplateSource { place: "t".to_owned(), text: text.to_owned() };
    let tokens = [("eos_token".to_owned(), "<|im_end|>".to_owned())];
    ChatTemplate::compile(&source, BTreeMap::from(tokens), clock)
}

/// Everything but the recorded outcome.
fn request(mut case: BTreeMap<String, Value>) -> Request {
    for outcome in ["name", "text", "exception"] {
        case.remove(outcome);
    }
    Request {
        messages: case.remove("messages").unwrap(),
        tools: case.remove("tools"),
        add_generation_prompt: case.remove("add_generation_prompt").is_some_and(|value| value.is_true()),
        variables: case,
    }
}

#[test]
fn conversations_are_rendered_as_transformers_does() {
    let manifest: serde_json::Value = serde_json::from_str(MANIFEST).unwrap();
    let clock = Clock::fixed(manifest["now"]["seconds"].as_i64().unwrap());
    let template = compile(TEMPLATE, clock).unwrap();
    let cases: Vec<BTreeMap<String, Value>> = serde_json::from_str(CONVERSATIONS).unwrap();
    let [mut rendered, mut refused] = [0, 0];
    for case in cases {
        let name = case["name"].to_string();
        let (text, exception) = (case.get("text").cloned(), case.get("exception").cloned());
        match (template.render(&request(case)), text, exception) {
            (Ok(found), Some(expected), None) => {
                assert_eq!(found, expected.as_str().unwrap(), "{name}");
                rendered += 1;
            }
            (Err(TemplateError::Raised { message, .. }), None, Some(expected)) => {
                assert_eq!(message, expected.as_str().unwrap(), "{name}");
                refused += 1;
            }
            (found, text, exception) => panic!("{name}: expected {text:?} or {exception:?}, found {found:?}"),
        }
    }
    let counts = &manifest["counts"];
    assert_eq!((counts["rendered"].as_u64(), counts["refused"].as_u64()), (Some(rendered), Some(refused)));
}

#[test]
fn errors_say_where_and_why() {
    let error = |text: &str| match compile(text, Clock::local()) {
        Ok(template) => template.render(&Request::default()).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("a\n{% if x %}\n{% endfor %}"),
        "t, line 3: expected a Jinja template, found: syntax error: unknown statement endfor"
    );
    assert_eq!(
        error("\n\n{{ raise_exception('No.') }}"),
        "t, line 3: the template refuses this conversation: No."
    );
    assert_eq!(
        error("{% macro m(x) %}\n{{ raise_exception('Not ' ~ x) }}\n{% endmacro %}\n\n{{ m(1) }}"),
        "t, line 2: the template refuses this conversation: Not 1"
    );
    assert_eq!(
        error("\n{{ nowhere.more }}"),
        "t, line 2: the template failed: undefined value: `nowhere` is undefined"
    );
    assert_eq!(error("{{ strftime_now('%Q') }}").lines().count(), 1);
    assert!(error("{% include 'other' %}").starts_with("t, line 1: the template failed: template not found"));
}

#[test]
fn messages_that_are_none_are_refused() {
    let template = compile("{{ messages | length }}", Clock::local()).unwrap();
    let render = |messages: Value| template.render(&Request { messages, ..Request::default() });
    assert_eq!(render(Value::from(Vec::<Value>::new())).unwrap(), "0");
    let error = render(Value::from(vec![Value::from("hello")])).unwrap_err().to_string();
    assert!(error.ends_with("expected an object as a message, found a string"), "{error}");
    assert!(render(Value::from(1)).is_err());
}

#[test]
fn special_tokens_can_be_read_and_named_anew() {
    let template = compile("{{ eos_token }}{{ bos_token }}", Clock::local()).unwrap();
    let mut request = Request { messages: Value::from(Vec::<Value>::new()), ..Request::default() };
    assert_eq!(template.render(&request).unwrap(), "<|im_end|>");
    request.variables.insert("eos_token".to_owned(), Value::from("</s>"));
    assert_eq!(template.render(&request).unwrap(), "</s>");
}
