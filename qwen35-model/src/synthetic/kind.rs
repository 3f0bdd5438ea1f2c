//! What a tensor's values look like, by what the tensor is for.
//!
//! The scales were chosen so that a model of these weights behaves as a trained one does in what tests
//! depend on:
//!
//! - every linear layer that reads the normed stream gives outputs of about unit deviation, and what
//!   the layers add to the stream is small enough that a rounding's effect grows little on the way;
//! - *the embedding is tied*, so what a token writes into the stream and what the head listens for are
//!   one row. Three of four columns are of one size for every token and hardly read by the head;
//!   every fourth is small in the stream, where the layers' outputs outweigh it, and amplified by
//!   the final norm, and there tokens are as unequal as they are in a language: a few hundred are
//!   up to eight times as loud as the crowd and win by a clear gap. The final norm is negative there,
//!   which keeps a token from predicting itself again and again;
//! - special tokens and padding rows, from `eos_token_id` on, are silent: none is ever the best;
//! - decays of the delta rule have half-lives from a few tokens to a few hundred, and attention scores a
//!   deviation of about two, so that what was said earlier matters.

use super::hash::{LANES, LARGEST, VARIANCE, Words};
use half::bf16;

/// One value for each integer: how a lane turns `n + LARGEST` into bf16.
type Lane = [bf16; 64];

/// The four elements of a word.
pub(super) type Lanes = [Lane; LANES];

/// How a tensor is filled.
pub(super) enum Kind {
    /// Every word the same way.
    Plain(Box<Lanes>),
    /// Rows of an embedding table or a head.
    Rows(Box<Rows>),
}

/// Rows of tokens, some louder than others.
pub(super) struct Rows {
    /// For each of [`LOUDNESS`].
    by_loudness: [Lanes; LOUDNESS.len()],
    /// Words that give each token's loudness.
    loudness: Words,
    /// Words in a row.
    pub(super) words: usize,
    /// From this row on, tokens are silent.
    silent_from: usize,
}

/// The lane of a word of four columns that the head reads.
const READ: usize = LANES - 1;
/// Step of an embedding's other columns.
const EMBED_STEP: f32 = 1.0 / 64.0;
/// Step of its read columns at loudness 1.
const READ_STEP: f32 = 1.0 / 1024.0;
/// How loud a token can be. Silence comes first, for special tokens.
const LOUDNESS: [f32; 6] = [0.0, 1.0, 2.0, 4.0, 6.0, 8.0];
/// Which it is, by the trailing zeros of the token's word: each step up is taken by half as many.
const BY_ZEROS: [usize; 11] = [1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5];

impl Rows {
    /// How the words of row `row` are filled.
    pub(super) fn of(&self, row: usize) -> &Lanes {
        let loudness = if row >= self.silent_from {
            0
        } else {
            let zeros = self.loudness.word(row).trailing_zeros() as usize;
            BY_ZEROS[zeros.min(BY_ZEROS.len() - 1)]
        };
        &self.by_loudness[loudness]
    }
}

/// The sizes that a kind depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Columns of an embedding row.
    pub(super) hidden: usize,
    /// The first token that is never to be the best.
    pub(super) silent_from: usize,
}

impl Kind {
    /// The kind of the tensor called `name`, of shape `shape`; none for a name that the text model does
    /// not have.
    pub(super) fn of(seed: u64, name: &str, shape: &[usize], facts: Facts) -> Option<Self> {
        let end = match name.strip_prefix("layers.") {
            Some(rest) => rest.split_once('.')?.1,
            None => name,
        };
        if let Some(deviation) = linear(end) {
            let step = fan_step(deviation, *shape.get(1)?);
            return Some(Self::plain(|_| (0.0, step)));
        }
        match end {
            "embed_tokens.weight" | "lm_head.weight" => Some(Self::Rows(Box::new(Rows {
                by_loudness: LOUDNESS.map(|loudness| {
                    lanes(|lane| (0.0, if lane == READ { loudness * READ_STEP } else { EMBED_STEP }))
                }),
                loudness: Words::of(seed, &format!("{name}.loudness")),
                words: facts.hidden / LANES,
                silent_from: facts.silent_from,
            }))),
            "norm.weight" => Some(Self::Plain(Box::new(final_norm()))),
            _ => small(end).map(|small| Self::plain(|_| small)),
        }
    }

    /// For tensors that the text model does not have.
    pub(super) fn of_another_model() -> Self {
        Self::plain(|_| (0.0, EMBED_STEP))
    }

    fn plain(base_and_step: impl Fn(usize) -> (f32, f32)) -> Self {
        Self::Plain(Box::new(lanes(base_and_step)))
    }
}

/// Deviation of a linear layer's outputs for inputs of unit deviation.
fn linear(end: &str) -> Option<f64> {
    Some(match end {
        "self_attn.q_proj.weight" | "self_attn.k_proj.weight" | "self_attn.v_proj.weight" => 1.0,
        "linear_attn.in_proj_qkv.weight"
        | "linear_attn.in_proj_z.weight"
        | "linear_attn.in_proj_b.weight" => 1.0,
        "linear_attn.in_proj_a.weight" => 0.5,
        "mlp.gate_proj.weight" | "mlp.up_proj.weight" => 1.0,
        // Their inputs are products of gates and values, well below unit deviation.
        "self_attn.o_proj.weight" => 0.046875,
        "linear_attn.out_proj.weight" => 0.03125,
        "mlp.down_proj.weight" => 0.0234375,
        _ => return None,
    })
}

/// Base and step of the small tensors.
fn small(end: &str) -> Option<(f32, f32)> {
    Some(match end {
        "input_layernorm.weight" | "post_attention_layernorm.weight" => (0.0, 1.0 / 64.0),
        "self_attn.q_norm.weight" | "self_attn.k_norm.weight" => (0.375, 1.0 / 64.0),
        "linear_attn.conv1d.weight" => (0.0, 1.0 / 16.0),
        "linear_attn.A_log" => (1.25, 1.0 / 32.0),
        "linear_attn.dt_bias" => (-4.0, 1.0 / 8.0),
        "linear_attn.norm.weight" => (1.0, 1.0 / 64.0),
        _ => return None,
    })
}

/// The step, in the 8 bits of a bf16, at which a sum of `fan_in` products with inputs of unit deviation
/// has the given one.
fn fan_step(deviation: f64, fan_in: usize) -> f32 {
    bf16::from_f32((deviation / (VARIANCE * fan_in as f64).sqrt()) as f32).to_f32()
}

/// `base + n step`. Both have so few bits that product and sum are exact in f32, whatever the order.
fn lanes(base_and_step: impl Fn(usize) -> (f32, f32)) -> Lanes {
    std::array::from_fn(|lane| {
        let (base, step) = base_and_step(lane);
        values(|n| base + n * step)
    })
}

/// The final norm, zero-centred: the factor `1 + w` is `+-(base + |n| step)`, with the sign of `n`; in
/// the read columns it is negative, so that what a token itself left in the stream speaks against it.
fn final_norm() -> Lanes {
    std::array::from_fn(|lane| {
        let (base, step) = if lane == READ { (5.0, 1.0 / 8.0) } else { (0.1875, 1.0 / 128.0) };
        values(|n| {
            let size = base + n.abs() * step;
            if n < 0.0 || lane == READ { -size - 1.0 } else { size - 1.0 }
        })
    })
}

/// A lane: the value of every integer, rounded to nearest even bf16.
fn values(of: impl Fn(f32) -> f32) -> Lane {
    std::array::from_fn(|index| bf16::from_f32(of((index as i32 - LARGEST) as f32)))
}
