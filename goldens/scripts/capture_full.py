"""Records what Hugging Face transformers computes for a model of a published size.

    capture_full.py --out DIR --prompts FILE --synthetic 0.8b [--seed N] [--clear NATS] [--found JSON]
    capture_full.py --out DIR --prompts FILE --checkpoint DIR --model NAME
    capture_full.py --out DIR --prompts FILE --not-captured --model NAME

FILE is a JSON list of {"text", "ids"}, or a manifest with such prompts. With `--synthetic` the weights
are those of synthetic.py, and the manifest names them instead of a file. With `--clear` the file has
more prompts: of those on which the bf16 and the f32 run agree at every cell with no gap below the bound,
the origin's are kept and then those with the largest least gap, 16 in all. With `--not-captured`
only a manifest is written, which waits for somebody with the weights to run the second form.

As capture.py, but the vocabulary is too large to keep whole rows: of each cell the LARGEST likeliest
tokens of the f32 run are kept, in both runs, and the logarithm of the summed exponentials of all
others. `mean_kl_bf16_to_f32` is over these, the others taken as one outcome.
"""

import argparse
import gc
import hashlib
import json
import platform
import time
from pathlib import Path

import numpy
import safetensors
import torch
import transformers
from safetensors.torch import save_file

import runs
import synthetic
from capture import DTYPE_NAMES, TOP, entry

PROMPTS = 16
LARGEST = 2048
LAYER_PROMPTS = [0]
# One of each kind, to find which kind differs when the whole does.
SAMPLE = [
    "norm.weight",
    "layers.0.input_layernorm.weight",
    "layers.0.linear_attn.in_proj_b.weight",
    "layers.0.linear_attn.conv1d.weight",
    "layers.0.linear_attn.A_log",
    "layers.0.linear_attn.dt_bias",
    "layers.0.linear_attn.norm.weight",
    "layers.0.linear_attn.out_proj.weight",
    "layers.0.mlp.down_proj.weight",
    "layers.3.self_attn.k_proj.weight",
    "layers.3.self_attn.o_proj.weight",
    "layers.3.self_attn.q_norm.weight",
]


def synthetic_weights(config: str, seed: int) -> tuple[dict[str, torch.Tensor], dict]:
    """The state dict, in bf16, and what the manifest says of it."""
    state, whole, sample = {}, hashlib.sha256(), {}
    for name, dtype, bits in synthetic.checkpoint(seed, synthetic.SIZES[config]):
        data = synthetic.published_bytes(dtype, bits).data
        whole.update(data)
        if name in SAMPLE:
            sample[name] = hashlib.sha256(data).hexdigest()
        full = name if name == "lm_head.weight" else f"model.{name}"
        state[full] = torch.from_numpy(bits.view(numpy.int16)).view(torch.bfloat16)
    facts = {"formula": synthetic.FORMULA, "config": config, "seed": seed, "sha256": whole.hexdigest(), "tensors": sample}
    return state, facts


