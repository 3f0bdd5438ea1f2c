"""The texts of goldens/tokenizer: what tokenizers get wrong, one kind at a time, then mixed."""

# A tool call as the model writes it, and a conversation with every kind of tag.
CHAT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHow warm is Bern?<|im_end|>\n"
    "<|im_start|>assistant\n<think>\nI should ask.\n</think>\n\n<tool_call>\n<function=weather>\n"
    "<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call><|im_end|>\n"
    "<|im_start|>user\n<tool_response>\n{\"celsius\": 21.5}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
)

PYTHON = '''def quicksort(items: list[int]) -> list[int]:
    """Sort by division."""
    if len(items) <= 1:
        return items
    pivot, *rest = items
\treturn quicksort([x for x in rest if x < pivot]) + [pivot] + \\
        quicksort([x for x in rest if x >= pivot])  # O(n log n)
'''

RUST = '''impl<'a, T: Clone + 'static> Iterator for Windows<'a, T> {
    type Item = &'a [T];
    fn next(&mut self) -> Option<Self::Item> {
        self.rest.get(..self.size).inspect(|_| self.rest = &self.rest[1..])
    }
}
'''

C = '''#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
int main(int argc, char **argv) {
    for (unsigned i = 0x1F; i --> 0;) printf("%08x\\t%s\\r\\n", i, argv[0]);
    return !!(argc & ~0) || *(&argc) == 'x' ? -1 : 0;
}
'''

JAVASCRIPT = '''const f = async ({id, ...rest}) => { await fetch(`https://example.org/api?id=${id}&n=${rest?.n ?? 0}`); };
/* TODO */ $('#el').on('click', e => e.preventDefault()); // it's done
'''

SQL = "SELECT a.id, COUNT(*) AS n FROM t1 a LEFT JOIN t2 b ON a.id = b.a_id WHERE b.x IS NULL GROUP BY 1 HAVING n > 10;"

HTML = '<!DOCTYPE html>\n<html lang="de"><body class="a b"><p>&Uuml;ber &#252;ber</p><br/></body></html>'

SHELL = "for f in *.tar.gz; do tar -xzf \"$f\" -C /tmp 2>/dev/null || echo \"failed: ${f%%.*}\" >&2; done"

JSON = '{"name": "x", "list": [1, 2.5, -3e-7, true, null], "nested": {"k\\u00e9y": "v\\"q\\""}}'

TEX = r"\begin{equation} \int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi} \label{eq:1} \end{equation}"

