//! From logits to the next token.

use core::cmp::Ordering;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;

/// How to choose among likely tokens. The three filters apply in the order of the fields, after the
/// penalties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Random {
    /// Divides the logits: below 1 sharpens, above 1 flattens.
    pub temperature: f64,
    /// Keeps this many of the likeliest tokens.
    pub top_k: Option<usize>,
    /// Then keeps the fewest of the likeliest tokens that have this much of the probability.
    pub top_p: f64,
    /// Before all of these: divides the logits of tokens in the prompt or the text by this, and
    /// multiplies them if they are negative, as transformers does. 1 changes nothing.
    pub repetition_penalty: f64,
    /// Then takes this off the logits of tokens in the generated text. 0 changes nothing.
    pub presence_penalty: f64,
    /// The same seed gives the same tokens for the same logits, on every machine.
    pub seed: u64,
}

impl Default for Random {
    /// Samples from the whole distribution as it is, with seed 0.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            seed: 0,
        }
    }
}

/// A parameter outside its range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SamplingError {
    /// Zero, negative or not finite.
    #[error("temperature: expected a finite number above 0, found {0}")]
    Temperature(f64),
    /// Zero: nothing would be left.
    #[error("top-k: expected at least 1, found 0")]
    TopK,
    /// Not a probability, or zero.
    #[error("top-p: expected a number above 0 and at most 1, found {0}")]
    TopP(f64),
    /// Zero, negative or not finite.
    #[error("repetition penalty: expected a finite number above 0, found {0}")]
    RepetitionPenalty(f64),
    /// Not finite.
    #[error("presence penalty: expected a finite number, found {0}")]
    PresencePenalty(f64),
}

/// The tokens before the one to be chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before<'a> {
    /// Those that were given.
    pub prompt: &'a [u32],
    /// Those that were chosen since.
    pub generated: &'a [u32],
}

/// Chooses the next token.
#[derive(Debug, Clone)]
pub struct Sampler(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Greedy,
    Random { parameters: Random, rng: Box<ChaCha8Rng> },
}

impl Sampler {
    /// Always the likeliest token.
    #[must_use]
    pub fn greedy() -> Self {
        Self(Kind::Greedy)
    }

    /// A random token of the likely ones.
    pub fn random(parameters: Random) -> Result<Self, SamplingError> {
        parameters.check()?;
        let rng = Box::new(ChaCha8Rng::seed_from_u64(parameters.seed));
        Ok(Self(Kind::Random { parameters, rng }))
    }

    /// Whether it is the greedy one, for which a backend's own argmax will do.
    pub fn is_greedy(&self) -> bool {
        matches!(self.0, Kind::Greedy)
    }

    /// The next token's id, of a text of which nothing is known. As in
    /// [`Backend::argmax`](tt_dsl::Backend::argmax), the lowest index wins a tie and a NaN is never
    /// chosen unless all are NaN (then 0).
    pub fn sample(&mut self, logits: &[f32]) -> u32 {
        self.sample_after(logits, Before::default())
    }

    /// [`sample`](Self::sample) after the tokens that the penalties, if there are any, count.
    pub fn sample_after(&mut self, logits: &[f32], before: Before<'_>) -> u32 {
        let index = match &mut self.0 {
            Kind::Greedy => argmax(logits),
            Kind::Random { parameters, rng } => {
                let point = uniform(rng);
                if parameters.has_penalties() {
                    parameters.choose(&parameters.penalized(logits, before), point)
                } else {
                    parameters.choose(logits, point)
                }
            }
        };
        // A vocabulary is far below 2^32.
        index as u32
    }
}

/// A number in [0, 1) from the upper 53 bits, as many as an f64 holds.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn argmax(logits: &[f32]) -> usize {
    let best = (0..logits.len())
        .filter(|&i| !logits[i].is_nan())
        .reduce(|best, i| if logits[i] > logits[best] { i } else { best });
    best.unwrap_or(0)
}

