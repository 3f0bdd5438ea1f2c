//! The configurations: the trained golden checkpoint, and the dense models as published.
//!
//! The dims of each are in a module of its own, so that a message about a size names it as a layer
//! does: `Hidden`, `HeadDim`.

use super::Config;
use tt_dsl::dim;

/// Declares a configuration and the module of its dims.
macro_rules! config {
    (
        $(#[$doc:meta])*
        $config:ident in $module:ident = $name:literal:
        $($dim:ident = $size:literal,)*;
        $($constant:ident: $type:ty = $value:expr,)*
    ) => {
        #[doc = concat!("Dims of ", $name, ".")]
        pub mod $module {
            use super::dim;

            dim! { $(pub $dim = $size;)* }
        }

        $(#[$doc])*
        #[derive(Debug)]
        pub enum $config {}

        impl Config for $config {
            $(type $dim = $module::$dim;)*

            const NAME: &'static str = $name;
            $(const $constant: $type = $value;)*
        }
    };
}

/// Declares a published configuration: what differs from size to size, and what all share.
macro_rules! published {
    (
        $(#[$doc:meta])*
        $config:ident in $module:ident = $name:literal:
        $($dim:ident = $size:literal,)*;
        $($constant:ident: $type:ty = $value:expr,)*
    ) => {
        config! {
            $(#[$doc])*
            ///
            /// Of its 262,144 positions a key/value cache keeps 40,960: 32,768 to read and 8,192 to
            /// write.
            $config in $module = $name:
            $($dim = $size,)*
            Vocab = 248_320,
            HeadDim = 256,
            RotaryDim = 64,
            KeyHeads = 16,
            KeyDim = 128,
            ValueDim = 128,
            ConvKernel = 4,
            Context = 40_960,;
            $($constant: $type = $value,)*
            FULL_ATTENTION_INTERVAL: usize = 4,
            RMS_EPS: f32 = 1e-6,
            ROPE_THETA: f64 = 1e7,
            PARTIAL_ROTARY_FACTOR: f64 = 0.25,
            MAX_POSITIONS: usize = 262_144,
            EOS: u32 = 248_044,
        }
    };
}

config! {
    /// The trained golden checkpoint in `goldens/tiny`: small, but with every feature of the
    /// architecture, and with two value heads per key head as the larger sizes have.
    Tiny in tiny = "Tiny":
    Vocab = 1024,
    Hidden = 192,
    Intermediate = 384,
    Heads = 4,
    KvHeads = 2,
    HeadDim = 128,
    QDim = 512,
    RotaryDim = 32,
    KeyHeads = 2,
    ValueHeads = 4,
    KeyDim = 64,
    ValueDim = 64,
    ConvKernel = 4,
    Context = 512,;
    LAYERS: usize = 8,
    FULL_ATTENTION_INTERVAL: usize = 4,
    RMS_EPS: f32 = 1e-6,
    ROPE_THETA: f64 = 1e7,
    PARTIAL_ROTARY_FACTOR: f64 = 0.25,
    MAX_POSITIONS: usize = 512,
    EOS: u32 = 1023,
    TIED: bool = true,
}

published! {
    /// Qwen3.5-0.8B as published.
    Qwen35_0_8B in qwen35_0_8b = "Qwen3.5-0.8B":
    Hidden = 1024,
    Intermediate = 3584,
    Heads = 8,
    KvHeads = 2,
    QDim = 2048,
    ValueHeads = 16,;
    LAYERS: usize = 24,
    TIED: bool = true,
}

published! {
    /// Qwen3.5-2B as published.
    Qwen35_2B in qwen35_2b = "Qwen3.5-2B":
    Hidden = 2048,
    Intermediate = 6144,
    Heads = 8,
    KvHeads = 2,
    QDim = 2048,
    ValueHeads = 16,;
    LAYERS: usize = 24,
    TIED: bool = true,
}

published! {
    /// Qwen3.5-4B as published.
    Qwen35_4B in qwen35_4b = "Qwen3.5-4B":
    Hidden = 2560,
    Intermediate = 9216,
    Heads = 16,
    KvHeads = 4,
    QDim = 4096,
    ValueHeads = 32,;
    LAYERS: usize = 32,
    TIED: bool = true,
}

published! {
    /// Qwen3.5-9B as published; the head has a matrix of its own.
    Qwen35_9B in qwen35_9b = "Qwen3.5-9B":
    Hidden = 4096,
    Intermediate = 12_288,
    Heads = 16,
    KvHeads = 4,
    QDim = 4096,
    ValueHeads = 32,;
    LAYERS: usize = 32,
    TIED: bool = false,
}

published! {
    /// Qwen3.5-27B as published; the head has a matrix of its own.
    Qwen35_27B in qwen35_27b = "Qwen3.5-27B":
    Hidden = 5120,
    Intermediate = 17_408,
    Heads = 24,
    KvHeads = 4,
    QDim = 6144,
    ValueHeads = 48,;
    LAYERS: usize = 64,
    TIED: bool = false,
}
