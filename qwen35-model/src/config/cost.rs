//! What a configuration needs of a machine: constants of its type, known before a weight is seen.
//!
//! Bytes are those of the model itself: bf16 for weights, activations that are kept and the
//! key/value cache, f32 for the recurrent state, `A_log` and the gated norm's weight. What a backend
//! adds, tiles filled up or scratch, is not among them.

use super::Config;
use core::marker::PhantomData;
use tt_dsl::Dim;

const BF16: u64 = 2;
const F32: u64 = 4;

/// The cost of configuration `C`, all of it in constants.
pub struct Cost<C>(PhantomData<fn() -> C>);

/// Elements of the tensors of a layer, by what a decoded token does with them.
struct Elements {
    /// Of matrices that a token is multiplied with.
    matrices: u64,
    /// Of vectors in bf16: norms, convolution, biases.
    bf16: u64,
    /// Of vectors in f32.
    f32: u64,
}

impl<C: Config> Cost<C> {
    const VOCAB: u64 = C::Vocab::SIZE as u64;
    const HIDDEN: u64 = C::Hidden::SIZE as u64;
    const HEADS: u64 = C::Heads::SIZE as u64;
    const HEAD_DIM: u64 = C::HeadDim::SIZE as u64;
    /// Width of the keys, and of the values, of a full-attention layer.
    const KV: u64 = C::KvHeads::SIZE as u64 * Self::HEAD_DIM;
    const VALUE_HEADS: u64 = C::ValueHeads::SIZE as u64;
    /// Width of the values of a Gated DeltaNet layer.
    const VALUES: u64 = Self::VALUE_HEADS * C::ValueDim::SIZE as u64;
    /// Channels of its convolution: queries, keys, values.
    const CHANNELS: u64 = 2 * (C::KeyHeads::SIZE * C::KeyDim::SIZE) as u64 + Self::VALUES;
    const TAPS: u64 = C::ConvKernel::SIZE as u64;

    /// Layers of full attention.
    pub const FULL_LAYERS: u64 = (C::LAYERS / C::FULL_ATTENTION_INTERVAL) as u64;
    /// Layers of Gated DeltaNet.
    pub const LINEAR_LAYERS: u64 = C::LAYERS as u64 - Self::FULL_LAYERS;

    /// The norms and the MLP, which every layer has.
    const SHARED: Elements = Elements {
        matrices: 3 * Self::HIDDEN * C::Intermediate::SIZE as u64,
        bf16: 2 * Self::HIDDEN,
        f32: 0,
    };
    /// Queries with their gates, keys, values, output.
    const FULL: Elements = Elements {
        matrices: Self::HIDDEN * (3 * Self::HEADS * Self::HEAD_DIM + 2 * Self::KV),
        bf16: 2 * Self::HEAD_DIM,
        f32: 0,
    };
    /// Channels, z, the two gates, output; convolution and `dt_bias`; `A_log` and the gated norm.
    const LINEAR: Elements = Elements {
        matrices: Self::HIDDEN * (Self::CHANNELS + 2 * Self::VALUES + 2 * Self::VALUE_HEADS),
        bf16: Self::CHANNELS * Self::TAPS + Self::VALUE_HEADS,
        f32: Self::VALUE_HEADS + C::ValueDim::SIZE as u64,
    };

    const LAYER_MATRICES: u64 = C::LAYERS as u64 * Self::SHARED.matrices
        + Self::FULL_LAYERS * Self::FULL.matrices
        + Self::LINEAR_LAYERS * Self::LINEAR.matrices;
    const BF16_VECTORS: u64 = C::LAYERS as u64 * Self::SHARED.bf16
        + Self::FULL_LAYERS * Self::FULL.bf16
        + Self::LINEAR_LAYERS * Self::LINEAR.bf16
        + Self::HIDDEN;
    const F32_VECTORS: u64 = Self::LINEAR_LAYERS * Self::LINEAR.f32;
    /// The embedding, and the head where it has a matrix of its own.
    const TABLES: u64 = if C::TIED { 1 } else { 2 };

    /// Parameters of the text model.
    pub const PARAMETERS: u64 = Self::TABLES * Self::VOCAB * Self::HIDDEN
        + Self::LAYER_MATRICES
        + Self::BF16_VECTORS
        + Self::F32_VECTORS;

    /// Parameters without the embedding and the head: what a prompt's token is multiplied with.
    pub const LAYER_PARAMETERS: u64 = Self::PARAMETERS - Self::TABLES * Self::VOCAB * Self::HIDDEN;

    /// Bytes of the weights.
    pub const WEIGHT_BYTES: u64 = BF16 * (Self::PARAMETERS - Self::F32_VECTORS) + F32 * Self::F32_VECTORS;

    /// Bytes that a sequence keeps whatever its length: recurrent states in f32, and the last inputs
    /// of the convolutions in bf16.
    pub const STATE_BYTES: u64 = Self::LINEAR_LAYERS
        * (F32 * Self::VALUES * C::KeyDim::SIZE as u64 + BF16 * Self::CHANNELS * (Self::TAPS - 1));

    /// Bytes of keys and values that a sequence keeps for each of its tokens.
    pub const KV_BYTES_PER_TOKEN: u64 = Self::FULL_LAYERS * 2 * Self::KV * BF16;

    /// Bytes of weights that a decode step reads: all but the embedding where the head is another
    /// matrix, and then one row of it.
    pub const DECODE_WEIGHT_BYTES: u64 =
        if C::TIED { Self::WEIGHT_BYTES } else { Self::WEIGHT_BYTES - BF16 * Self::VOCAB * Self::HIDDEN };

