//! The time that a template may ask for.

use chrono::NaiveDateTime;
use chrono::format::{Item, StrftimeItems};
use std::fmt::Write;
use std::sync::Arc;

/// Where `strftime_now` takes the time from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> NaiveDateTime + Send + Sync>);

impl Clock {
    /// The machine's local time, as Python's `datetime.now()`.
    #[must_use]
    pub fn local() -> Self {
        Self(Arc::new(|| chrono::Local::now().naive_local()))
    }

    /// One moment for ever: seconds since 1970-01-01 00:00, in local time.
    #[must_use]
    pub fn fixed(seconds: i64) -> Self {
        let time = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default().naive_utc();
        Self(Arc::new(move || time))
    }

    /// The time in Python's `strftime` notation, in the C locale.
    ///
    /// The error is the directive that is none.
    pub(super) fn strftime(&self, format: &str) -> Result<String, String> {
        let format = as_chrono(format);
        if let Some(bad) = StrftimeItems::new(&format).find(|item| matches!(item, Item::Error)) {
            return Err(format!("{bad:?} in `{format}`"));
        }
        let mut text = String::new();
        write!(text, "{}", (self.0)().format(&format)).map_err(|_| format!("`{format}`"))?;
        Ok(text)
    }
}

/// The three directives for which chrono means something else: microseconds, and the zone, which
/// Python's `datetime.now()` does not know and writes as nothing.
fn as_chrono(format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('f') => out.push_str("%6f"),
            Some('z' | 'Z') => {}
            Some(directive) => out.extend(['%', directive]),
            None => out.push('%'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_is_pythons() {
        // Python: datetime(2026, 3, 7, 9, 5, 2).strftime(..)
        let clock = Clock::fixed(1_772_874_302);
        for (format, expected) in [
            ("%Y-%m-%d", "2026-03-07"),
            ("%d %b %Y", "07 Mar 2026"),
            ("%A, %-d %B %y", "Saturday, 7 March 26"),
            ("%H:%M:%S %p %I.%f", "09:05:02 AM 09.000000"),
            ("%j %w %a %%", "066 6 Sat %"),
            ("[%z%Z]", "[]"),
            ("%c|%x|%X", "Sat Mar  7 09:05:02 2026|03/07/26|09:05:02"),
            ("", ""),
        ] {
            assert_eq!(clock.strftime(format).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn an_unknown_directive_is_an_error() {
        for format in ["%Q", "%", "%Y %!"] {
            assert!(Clock::local().strftime(format).is_err(), "{format}");
        }
    }
}