/// The likelier first, and of equals the one with the lower index.
fn likelier(a: &(usize, f64), b: &(usize, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

impl Random {
    /// Refuses parameters outside their range.
    pub fn check(&self) -> Result<(), SamplingError> {
        let is_above_zero = |value: f64| value.is_finite() && value > 0.0;
        if !is_above_zero(self.temperature) {
            return Err(SamplingError::Temperature(self.temperature));
        }
        if self.top_k == Some(0) {
            return Err(SamplingError::TopK);
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(SamplingError::TopP(self.top_p));
        }
        if !is_above_zero(self.repetition_penalty) {
            return Err(SamplingError::RepetitionPenalty(self.repetition_penalty));
        }
        if !self.presence_penalty.is_finite() {
            return Err(SamplingError::PresencePenalty(self.presence_penalty));
        }
        Ok(())
    }

    fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0
    }

    /// The logits after the penalties. A token counts once, however often it was there.
    fn penalized(&self, logits: &[f32], before: Before<'_>) -> Vec<f32> {
        let mut logits = logits.to_vec();
        let generated: BTreeSet<u32> = before.generated.iter().copied().collect();
        let all: BTreeSet<u32> = before.prompt.iter().copied().chain(generated.iter().copied()).collect();
        for id in all {
            if let Some(logit) = logits.get_mut(id as usize) {
                let value = f64::from(*logit);
                let penalty = self.repetition_penalty;
                *logit = if value < 0.0 { value * penalty } else { value / penalty } as f32;
            }
        }
        for id in generated {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit = (f64::from(*logit) - self.presence_penalty) as f32;
            }
        }
        logits
    }

    /// The token at `point` of the filtered distribution, `0 <= point < 1`.
    fn choose(&self, logits: &[f32], point: f64) -> usize {
        let best = argmax(logits);
        let Some(&max) = logits.get(best).filter(|max| max.is_finite()) else {
            // Nothing to weigh: no logit at all, or an infinite one, which outweighs the others.
            return best;
        };
        let max = f64::from(max);
        let mut kept: Vec<(usize, f64)> = logits
            .iter()
            .map(|&logit| ((f64::from(logit) - max) / self.temperature).exp())
            .enumerate()
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        if let Some(k) = self.top_k
            && k < kept.len()
        {
            kept.select_nth_unstable_by(k - 1, likelier);
            kept.truncate(k);
        }
        if self.top_p < 1.0 {
            keep_nucleus(&mut kept, self.top_p);
        }
        // In the order of ids: the choice must not depend on how a partial sort left them.
        kept.sort_unstable_by_key(|(index, _)| *index);
        let mut left = point * kept.iter().map(|(_, weight)| weight).sum::<f64>();
        for &(index, weight) in &kept {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        // Rounding of the sums can leave a crumb past the last one.
        kept.last().map_or(best, |(index, _)| *index)
    }
}

/// Keeps the fewest of the likeliest whose weights reach `top_p` of the sum.
fn keep_nucleus(kept: &mut Vec<(usize, f64)>, top_p: f64) {
    let total: f64 = kept.iter().map(|(_, weight)| weight).sum();
    // Tokens below an even share of the rest have less than the rest together, so the nucleus is
    // among the others; of a large vocabulary that leaves few to sort.
    let share = (1.0 - top_p) * total / kept.len() as f64;
    kept.retain(|(_, weight)| *weight >= share);
    kept.sort_unstable_by(likelier);
    let mut mass = 0.0;
    let reached = kept.iter().position(|(_, weight)| {
        mass += weight;
        mass >= top_p * total
    });
    if let Some(last) = reached {
        kept.truncate(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sampler(parameters: Random) -> Sampler {
        Sampler::random(parameters).unwrap()
    }

    fn logits() -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-30.0f32..30.0, 1..200)
    }

    #[test]
    fn parameters_outside_their_range_are_refused() {
        for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Sampler::random(Random { temperature, ..Random::default() }).unwrap_err();
            assert!(matches!(error, SamplingError::Temperature(_)), "{error}");
        }
        for top_p in [0.0, -0.5, 1.5, f64::NAN] {
            let error = Sampler::random(Random { top_p, ..Random::default() }).unwrap_err();
            assert!(matches!(error, SamplingError::TopP(_)), "{error}");
        }
        let error = Sampler::random(Random { top_k: Some(0), ..Random::default() }).unwrap_err();
        assert_eq!(error, SamplingError::TopK);
        for repetition_penalty in [0.0, -1.0, f64::NAN] {
            let error = Sampler::random(Random { repetition_penalty, ..Random::default() }).unwrap_err();
            assert!(matches!(error, SamplingError::RepetitionPenalty(_)), "{error}");
        }
        let infinite = Random { presence_penalty: f64::INFINITY, ..Random::default() };
        assert_eq!(Sampler::random(infinite).unwrap_err(), SamplingError::PresencePenalty(f64::INFINITY));
    }

    #[test]
    fn penalties_are_for_the_tokens_before() {
        let parameters =
            Random { repetition_penalty: 2.0, presence_penalty: 0.5, top_k: Some(1), ..Random::default() };
        let before = Before { prompt: &[0, 1, 9], generated: &[1, 2, 2] };
        // Divided or, if negative, multiplied by 2 when there; 0.5 less when generated, once.
        let expected = [2.0, -2.5, 0.5, 1.5];
        assert_eq!(parameters.penalized(&[4.0, -1.0, 2.0, 1.5], before), expected);
        assert_eq!(sampler(parameters).sample_after(&[2.0, -1.0, 2.0, 1.5], before), 3);
        assert_eq!(sampler(parameters).sample(&[2.0, -1.0, 2.0, 1.5]), 0);
        assert_eq!(Sampler::greedy().sample_after(&[2.0, -1.0, 2.0, 1.5], before), 0);
    }

    #[test]
    fn the_lowest_index_wins_and_nan_never_does() {
        let mut greedy = Sampler::greedy();
        assert_eq!(greedy.sample(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(greedy.sample(&[f32::NAN, -1.0, f32::NAN]), 1);
        assert_eq!(greedy.sample(&[f32::NAN, f32::NAN]), 0);
        assert_eq!(greedy.sample(&[f32::NEG_INFINITY, f32::NEG_INFINITY]), 0);
        let mut random = sampler(Random::default());
        for _ in 0..20 {
            assert_eq!(random.sample(&[f32::NAN, -1.0, f32::NEG_INFINITY]), 1);
            assert_eq!(random.sample(&[0.0, f32::INFINITY]), 1);
            assert_eq!(random.sample(&[f32::NAN]), 0);
            assert_eq!(random.sample(&[]), 0);
        }
    }

    #[test]
    fn frequencies_are_the_probabilities() {
        // Probabilities 1/2, 1/4, 1/8, 1/8.
        let logits: Vec<f32> = [0.5f32, 0.25, 0.125, 0.125].iter().map(|p| p.ln()).collect();
        let draws = 20_000;
        let frequencies = |parameters: Random| {
            let mut sampler = sampler(parameters);
            let mut counts = [0u32; 4];
            (0..draws).for_each(|_| counts[sampler.sample(&logits) as usize] += 1);
            counts.map(|count| f64::from(count) / f64::from(draws))
        };
        let near = |found: [f64; 4], expected: [f64; 4]| {
            // Four standard deviations of the widest are 0.014.
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 0.015)
        };
        assert!(near(frequencies(Random::default()), [0.5, 0.25, 0.125, 0.125]));
        let top_k = Random { top_k: Some(2), ..Random::default() };
        assert!(near(frequencies(top_k), [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]));
        // 0.8 is reached by the third; of the two equal ones the lower index is kept.
        let top_p = Random { top_p: 0.8, ..Random::default() };
        assert!(near(frequencies(top_p), [4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0, 0.0]));
        // Half the temperature squares the probabilities: 16, 4, 1, 1 of 22.
        let cold = Random { temperature: 0.5, ..Random::default() };
        assert!(near(frequencies(cold), [16.0 / 22.0, 4.0 / 22.0, 1.0 / 22.0, 1.0 / 22.0]));
    }

    proptest! {
        #[test]
        fn a_single_candidate_is_the_greedy_choice(logits in logits(), seed: u64) {
            let greedy = Sampler::greedy().sample(&logits);
            let top_k = Random { top_k: Some(1), seed, ..Random::default() };
            prop_assert_eq!(sampler(top_k).sample(&logits), greedy);
            let top_p = Random { top_p: 1e-9, seed, ..Random::default() };
            prop_assert_eq!(sampler(top_p).sample(&logits), greedy);
        }

        #[test]
        fn the_same_seed_gives_the_same_tokens(
            logits in logits(), seed: u64, temperature in 0.1f64..4.0, k in 1usize..50, top_p in 0.05f64..1.0,
        ) {
            let parameters = Random { temperature, top_k: Some(k), top_p, seed, ..Random::default() };
            let draw = || {
                let mut sampler = sampler(parameters);
                (0..20).map(|_| sampler.sample(&logits)).collect::<Vec<_>>()
            };
            prop_assert_eq!(draw(), draw());
        }

        #[test]
        fn only_the_k_likeliest_are_chosen(logits in logits(), seed: u64, k in 1usize..20) {
            let mut sampler = sampler(Random { temperature: 3.0, top_k: Some(k), seed, ..Random::default() });
            for _ in 0..10 {
                let chosen = sampler.sample(&logits) as usize;
                let likelier = logits.iter().filter(|&&logit| logit > logits[chosen]).count();
                prop_assert!(likelier < k);
            }
        }

        #[test]
        fn the_early_cut_does_not_change_the_nucleus(logits in logits(), top_p in 0.01f64..0.999) {
            let weights = logits.iter().map(|&logit| f64::from(logit).exp());
            let mut quick: Vec<_> = weights.enumerate().collect();
            let mut plain = quick.clone();
            keep_nucleus(&mut quick, top_p);

            plain.sort_by(likelier);
            let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
            let mut mass = 0.0;
            plain.retain(|(_, weight)| {
                let before = mass;
                mass += weight;
                before < top_p * total
            });
            prop_assert_eq!(quick, plain);
        }
    }
}
