//! The tables, and what must hold.

use super::measure::Seen;
use std::time::Duration;

/// Another way of doing the same step.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) seen: Seen,
}

/// What would remove calls of a kind, and how many in a layer of each kind.
struct Remedy {
    kind: &'static str,
    what: &'static str,
    delta: usize,
    attention: usize,
}

const FUSED_RULE: &str = "a fused Gated DeltaNet step (norms, casts, decay, rule and read-out in one call)";
const PATCHED: &str = "a cached program whose addresses are patched, as a matmul's are";

const REMEDIES: &[Remedy] = &[
    Remedy { kind: "matmul", what: FUSED_RULE, delta: 3, attention: 0 },
    Remedy { kind: "addcmul", what: FUSED_RULE, delta: 3, attention: 0 },
    Remedy { kind: "rms_norm", what: FUSED_RULE, delta: 2, attention: 0 },
    Remedy { kind: "typecast", what: FUSED_RULE, delta: 2, attention: 0 },
    Remedy { kind: "reshape", what: FUSED_RULE, delta: 2, attention: 0 },
    Remedy { kind: "multiply", what: FUSED_RULE, delta: 1, attention: 0 },
    Remedy {
        kind: "where",
        what: "a causal convolution step that keeps its own history",
        delta: 1,
        attention: 0,
    },
    Remedy {
        kind: "nlp_create_qkv_heads",
        what: "a fused step and an attention that read heads side by side",
        delta: 1,
        attention: 1,
    },
    Remedy { kind: "nlp_concat_heads", what: "a norm over runs of a row", delta: 1, attention: 0 },
    Remedy {
        kind: "rotary_embedding_hf",
        what: "one call that rotates queries and keys",
        delta: 0,
        attention: 1,
    },
    Remedy { kind: "scaled_dot_product_attention_decode", what: PATCHED, delta: 0, attention: 1 },
];

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Prints a run of the driver's own way. Whether what must hold did.
///
/// `layers` are the numbers of Gated DeltaNet and of attention layers.
pub(super) fn driver(model: &str, layers: (usize, usize), prompt: usize, seen: &Seen) -> bool {
    let steps = seen.count();
    println!("\n{model}: load, a prefill of {prompt} tokens, {} decode steps", steps + 1);
    println!(
        "  load           {:9.1} ms  {} writes, {} bytes, {} bytes through f32",
        millis(seen.load),
        seen.loaded.h2d_writes,
        seen.loaded.h2d_bytes,
        seen.loaded.f32_staged_bytes
    );
    println!(
        "  prefill        {:9.1} ms  {} calls, {} programs compiled",
        millis(seen.prefill),
        seen.prefill_calls,
        seen.prefill_stats.program_cache_misses
    );
    println!(
        "  first step     {:9.1} ms  {} programs compiled",
        millis(seen.first_step),
        seen.first_stats.program_cache_misses
    );
    println!(
        "  step, median   {:9.3} ms  least {:.3}, {:.1} calls",
        millis(seen.median()),
        millis(seen.steps[0]),
        seen.calls_a_step()
    );
    let stats = &seen.steps_stats;
    let each = |total: u64| total as f64 / steps as f64;
    println!(
        "  a step: {} writes of {} bytes, {} reads of {} bytes, {} submits, {} program-cache misses, {} allocations",
        each(stats.h2d_writes),
        each(stats.h2d_bytes),
        each(stats.d2h_reads),
        each(stats.d2h_bytes),
        each(stats.submits),
        each(stats.program_cache_misses),
        each(stats.allocations)
    );
    println!(
        "  device memory: {} bytes before, {} in use, {} after",
        seen.before.allocated, seen.during.allocated, seen.after.allocated
    );
    println!("  {:36} {:>8} {:>10} {:>10}", "call", "a step", "us each", "ms a step");
    let mut calls = seen.calls.clone();
    calls.sort_by_key(|call| std::cmp::Reverse(call.nanos));
    for call in &calls {
        let each_us = call.nanos as f64 / 1e3 / call.calls as f64;
        println!(
            "  {:36} {:>8.1} {each_us:>10.1} {:>10.3}",
            call.kind,
            call.calls as f64 / steps as f64,
            call.nanos as f64 / 1e6 / steps as f64
        );
        if let Some(remedy) = REMEDIES.iter().find(|remedy| remedy.kind == call.kind) {
            let removed = remedy.delta * layers.0 + remedy.attention * layers.1;
            let saved = removed as f64 * each_us / 1e3;
            println!("      {}: at most {saved:.2} ms a step", remedy.what);
        }
    }
    let mut holds = true;
    let mut demand = |what: &str, held: bool| {
        println!("  {} {what}", if held { "holds:" } else { "DOES NOT HOLD:" });
        holds &= held;
    };
    demand("1 write and 1 read a step", stats.h2d_writes == steps && stats.d2h_reads == steps);
    demand("no program is compiled after the first step", stats.program_cache_misses == 0);
    demand("at most 700 calls a step", seen.calls_a_step() <= 700.0);
    demand("device memory after is as before", seen.after.allocated == seen.before.allocated);
    holds
}

/// Prints the other ways beside the driver's. Whether what must hold did.
pub(super) fn ways(driver: &Seen, ways: &[Way]) -> bool {
    let own = millis(driver.median());
    println!(
        "\n  {:32} {:>10} {:>8} {:>8} {:>8} {:>8} {:>12} {:>10}",
        "way", "ms a step", "ratio", "calls", "writes", "reads", "load ms", "f32 bytes"
    );
    let line = |name: &str, seen: &Seen| {
        let each = |total: u64| total as f64 / seen.count() as f64;
        println!(
            "  {name:32} {:>10.3} {:>8.2} {:>8.0} {:>8.1} {:>8.1} {:>12.0} {:>10}",
            millis(seen.median()),
            millis(seen.median()) / own,
            seen.calls_a_step(),
            each(seen.steps_stats.h2d_writes),
            each(seen.steps_stats.d2h_reads),
            millis(seen.load),
            seen.loaded.f32_staged_bytes + seen.steps_stats.f32_staged_bytes / seen.count()
        );
    };
    line("the driver's way", driver);
    for way in ways {
        line(way.name, &way.seen);
    }
    let straightforward =
        ways.iter().find(|way| way.name == "straightforward").map(|way| millis(way.seen.median()));
    let holds = straightforward.is_none_or(|other| own * 3.0 <= other * 2.0);
    println!(
        "  {} at most two thirds of the straightforward step's time",
        if holds { "holds:" } else { "DOES NOT HOLD:" }
    );
    holds
}
