//! `minijinja` set up as transformers sets up `jinja2`.
//!
//! | transformers | here |
//! |---|---|
//! | `trim_blocks`, `lstrip_blocks`; loop controls; no auto-escaping | the same settings |
//! | sandbox: no file, no attribute of the interpreter | minijinja has neither; loops run out of [`FUEL`] |
//! | `raise_exception`, `strftime_now`, `tojson` | functions and a filter of this module |
//! | `namespace`, `dict`, `range` | minijinja's own |
//! | methods of `str`, `dict` and `list` | `minijinja-contrib`'s, and this module's where those differ |
//! | `{% generation %}`, which marks tokens for training | [`without_generation_tags`]: a scope and nothing else |
//!
//! Known differences: a float from 1e16 or below 1e-4 is Python's in `{{ }}`, `| string` and `| tojson`,
//! but not where `~` joins it to a text or a list prints it; and a loop over none runs no time, where
//! Python's fails.

use super::clock::Clock;
use super::python::{self, Json};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind, from_args};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat;

/// Steps that a template may take: a few per character of any conversation that a context holds, and
/// far from hanging.
const FUEL: u64 = 50_000_000;

/// The message of a template's `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

/// An environment without templates.
pub(super) fn environment(clock: Clock) -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(FUEL));
    env.set_formatter(write_value);
    env.set_unknown_method_callback(method);

    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", move |format: &str| {
        clock.strftime(format).map_err(|found| {
            let what = format!("strftime_now: expected directives of strftime, found {found}");
            Error::new(ErrorKind::InvalidOperation, what)
        })
    });
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: &Value| {
        if value.kind() == ValueKind::String {
            return value.clone();
        }
        Value::from(python::float_str(value).unwrap_or_else(|| value.to_string()))
    });
    env.add_filter("trim", |value: &Value, chars: Option<&str>| strip(&value.to_string(), chars, true, true));
    // In Python everything with a length and an index is a sequence, and None cannot be iterated.
    env.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    env.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    Ok(env)
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let raised = Raised(message.to_string());
    Err(Error::new(ErrorKind::InvalidOperation, raised.to_string()).with_source(raised))
}

/// `{{ value }}`: as minijinja, floats as Python.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match python::float_str(value) {
        Some(text) => out.write_str(&text).map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}

/// transformers' `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
fn tojson(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const NAMES: [&str; 4] = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let argument = |index: usize| -> Result<Option<Value>, Error> {
        let named: Option<Value> = named.get(NAMES[index])?;
        Ok(named.or_else(|| positional.get(index).cloned()).filter(|value| !value.is_none()))
    };
    let is_set = |index: usize| Ok::<_, Error>(argument(index)?.is_some_and(|value| value.is_true()));
    if positional.len() > NAMES.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let indent = match argument(1)? {
        None => None,
        // A text is repeated as it is.
        Some(text) if text.as_str().is_some() => text.as_str().map(str::to_owned),
        Some(width) => Some(" ".repeat(indent_width(&width)?)),
    };
    let separators = match argument(2)? {
        Some(pair) => (text_at(&pair, 0)?, text_at(&pair, 1)?),
        // With lines of their own, items need no space between them.
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let json = Json { ensure_ascii: is_set(0)?, indent, separators, sort_keys: is_set(3)? };
    named.assert_all_used()?;
    json.dumps(value)
}

/// The most that a level is indented by; what is more is no indentation but a mistake.
const WIDEST_INDENT: usize = 64;

fn indent_width(width: &Value) -> Result<usize, Error> {
    // Python takes a negative width for none.
    let found = if width.as_i64().is_some_and(|width| width < 0) { Some(0) } else { width.as_usize() };
    found.filter(|width| *width <= WIDEST_INDENT).ok_or_else(|| {
        let what = format!("tojson: expected an indent of at most {WIDEST_INDENT}, found {width}");
        Error::new(ErrorKind::InvalidOperation, what)
    })
}

fn text_at(pair: &Value, index: usize) -> Result<String, Error> {
    let item = pair.get_item(&Value::from(index))?;
    item.as_str().map(str::to_owned).ok_or_else(|| {
        let what = format!("tojson: expected two texts as separators, found {pair}");
        Error::new(ErrorKind::InvalidOperation, what)
    })
}

/// Methods of strings of which `minijinja-contrib` has none, or one that differs from Python's on
/// rare characters; all other methods are its.
fn method(state: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return pycompat::unknown_method_callback(state, value, name, args);
    };
    let both = |(head, tail): (&str, &str)| [Value::from(head), Value::from(tail)];
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            Ok(strip(text, chars, name != "rstrip", name != "lstrip"))
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            Ok(python::split_lines(text, keep_ends.unwrap_or(false)).into_iter().map(Value::from).collect())
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let [head, tail] = both(text.split_once(separator).unwrap_or((text, "")));
            let middle = if text.contains(separator) { separator } else { "" };
            Ok(Value::from(vec![head, Value::from(middle), tail]))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let [head, tail] = both(text.rsplit_once(separator).unwrap_or(("", text)));
            let middle = if text.contains(separator) { separator } else { "" };
            Ok(Value::from(vec![head, Value::from(middle), tail]))
        }
        "rsplit" => {
            let (separator, most): (&str, Option<i64>) = from_args(args)?;
            let most = most.and_then(|most| usize::try_from(most).ok()).map_or(usize::MAX, |most| most + 1);
            let mut parts: Vec<Value> = text.rsplitn(most, separator).map(Value::from).collect();
            parts.reverse();
            Ok(Value::from(parts))
        }
        "split" | "replace" | "find" | "rfind" | "count"
            if args.first().and_then(Value::as_str) == Some("") =>
        {
            let what = format!("{name}: expected a text to look for, found an empty one");
            Err(Error::new(ErrorKind::InvalidOperation, what))
        }
        _ => pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn strip(text: &str, chars: Option<&str>, at_start: bool, at_end: bool) -> Value {
    let goes = |letter: char| chars.map_or_else(|| python::is_space(letter), |chars| chars.contains(letter));
    let text = if at_start { text.trim_start_matches(goes) } else { text };
    Value::from(if at_end { text.trim_end_matches(goes) } else { text })
}

