"""Synthetic weights: every element of a checkpoint by a formula, the same bits as
`qwen35_model::synthetic` in Rust, so that neither side needs a file of the other's.

An element is `base + n * step`, rounded to nearest even bf16. `n` is an integer in -30..30, near to
normal (the sum of four 4-bit fields minus 30, variance 85); base and step depend on the tensor's
kind and have so few bits that the f32 sum is exact. Four elements share one 64-bit word:

    word(i) = mix(mix(seed ^ fnv1a(name)) + (i + 1) * GOLDEN),  element e in bits 16 (e % 4) .. of word(e / 4)

`name` is without the text model's prefix; `mix` is the finaliser of SplitMix64. What the kinds are for
is said in the Rust module.
"""

import argparse
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

FORMULA = 1
GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
WORDS = 1 << 20  # words made at a time
VARIANCE = 85.0  # of n


@dataclass(frozen=True)
class Sizes:
    vocab: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    eos: int
    max_positions: int
    rotary_factor: float = 0.25
    interval: int = 4
    tied: bool = True


SIZES = {
    "tiny": Sizes(1024, 192, 384, 8, 4, 2, 128, 2, 4, 64, 64, 4, 1023, 512),
    "0.8b": Sizes(248320, 1024, 3584, 24, 8, 2, 256, 16, 16, 128, 128, 4, 248044, 262144),
}


