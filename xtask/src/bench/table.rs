//! A bench for the terminal.

use super::growth::Growth;
use super::measure::{Round, median};
use super::peer::Speeds;
use super::{Bench, Measured};
use qwen35_model::{Config, Cost};

/// Every table.
pub fn tables<C: Config>(bench: &Bench) -> String {
    let plan = &bench.plan;
    let mut out = format!(
        "{}: prefill of {} tokens, {} tokens decoded, medians of {} rounds\n",
        bench.model, plan.prefill, plan.decode, plan.rounds
    );
    for measured in &bench.measured {
        out += &one::<C>(bench, measured);
    }
    if let [first, others @ ..] = &bench.measured[..]
        && !others.is_empty()
    {
        out += &format!("\ndecode and prefill over those of {}\n", first.label);
        for other in others {
            let ratio = |of: fn(&Round) -> f64| middle(other, of) / middle(first, of);
            out += &format!(
                "  {:24} decode {:5.2}  prefill {:5.2}\n",
                other.label,
                ratio(|round| round.decode),
                ratio(|round| round.prefill)
            );
        }
    }
    for growth in &bench.growths {
        out += &growth_table::<C>(growth);
    }
    out
}

fn middle(measured: &Measured, of: fn(&Round) -> f64) -> f64 {
    median(measured.rounds.iter().map(of))
}

fn one<C: Config>(bench: &Bench, measured: &Measured) -> String {
    let mut out = format!(
        "\n== {}: the machine reads {:.2} GB/s and multiplies {:.1} GFLOP/s\n",
        measured.label,
        middle(measured, |round| round.read_limit) / 1e9,
        middle(measured, |round| round.flop_limit) / 1e9
    );
    out += &format!(
        "  decode   {:8.2} tok/s  {:8.3} GB a token  {:8.2} GB/s     {:.2} of the limit\n",
        middle(measured, |round| round.decode),
        Cost::<C>::decode_bytes(bench.plan.decode as u64 / 2) as f64 / 1e9,
        middle(measured, |round| round.decode_bytes) / 1e9,
        middle(measured, Round::decode_fraction)
    );
    out += &format!(
        "  prefill  {:8.2} tok/s  {:8.1} GFLOP       {:8.2} GFLOP/s  {:.2} of the limit\n",
        middle(measured, |round| round.prefill),
        Cost::<C>::prefill_flops(bench.plan.prefill as u64) as f64 / 1e9,
        middle(measured, |round| round.prefill_flops) / 1e9,
        middle(measured, Round::prefill_fraction)
    );
    for (index, name) in bench.peers.iter().enumerate() {
        out += &versus(name, index, &measured.rounds);
    }
    out
}

/// Ours over a peer's, round by round.
fn versus(name: &str, index: usize, rounds: &[Round]) -> String {
    let pairs = |ours: fn(&Round) -> f64, its: fn(&Speeds) -> Option<f64>| -> Vec<(f64, f64)> {
        rounds.iter().filter_map(|round| Some((ours(round), its(round.peers.get(index)?)?))).collect()
    };
    let mut out = String::new();
    for (what, pairs) in [
        ("decode", pairs(|round| round.decode, |speeds| speeds.decode)),
        ("prefill", pairs(|round| round.prefill, |speeds| speeds.prefill)),
    ] {
        if pairs.is_empty() {
            out += &format!("  {name} did not say its {what} speed\n");
            continue;
        }
        let each: Vec<String> = pairs.iter().map(|(ours, its)| format!("{:.2}", ours / its)).collect();
        out += &format!(
            "  {what:7} over {name}: {:.2}  (its {:.2} tok/s; each round {})\n",
            median(pairs.iter().map(|(ours, its)| ours / its)),
            median(pairs.iter().map(|(_, its)| *its)),
            each.join(", ")
        );
    }
    out
}

fn growth_table<C: Config>(growth: &Growth) -> String {
    let mut out = format!(
        "\nA decode step after n tokens. Expected: the first point's time, and for each further token\n{} bytes at what its threads can read.\n\n{:>8}",
        Cost::<C>::KV_BYTES_PER_TOKEN,
        "n"
    );
    out += &format!(" {:>13}", "prefill");
    for label in &growth.labels {
        out += &format!("  {label:>40}");
    }
    out += "\n";
    for point in &growth.points {
        out += &format!("{:>8} {:>7.1} tok/s", point.context, point.prefill);
        for (index, seconds) in point.seconds.iter().enumerate() {
            let expected = growth.expected::<C>(index, point);
            out += &format!(
                "  {:6.2} tok/s {:7.1} ms, expected {:7.1}",
                1.0 / seconds,
                1e3 * seconds,
                1e3 * expected
            );
        }
        out += "\n";
    }
    out
}
