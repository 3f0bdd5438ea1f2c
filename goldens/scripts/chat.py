"""What Hugging Face transformers renders for the conversations of goldens/chat.

    chat.py --chat DIR          reads DIR/template.jinja, writes conversations.json and manifest.json

The inputs stand in this script. Each goes through `apply_chat_template` of a transformers tokenizer, with
the clock stopped at NOW, and its text, or the message of the template's exception, is recorded.
"""

import argparse
import hashlib
import json
import platform
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import jinja2
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

# A Saturday, in local time.
NOW = datetime(2026, 3, 7, 9, 5, 2)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather at a place; \"celsius\" or <fahrenheit> & 'kelvin'. Gr\u00fc\u00dfe \u4f60\u597d \U0001f324",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "A city\nor a\tregion\\area"},
                "days": {"type": "integer", "minimum": 0, "maximum": 14, "default": 1},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "precision": {"type": "number", "default": 0.5, "exclusiveMinimum": 1e-05, "maximum": 1e16},
                "alerts": {"type": ["boolean", "null"], "default": None},
            },
            "required": ["place"],
            "additionalProperties": False,
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "",
        "parameters": {"type": "object", "properties": {}, "required": []},
    },
}
HIDDEN = {"type": "function", "function": {"name": "_internal", "parameters": {}}}


def user(content, **more):
    return {"role": "user", "content": content} | more


def assistant(content, **more):
    return {"role": "assistant", "content": content} | more


def system(content):
    return {"role": "system", "content": content}


def tool(content):
    return {"role": "tool", "content": content}


