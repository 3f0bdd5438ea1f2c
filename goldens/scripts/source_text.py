"""The training text: Alice's Adventures in Wonderland, from the test data of a crate.

The text is in the public domain. It is fetched by the ordinary package client and checked by
its hash, so that it need not be committed and cannot change under us.
"""

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

EOT = "<|endoftext|>"
SOURCE = {
    "title": "Alice's Adventures in Wonderland (Lewis Carroll, 1865; Millennium Fulcrum Edition 2.9)",
    "licence": "public domain",
    "package": "brotli (a Rust crate), file testdata/alice29.txt",
    "version": "3.3.4",
    "sha256": "7467306ee0feed4971260f3c87421154a05be571d944e9cb021a5713700c38f0",
    "how": "cargo vendor of a throw-away crate depending on brotli =3.3.4 (source_text.py)",
}


def fetch(cache: Path) -> str:
    """The file as published, kept in `cache` after the first time."""
    kept = cache / "alice29.txt"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as scratch:
            crate = Path(scratch)
            (crate / "src").mkdir()
            (crate / "src/lib.rs").touch()
            (crate / "Cargo.toml").write_text(
                '[package]\nname = "text"\nversion = "0.0.0"\nedition = "2021"\n'
                f'[dependencies]\nbrotli = "={SOURCE["version"]}"\n[workspace]\n'
            )
            subprocess.run(["cargo", "vendor", "-q"], cwd=crate, check=True, stdout=subprocess.DEVNULL)
            data = (crate / "vendor/brotli/testdata/alice29.txt").read_bytes()
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
    data = kept.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SOURCE["sha256"]:
        raise SystemExit(f"alice29.txt: expected sha256 {SOURCE['sha256']}, found {found}")
    return data.decode("ascii")


def paragraph(block: str) -> str:
    """One paragraph as one line; verse, which the file indents, keeps its lines."""
    out = ""
    for line in block.split("\n"):
        verse = line.startswith("     ")
        line = re.sub(r"\s+", " ", line).strip()
        if not out:
            out = line
        elif verse:
            out += "\n" + line
        elif out.endswith("-"):  # a hyphen or a dash broken at the line's end
            out += line
        else:
            out += " " + line
    return out


def chapters(raw: str) -> list[str]:
    """Twelve chapters without title page and end mark, unwrapped, with plain quotes."""
    text = raw.replace("\r\n", "\n").replace("`", "'")
    text = text[text.index("CHAPTER I\n") :].replace("THE END", "")
    result = []
    for part in re.split(r"(?=CHAPTER [IVX]+\n)", text):
        blocks = [paragraph(b) for b in re.split(r"\n\s*\n", part) if re.search(r"[A-Za-z]", b)]
        if blocks:
            result.append("\n\n".join(blocks) + "\n")
    if len(result) != 12:
        raise SystemExit(f"expected 12 chapters, found {len(result)}")
    return result


if __name__ == "__main__":
    import sys

    print(EOT.join(chapters(fetch(Path(sys.argv[1])))))
