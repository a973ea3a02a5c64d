"""Answers of the classifying model that cannot be used: the message goes to ``general``, and the row says why.

The gateway is a stand-in for the model provider and makes the model answer so; only the call that
classifies this very message is met. Falling back is an observable event, never silent; what can be
read in more than one way may be used or fallen back from, and what was done must match what is
written.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.subject_file import tables_of
from suites.e2e.observe.expect_journey import (
    expect_fallback,
    expect_routing,
    expect_sessions,
    fallback_reason,
)
from suites.e2e.observe.journey import Journey, follow

pytestmark = [pytest.mark.covers("E2E-CLASSIFICATION"), pytest.mark.capability("ingest.v1")]

HEALTH: Final = {"butler": "health", "prompt": "log a headache, severity 2", "segment": "headache"}

#: An answer of a model that lost its way in the middle of a very long array.
HUGE: Final = json.dumps([{**HEALTH, "segment": "x" * 400}] * 300)[:-100]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says instead of a classification.

    Attributes:
        text: its answer, however often it is asked.
        names: what the recorded reason must speak of, beyond being there.
    """

    text: str
    names: str = ""


def _answer(value: Any, *, names: str = "") -> Answer:
    text = value if isinstance(value, str) else json.dumps(value)
    return Answer(text=text, names=names)


UNUSABLE: Final = {
    "prose": _answer("This is clearly about health, so the health butler should take care of it."),
    "blank": _answer("  \n "),
    "broken-json": _answer('[{"butler": "health", "prompt": "log a headache",]'),
    "truncated": _answer('[{"butler": "health", "prompt": "log a headache, sever'),
    "huge-and-truncated": _answer(HUGE),
    "deep": _answer("[" * 20_000 + "]" * 20_000),
    "empty-array": _answer([]),
    "array-of-texts": _answer(["health"]),
    "nested-arrays": _answer([[HEALTH]]),
    "null": _answer("null"),
    "number": _answer("103"),
    "unknown-butler": _answer([{**HEALTH, "butler": "astrology"}], names="astrology"),
    # A butler is named by its whole name, letter by letter.
    "upper-case-name": _answer([{**HEALTH, "butler": "Health"}], names="Health"),
    "name-and-a-blank": _answer([{**HEALTH, "butler": "health "}]),
    "beginning-of-a-name": _answer([{**HEALTH, "butler": "heal"}], names="heal"),
    "no-butler": _answer([{"prompt": "log a headache", "segment": "headache"}]),
    "butler-is-a-number": _answer([{**HEALTH, "butler": 8103}]),
    "no-prompt": _answer([{"butler": "health", "segment": "headache"}]),
    "blank-prompt": _answer([{**HEALTH, "prompt": "   "}]),
    "prompt-is-an-object": _answer([{**HEALTH, "prompt": {"text": "log a headache"}}]),
    "one-good-one-unknown": _answer([HEALTH, {**HEALTH, "butler": "astrology"}], names="astrology"),
    "the-switchboard-itself": _answer([{**HEALTH, "butler": "switchboard"}], names="switchboard"),
}

#: More segments than a product may be ready for; it says so, or takes each.
MANY: Final = 33

#: Forms that a lenient reader may take for what they mean.
DEBATABLE: Final = {
    "fenced": f"```json\n{json.dumps([HEALTH])}\n```",
    "wrapped": json.dumps({"segments": [HEALTH]}),
    "bare-object": json.dumps(HEALTH),
    "prose-before": f"Here is the routing:\n{json.dumps([HEALTH])}",
    "duplicates": json.dumps([HEALTH, HEALTH]),
    "many": json.dumps([{**HEALTH, "segment": f"headache {n}"} for n in range(MANY)]),
    "surplus-keys": json.dumps([{**HEALTH, "confidence": 0.9}]),
}

#: Checked on every run; the others are of the same kinds.
QUICK: Final = {"prose", "truncated", "deep", "upper-case-name", "duplicates", "many"}


def _rows(answers: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(answer, id=name, marks=() if name in QUICK else pytest.mark.corpus)
        for name, answer in answers.items()
    ]


@pytest.mark.parametrize("answer", _rows(UNUSABLE))
async def test_an_unusable_answer_falls_back_and_says_so(
    ecosystem: Ecosystem, token: str, answer: Answer
) -> None:
    """The whole message goes to ``general`` alone; its inbox row gives the reason."""
    journey = await _mislead(ecosystem, token, answer.text)
    # Of a session that got no answer, products differ on whether it went well.
    reason = expect_fallback(journey, classified=bool(answer.text.strip()) or None)

    assert answer.names in reason, f"the reason does not name {answer.names!r}: {reason}"