def called(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


ASK = {"add_generation_prompt": True}

CONVERSATIONS = {
    "one question": {"messages": [user("What is the capital of France?")]} | ASK,
    "thinking on": {"messages": [user("Why?")], "enable_thinking": True} | ASK,
    "thinking off": {"messages": [user("Why?")], "enable_thinking": False} | ASK,
    "system message": {"messages": [system("  You are terse.\n"), user("Hi")]} | ASK,
    "turns with reasoning": {
        "messages": [
            system("Think first."),
            user("2 + 2?"),
            assistant("4", reasoning_content="\nTwo and two.\n"),
            user("And 3 + 3?"),
            assistant("6", reasoning_content="Three and three.\n"),
        ]
    },
    "reasoning inside of the content": {
        "messages": [
            user("2 + 2?"),
            assistant("<think>\nTwo and two.\n</think>\n\n4"),
            user("Sure?"),
            assistant("<think>\n\nAgain: 4.\n</think>\n\nYes."),
        ]
    },
    "reasoning by its other names": {
        "messages": [
            user("a"),
            assistant("b", thinking="c"),
            assistant("d", reasoning="e", reasoning_content=None),
            assistant("f", reasoning_content="g", thinking="h"),
        ]
    },
    "tools": {
        "messages": [system("Use the tools."), user("Weather in Bern?")],
        "tools": [WEATHER, HIDDEN, SEARCH],
    }
    | ASK,
    "tools without a system message": {"messages": [user("Find it")], "tools": [SEARCH], "schema_indent": 2} | ASK,
    "many tools": {
        "messages": [user("x")],
        "tools": [
            {"type": "function", "function": {"name": f"tool_{i}", "parameters": {"b": i, "a": [i / 4, {}]}}}
            for i in range(11)
        ],
    },
    "tool calls and responses": {
        "messages": [
            user("Weather in Bern and Z\u00fcrich, please"),
            assistant(
                "I look it up.",
                reasoning_content="Two calls.",
                tool_calls=[
                    called("get_weather", {"place": "Bern", "days": 3, "precision": 0.00001, "alerts": True}),
                    called("get_weather", {"place": "Z\u00fcrich", "range": [1, 2.0, None, "x"], "more": {"b": 1, "a": {}}}),
                ],
            ),
            tool('{"celsius": 21.5}'),
            tool("  \u96e8  \n"),
            assistant("", tool_calls=[called("search", '  {"q": "umbrella"}  '), {"name": "search", "arguments": {}}]),
            tool(""),
            assistant("Sun in Bern, rain in Z\u00fcrich."),
            user("Thanks"),
            assistant(None, tool_calls=[called("search", {"none": None, "no": False, "big": 1e22, "int": 12345678901234567})]),
            tool([{"type": "text", "text": "nothing"}, " found"]),
        ],
        "tools": [WEATHER],
    }
    | ASK,
    "non-ASCII": {
        "messages": [
            system("\u8bf7\u7528\u4e2d\u6587\u56de\u7b54\u3002\u2028\U0001f468\u200d\U0001f469\u200d\U0001f467"),
            user("\u00a0\u00dcber cafe\u0301 \u0645\u0631\u062d\u0628\u0627 \u3000", name="\u00c9milie"),
            assistant("\x1c\u597d\u7684\u3002\u2003\n"),
            user("\x85'quoted' \"twice\" <b>&amp;</b> {{ no }} {% no %}"),
        ]
    }
    | ASK,
    "empty content": {"messages": [system(""), user(""), assistant(""), user("   "), assistant(None), user("\n")]} | ASK,
    "parts": {
        "messages": [
            system([{"type": "text", "text": "Look."}]),
            user([{"type": "image"}, {"type": "text", "text": "What and "}, "who", {"image_url": "u"}]),
            assistant([{"type": "text", "text": " A cat. "}]),
            user([]),
        ]
    }
    | ASK,
    "no generation prompt": {"messages": [user("Hello"), assistant("Hello."), user("Bye")], "add_generation_prompt": False},
    "assistant's words begun": {
        "messages": [user("Count."), assistant("One, two,", reasoning_content="Slowly.")],
        "continue_last": True,
    },
    "date": {"messages": [user("What day is it?")], "date_format": "%A, %d %B %Y, %H:%M"} | ASK,
    "date, system and tools": {
        "messages": [system("Be exact."), user("Now?")],
        "tools": [SEARCH],
        "date_format": "%-d %b %Y %j",
    },
    "nested quotes in tool calls": {
        "messages": [
            user("go"),
            assistant("", tool_calls=[called("run", {"code": "print('a', \"b\\n\")\n", "lines": ["a\"b", "c\\d", "\u007f\u0001"]})]),
            user("<tool_response>\nok\n</tool_response>"),
        ]
    },
    # What the template refuses.
    "refused: unknown role": {"messages": [{"role": "critic", "content": "Bad."}, user("x")]},
    "refused: no question": {"messages": [system("x"), assistant("y")]},
    "refused: system in the middle": {"messages": [user("x"), system("y")]},
    "refused: image of the system": {"messages": [system([{"type": "image"}]), user("x")]},
    "refused: number as content": {"messages": [user(3.0)]},
    "refused: unknown part": {"messages": [user([{"type": "audio"}])]},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chat", type=Path, required=True)
    args = parser.parse_args()
    path = args.chat / "template.jinja"
    tok = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), chat_template=path.read_text(), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    cases = []
    with mock.patch("transformers.utils.chat_template_utils.datetime") as clock:
        clock.now.return_value = NOW
        for name, conversation in CONVERSATIONS.items():
            more = dict(conversation)
            messages = more.pop("messages")
            case = {"name": name, "messages": messages} | more
            try:
                case["text"] = tok.apply_chat_template(messages, tokenize=False, **more)
            except jinja2.TemplateError as error:
                case["exception"] = error.message
            cases.append(case)
    refused = [case["name"] for case in cases if "exception" in case]
    assert refused == [name for name in CONVERSATIONS if name.startswith("refused")], refused
    goldens = args.chat / "conversations.json"
    goldens.write_text(json.dumps(cases, indent=1) + "\n")
    manifest = {
        "format": 1,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ["transformers", "jinja2"]},
        "now": {"local": NOW.isoformat(), "seconds": int((NOW - datetime(1970, 1, 1)).total_seconds())},
        "counts": {"rendered": len(cases) - len(refused), "refused": len(refused)},
        "files": {file.name: described(file) for file in [path, goldens]},
    }
    (args.chat / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(json.dumps(manifest["counts"]))


def described(path: Path) -> dict:
    data = path.read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


if __name__ == "__main__":
    main()
