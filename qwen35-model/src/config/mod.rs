//! The sizes of a Qwen3.5 text model as types, and the facts between them.
//!
//! Every fact that a layer relies on is an item bound here, so it holds for each `C: Config`, and
//! a configuration that breaks one does not compile.
//!
//! The configurations are in [`sizes`], and what each needs of a machine in [`cost`].

pub mod cost;
pub mod sizes;

pub use cost::Cost;
pub use sizes::{Qwen35_0_8B, Qwen35_2B, Qwen35_4B, Qwen35_9B, Qwen35_27B, Tiny, qwen35_0_8b, tiny};

use tt_dsl::{AtLeast, By, Dim, MultipleOf, SameSize, TileAligned, Two};

/// A Qwen3.5 text model's configuration. The doc of each item names its key in `config.json`.
pub trait Config: 'static {
    /// `vocab_size`: rows of the embedding table, used or not.
    type Vocab: Dim;
    /// `hidden_size`: width of the residual stream.
    type Hidden: Dim + TileAligned;
    /// `intermediate_size`: width inside an MLP.
    type Intermediate: Dim + TileAligned;

    /// `num_attention_heads`: query heads, shared out evenly over the key/value heads.
    type Heads: Dim + MultipleOf<Self::KvHeads>;
    /// `num_key_value_heads`.
    type KvHeads: Dim;
    /// `head_dim`.
    type HeadDim: Dim + TileAligned + AtLeast<Self::RotaryDim>;
    /// The width of the queries, and of the output projection's input.
    type QDim: Dim + SameSize<By<Self::Heads, Self::HeadDim>>;
    /// `head_dim x partial_rotary_factor`: the leading elements of a head that RoPE rotates.
    type RotaryDim: Dim + MultipleOf<Two>;

    /// `linear_num_key_heads`.
    type KeyHeads: Dim;
    /// `linear_num_value_heads`, shared out evenly over the key heads.
    type ValueHeads: Dim + MultipleOf<Self::KeyHeads>;
    /// `linear_key_head_dim`.
    type KeyDim: Dim + TileAligned;
    /// `linear_value_head_dim`.
    type ValueDim: Dim + TileAligned;
    /// `linear_conv_kernel_dim`.
    type ConvKernel: Dim;

    /// How many positions this build keeps in a key/value cache; at most `MAX_POSITIONS`.
    type Context: Dim;

    /// The name in messages.
    const NAME: &'static str;
    /// `num_hidden_layers`.
    const LAYERS: usize;
    /// `full_attention_interval`: layer `i` is full attention when `(i + 1)` is a multiple.
    const FULL_ATTENTION_INTERVAL: usize;
    /// `rms_norm_eps`.
    const RMS_EPS: f32;
    /// `rope_parameters.rope_theta`.
    const ROPE_THETA: f64;
    /// `rope_parameters.partial_rotary_factor`.
    const PARTIAL_ROTARY_FACTOR: f64;
    /// `max_position_embeddings`.
    const MAX_POSITIONS: usize;
    /// `eos_token_id`.
    const EOS: u32;
    /// `tie_word_embeddings`: the head is the embedding table.
    const TIED: bool;

    /// Whether layer `i`, from 0, is full attention; the others are Gated DeltaNet.
    fn is_full_attention(i: usize) -> bool {
        (i + 1).is_multiple_of(Self::FULL_ATTENTION_INTERVAL)
    }
}
