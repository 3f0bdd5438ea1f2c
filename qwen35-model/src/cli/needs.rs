//! What a size needs of a machine, for `qwen35 info --config`: constants of its type, in a table.

use super::arguments::SizeName;
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::{Config, Cost};
use tt_dsl::Dim;

/// The memory of the card that the verdict is about.
const CARD_BYTES: u64 = 32_000_000_000;

/// A row of the table: what it is, and its value.
type Row = (String, String);

/// The table of one size, or of each of the sizes in turn.
pub(super) fn report(size: SizeName) -> String {
    let sizes = match size {
        SizeName::One(known) => vec![known],
        SizeName::All => Known::ALL.to_vec(),
    };
    sizes.into_iter().map(|known| known.with(Needs)).collect::<Vec<_>>().join("\n")
}

struct Needs;

impl ForConfig for Needs {
    type Output = String;

    fn run<C: Config>(self) -> String {
        let context = C::Context::SIZE as u64;
        let row = |what: &str, value: String| (what.to_owned(), value);
        let rows: Vec<Row> = vec![
            row(
                "layers",
                format!(
                    "{}: {} of Gated DeltaNet, {} of full attention",
                    C::LAYERS,
                    Cost::<C>::LINEAR_LAYERS,
                    Cost::<C>::FULL_LAYERS
                ),
            ),
            row("parameters", digits(Cost::<C>::PARAMETERS)),
            row("bytes of weights", digits(Cost::<C>::WEIGHT_BYTES)),
            row("bytes of state a sequence", digits(Cost::<C>::STATE_BYTES)),
            row("bytes of keys and values a token", digits(Cost::<C>::KV_BYTES_PER_TOKEN)),
            row("FLOPs of a decode step", digits(Cost::<C>::DECODE_FLOPS)),
            row("  and for each token before it", digits(Cost::<C>::DECODE_FLOPS_PER_POSITION)),
            row("bytes that a decode step reads", digits(Cost::<C>::decode_bytes(0))),
            row("  after as many tokens as are kept", digits(Cost::<C>::decode_bytes(context))),
            row(
                "positions kept, of those trained for",
                format!("{} of {}", digits(context), digits(C::MAX_POSITIONS as u64)),
            ),
            row("bytes of weights, state and full cache", digits(Cost::<C>::resident_bytes(context))),
            row("a card of 32 GB", verdict::<C>()),
        ];
        let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
        let lines = rows.iter().map(|(what, value)| format!("  {what:width$}  {value}\n"));
        format!("{}\n{}", C::NAME, lines.collect::<String>())
    }
}

/// Whether weights, state and cache fit the card. What a backend adds is not counted.
fn verdict<C: Config>() -> String {
    let (context, weights) = (C::Context::SIZE as u64, Cost::<C>::WEIGHT_BYTES);
    match Cost::<C>::longest_in(CARD_BYTES) {
        Some(longest) if longest >= context => {
            format!("fits, with up to {} positions in one sequence", digits(longest))
        }
        Some(longest) => format!("fits with {} positions, fewer than are kept", digits(longest)),
        None => format!(
            "does not fit: the weights in bf16 are {:.1} times as large",
            weights as f64 / CARD_BYTES as f64
        ),
    }
}

/// A number with a comma at every thousand.
fn digits(number: u64) -> String {
    let plain = number.to_string();
    let mut out = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_comma_at_every_thousand() {
        assert_eq!(digits(0), "0");
        assert_eq!(digits(999), "999");
        assert_eq!(digits(1000), "1,000");
        assert_eq!(digits(752_393_024), "752,393,024");
    }

    #[cfg(feature = "all-sizes")]
    #[test]
    fn the_verdict_follows_the_bytes() {
        let text = report(SizeName::All);
        let of = |name: &str| {
            let section = text.split("\n\n").find(|section| section.trim_start().starts_with(name)).unwrap();
            section.lines().last().unwrap().to_owned()
        };
        assert!(of("Qwen3.5-0.8B").ends_with("fits, with up to 262,144 positions in one sequence"), "{text}");
        assert!(of("Qwen3.5-9B").ends_with("fits, with up to 262,144 positions in one sequence"), "{text}");
        assert!(
            of("Qwen3.5-27B").ends_with("does not fit: the weights in bf16 are 1.7 times as large"),
            "{text}"
        );
    }
}