def tensors(s: Sizes) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and published dtype of every tensor of the text model, by its name without prefix."""
    h, kd, vd = s.hidden, s.key_heads * s.key_dim, s.value_heads * s.value_dim
    out = {"embed_tokens.weight": ((s.vocab, h), "BF16")}
    for i in range(s.layers):
        p = f"layers.{i}."
        out[p + "input_layernorm.weight"] = ((h,), "BF16")
        if (i + 1) % s.interval == 0:
            out[p + "self_attn.q_proj.weight"] = ((s.heads * 2 * s.head_dim, h), "BF16")
            out[p + "self_attn.k_proj.weight"] = ((s.kv_heads * s.head_dim, h), "BF16")
            out[p + "self_attn.v_proj.weight"] = ((s.kv_heads * s.head_dim, h), "BF16")
            out[p + "self_attn.o_proj.weight"] = ((h, s.heads * s.head_dim), "BF16")
            out[p + "self_attn.q_norm.weight"] = ((s.head_dim,), "BF16")
            out[p + "self_attn.k_norm.weight"] = ((s.head_dim,), "BF16")
        else:
            out[p + "linear_attn.in_proj_qkv.weight"] = ((2 * kd + vd, h), "BF16")
            out[p + "linear_attn.in_proj_z.weight"] = ((vd, h), "BF16")
            out[p + "linear_attn.in_proj_b.weight"] = ((s.value_heads, h), "BF16")
            out[p + "linear_attn.in_proj_a.weight"] = ((s.value_heads, h), "BF16")
            out[p + "linear_attn.conv1d.weight"] = ((2 * kd + vd, 1, s.conv_kernel), "BF16")
            out[p + "linear_attn.A_log"] = ((s.value_heads,), "F32")
            out[p + "linear_attn.dt_bias"] = ((s.value_heads,), "BF16")
            out[p + "linear_attn.norm.weight"] = ((s.value_dim,), "F32")
            out[p + "linear_attn.out_proj.weight"] = ((h, vd), "BF16")
        out[p + "post_attention_layernorm.weight"] = ((h,), "BF16")
        out[p + "mlp.gate_proj.weight"] = ((s.intermediate, h), "BF16")
        out[p + "mlp.up_proj.weight"] = ((s.intermediate, h), "BF16")
        out[p + "mlp.down_proj.weight"] = ((h, s.intermediate), "BF16")
    out["norm.weight"] = ((h,), "BF16")
    if not s.tied:
        out["lm_head.weight"] = ((s.vocab, h), "BF16")
    return out


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key(seed: int, name: str) -> int:
    hash = 0xCBF29CE484222325
    for byte in name.encode():
        hash = ((hash ^ byte) * 0x100000001B3) & MASK
    return mix(seed ^ hash)


def words(key: int, start: int, count: int) -> np.ndarray:
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= np.uint64(GOLDEN)
    z += np.uint64(key)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def integers(z: np.ndarray) -> np.ndarray:
    """The four integers of each word: int16, in -30..30."""
    nibbles = np.uint64(0x0F0F0F0F0F0F0F0F)
    z = (z & nibbles) + ((z >> np.uint64(4)) & nibbles)
    bytes_ = np.uint64(0x00FF00FF00FF00FF)
    z = (z & bytes_) + ((z >> np.uint64(8)) & bytes_)
    return z.view("<i2") - np.int16(30)


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Bits of the nearest even bf16. No NaN occurs."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype("<u2")


def fan_step(std: float, fan_in: int) -> np.float32:
    """The step, in 8 bits, at which a sum of `fan_in` products with unit inputs has deviation `std`."""
    step = np.float32(std / np.sqrt(VARIANCE * fan_in)).reshape(1)
    return (to_bf16(step).astype(np.uint32) << np.uint32(16)).view(np.float32)[0]


# Deviation of a linear layer's outputs for unit inputs, by the end of its name.
LINEAR = {
    "self_attn.q_proj.weight": 1.0,
    "self_attn.k_proj.weight": 1.0,
    "self_attn.v_proj.weight": 1.0,
    "self_attn.o_proj.weight": 0.046875,
    "linear_attn.in_proj_qkv.weight": 1.0,
    "linear_attn.in_proj_z.weight": 1.0,
    "linear_attn.in_proj_b.weight": 1.0,
    "linear_attn.in_proj_a.weight": 0.5,
    "linear_attn.out_proj.weight": 0.03125,
    "mlp.gate_proj.weight": 1.0,
    "mlp.up_proj.weight": 1.0,
    "mlp.down_proj.weight": 0.0234375,
}
# Base and step of a small tensor, by the end of its name.
SMALL = {
    "input_layernorm.weight": (0.0, 1 / 64),
    "post_attention_layernorm.weight": (0.0, 1 / 64),
    "self_attn.q_norm.weight": (0.375, 1 / 64),
    "self_attn.k_norm.weight": (0.375, 1 / 64),
    "linear_attn.conv1d.weight": (0.0, 1 / 16),
    "linear_attn.A_log": (1.25, 1 / 32),
    "linear_attn.dt_bias": (-4.0, 1 / 8),
    "linear_attn.norm.weight": (1.0, 1 / 64),
}
READ = 3  # this lane of every word of four columns is what the head reads
EMBED_STEP = 1 / 64
# Step of a token's read columns by the trailing zeros of its own word.
EMBED_READ = [1, 1, 1, 2, 2, 2, 4, 4, 6, 6, 8]
READ_UNIT = 1 / 1024
FINAL = [(0.1875, 1 / 128), (5.0, 1 / 8)]  # of the other columns, of the read columns


def loudness(seed: int, name: str, start: int, count: int, eos: int) -> np.ndarray:
    """The factor of each token's read columns; special and padding tokens, from `eos` on, have 0."""
    z = words(key(seed, name + ".loudness"), start, count)
    low = z & (~z + np.uint64(1))  # the lowest set bit
    zeros = np.minimum(np.log2(np.maximum(low, np.uint64(1)).astype(np.float64)).astype(int), len(EMBED_READ) - 1)
    out = np.array(EMBED_READ, np.float32)[zeros]
    out[np.arange(start, start + count) >= eos] = 0
    return out