TEXTS = [
    # Plain, and what a beginning or an end changes.
    "Hello, world!",
    " leading space",
    "trailing space ",
    "The capital of France is",
    "A",
    " ",
    "\n",
    "antidisestablishmentarianism floccinaucinihilipilification",
    "UPPER lower Title mIxEd camelCase snake_case kebab-case SCREAMING_CASE",
    # Contractions, in every case, and what looks like one.
    "I'm you're he's we'll they've I'd don't",
    "I'M YOU'RE HE'S WE'LL THEY'VE I'D DON'T",
    "'s 't 're 've 'm 'll 'd 'x ''s 'S'Ll",
    "it\u2019s don\u2019t 'tis rock'n'roll o'clock",
    "the '\u017f long s, and K (Kelvin) \u212a",
    # Digits: each is a token of its own.
    "0123456789",
    "3.14159 1,000,000 1e-10 0xDEADBEEF 2026-11-30T12:34:56Z",
    "\u0661\u0662\u0663 \u0967\u0968\u0969 \uff11\uff12 \u00bd \u2168 \u2460 x\u00b2",
    "v1.2.3-rc4 IPv6 ::1 192.168.0.1 +41 (0)31 000 00 00",
    # White space.
    "a  b   c    d",
    "tab\tTab\t\ttwo",
    "line\nline\n\nline\n\n\nline",
    "cr\rcrlf\r\n\r\nmixed \n \r\n  end",
    "   \n   \t  \n",
    "        eight spaces, then text",
    "no-break\u00a0space thin\u2009space ideographic\u3000space zero\u200bwidth",
    "next\u0085line line\u2028separator paragraph\u2029separator",
    "form\x0cfeed vertical\x0btab unit\x1fseparator nul\x00 del\x7f",
    "ends with many newlines\n\n\n\n\n\n",
    # Punctuation and symbols.
    "!!! ??? ... --- === *** ### $$$ %%% &&& @@@ ~~~",
    "(a) [b] {c} <d> \u00aba\u00bb \u201cb\u201d \u2018c\u2019 \u2014 \u2013 \u2026",
    "price: $5.00, \u20ac3,50, \u00a32, \u00a5100, 50%, 20\u00b0C, \u00a9\u00ae\u2122",
    "\u2200x\u2208\u211d: \u2203y (x\u2264y \u2227 y\u2260\u221e) \u21d2 \u2211\u00b2\u221a\u222b",
    "\u2500\u2502\u250c\u2510 \u2588\u2593\u2592\u2591 \u2190\u2191\u2192\u2193 \u2713\u2717 \u2605",
    ";;\n//\n/**\n */\n\"\"\"\n```python\n",
    # Latin beyond ASCII, composed and not: NFC makes them one.
    "na\u00efve caf\u00e9 \u00c5ngstr\u00f6m stra\u00dfe \u0152uvre \u0141\u00f3d\u017a",
    "nai\u0308ve cafe\u0301 A\u030angstro\u0308m",
    "\u212b \u2126 \u1e9b\u0323 q\u0307\u0323 q\u0323\u0307 e\u0301\u0323",
    "Vietnamese: Ti\u1ebfng Vi\u1ec7t, decomposed: Tie\u0302\u0301ng Vie\u0323\u0302t",
    "z\u0351\u036b\u0343\u0368a\u0308\u0310l\u0322\u0328g\u0338o\u0337\u0315 has marks",
    "\u0301 begins with a mark; a space and a mark: \u0301",
    # Other alphabets.
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u043b\u043a\u0430 \u0439 \u0438\u0306",
    "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5 \u1f00\u03c1\u03c7\u03ae",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0627\u0644\u0633\u0644\u0627\u0645\u064f \u0639\u0644\u064a\u0643\u0645",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd! \u200fabc\u200e \u202bxyz\u202c",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e, \u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f \u0958",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e19\u0e49\u0e33 \u0e17\u0e35\u0e48",
    "\u0b95\u0bcb \u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd \u0c28\u0c2e\u0c38\u0c4d\u0c15\u0c3e\u0c30\u0c02 \u09ac\u09be\u0982\u09b2\u09be",
    "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0 \u0532\u0561\u0580\u0587 \u12a0\u121b\u122d\u129b \u1019\u103c\u1014\u103a\u1019\u102c",
    # CJK.
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u5929\u6c14\u600e\u4e48\u6837\uff1f",
    "\u4eba\u5de5\u667a\u80fd\u6b63\u5728\u6539\u53d8\u6211\u4eec\u7684\u751f\u6d3b\u65b9\u5f0f\uff0c2026\u5e74\u7b2c3\u5b63\u5ea6\u589e\u957f\u4e8615.7%\u3002",
    "\u7e41\u9ad4\u4e2d\u6587\u8207\u7b80\u4f53\u4e2d\u6587\u3001\u300c\u5f15\u865f\u300d\u3001\u300a\u66f8\u540d\u300b",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3068\u6f22\u5b57\u3001\uff8a\uff9d\uff76\uff78\u3002\u304b\u3099",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4! \u1112\u1161\u11ab\u1100\u1173\u11af",
    "\U00020000\U0002a6d6 \uf900 \u2f00",
    "mixed\u6df7\u5408text\u3068\u30c6\u30ad\u30b9\u30c8and\ud55c\uae00123",
    # Emoji.
    "\U0001f600\U0001f680\u2764\ufe0f \U0001f44d\U0001f3fd \U0001f1e8\U0001f1ed 1\ufe0f\u20e3",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f9d1\U0001f3ff\u200d\U0001f4bb",
    "\u00af\\_(\u30c4)_/\u00af (\u256f\u00b0\u25a1\u00b0)\u256f\ufe35 \u253b\u2501\u253b :-) <3",
    # Code.
    PYTHON,
    RUST,
    C,
    JAVASCRIPT,
    SQL,
    HTML,
    SHELL,
    JSON,
    TEX,
    "http://user:pass@example.org:8080/a%20b/c.html?q=1&r=%C3%A9#frag mailto:a.b+c@d-e.co.uk",
    "C:\\Users\\x\\file.txt \\\\server\\share ~/.config/../etc",
    "aGVsbG8gd29ybGQ= 550e8400-e29b-41d4-a716-446655440000 d41d8cd98f00b204e9800998ecf8427e",
    # Special tokens in a text, and what only looks like one.
    CHAT,
    "<|endoftext|>",
    "a<|im_end|>b <|im_start|> c<think></think>",
    "<|im_end|><|im_end|>\n\n<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>",
    "<|im_end |> <im_end> <|IM_END|> < think> <|unknown|> <|endoftext| >",
    "<|vision_start|><|image_pad|><|vision_end|><|audio_pad|><tts_pad>",
    "caf<think>e\u0301</think>\u0301",
    # Runs that make pieces long.
    "a" * 100,
    "ab" * 60 + " " * 33 + "-" * 47 + "\n" * 9 + "=" * 80,
    "\u54c8" * 40 + "\uff01" * 7 + "\U0001f602" * 12,
]

LONG = (
    "On the 3rd of May, the caf\u00e9's owner \u2014 an ex-programmer \u2014 wrote: \u201cIt\u2019s 21\u00b0C; let's go!\u201d\n\n"
    "\u201e\u00dcber allen Gipfeln ist Ruh\u201c, said J. W. v. Goethe (1749\u20131832).\n"
    "1. \u7b2c\u4e00\u9879\uff1aprint(\"\u4f60\u597d\")\n2. \u041f\u0443\u043d\u043a\u0442 \u0432\u0442\u043e\u0440\u043e\u0439: x = 0b1010\n"
    "\t- \u0646\u0642\u0637\u0629 \u062b\u0627\u0644\u062b\u0629\n\n| a | b |\n|---|:-:|\n| 1 | \U0001f9ea |\n\n"
)
TEXTS.append(LONG * 6)

# Pre-tokens that are tokens which merging pairs by rank does not reach: a vocabulary given as ranks
# takes them whole, one given as merges may not. 加拿大 (Canada), 新加坡 (Singapore), 俱乐部 (club).
UNREACHED = ["\u52a0\u62ff\u5927", "\u65b0\u52a0\u5761\u548c\u52a0\u62ff\u5927", "\u4ff1\u4e50\u90e8"]

# A special token before a mark that composes with its last character: the model's own tokenizer
# normalizes between special tokens, a caller of tiktoken across them.
APART = ["<think>\u0338x"]

# Bytes that are not UTF-8: cut off, out of range, surrogates, overlong, stray.
BYTES = [
    b"caf\xc3",
    b"\xff\xfe text",
    b"a\x80b\xbfc",
    b"\xf0\x9f\x98 and \xf0\x9f\x98\x80",
    b"\xed\xa0\x80 \xed\xbf\xbf",
    b"\xc0\xaf \xe0\x80\xaf",
    b"\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    b"latin-1: \xe9t\xe9, \xfcber",
    b"\xe4\xbd\xa0\xe5\xa5 \xe4\xb8",
]
