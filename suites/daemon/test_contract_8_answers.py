"""Contract 8: a sound answer of a language model arrives whole, in every shape that its provider may give it.

Recorders are a stand-in for three model providers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from harness_core.doubles.http import Answer
from suites.daemon.asked_models import ANSWER_S, Cast, asking, completion, message
from suites.daemon.messages import ask, expect_health, expect_message, user_input

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]


def blocks(*parts: dict[str, Any], **changes: Any) -> Answer:
    """An answer of the Messages API in several blocks."""
    return message("", **({"content": list(parts)} | changes))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def completed(text: str, *, more: Iterable[dict[str, Any]] = (), **members: Any) -> Answer:
    """An answer of chat completions with members beside those that everyone sends."""
    said = {"role": "assistant", "content": text} | members
    choices = [{"index": 0, "message": said, "finish_reason": "length", "logprobs": None}]
    return Answer(
        json={
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "system_fingerprint": None,
            "usage": {"total_tokens": 2},
            "choices": [*choices, *more],
        }
    )


def _as(answer: Answer, **changes: Any) -> Answer:
    """An answer in other bytes or headers."""
    body = json.dumps(answer.json, ensure_ascii=False, indent=3)
    return replace(answer, json=None, body=changes.pop("body", body), **changes)


#: Sound answers in every shape: who gives it, the answer, and texts that its reply holds in this order.
SHAPED: Final[dict[str, tuple[str, Answer, tuple[str, ...]]]] = {
    "two-texts": ("alpha", blocks(_text("one, "), _text("two.")), ("one,", "two.")),
    "many-texts": (
        "alpha",
        blocks(*(_text(f"part {n};\n") for n in range(40))),
        tuple(f"part {n};" for n in range(40)),
    ),
    "thoughts-before": (
        "alpha",
        blocks({"type": "thinking", "thinking": "hm", "signature": "s"}, _text("said")),
        ("said",),
    ),
    "a-tool-between": (
        "alpha",
        blocks(
            _text("before "),
            {"type": "tool_use", "id": "t", "name": "n", "input": {"text": "x"}},
            _text("behind"),
        ),
        ("before", "behind"),
    ),
    "an-unknown-block": ("alpha", blocks({"type": "news", "of": [1]}, _text("said")), ("said",)),
    "an-empty-text-first": ("alpha", blocks(_text(""), _text("said")), ("said",)),
    "cited": ("alpha", blocks(_text("said") | {"citations": [{"cited_text": "x"}]}), ("said",)),
    "stopped-at-its-length": ("alpha", message("said", stop_reason="max_tokens"), ("said",)),
    "stopped-at-a-word": (
        "alpha",
        message("said", stop_reason="stop_sequence", stop_sequence="x"),
        ("said",),
    ),
    "without-what-is-not-needed": (
        "alpha",
        Answer(json={"type": "message", "role": "assistant", "content": [_text("said")]}),
        ("said",),
    ),
    "members-of-its-own": ("alpha", message("said", news={"a": [1]}, error=None), ("said",)),
    "of-blanks-within": ("alpha", message("a\n\n  b\t\tc"), ("a\n\n  b\t\tc",)),
    "of-quotes": ("alpha", message('"q" \\ (:x "y") #.z ;'), ('"q" \\ (:x "y") #.z ;',)),
    "of-every-script": ("alpha", message("é日😀\u202eא\x00\x7f."), ("é日😀\u202eא",)),
    "in-raw-utf-8": ("alpha", _as(message("é日😀 said")), ("é日😀 said",)),
    "in-another-type": (
        "alpha",
        _as(message("said"), headers={"Content-Type": "application/json; charset=utf-8"}),
        ("said",),
    ),
    "of-a-type-unsaid": ("alpha", _as(message("said")), ("said",)),
    **{
        f"of-parentheses-{number}": ("alpha", message(text), (text,))
        for number, text in enumerate(
            ("(as I said)", "(1 2 3)", "(said", "(a . b)", '("said" "so")')
        )
    },
    "long": ("alpha", message("x" * 200_000 + " end"), ("x" * 1000 + " end",)),
    "of-half-a-letter": (
        "alpha",
        _as(message("said"), body=json.dumps(message("a \ud83d said").json)),
        ("a", "said"),
    ),
    "of-the-other-half": (
        "alpha",
        _as(message(""), body=json.dumps(message("b \udc00 said").json)),
        ("b", "said"),
    ),
    "choices": (
        "beta",
        completed("the first", more=[{"index": 1, "message": {"content": "the other"}}]),
        ("the first",),
    ),
    "no-refusal": ("beta", completed("said", refusal=None, tool_calls=None), ("said",)),
    "other-members": ("beta", completed("said", audio=None, annotations=[]), ("said",)),
    "choice-of-half-a-letter": (
        "beta",
        _as(completion(""), body=json.dumps(completion("c \udfff said").json)),
        ("c", "said"),
    ),
    "choice-in-raw-utf-8": ("beta", _as(completion("é日😀 said")), ("é日😀 said",)),
    "choice-long": ("beta", completion("y" * 200_000 + " end"), ("y" * 1000 + " end",)),
    "choice-of-lines": ("beta", completion("a\n\n  b\r\nc"), ("a\n\n  b\r\nc",)),
}


async def test_a_sound_answer_arrives_whole_in_every_shape(start, cast: Cast, token: str) -> None:
    """What a provider may answer reaches the client: all of its texts, in their order, of any letters."""
    async with asking(start, cast, "abg") as daemon, daemon.connect() as connection:
        for name, (by, answer, texts) in SHAPED.items():
            cast.answers = {"alpha": Answer(status=500), "gamma": message("says gamma"), by: answer}
            cast.answers.setdefault("beta", completion("says beta"))
            since = len(cast.asked(0))
            asked = user_input(f"What of {name}, {token}?")
            reply = expect_message(await ask(connection, asked, seconds=ANSWER_S), connection)
            last = [request.rule for request in cast.asked(since)][-1:]

            assert last == [by], (
                f"contract 8: {name}: {by} has answered, and no other is asked: expected {by} to be "
                f"the last, found {last}, which says {reply[:200]!r}"
            )
            at = 0
            for text in texts:
                found = reply.find(text, at)

                assert found >= 0, (
                    f"contract 8: {name}: every text of an answer is in the reply, in its order: "
                    f"expected {text[-100:]!r} in {reply[at : at + 300]!r}"
                )
                at = found + len(text)
        expect_health(await daemon.health())
