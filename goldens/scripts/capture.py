"""Records what Hugging Face transformers computes for a checkpoint: golden.safetensors, manifest.json.

    capture.py --checkpoint DIR --out DIR --prompts FILE [--model NAME] [--source-text FILE]

The golden tokens are those of the bf16 run, decoded with the cache. The f32 run has the same
weights (exact in bf16) and is given the golden tokens; its own choice at each cell is `f32.tokens`.
Where the two agree in every cell, the free-running f32 continuation is the golden one as well.
"""

import argparse
import hashlib
import json
import platform
from pathlib import Path

import numpy
import safetensors
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

import runs

TOP = 20
LAYER_PROMPTS = [0, 1]
DTYPE_NAMES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.int32: "I32"}


def record(name: str, logits: torch.Tensor, tensors: dict) -> None:
    """logits: [prompts, steps, vocabulary]"""
    top = runs.ranked(logits)[..., :TOP]
    logprobs = logits.double().log_softmax(-1).gather(-1, top)
    tensors[f"{name}.tokens"] = top[..., 0].to(torch.int32)
    tensors[f"{name}.top_ids"] = top.to(torch.int32)
    tensors[f"{name}.top_logprobs"] = logprobs.float()
    tensors[f"{name}.logits"] = logits


def entry(path: Path) -> dict:
    data = path.read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True, help="JSON list of strings")
    parser.add_argument("--model", default="tiny", help="name for the manifest")
    parser.add_argument("--source-text", type=Path, help="JSON object about the training text")
    args = parser.parse_args()

    prompts = json.loads(args.prompts.read_text())
    tok = runs.load_tokenizer(args.checkpoint)
    ids = [tok.encode(p).ids for p in prompts]
    tensors: dict[str, torch.Tensor] = {}

    # One model at a time, so that larger checkpoints fit as well.
    model = runs.load(args.checkpoint, torch.bfloat16)
    decoded = [runs.decode(model, i) for i in ids]
    golden = [tokens for tokens, _ in decoded]
    record("bf16", torch.stack([logits for _, logits in decoded]), tensors)
    for p in LAYER_PROMPTS:
        tensors[f"layers.{p:02}.bf16"] = runs.layers(model, ids[p])
    del model

    model = runs.load(args.checkpoint, torch.float32)
    record("f32", torch.stack([runs.forced(model, i, t) for i, t in zip(ids, golden)]), tensors)
    for p in LAYER_PROMPTS:
        tensors[f"layers.{p:02}.f32"] = runs.layers(model, ids[p])
    del model

    assert tensors["bf16.tokens"].tolist() == golden
    assert all(bool(t.isfinite().all()) for t in tensors.values())
    p, q = (tensors[f"{run}.logits"].double().log_softmax(-1) for run in ("f32", "bf16"))
    mean_kl = float((p.exp() * (p - q)).sum(-1).mean())
    cells = len(prompts) * runs.STEPS
    equal = int((tensors["bf16.tokens"] == tensors["f32.tokens"]).sum())
    gap = min(float(runs.gaps(tensors[f"{run}.logits"]).min()) for run in ("f32", "bf16"))
    note = (
        "The prompts were chosen so that no continuation is a loop and that bf16 and f32 agree on all "
        f"{cells} cells."
        if equal == cells
        else f"The prompts were not chosen by agreement: bf16 and f32 differ on {cells - equal} of {cells} cells."
    )

    args.out.mkdir(parents=True, exist_ok=True)
    golden_path = args.out / "golden.safetensors"
    save_file({name: t.contiguous() for name, t in tensors.items()}, str(golden_path))
    golden_path.chmod(0o644)
    files = sorted(args.checkpoint.glob("model*.safetensors"))
    files += [args.checkpoint / "config.json", args.checkpoint / "tokenizer.json", golden_path]
    manifest = {
        "format": 1,
        "model": args.model,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
            "safetensors": safetensors.__version__,
            "numpy": numpy.__version__,
        },
        "reference": {
            "device": f"cpu ({torch.backends.cpu.get_cpu_capability()})",
            "bf16": "loaded in bfloat16; attention sdpa; free-running greedy decode, batch 1: one prefill of "
            "the prompt, then one token at a time with the cache; a tie goes to the lowest id",
            "f32": "the same weights loaded in float32; attention sdpa; one forward without a cache over the "
            "prompt and the golden (bf16) tokens; f32.tokens is the argmax at each cell",
            "layers": "one forward without a cache over the prompt, in each dtype; forward hooks",
            "top_logprobs": "log-softmax in float64 of the recorded logits, rounded to float32",
            "min_gap_millinats": "least log-prob gap of the first two tokens over all cells of both runs",
        },
        "source_text": json.loads(args.source_text.read_text()) if args.source_text else None,
        "files": {path.name: entry(path) for path in files},
        "tensors": {
            name: {"dtype": DTYPE_NAMES[t.dtype], "shape": list(t.shape)} for name, t in sorted(tensors.items())
        },
        "prompts": [
            {"text": text, "ids": i, "tokens": t, "continuation": tok.decode(t, skip_special_tokens=False)}
            for text, i, t in zip(prompts, ids, golden)
        ],
        "layer_prompts": LAYER_PROMPTS,
        "cells": cells,
        "cells_equal_bf16_f32": equal,
        "mean_kl_bf16_to_f32": mean_kl,
        "min_gap_millinats": round(gap, 3),
        "note": note,
    }
    (args.out / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    print(f"cells equal {equal}/{cells}, mean KL {mean_kl:.3e}, min gap {gap:.1f} millinats")


if __name__ == "__main__":
    main()
