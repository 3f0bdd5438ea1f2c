"""Trains the tiny Qwen3.5 checkpoint on one book, and writes it as published checkpoints are.

    train_tiny.py train  --work DIR            tokenizer, training, snapshots (resumes the newest)
    train_tiny.py export --work DIR --out DIR  config.json, model.safetensors, tokenizer.json

It is meant to memorise: large gaps between the first and the second token make the equality
of tokens a fair demand of another implementation.
"""

import argparse
import json
import math
import random
import re
import time
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling

from source_text import EOT, SOURCE, chapters, fetch

VOCAB = 1024
LAYERS = 8
SEED = 20260
STEPS = 1400
WARMUP = 60
PEAK_LR, LAST_LR = 3e-3, 6e-5
# (sequences, tokens): every one starts at position 0 with some word of the book; the lengths
# vary so that short prompts as well as contexts beyond a chunk of 64 are at home.
SHAPES = [(16, 128), (32, 64), (16, 128), (8, 256)]

# Qwen's own; see section 6 of the reference.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Every key is written out: a reader is right to refuse a config that leaves one to a default.
CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "dtype": "bfloat16",
    "mamba_ssm_dtype": "float32",
    "vocab_size": VOCAB,
    "hidden_size": 192,
    "intermediate_size": 384,
    "num_hidden_layers": LAYERS,
    "full_attention_interval": 4,
    "layer_types": ["full_attention" if (i + 1) % 4 == 0 else "linear_attention" for i in range(LAYERS)],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "attn_output_gate": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_conv_kernel_dim": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "initializer_range": 0.04,
    "tie_word_embeddings": True,
    "max_position_embeddings": 512,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000000,
        "partial_rotary_factor": 0.25,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
    },
    "use_cache": True,
    "bos_token_id": None,
    "pad_token_id": None,
    "eos_token_id": VOCAB - 1,
    "transformers_version": transformers.__version__,
}


def train_tokenizer(texts: list[str]) -> Tokenizer:
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    tok.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tok.train_from_iterator(texts, trainer)
    tok.add_special_tokens([AddedToken(EOT, special=True, normalized=False)])
    assert tok.get_vocab_size() == VOCAB and tok.token_to_id(EOT) == VOCAB - 1
    return tok


def shifted_conv(hidden_states, weight, bias=None, activation=None, **_):
    """The causal depthwise convolution as four shifted multiply-adds: much faster on a CPU."""
    taps, length = weight.shape[-1], hidden_states.shape[-1]
    padded = F.pad(hidden_states, (taps - 1, 0))
    out = sum(padded[:, :, i : i + length] * weight[:, i, None] for i in range(taps))
    return F.silu(out) if activation == "silu" else out


class Batches:
    """Windows that begin at a random word, encoded on their own.

    A prompt has no space before its first word; a window cut from one long encoding would.
    """

    def __init__(self, texts: list[str], tok: Tokenizer):
        self.tok = tok
        self.text = EOT.join(texts) + EOT
        self.starts = [m.start() for m in re.finditer(r"(?<=\s)'?\w|'?\b[A-Z]", self.text)]
        self.rng = random.Random(SEED)

    def at(self, step: int) -> torch.Tensor:
        count, length = SHAPES[step % len(SHAPES)]
        rows = []
        while len(rows) < count:
            start = self.rng.choice(self.starts)
            # The book wraps round, so that its last words are seen as often as any.
            window = (self.text[start:] + self.text)[: 8 * length]
            ids = self.tok.encode(window).ids[: length + 1]
            if len(ids) == length + 1:
                rows.append(ids)
        return torch.tensor(rows)


def learning_rate(step: int) -> float:
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    done = (step - WARMUP) / max(1, STEPS - WARMUP)
    return LAST_LR + (PEAK_LR - LAST_LR) * (1 + math.cos(math.pi * done)) / 2


def train(work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    texts = chapters(fetch(work))
    tok_path = work / "tokenizer.json"
    if not tok_path.exists():
        train_tokenizer(texts).save(str(tok_path))
    batches = Batches(texts, Tokenizer.from_file(str(tok_path)))

    torch.manual_seed(SEED)
    modeling.causal_conv1d_fn = shifted_conv
    config = Qwen3_5TextConfig(**{k: v for k, v in CONFIG.items() if k not in ("dtype", "architectures")})
    model = Qwen3_5ForCausalLM(config).float().train()
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    decay = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.98))

    step = 0
    if snapshots := sorted(work.glob("snapshot-*.pt")):
        state = torch.load(snapshots[-1])
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        batches.rng.setstate(state["rng"])

    began, mean = time.time(), None
    while step < STEPS:
        ids = batches.at(step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 20 == 0:
            print(f"step {step} loss {mean:.4f} {(time.time() - began) / 60:.1f} min", flush=True)
        if step % 100 == 0 or step == STEPS:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
                "loss": mean,
                "rng": batches.rng.getstate(),
            }
            # Renamed when complete, so that an export beside the training never reads half a file.
            part = work / "snapshot.part"
            torch.save(state, part)
            part.rename(work / f"snapshot-{step:05}.pt")


def export(work: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    newest = sorted(work.glob("snapshot-*.pt"))[-1]
    state = torch.load(newest)
    tensors = {}
    for name, tensor in state["model"].items():
        if name == "lm_head.weight":  # tied
            continue
        tensor = tensor.to(torch.bfloat16)
        # Published checkpoints hold these two in F32; the values stay exact in bf16, because a
        # bf16 run of the reference rounds them at load.
        if name.endswith(("linear_attn.A_log", "linear_attn.norm.weight")):
            tensor = tensor.float()
        tensors[name] = tensor.contiguous()
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    (out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (out / "tokenizer.json").write_bytes((work / "tokenizer.json").read_bytes())
    (work / "source_text.json").write_text(json.dumps(SOURCE, indent=1) + "\n")  # for the manifest
    check(out, tensors)
    print(f"exported {newest.name}, loss {state['loss']:.4f}")


def check(out: Path, tensors: dict[str, torch.Tensor]) -> None:
    """The file read back by transformers computes what the tensors in memory compute."""
    config = Qwen3_5TextConfig.from_pretrained(out)
    ids = torch.arange(100).reshape(1, -1)
    for dtype in (torch.float32, torch.bfloat16):
        memory = Qwen3_5ForCausalLM(config)
        missing, unexpected = memory.load_state_dict(tensors, strict=False)
        assert missing in ([], ["lm_head.weight"]) and not unexpected, (missing, unexpected)
        # Parameters only: model.to(bfloat16) would round RoPE's frequencies, a buffer, as well.
        for parameter in memory.parameters():
            parameter.data = parameter.data.to(dtype)
        memory.eval()
        read = Qwen3_5ForCausalLM.from_pretrained(out, dtype=dtype).eval()
        with torch.no_grad():
            assert torch.equal(memory(ids).logits, read(ids).logits), f"{dtype}: reload differs"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["train", "export"])
    parser.add_argument("--work", type=Path, required=True, help="folder for the text and the snapshots")
    parser.add_argument("--out", type=Path, help="checkpoint folder to write")
    args = parser.parse_args()
    if args.mode == "train":
        train(args.work)
    else:
        export(args.work, args.out)
