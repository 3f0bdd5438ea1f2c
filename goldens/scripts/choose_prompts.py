"""Chooses 16 prompts from candidates.json whose goldens are a fair demand.

    choose_prompts.py --checkpoint DIR --out prompts.json [--any]

A prompt is kept if bf16 and f32 agree on all 16 tokens, both free-running, and the f32 run
forced along them chooses them too; if no 4-gram comes twice and at least 10 tokens differ; and if
no end of text is among them. Of those, the ones with the largest least gap win, within quotas
that keep every kind of prompt. `--any` drops the conditions: for trying a reader on an early checkpoint.
"""

import argparse
import json
from pathlib import Path

import torch

import runs

# Long prompts exceed a chunk of 64 tokens, middle ones a bucket of 32. Prompts of the book have by
# far the larger gaps, so without a quota no novel one would stay.
QUOTAS = {"long": 2, "middle": 3, "novel": 4, "book": 7}
LENGTHS = {"long": range(65, 400), "middle": range(33, 65), "novel": range(1, 33), "book": range(1, 33)}


def is_loop(tokens: list[int]) -> bool:
    grams = [tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)]
    return len(set(grams)) < len(grams) or len(set(tokens)) < 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--any", action="store_true")
    args = parser.parse_args()

    tok = runs.load_tokenizer(args.checkpoint)
    low, high = (runs.load(args.checkpoint, d) for d in (torch.bfloat16, torch.float32))
    end = low.config.eos_token_id
    chosen: dict[str, list[tuple[float, str]]] = {}
    for kind, texts in json.loads((Path(__file__).parent / "candidates.json").read_text()).items():
        kept = []
        for text in texts:
            ids = tok.encode(text).ids
            if len(ids) not in LENGTHS[kind]:
                print(f"{kind}: {len(ids)} tokens are not of this kind: {text!r}")
                continue
            tokens, low_logits = runs.decode(low, ids)
            high_tokens, _ = runs.decode(high, ids)
            high_logits = runs.forced(high, ids, tokens)
            agree = tokens == high_tokens == runs.ranked(high_logits)[:, 0].tolist()
            gap = min(float(runs.gaps(x).min()) for x in (low_logits, high_logits))
            fair = agree and end not in tokens and not is_loop(tokens)
            print(f"{kind} {len(ids):3} {'keep' if fair else 'drop'} {gap:7.1f} {text!r} -> {tok.decode(tokens)!r}")
            if fair or args.any:
                kept.append((gap, text))
        kept.sort(reverse=True)
        chosen[kind] = kept[: QUOTAS[kind]]
        if len(chosen[kind]) < QUOTAS[kind]:
            raise SystemExit(f"{kind}: only {len(kept)} candidates are fair, {QUOTAS[kind]} needed")

    # The activations of the first two prompts are recorded: one within a chunk, one beyond it.
    kinds = ["middle", "long", "novel", "book"]
    first = [chosen[kind].pop(0) for kind in kinds[:2]]
    picked = first + [item for kind in kinds for item in chosen[kind]]
    assert len(picked) == 16
    args.out.write_text(json.dumps([text for _, text in picked], indent=1, ensure_ascii=False) + "\n")
    print(f"least gap {min(gap for gap, _ in picked):.1f} millinats")


if __name__ == "__main__":
    main()
