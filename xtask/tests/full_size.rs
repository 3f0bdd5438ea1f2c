//! What crosses to the device for the 0.8B at its full size, in exact numbers: those of the tiny model
//! with more layers. No time is looked at. The weights are zeros, of which nothing that is counted
//! depends, so the only large memory is the device's.

#![cfg(test)]

use qwen35_model::checkpoint::{Checkpoint, DtypeRule, Embedded, inventory};
use qwen35_model::{Config, Model, Prefill, Qwen35_0_8B, Sequence};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tt_backend_tenstorrent::{Session, SessionOptions, StagingStats, Tenstorrent};
use tt_dsl::{Backend, Dim};

type C = Qwen35_0_8B;

const LAYERS: u64 = 24;
const FULL: u64 = LAYERS / 4;

/// 14 in each DeltaNet layer, 11 in each attention layer, the embedding and the last norm.
const TENSORS: u64 = 14 * (LAYERS - FULL) + 11 * FULL + 2;

/// Two bytes for each of the published parameters, and two more for those that are kept in f32: a
/// decay a value head and a norm weight a value dim, in each DeltaNet layer.
const WEIGHT_BYTES: u64 = 2 * 752_393_024 + 2 * (16 + 128) * (LAYERS - FULL);

/// Rotary tables and embedding; 17 in a DeltaNet layer, 18 in an attention layer; last row, norm, head
/// and argmax.
const COMMANDS: u64 = 2 + 17 * (LAYERS - FULL) + 18 * FULL + 4;

fn config() -> Vec<u8> {
    let kind = |i| if C::is_full_attention(i) { "full_attention" } else { "linear_attention" };
    let config = json!({
        "model_type": "qwen3_5_text",
        "vocab_size": <C as Config>::Vocab::SIZE,
        "hidden_size": <C as Config>::Hidden::SIZE,
        "intermediate_size": <C as Config>::Intermediate::SIZE,
        "num_hidden_layers": C::LAYERS,
        "num_attention_heads": <C as Config>::Heads::SIZE,
        "num_key_value_heads": <C as Config>::KvHeads::SIZE,
        "head_dim": <C as Config>::HeadDim::SIZE,
        "linear_num_key_heads": <C as Config>::KeyHeads::SIZE,
        "linear_num_value_heads": <C as Config>::ValueHeads::SIZE,
        "linear_key_head_dim": <C as Config>::KeyDim::SIZE,
        "linear_value_head_dim": <C as Config>::ValueDim::SIZE,
        "linear_conv_kernel_dim": <C as Config>::ConvKernel::SIZE,
        "layer_types": (0..C::LAYERS).map(kind).collect::<Vec<_>>(),
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": C::MAX_POSITIONS,
        "eos_token_id": C::EOS,
        "hidden_act": "silu",
        "attn_output_gate": true,
        "tie_word_embeddings": C::TIED,
        "rope_parameters": {"rope_type": "default", "rope_theta": C::ROPE_THETA, "partial_rotary_factor": 0.25},
    });
    config.to_string().into_bytes()
}

/// A safetensors file of zeros with every tensor of the model. Its pages are never written, so the
/// system has them in one place.
fn zeros() -> Vec<u8> {
    let (mut header, mut end) = (Map::new(), 0);
    for expected in inventory::<C>() {
        let (dtype, size) = match expected.dtypes {
            DtypeRule::Bf16 => ("BF16", 2),
            DtypeRule::F32OrBf16 => ("F32", 4),
        };
        let start = end;
        end += expected.sizes.iter().product::<usize>() * size;
        header.insert(
            format!("model.language_model.{}", expected.name),
            json!({"dtype": dtype, "shape": expected.sizes, "data_offsets": [start, end]}),
        );
    }
    let mut header = Value::Object(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let mut file = vec![0; 8 + header.len() + end];
    file[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
    file[8..8 + header.len()].copy_from_slice(header.as_bytes());
    file
}

/// Counters without the one that is a time.
fn untimed(stats: StagingStats) -> StagingStats {
    StagingStats { device_nanos: 0, ..stats }
}

#[test]
fn the_0_8b_crosses_as_the_tiny_model_does() {
    let (config, weights) = (config(), zeros());
    let files = Embedded { config: config.leak(), weights: weights.leak(), tokenizer: b"" };
    let checkpoint = Checkpoint::embedded(files).unwrap();
    let verified = checkpoint.verify::<C>().unwrap();
    let session = Session::open(SessionOptions::fast()).unwrap();
    let b = Tenstorrent::new(Arc::clone(&session));

    let model = Model::<Tenstorrent, C>::load(&b, &verified.weights(&b)).unwrap();
    let load = StagingStats {
        // Device, queue and program cache, when the session is opened.
        handle_resolutions: 3,
        staging_calls: LAYERS + 1,
        h2d_writes: TENSORS,
        h2d_bytes: WEIGHT_BYTES,
        submits: LAYERS + 1,
        allocations: TENSORS,
        ..StagingStats::default()
    };
    assert_eq!(untimed(session.stats()), load);

    let mut sequence = Sequence::new(&b, &model);
    let mut step = || {
        let before = session.stats();
        let logits = sequence.append(&[42], Prefill::TokenByToken).unwrap();
        let token = b.download(&b.argmax(&logits)).unwrap();
        // The lowest of equals: all logits are zero.
        assert_eq!(token.values()[0], 0);
        untimed(session.stats() - before)
    };
    let expected = StagingStats {
        h2d_writes: 1,
        // Position, number of rows and id, of four bytes each.
        h2d_bytes: 4 * 3,
        d2h_reads: 1,
        d2h_bytes: 4,
        submits: LAYERS,
        commands: COMMANDS,
        program_cache_hits: COMMANDS,
        ..StagingStats::default()
    };
    // The first makes its programs and its places.
    let first = step();
    assert_eq!(first.program_cache_hits + first.program_cache_misses, COMMANDS);
    let StagingStats { allocations, program_cache_hits, program_cache_misses, .. } = first;
    assert_eq!(first, StagingStats { allocations, program_cache_hits, program_cache_misses, ..expected });
    for _ in 0..3 {
        assert_eq!(step(), expected);
    }
}