class Source:
    """Where the model comes from, in either dtype."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.checkpoint, self.weights = args.checkpoint, None
        if args.synthetic:
            self.config = synthetic.transformers_config(synthetic.SIZES[args.synthetic])
            self.state, self.weights = synthetic_weights(args.synthetic, args.seed)

    def load(self, dtype: torch.dtype):
        if self.checkpoint:
            return runs.load(self.checkpoint, dtype)
        model = transformers.Qwen3_5ForCausalLM.from_pretrained(
            None, config=self.config, state_dict=dict(self.state), dtype=dtype, attn_implementation="sdpa"
        )
        return model.eval()


def top(name: str, logits: torch.Tensor, tensors: dict) -> None:
    """logits: [prompts, steps, vocabulary]"""
    ids = runs.ranked(logits)[..., :TOP]
    tensors[f"{name}.tokens"] = ids[..., 0].to(torch.int32)
    tensors[f"{name}.top_ids"] = ids.to(torch.int32)
    tensors[f"{name}.top_logprobs"] = logits.double().log_softmax(-1).gather(-1, ids).float()


def largest(name: str, logits: torch.Tensor, ids: torch.Tensor, tensors: dict) -> torch.Tensor:
    """Keeps the logits of `ids` and the rest as one, and returns both as log-probabilities."""
    kept = logits.gather(-1, ids)
    rest = logits.double().scatter(-1, ids, -torch.inf).logsumexp(-1)
    tensors[f"{name}.largest"] = kept
    tensors[f"{name}.rest"] = rest.float()
    return torch.cat([kept.double(), rest[..., None]], -1).log_softmax(-1)


def free_running(model, ids: list[list[int]]) -> list[list[int]]:
    """Greedy continuations with the cache, prompts of one length at once."""
    out = [[] for _ in ids]
    for length in {len(i) for i in ids}:
        these = [p for p, i in enumerate(ids) if len(i) == length]
        step, cache = torch.tensor([ids[p] for p in these]), None
        for _ in range(runs.STEPS):
            with torch.no_grad():
                result = model(input_ids=step, cache=cache, use_cache=True, logits_to_keep=1)
            cache, step = result.cache, runs.ranked(result.logits[:, -1])[:, :1]
            for p, token in zip(these, step[:, 0].tolist()):
                out[p].append(token)
    return out


def least_gap(half: torch.Tensor, full: torch.Tensor) -> float:
    """In nats, of both runs; 0 if they disagree on a cell."""
    same = bool((runs.ranked(half)[:, 0] == runs.ranked(full)[:, 0]).all())
    return min(float(runs.gaps(logits).min()) for logits in (half, full)) / 1000 if same else 0.0


def capture(source: Source, prompts: list[dict], clear: float | None, tensors: dict) -> dict:
    """Drops the prompts that are not clear from the list."""
    model = source.load(torch.bfloat16)
    decoded = [runs.decode(model, prompt["ids"]) for prompt in prompts]
    layers = {p: runs.layers(model, prompts[p]["ids"]) for p in range(len(prompts))}
    # Two models of this size need not fit together.
    del model
    gc.collect()

    model = source.load(torch.float32)
    forced = [runs.forced(model, prompt["ids"], tokens) for prompt, (tokens, _) in zip(prompts, decoded)]
    kept = range(len(prompts))
    if clear is not None:
        gaps = [least_gap(logits, full) for (_, logits), full in zip(decoded, forced)]
        kept = [p for p in kept if gaps[p] >= clear]
        print(f"{len(kept)} of {len(prompts)} prompts are clear", flush=True)
        if len(kept) < PROMPTS:
            raise SystemExit(f"{PROMPTS} are needed")
        kept = sorted(sorted(kept, key=lambda p: (not prompts[p]["origin"], -gaps[p]))[:PROMPTS])
    prompts[:] = [prompts[p] for p in kept]
    ids = [prompt["ids"] for prompt in prompts]
    golden = [decoded[p][0] for p in kept]
    half, full = torch.stack([decoded[p][1] for p in kept]), torch.stack([forced[p] for p in kept])
    del decoded, forced
    top("bf16", half, tensors)
    top("f32", full, tensors)
    for p in LAYER_PROMPTS:
        tensors[f"layers.{p:02}.bf16"] = layers[kept[p]]
        tensors[f"layers.{p:02}.f32"] = runs.layers(model, ids[p])
    free = free_running(model, ids)
    del model
    gc.collect()

    chosen = runs.ranked(full)[..., :LARGEST].contiguous()
    tensors["largest.ids"] = chosen.to(torch.int32)
    p, q = (largest(name, logits, chosen, tensors) for name, logits in (("f32", full), ("bf16", half)))
    mean_kl = float((p.exp() * (p - q)).sum(-1).mean())

    assert tensors["bf16.tokens"].tolist() == golden
    assert all(bool(t.isfinite().all()) for t in tensors.values())
    # By how much the two runs differ in what decides a token: the gap of the f32 run's first two.
    two = runs.ranked(full)[..., :2]
    gap_full, gap_half = (logits.double().gather(-1, two) for logits in (full, half))
    gap_full, gap_half = (1000 * (gap[..., 0] - gap[..., 1]) for gap in (gap_full, gap_half))
    noise = gap_half - gap_full
    gaps = torch.stack([runs.gaps(full), runs.gaps(half)]).min(0).values
    best = full.double().log_softmax(-1).max(-1).values.exp()
    for prompt, tokens, gap in zip(prompts, golden, gaps.min(1).values.tolist()):
        prompt["tokens"], prompt["min_gap_millinats"] = tokens, round(gap, 1)
        prompt.pop("origin", None)
    return {
        "cells": len(ids) * runs.STEPS,
        "cells_equal_bf16_f32": int((tensors["bf16.tokens"] == tensors["f32.tokens"]).sum()),
        "prompts_equal_f32_free_running": sum(a == b for a, b in zip(free, golden)),
        "mean_kl_bf16_to_f32": mean_kl,
        "min_gap_millinats": round(float(gaps.min()), 1),
        "median_gap_millinats": round(float(gaps.median()), 1),
        "gap_noise_millinats": {
            "root_mean_square": round(float(noise.square().mean().sqrt()), 1),
            "largest": round(float(noise.abs().max()), 1),
        },
        "distribution": {
            "mean probability of the best token": round(float(best.mean()), 3),
            "mean largest logit": round(float(full.max(-1).values.mean()), 2),
            "deviation of all logits": round(float(full.std(-1).mean()), 2),
            "distinct tokens": len({t for tokens in golden for t in tokens}),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--checkpoint", type=Path)
    kind.add_argument("--synthetic", choices=synthetic.SIZES)
    kind.add_argument("--not-captured", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="name for the manifest")
    parser.add_argument("--clear", type=float, help="least gap, in nats, of a prompt that is kept")
    parser.add_argument("--found", type=json.loads, help="JSON object: how the prompts were found")
    args = parser.parse_args()

    listed = json.loads(args.prompts.read_text())
    listed = listed["prompts"] if isinstance(listed, dict) else listed
    prompts = [{key: prompt[key] for key in ("text", "ids", "origin") if key in prompt} for prompt in listed]
    model = args.model or f"synthetic {args.synthetic}, seed {args.seed}"
    manifest = {"format": 2, "model": model, "captured": not args.not_captured}
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.not_captured:
        start = time.time()
        runs.fast_convolution()
        source = Source(args)
        tensors: dict[str, torch.Tensor] = {}
        results = capture(source, prompts, args.clear, tensors)
        path = args.out / "golden.safetensors"
        save_file({name: t.contiguous() for name, t in tensors.items()}, str(path))
        path.chmod(0o644)
        files = [path]
        if args.checkpoint:
            files += sorted(args.checkpoint.glob("model*.safetensors")) + [args.checkpoint / "config.json"]
        if (args.out / "tokenizer.json").exists():
            files.append(args.out / "tokenizer.json")
        manifest |= {
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "safetensors": safetensors.__version__,
                "numpy": numpy.__version__,
            },
            "reference": {
                "device": f"cpu ({torch.backends.cpu.get_cpu_capability()})",
                "bf16": "loaded in bfloat16; attention sdpa; free-running greedy decode, batch 1: one prefill of the "
                "prompt, then one token at a time with the cache; a tie goes to the lowest id",
                "f32": "the same weights loaded in float32; attention sdpa; one forward without a cache over the prompt "
                "and the golden (bf16) tokens; f32.tokens is the argmax at each cell",
                "convolution": "in bf16, four shifted multiply-adds in f32 in place of torch's depthwise convolution, "
                "which is slow; the same bits (runs.fast_convolution)",
                "layers": "one forward without a cache over the prompt, in each dtype; forward hooks",
                "top_logprobs": "log-softmax in float64 over the whole vocabulary, rounded to float32",
                "largest": f"the {LARGEST} largest logits of the f32 run at each cell, the same ids of the bf16 run; "
                "rest: logarithm of the summed exponentials of all other logits of the same run, in float64",
                "mean_kl_bf16_to_f32": "KL(f32 || bf16) in nats, mean over all cells, of the distributions over the "
                "largest and the rest as one outcome",
                "gap": "log-prob of the first token minus the second's; the lesser of both runs",
                "gap_noise": "the gap between the f32 run's first two tokens, in the bf16 run less in the f32 run",
                "seconds": round(time.time() - start),
            },
            "weights": source.weights,
            "logits": {"largest": LARGEST},
            "files": {path.name: entry(path) for path in files},
            "tensors": {
                name: {"dtype": DTYPE_NAMES[t.dtype], "shape": list(t.shape)} for name, t in sorted(tensors.items())
            },
            "layer_prompts": LAYER_PROMPTS,
        } | results
    if args.found:
        manifest["prompts_found"] = args.found
    manifest["prompts"] = prompts
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (args.out / "manifest.json").write_text(text + "\n")
    if not args.not_captured:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
