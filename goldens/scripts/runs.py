"""The two runs of the reference that goldens are made of. Shared by capture and prompt choice."""

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from transformers.utils import logging

STEPS = 16

# Neither progress bars nor the advice to install GPU kernels.
logging.disable_progress_bar()
logging.set_verbosity_error()


def load(checkpoint: Path, dtype: torch.dtype):
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype, attn_implementation="sdpa")
    return model.eval()


def load_tokenizer(checkpoint: Path) -> Tokenizer:
    return Tokenizer.from_file(str(checkpoint / "tokenizer.json"))


def fast_convolution() -> None:
    """Makes the model's depthwise convolutions in bf16 multiply and add shifted rows, in f32 with one rounding.

    torch's own for one channel a group takes most of a decode step on a CPU. The bits are the same. In
    f32, where a sum's last bit may differ, it is left alone.
    """
    from transformers.models.qwen3_5 import modeling_qwen3_5

    original = modeling_qwen3_5.F

    class Functional:
        def __getattr__(self, name):
            return getattr(original, name)

        @staticmethod
        def conv1d(input, weight, bias=None, padding=0, groups=1):
            if input.dtype != torch.bfloat16:
                return original.conv1d(input, weight=weight, bias=bias, padding=padding, groups=groups)
            assert bias is None and groups == input.shape[1] == weight.shape[0]
            rows = original.pad(input, (padding, padding)).float()
            taps = weight.float()
            length = rows.shape[-1] - taps.shape[-1] + 1
            out = sum(rows[..., k : k + length] * taps[:, 0, k, None] for k in range(taps.shape[-1]))
            return out.to(input.dtype)

    modeling_qwen3_5.F = Functional()


def ranked(logits: torch.Tensor) -> torch.Tensor:
    """Token ids from the likeliest on. bf16 logits do tie; then the lowest id goes first."""
    return logits.float().sort(dim=-1, descending=True, stable=True).indices


def gaps(logits: torch.Tensor) -> torch.Tensor:
    """Log-probability of the first token minus the second's, in thousandths of a nat, per cell."""
    top = logits.double().topk(2, dim=-1).values
    return 1000 * (top[..., 0] - top[..., 1])


@torch.no_grad()
def decode(model, ids: list[int]) -> tuple[list[int], torch.Tensor]:
    """Greedy decoding as a user runs it: one prefill, then a token at a time with the cache."""
    tokens, rows, cache = [], [], None
    step = torch.tensor([ids])
    for _ in range(STEPS):
        out = model(input_ids=step, cache=cache, use_cache=True, logits_to_keep=1)
        cache = out.cache
        rows.append(out.logits[0, -1])
        tokens.append(int(ranked(rows[-1])[0]))
        step = torch.tensor([tokens[-1:]])
    return tokens, torch.stack(rows)


@torch.no_grad()
def forced(model, ids: list[int], tokens: list[int]) -> torch.Tensor:
    """Logits of the same cells given `tokens`: one forward without a cache."""
    out = model(input_ids=torch.tensor([ids + tokens[:-1]]), use_cache=False)
    return out.logits[0, len(ids) - 1 :]


@torch.no_grad()
def layers(model, ids: list[int]) -> torch.Tensor:
    """[layers + 1, tokens, hidden]: the embedding output, then the residual stream after each layer.

    Hooks, and not output_hidden_states: there the last entry is taken after the final norm.
    """
    seen = []

    def keep(_module, _inputs, output):
        seen.append((output[0] if isinstance(output, tuple) else output)[0].clone())

    inner = model.model
    hooks = [m.register_forward_hook(keep) for m in (inner.embed_tokens, *inner.layers)]
    try:
        model(input_ids=torch.tensor([ids]), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(seen)