    /// Bytes that a decode step reads after `context` tokens: weights, state, keys and values.
    pub const fn decode_bytes(context: u64) -> u64 {
        Self::DECODE_WEIGHT_BYTES + Self::STATE_BYTES + context * Self::KV_BYTES_PER_TOKEN
    }

    /// Floating-point operations of a decode step whatever the context, a multiplication and an
    /// addition being two: matrices with the head, convolutions, and the delta rule, which for each
    /// element of a state decays (1), reads with the key (2), writes (2) and reads with the query (2).
    pub const DECODE_FLOPS: u64 = 2 * (Self::LAYER_MATRICES + Self::VOCAB * Self::HIDDEN)
        + Self::LINEAR_LAYERS * (2 * Self::CHANNELS * Self::TAPS + 7 * Self::VALUES * C::KeyDim::SIZE as u64);

    /// Floating-point operations that each token of the context adds to a decode step: its product
    /// with the query and its part of the sum of values, in each head.
    pub const DECODE_FLOPS_PER_POSITION: u64 = Self::FULL_LAYERS * 4 * Self::HEADS * Self::HEAD_DIM;

    /// Floating-point operations of the matrix products of a prompt of `rows` tokens from an empty
    /// context: the layers' matrices for each, the head for the last, and attention, where a token
    /// meets itself and those before it. Norms, gates and the delta rule are not counted.
    pub const fn prefill_flops(rows: u64) -> u64 {
        2 * (rows * Self::LAYER_MATRICES + Self::VOCAB * Self::HIDDEN)
            + rows * (rows + 1) / 2 * Self::DECODE_FLOPS_PER_POSITION
    }

    /// Bytes of the weights and of one sequence with `positions` tokens.
    pub const fn resident_bytes(positions: u64) -> u64 {
        Self::WEIGHT_BYTES + Self::STATE_BYTES + positions * Self::KV_BYTES_PER_TOKEN
    }

    /// The tokens of the longest sequence whose weights, state and cache fit `bytes`, at most
    /// `MAX_POSITIONS`; none if not even the weights and the state do.
    pub const fn longest_in(bytes: u64) -> Option<u64> {
        let fixed = Self::resident_bytes(0);
        if bytes < fixed {
            return None;
        }
        let positions = (bytes - fixed) / Self::KV_BYTES_PER_TOKEN;
        let most = C::MAX_POSITIONS as u64;
        Some(if positions < most { positions } else { most })
    }
}

/// What was published, held against what follows from the dims: a wrong dim does not compile.
const _: () = {
    use super::{Qwen35_0_8B, Qwen35_2B, Qwen35_4B, Qwen35_9B, Qwen35_27B};

    assert!(Cost::<Qwen35_0_8B>::PARAMETERS == 752_393_024);
    assert!(Cost::<Qwen35_2B>::PARAMETERS == 1_881_825_088);
    assert!(Cost::<Qwen35_4B>::PARAMETERS == 4_205_751_296);
    assert!(Cost::<Qwen35_9B>::PARAMETERS == 8_953_803_264);
    assert!(Cost::<Qwen35_27B>::PARAMETERS == 26_895_998_464);

    assert!(Cost::<Qwen35_0_8B>::KV_BYTES_PER_TOKEN == 12_288);
    assert!(Cost::<Qwen35_2B>::KV_BYTES_PER_TOKEN == 12_288);
    assert!(Cost::<Qwen35_4B>::KV_BYTES_PER_TOKEN == 32_768);
    assert!(Cost::<Qwen35_9B>::KV_BYTES_PER_TOKEN == 32_768);
    assert!(Cost::<Qwen35_27B>::KV_BYTES_PER_TOKEN == 65_536);

    // 18.63, 49.12 and 146.81 MiB.
    assert!(Cost::<Qwen35_0_8B>::STATE_BYTES == 19_537_920);
    assert!(Cost::<Qwen35_4B>::STATE_BYTES == 51_511_296);
    assert!(Cost::<Qwen35_27B>::STATE_BYTES == 153_944_064);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{DtypeRule, inventory};
    use crate::known::{ForConfig, Known};

    /// The list of tensors that a checkpoint is held against was written apart from the constants.
    struct SameAsInventory;

    impl ForConfig for SameAsInventory {
        type Output = ();

        fn run<C: Config>(self) {
            let list = inventory::<C>();
            let elements = |of: DtypeRule| -> u64 {
                let those = list.iter().filter(|expected| expected.dtypes == of);
                those.map(|expected| expected.sizes.iter().product::<usize>() as u64).sum()
            };
            let (bf16, f32) = (elements(DtypeRule::Bf16), elements(DtypeRule::F32OrBf16));
            assert_eq!(Cost::<C>::PARAMETERS, bf16 + f32, "{}", C::NAME);
            assert_eq!(Cost::<C>::WEIGHT_BYTES, 2 * bf16 + 4 * f32, "{}", C::NAME);
        }
    }

    #[test]
    fn constants_agree_with_the_list_of_tensors() {
        for &known in Known::ALL {
            known.with(SameAsInventory);
        }
    }

    #[test]
    fn a_decode_step_of_the_smallest_reads_what_was_published() {
        use crate::{Qwen35_0_8B, Qwen35_27B};

        // 1.505 and 51.249 GB.
        assert_eq!(Cost::<Qwen35_0_8B>::DECODE_WEIGHT_BYTES / 1_000_000, 1504);
        assert_eq!(Cost::<Qwen35_27B>::DECODE_WEIGHT_BYTES / 1_000_000, 51_249);
        assert_eq!(Cost::<Qwen35_0_8B>::longest_in(32_000_000_000), Some(262_144));
        assert_eq!(Cost::<Qwen35_27B>::longest_in(32_000_000_000), None);
    }
}
