//! A round: the machine's limits, a prefill and decode steps, one next to the other.

use super::peer::Speeds;
use qwen35_model::checkpoint::Verified;
use qwen35_model::{Config, Cost, Prefill, Sequence, SequenceError};
use std::time::Instant;
use tt_backend_cpu::limits;
use tt_backend_cpu::pool::Pool;
use tt_dsl::{Backend, Dim};

/// What a round does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Tokens of the prefill.
    pub prefill: usize,
    /// Tokens to decode.
    pub decode: usize,
    /// How many rounds.
    pub rounds: usize,
}

/// What a round measured.
#[derive(Debug, Clone)]
pub struct Round {
    /// Bytes a second that the threads can read of the weights.
    pub read_limit: f64,
    /// Floating-point operations a second that they can do.
    pub flop_limit: f64,
    /// Tokens a second of the prefill, logits of its last token included.
    pub prefill: f64,
    /// Floating-point operations a second of its matrix products.
    pub prefill_flops: f64,
    /// Tokens a second of decode, the choice of each included.
    pub decode: f64,
    /// Bytes a second of weights, state and cache that it read.
    pub decode_bytes: f64,
    /// The peers' speeds.
    pub peers: Vec<Speeds>,
}

impl Round {
    /// Decode as a fraction of what reading allows.
    pub fn decode_fraction(&self) -> f64 {
        self.decode_bytes / self.read_limit
    }

    /// Prefill as a fraction of what the multipliers allow.
    pub fn prefill_fraction(&self) -> f64 {
        self.prefill_flops / self.flop_limit
    }
}

/// Ids that are all different for a while, and never those of the table's end.
pub(super) fn ids<C: Config>(count: usize) -> Vec<u32> {
    // A vocabulary has at most 2^24 entries.
    (0..count).map(|i| (i * 7919 % (C::Vocab::SIZE * 3 / 4)) as u32).collect()
}

/// Parts of a round's decode, each with a measurement of the read limit before it.
const TURNS: usize = 4;

/// One round with a sequence that there is: only in the first of them does the system bring in the
/// cache's memory. The limits and our run take turns, and each is a mean over its own: on a machine that
/// others use too, the best moment of the one says nothing of the other.
pub(super) fn round<B: Backend, C: Config>(
    b: &B,
    sequence: &mut Sequence<'_, B, C>,
    verified: &Verified<'_, C>,
    pool: &Pool,
    plan: &Plan,
) -> Result<Round, SequenceError<B::Error>> {
    let weights = verified.each();
    let weight_bytes: usize = weights.iter().map(|part| part.len()).sum();
    // The best of three: the first wakes threads up and has the CPU change its pace.
    let multiply = || limits::multiply_add_rate(pool, 3);

    let multiply_before = multiply();
    let prompt = ids::<C>(plan.prefill);
    let start = Instant::now();
    sequence.restart();
    let logits = sequence.append(&prompt, Prefill::OneShot)?;
    b.download(&b.argmax(&logits)).map_err(SequenceError::Backend)?;
    let prefill_time = start.elapsed().as_secs_f64();
    drop(logits);

    let multiply_limit = (multiply_before + multiply()) / 2.0;
    sequence.restart();
    // The first step also makes what the others use again.
    let mut token = step(b, sequence, 1)?;
    let (mut decode_time, mut read_time) = (0.0, 0.0);
    for turn in 0..TURNS {
        read_time += limits::read_time(pool, &weights).as_secs_f64();
        let start = Instant::now();
        for _ in turn * plan.decode / TURNS..(turn + 1) * plan.decode / TURNS {
            token = step(b, sequence, token)?;
        }
        decode_time += start.elapsed().as_secs_f64();
    }
    let read_limit = (TURNS * weight_bytes) as f64 / read_time;

    // Positions 1 to `decode`: in the middle that many are before a token.
    let bytes = Cost::<C>::decode_bytes(plan.decode as u64 / 2);
    let decode = plan.decode as f64 / decode_time;
    Ok(Round {
        read_limit,
        flop_limit: multiply_limit,
        prefill: plan.prefill as f64 / prefill_time,
        prefill_flops: Cost::<C>::prefill_flops(plan.prefill as u64) as f64 / prefill_time,
        decode,
        decode_bytes: decode * bytes as f64,
        peers: Vec::new(),
    })
}

/// One decode step, as a greedy generation makes it.
pub(super) fn step<B: Backend, C: Config>(
    b: &B,
    sequence: &mut Sequence<'_, B, C>,
    token: u32,
) -> Result<u32, SequenceError<B::Error>> {
    let logits = sequence.append(&[token], Prefill::TokenByToken)?;
    let next = b.download(&b.argmax(&logits)).map_err(SequenceError::Backend)?;
    Ok(next.values()[0])
}

/// The middle one, of an even number the mean of the two in the middle; 0 of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qwen35_model::Tiny;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median([].into_iter()), 0.0);
    }

    #[test]
    fn ids_are_of_the_vocabulary() {
        assert!(ids::<Tiny>(5000).into_iter().all(|id| id < 768));
    }
}
