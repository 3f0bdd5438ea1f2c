//! Decode steps after more and more tokens: what a longer context costs.

use super::measure::{ids, median, step};
use qwen35_model::checkpoint::Verified;
use qwen35_model::{Config, Cost, Model, Prefill, Sequence, SequenceError};
use std::time::Instant;
use tt_backend_cpu::limits;
use tt_backend_cpu::pool::Pool;
use tt_dsl::Backend;

/// Decode steps at each context and on each backend.
pub(super) const STEPS: usize = 8;

/// Decode steps after a number of tokens.
pub struct Point {
    /// The tokens.
    pub context: usize,
    /// Tokens a second of the prefill since the point before.
    pub prefill: f64,
    /// Median seconds of a step, on each backend.
    pub seconds: Vec<f64>,
    /// Bytes a second that as many threads as each backend's could read at that moment.
    pub read_limits: Vec<f64>,
}

/// The points of a backend.
pub struct Growth {
    /// The numbers of threads, or the one backend.
    pub labels: Vec<String>,
    /// From the shortest context to the longest.
    pub points: Vec<Point>,
}

impl Growth {
    /// What a step on backend `index` should take after `context` tokens: what it took at the first
    /// point, and the time to read the keys and values of the further tokens at the read limit there.
    pub fn expected<C: Config>(&self, index: usize, point: &Point) -> f64 {
        let Some(first) = self.points.first() else { return 0.0 };
        let further = point.context.saturating_sub(first.context) as u64 * Cost::<C>::KV_BYTES_PER_TOKEN;
        first.seconds[index] + further as f64 / point.read_limits[index]
    }
}

/// One sequence that grows from context to context, decoded for a few steps at each by every one of
/// `backends`, each with its label and its threads, which must be able to use each other's tensors.
pub(super) fn measure<B: Backend, C: Config>(
    backends: &[(&str, &B, usize)],
    model: &Model<B, C>,
    verified: &Verified<'_, C>,
    contexts: &[usize],
) -> Result<Growth, SequenceError<B::Error>> {
    let labels = backends.iter().map(|(label, ..)| (*label).to_owned()).collect();
    let pools: Vec<Pool> = backends.iter().map(|&(_, _, threads)| Pool::new(threads)).collect();
    let mut points = Vec::new();
    let Some(&(_, widest, _)) = backends.last() else { return Ok(Growth { labels, points }) };
    let mut sequence = Sequence::new(widest, model);
    for &context in contexts {
        let missing = context.saturating_sub(sequence.position());
        let start = Instant::now();
        if missing > 0 {
            let logits = sequence.append(&ids::<C>(missing), Prefill::Buckets)?;
            widest.download(&widest.argmax(&logits)).map_err(SequenceError::Backend)?;
        }
        let prefill = missing as f64 / start.elapsed().as_secs_f64();
        let mut seconds = Vec::new();
        for (_, b, _) in backends {
            sequence = sequence.continued_on(b);
            let mut times = Vec::new();
            let mut token = 1;
            for _ in 0..STEPS / backends.len().max(1) {
                let start = Instant::now();
                token = step(*b, &mut sequence, token)?;
                times.push(start.elapsed().as_secs_f64());
            }
            seconds.push(median(times.into_iter()));
        }
        sequence = sequence.continued_on(widest);
        let read_limits = pools.iter().map(|pool| limits::read_rate(pool, &verified.each(), 2)).collect();
        points.push(Point { context, prefill, seconds, read_limits });
    }
    Ok(Growth { labels, points })
}
