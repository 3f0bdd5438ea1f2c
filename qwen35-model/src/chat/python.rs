//! What Python writes for a value, where a template can see the difference.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// The keyword arguments of `json.dumps` that transformers' `tojson` passes on.
#[derive(Debug, Clone)]
pub(super) struct Json {
    /// Writes everything above ASCII as `\uXXXX`.
    pub(super) ensure_ascii: bool,
    /// One item a line, each level indented by this.
    pub(super) indent: Option<String>,
    /// Between items, and between a key and its value.
    pub(super) separators: (String, String),
    /// Keys in the order of their characters instead of the object's own.
    pub(super) sort_keys: bool,
}

impl Json {
    /// `json.dumps(value)` of Python with these arguments.
    pub(super) fn dumps(&self, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.write(&mut out, value, 0)?;
        Ok(out)
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::String => self.write_str(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.checked();
                self.write_items(out, ['[', ']'], items, depth, |out, item| {
                    self.write(out, &item, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
                if self.sort_keys {
                    keys.sort_by(by_text);
                }
                self.write_items(out, ['{', '}'], keys.into_iter().map(Ok), depth, |out, key| {
                    let entry = value.get_item(&key)?;
                    self.write_key(out, &key)?;
                    out.push_str(&self.separators.1);
                    self.write(out, &entry, depth + 1)
                })?;
            }
            kind => {
                let what = format!("tojson: expected a JSON value, found {kind}");
                return Err(Error::new(ErrorKind::BadSerialization, what));
            }
        }
        Ok(())
    }

    /// Items between brackets: with `indent` one a line, and nothing at all between the brackets of
    /// an empty one.
    fn write_items(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        items: impl Iterator<Item = Result<Value, Error>>,
        depth: usize,
        mut write: impl FnMut(&mut String, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        let mut is_empty = true;
        for item in items {
            if !is_empty {
                out.push_str(&self.separators.0);
            }
            is_empty = false;
            self.break_line(out, depth + 1);
            write(out, item?)?;
        }
        if !is_empty {
            self.break_line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn break_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    }

    /// Python writes keys that are no strings as strings of their JSON.
    fn write_key(&self, out: &mut String, key: &Value) -> Result<(), Error> {
        if let Some(text) = key.as_str() {
            self.write_str(out, text);
            return Ok(());
        }
        let mut text = String::new();
        self.write(&mut text, key, 0)?;
        self.write_str(out, &text);
        Ok(())
    }

    fn write_str(&self, out: &mut String, text: &str) {
        out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                // Python escapes DEL only where it escapes all that is not printable ASCII.
                _ if letter < ' ' || (self.ensure_ascii && !matches!(letter, ' '..='~')) => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                _ => out.push(letter),
            }
        }
        out.push('"');
    }
}

fn by_text(a: &Value, b: &Value) -> Ordering {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => a.cmp(b),
    }
}

/// A number as `repr` writes it.
fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => float_repr(float),
        _ => value.to_string(),
    }
}

/// A float as Python's `repr`: the shortest decimal that is it, with an exponent from 1e16 and below
/// 1e-4.
fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = value.to_string();
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// What `str(value)` of Python writes for a float, which minijinja writes without an exponent; none
/// for every other value.
pub(super) fn float_str(value: &Value) -> Option<String> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    let float = f64::try_from(value.clone()).ok()?;
    Some(match float_repr(float).as_str() {
        "NaN" => "nan".to_owned(),
        "Infinity" => "inf".to_owned(),
        "-Infinity" => "-inf".to_owned(),
        text => text.to_owned(),
    })
}

/// White space of Python's `str`: Unicode's, and the four separators from U+001C.
pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// Line ends of Python's `str.splitlines`.
fn is_line_end(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// `text.splitlines(keepends)`.
pub(super) fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((at, end)) = rest.char_indices().find(|(_, letter)| is_line_end(*letter)) {
        let width = if rest[at..].starts_with("\r\n") { 2 } else { end.len_utf8() };
        lines.push(&rest[..if keep_ends { at + width } else { at }]);
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_repr_does() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (123_456.789, "123456.789"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(float_repr(value), expected);
        }
        assert_eq!(float_str(&Value::from(f64::INFINITY)).unwrap(), "inf");
        assert_eq!(float_str(&Value::from(3)), None);
    }

    #[test]
    fn lines_end_where_pythons_do() {
        assert_eq!(split_lines("a\nb\r\nc\u{2028}\rd", false), ["a", "b", "c", "", "d"]);
        assert_eq!(split_lines("a\r\n\n", true), ["a\r\n", "\n"]);
        assert!(split_lines("", false).is_empty());
    }
}