@pytest.mark.parametrize("text", _rows(DEBATABLE))
async def test_a_debatable_answer_is_used_or_fallen_back_from(
    ecosystem: Ecosystem, token: str, text: str
) -> None:
    """It is done as it says, every element of it, or the message falls back openly; nothing between."""
    journey = await _mislead(ecosystem, token, text)
    story = journey.text()

    assert journey.inbox, f"an accepted message has an inbox row; found none\n{story}"
    if fallback_reason(journey.inbox[0]["decomposition"]) is not None:
        expect_fallback(journey)
        return
    expect_routing(journey, ["health"])
    expect_sessions(journey, ["health"])
    asked = Counter(row["target_butler"] for row in journey.routing)

    assert asked["health"] in {1, text.count('"butler"')}, (
        f"what was routed is what the answer says, once or each element; hops: {dict(asked)}\n{story}"
    )


@pytest.mark.parametrize("between", ["\n", " and\n"], ids=["one-by-one", "with-words-between"])
async def test_of_two_answers_in_one_none_is_dropped_in_silence(
    ecosystem: Ecosystem, token: str, between: str
) -> None:
    """Two arrays are two parts of the message: both are routed, or it falls back openly."""
    meal = {"butler": "relationship", "prompt": "note that Ana called", "segment": "Ana called"}
    answers = [json.dumps([part], indent=1) for part in (HEALTH, meal)]
    journey = await _mislead(ecosystem, token, between.join(answers))

    assert journey.inbox, f"an accepted message has an inbox row\n{journey.text()}"
    if fallback_reason(journey.inbox[0]["decomposition"]) is not None:
        expect_fallback(journey)
        return
    expect_routing(journey, ["health", "relationship"])


async def test_a_refused_classification_falls_back_and_says_so(
    ecosystem: Ecosystem, token: str
) -> None:
    """When the model refuses to classify, the message still reaches ``general``, with the reason."""
    # What a client tries after a refusal is met as well.
    fault = Fault(kind="status", status=400, times=20, contains=token, **_classifying(ecosystem))
    async with ecosystem.gateway.client.fault(fault):
        sent = await ecosystem.send(f"I have a headache, severity 3 ({token})")
        journey = await follow(ecosystem, sent)
    expect_fallback(journey, classified=False)


@pytest.mark.parametrize(
    "text", [" ", "\n\t \n", "\u00a0\u2003"], ids=["blank", "lines", "unicode"]
)
async def test_a_message_without_words_ends_openly(ecosystem: Ecosystem, text: str) -> None:
    """White space is accepted as any message is, and ends in a state that says what was done.

    Who asks the model about it is refused by the gateway: nobody has rehearsed that.
    """
    async with ecosystem.gateway.client.fault(Fault(kind="status", status=400, times=20)):
        sent = await ecosystem.send(text)
        journey = await follow(ecosystem, sent)
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert 1 == len(journey.inbox), (
        f"an accepted message has one inbox row; found {len(journey.inbox)}\n{story}"
    )
    row = journey.inbox[0]

    assert row["response_summary"], f"the row says nothing of what became of it\n{story}"
    if row["lifecycle_state"] == "completed":
        assert fallback_reason(row["decomposition"]), f"no reason for where it went\n{story}"


def _classifying(ecosystem: Ecosystem) -> Mapping[str, Any]:
    """Which calls of the model classify, for a fault: those with no tool but one that hands over."""
    model = tables_of(ecosystem.subject).model
    return {"offers": (model.tool,)} if model and model.tool else {"without_tools": True}


async def _mislead(ecosystem: Ecosystem, token: str, text: str) -> Journey:
    """Follow a message whose classification is answered with a text."""
    model = tables_of(ecosystem.subject).model
    if model and '"butler"' not in model.answer:
        not_run("subject", "its classifier wants its answer in another form than these are in")
    client = ecosystem.gateway.client
    # A client may ask again when it gets no answer.
    fault = Fault(kind="answer", text=text, contains=token, without_tools=True, times=20)
    await ecosystem.rehearse(HEALTH["prompt"], [use("symptom_log", name="headache", severity=2)])
    async with client.fault(fault) as number:
        sent = await ecosystem.send(f"I have a headache, severity 2 ({token})")
        journey = await follow(ecosystem, sent)
        met = await client.fault_met(number)

    assert met, f"the message was never classified by a model: {sent.text}"
    return journey
