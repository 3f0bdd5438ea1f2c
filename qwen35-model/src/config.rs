//! The sizes of a Qwen3.5 text model as types, and the facts between them.
//!
//! Every fact that a layer relies on is an item bound here, so it holds for each `C: Config`, and
//! a configuration that breaks one does not compile.

use tt_dsl::{AtLeast, By, Dim, MultipleOf, SameSize, TileAligned, Two, dim};

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

/// Dims of the trained golden checkpoint in `goldens/tiny`.
pub mod tiny {
    use super::dim;

    dim! {
        pub Vocab = 1024;
        pub Hidden = 192;
        pub Intermediate = 384;
        pub Heads = 4;
        pub KvHeads = 2;
        pub HeadDim = 128;
        pub QDim = 512;
        pub RotaryDim = 32;
        pub KeyHeads = 2;
        pub ValueHeads = 4;
        pub KeyDim = 64;
        pub ValueDim = 64;
        pub ConvKernel = 4;
        pub Context = 512;
    }
}

/// The trained golden checkpoint: small, but with every feature of the architecture, and with two
/// value heads per key head as the larger Qwen3.5 sizes have.
#[derive(Debug)]
pub enum Tiny {}

impl Config for Tiny {
    type Vocab = tiny::Vocab;
    type Hidden = tiny::Hidden;
    type Intermediate = tiny::Intermediate;
    type Heads = tiny::Heads;
    type KvHeads = tiny::KvHeads;
    type HeadDim = tiny::HeadDim;
    type QDim = tiny::QDim;
    type RotaryDim = tiny::RotaryDim;
    type KeyHeads = tiny::KeyHeads;
    type ValueHeads = tiny::ValueHeads;
    type KeyDim = tiny::KeyDim;
    type ValueDim = tiny::ValueDim;
    type ConvKernel = tiny::ConvKernel;
    type Context = tiny::Context;

    const NAME: &'static str = "Tiny";
    const LAYERS: usize = 8;
    const FULL_ATTENTION_INTERVAL: usize = 4;
    const RMS_EPS: f32 = 1e-6;
    const ROPE_THETA: f64 = 1e7;
    const PARTIAL_ROTARY_FACTOR: f64 = 0.25;
    const MAX_POSITIONS: usize = 512;
    const EOS: u32 = 1023;
    const TIED: bool = true;
}

/// Dims of Qwen3.5-0.8B.
pub mod qwen35_0_8b {
    use super::dim;

    dim! {
        pub Vocab = 248_320;
        pub Hidden = 1024;
        pub Intermediate = 3584;
        pub Heads = 8;
        pub KvHeads = 2;
        pub HeadDim = 256;
        pub QDim = 2048;
        pub RotaryDim = 64;
        pub KeyHeads = 16;
        pub ValueHeads = 16;
        pub KeyDim = 128;
        pub ValueDim = 128;
        pub ConvKernel = 4;
        pub Context = 8192;
    }
}

/// Qwen3.5-0.8B as published, with a context of 8192 of its 262,144 positions: 96 MiB of cache.
#[derive(Debug)]
pub enum Qwen35_0_8B {}

impl Config for Qwen35_0_8B {
    type Vocab = qwen35_0_8b::Vocab;
    type Hidden = qwen35_0_8b::Hidden;
    type Intermediate = qwen35_0_8b::Intermediate;
    type Heads = qwen35_0_8b::Heads;
    type KvHeads = qwen35_0_8b::KvHeads;
    type HeadDim = qwen35_0_8b::HeadDim;
    type QDim = qwen35_0_8b::QDim;
    type RotaryDim = qwen35_0_8b::RotaryDim;
    type KeyHeads = qwen35_0_8b::KeyHeads;
    type ValueHeads = qwen35_0_8b::ValueHeads;
    type KeyDim = qwen35_0_8b::KeyDim;
    type ValueDim = qwen35_0_8b::ValueDim;
    type ConvKernel = qwen35_0_8b::ConvKernel;
    type Context = qwen35_0_8b::Context;

    const NAME: &'static str = "Qwen3.5-0.8B";
    const LAYERS: usize = 24;
    const FULL_ATTENTION_INTERVAL: usize = 4;
    const RMS_EPS: f32 = 1e-6;
    const ROPE_THETA: f64 = 1e7;
    const PARTIAL_ROTARY_FACTOR: f64 = 0.25;
    const MAX_POSITIONS: usize = 262_144;
    const EOS: u32 = 248_044;
    const TIED: bool = true;
}