def values(seed: int, name: str, shape: tuple[int, ...], sizes: Sizes, start: int, count: int) -> np.ndarray:
    """Words `start..start + count` of a tensor as f32, before the rounding."""
    n = integers(words(key(seed, name), start, count)).astype(np.float32).reshape(-1, 4)
    end = name.split(".", 2)[2] if name.startswith("layers.") else name
    if end in LINEAR:
        n *= fan_step(LINEAR[end], shape[1])
    elif end in SMALL:
        base, step = SMALL[end]
        n *= np.float32(step)
        n += np.float32(base)
    elif end == "norm.weight":
        sign = np.where(n < 0, np.float32(-1), np.float32(1))
        sign[:, READ] = -1
        (base, step), (read_base, read_step) = FINAL
        bases = np.array([base] * 3 + [read_base], np.float32)
        steps = np.array([step] * 3 + [read_step], np.float32)
        n = sign * (bases + np.abs(n) * steps) - np.float32(1)
    elif end in ("embed_tokens.weight", "lm_head.weight"):
        per_row = sizes.hidden // 4
        first, last = start // per_row, (start + count - 1) // per_row
        rows = (np.arange(start, start + count) // per_row) - first
        loud = loudness(seed, name, first, last - first + 1, sizes.eos)
        n[:, :READ] *= np.float32(EMBED_STEP)
        n[:, READ] *= loud[rows] * np.float32(READ_UNIT)
        n += np.float32(0)  # the base, which makes a silent token's negative zeros positive
    else:
        raise KeyError(name)
    return n.reshape(-1)


def bits(seed: int, name: str, shape: tuple[int, ...], sizes: Sizes, pool: ThreadPoolExecutor) -> np.ndarray:
    """A whole tensor as bf16 bits."""
    count = -(-int(np.prod(shape)) // 4)
    out = np.empty(count * 4, "<u2")

    def fill(start: int) -> None:
        now = min(WORDS, count - start)
        out[4 * start : 4 * (start + now)] = to_bf16(values(seed, name, shape, sizes, start, now))

    list(pool.map(fill, range(0, count, WORDS)))
    return out[: int(np.prod(shape))].reshape(shape)


def checkpoint(seed: int, sizes: Sizes, threads: int = 2):
    """Every tensor in order: name, published dtype, bf16 bits."""
    with ThreadPoolExecutor(threads) as pool:
        for name, (shape, dtype) in tensors(sizes).items():
            yield name, dtype, bits(seed, name, shape, sizes, pool)


def published_bytes(dtype: str, array: np.ndarray):
    """The bytes as a published checkpoint has them: F32 tensors hold the same values, widened."""
    return (array.astype("<u4") << np.uint32(16)) if dtype == "F32" else array


def transformers_config(s: Sizes):
    """The text model's configuration, every key written out."""
    from transformers import Qwen3_5TextConfig

    half = int(s.head_dim * s.rotary_factor) // 2
    return Qwen3_5TextConfig(
        vocab_size=s.vocab,
        hidden_size=s.hidden,
        intermediate_size=s.intermediate,
        num_hidden_layers=s.layers,
        layer_types=["linear_attention" if (i + 1) % s.interval else "full_attention" for i in range(s.layers)],
        num_attention_heads=s.heads,
        num_key_value_heads=s.kv_heads,
        head_dim=s.head_dim,
        attention_bias=False,
        linear_num_key_heads=s.key_heads,
        linear_num_value_heads=s.value_heads,
        linear_key_head_dim=s.key_dim,
        linear_value_head_dim=s.value_dim,
        linear_conv_kernel_dim=s.conv_kernel,
        hidden_act="silu",
        rms_norm_eps=1e-6,
        max_position_embeddings=s.max_positions,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": s.rotary_factor,
            "mrope_section": [-(-half // 3), (half + 1) // 3, half // 3],
            "mrope_interleaved": True,
        },
        tie_word_embeddings=s.tied,
        eos_token_id=s.eos,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the SHA-256 of every tensor's bytes.")
    parser.add_argument("--config", choices=SIZES, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sums = {
        name: hashlib.sha256(published_bytes(dtype, array).data).hexdigest()
        for name, dtype, array in checkpoint(args.seed, SIZES[args.config])
    }
    print(json.dumps(sums, indent=1))


if __name__ == "__main__":
    main()