/// The template with `{% generation %}` and `{% endgeneration %}` as tags of a scope, which is what
/// they are when nobody asks which tokens the assistant wrote. Lines stay where they are.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        match generation_tag(tag) {
            Some((opens, closes, name)) => {
                out.push_str(&format!("{{%{opens} {name} {closes}%}}"));
            }
            None => out.push_str(tag),
        }
        rest = after;
    }
    out + rest
}

/// White-space signs of a generation tag, and the tag to put in its place.
fn generation_tag(tag: &str) -> Option<(&str, &str, &'static str)> {
    let inner = tag.strip_prefix("{%")?.strip_suffix("%}")?;
    let word = inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
    let name = match word {
        "generation" => "with",
        "endgeneration" => "endwith",
        _ => return None,
    };
    let opens = &inner[..inner.len() - inner.trim_start_matches(['-', '+']).len()];
    let closes = &inner[inner.trim_end_matches(['-', '+']).len()..];
    Some((opens, closes, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, context: impl Into<Value>) -> Result<String, Error> {
        environment(Clock::fixed(0)).unwrap().render_str(&without_generation_tags(source), context)
    }

    /// What Python's jinja2, set up as transformers does it, renders for the same expressions.
    #[test]
    fn expressions_are_pythons() {
        for (expression, expected) in [
            ("[1, 'a', none, true, 2.0] | tojson", r#"[1, "a", null, true, 2.0]"#),
            ("{'b': 1, 'a': [], 'c': {}} | tojson", r#"{"b": 1, "a": [], "c": {}}"#),
            ("{'b': 1, 'a': 2} | tojson(sort_keys=true)", r#"{"a": 2, "b": 1}"#),
            ("{'b': [1, 2]} | tojson(indent=2)", "{\n  \"b\": [\n    1,\n    2\n  ]\n}"),
            ("[1, 2] | tojson(separators=(',', ':'))", "[1,2]"),
            (r#""<a href='x'>&\"\\\u00e9</a>" | tojson"#, r#""<a href='x'>&\"\\é</a>""#),
            ("'é' | tojson(ensure_ascii=true)", r#""\u00e9""#),
            ("[1e16, 0.00001, 1e300] | tojson", "[1e+16, 1e-05, 1e+300]"),
            ("1e16 | string", "1e+16"),
            ("0.00001", "1e-05"),
            ("true | string", "True"),
            ("'a' ~ none ~ true", "aNoneTrue"),
            ("'  a\\x1c' | trim", "a"),
            ("'xxaxx'.strip('x') ~ 'xa'.lstrip('x') ~ 'ax'.rstrip('x')", "aaa"),
            ("'a,b,c'.split(',')[-1] ~ 'a,b,c'.split(',', 1)[1]", "cb,c"),
            ("'a,b,c'.rsplit(',', 1)[0]", "a,b"),
            ("'a=b=c'.partition('=')[2] ~ 'a=b=c'.rpartition('=')[0]", "b=ca=b"),
            ("'prefix'.removeprefix('pre')", "fix"),
            ("'abc'[::-1] ~ [1, 2, 3][::-1][0] ~ 'abcd'[1:-1]", "cba3bc"),
            ("('a' is sequence) ~ ({} is sequence) ~ (1 is sequence)", "TrueTrueFalse"),
            ("(none is iterable) ~ ('a' is iterable) ~ ({} is iterable)", "FalseTrueTrue"),
            ("(true is number) ~ (true is integer) ~ (1 is integer)", "TrueFalseTrue"),
            ("'b' in {'a': 1} or 'b' in 'abc'", "True"),
            ("'x' in nowhere", "False"),
            ("nowhere", ""),
            ("{'a': {'b': 1}}.get('a').get('c', 'd')", "d"),
            ("strftime_now('%Y-%m-%d')", "1970-01-01"),
        ] {
            let found = render(&format!("{{{{ {expression} }}}}"), ()).unwrap();
            assert_eq!(found, expected, "{expression}");
        }
    }

    #[test]
    fn generation_marks_a_scope_and_nothing_else() {
        let source =
            "{% set x = 1 %}a\n  {%- generation -%}\n b{% set x = 2 %}{{ x }} {% endgeneration +%}\n{{ x }}";
        assert_eq!(render(source, ()).unwrap(), "ab2 \n1");
        let source = "{# {% generation #}{% if true %}{%generation%}x{%endgeneration%}{% endif %}";
        assert_eq!(render(source, ()).unwrap(), "x");
    }

    #[test]
    fn loops_break_and_go_on() {
        let source = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}\
                      {% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}";
        assert_eq!(render(source, ()).unwrap(), "023");
    }

    #[test]
    fn endless_work_ends() {
        let source =
            "{% for i in range(99999) %}{% for j in range(99999) %}{{ i * j }}{% endfor %}{% endfor %}";
        assert_eq!(render(source, ()).unwrap_err().kind(), ErrorKind::OutOfFuel);
    }

    #[test]
    fn what_json_cannot_say_is_an_error() {
        assert!(render("{{ nowhere | tojson }}", ()).is_err());
        assert!(render("{{ [] | tojson(indent=1000) }}", ()).is_err());
        assert!(render("{{ [] | tojson(width=3) }}", ()).is_err());
        assert!(render("{{ 'a'.split('') }}", ()).is_err());
    }
}
