"""What stands in a subject file between a test and a product: calls in other words, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harness_core.front.skips import NotRun
from suites.e2e.ecosystem.contract import PLACES
from suites.e2e.ecosystem.dialect import Dialect, Phrase, Refusal, SpokenTools
from suites.e2e.ecosystem.handle import envelope
from suites.e2e.ecosystem.mcp import ToolResult

pytestmark = pytest.mark.aside("the words of a subject file are the suite's own")

_PHRASE = Phrase(
    tool="submit",
    arguments={
        "v": 2,
        "text": "{payload.normalized_text}",
        "from": {"channel": "{source.channel}", "who": "{source.provider}:{sender.identity}"},
        "raw": ["{payload.raw}"],
        "key": "{control.idempotency_key}",
    },
    answer={"request_id": "message.id", "duplicate": "seen"},
    values={"status": {"queued": "accepted"}},
)


class _Product:
    """Answers every call alike, and keeps what was asked."""

    url = "nowhere"

    def __init__(self, value: Any) -> None:
        self.value = value
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def call(self, tool: str, arguments: Mapping[str, Any], **_: Any) -> ToolResult:
        self.asked.append((tool, arguments))
        return ToolResult(is_error=False, text="", value=self.value)


def test_every_place_of_a_message_is_documented() -> None:
    """Whoever writes [ingest] finds each place of a message on the page, and no other."""
    message = envelope("hello", event_id="e-1", trace_id="0" * 32)
    message["control"]["idempotency_key"] = "k"

    assert set(PLACES["ingest"]) == set(_leaves(message))


def _leaves(call: Mapping[str, Any]) -> Iterator[str]:
    """The places of a call, of which the raw payload is one."""
    for key, value in call.items():
        if isinstance(value, Mapping) and key != "raw":
            yield from (f"{key}.{place}" for place in _leaves(value))
        else:
            yield key


async def test_a_call_is_made_in_the_products_words() -> None:
    """Whole values keep their kind, constants stay, and what was not said is left out."""
    product = _Product({"message": {"id": "m-7"}, "seen": False, "status": "queued"})
    tools = SpokenTools(tools=product, dialect=Dialect(phrases={"ingest": _PHRASE}))  # type: ignore[arg-type]
    message = envelope("hello", event_id="e-1", trace_id="0" * 32)
    answer = await tools.call("ingest", message)

    [(tool, said)] = product.asked
    assert "submit" == tool
    assert {
        "v": 2,
        "text": "hello",
        "from": {"channel": "api", "who": f"staging-harness:{message['sender']['identity']}"},
        "raw": [message["payload"]["raw"]],
    } == said
    assert "accepted" == answer.value["status"]
    assert "m-7" == answer.value["request_id"]
    assert answer.value["duplicate"] is False


async def test_other_calls_are_made_as_they_are() -> None:
    """A call without words of its own goes through, arguments and answer."""
    product = _Product({"status": "queued"})
    tools = SpokenTools(tools=product, dialect=Dialect(phrases={"ingest": _PHRASE}))  # type: ignore[arg-type]
    answer = await tools.call("state_get", {"key": "k"})

    assert [("state_get", {"key": "k"})] == product.asked
    assert {"status": "queued"} == answer.value


@pytest.mark.parametrize(
    ("refusal", "value", "refused"),
    [
        (Refusal(key="error"), {"error": "no"}, True),
        (Refusal(key="error"), {"error": None, "id": 1}, False),
        (Refusal(key="error"), {"id": 1}, False),
        (Refusal(key="error"), "error", False),
        (Refusal(key="status", values=("error", "rejected")), {"status": "rejected"}, True),
        (Refusal(key="status", values=("error", "rejected")), {"status": "accepted"}, False),
        (Refusal(key="meta.status", values=("error",)), {"meta": {"status": "error"}}, True),
        (Refusal(), {"error": "no"}, False),
    ],
)
async def test_a_refusal_is_told_by_its_answer(
    refusal: Refusal, value: object, *, refused: bool
) -> None:
    """An answer that says no is an error, whatever its protocol says."""
    tools = SpokenTools(tools=_Product(value), dialect=Dialect(refusal=refusal))  # type: ignore[arg-type]

    assert refused is (await tools.call("ingest", {})).is_error


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("payload", "normalized_text", None, True),
        ("payload", "raw", {"n": 1}, True),
        ("control", "idempotency_key", "k", True),
        ("control", "trace_context", "00-x", False),
        ("event", "observed_at", "yesterday", False),
        ("sender", "stranger", 1, False),
    ],
)
def test_a_change_that_the_product_is_not_told_is_not_tested(
    section: str, key: str, value: object, *, told: bool
) -> None:
    """To want a refusal of what was never said would be a false verdict: it is not run, and says why."""
    dialect = Dialect(phrases={"ingest": _PHRASE})
    valid = envelope("hello", event_id="e-1", trace_id="0" * 32)
    changed = valid | {section: valid[section] | {key: value}}
    Dialect().need_difference("ingest", valid, changed, path=(section, key))
    if told:
        dialect.need_difference("ingest", valid, changed, path=(section, key))
        return
    with pytest.raises(NotRun, match=f"its submit has no place for {section}.{key}"):
        dialect.need_difference("ingest", valid, changed, path=(section, key))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (("payload", "normalized_text"), ("normalized_text", "text")),
        (("sender", "identity"), ("identity", "from", "who")),
        (("sender",), ("sender", "from", "who")),
        (("payload", "raw", "n"), ("n", "raw")),
        (("stranger",), ("stranger",)),
    ],
)
def test_a_place_has_the_products_name_too(path: tuple[str, ...], names: tuple[str, ...]) -> None:
    """A refusal that names the field by the product's name has named it."""
    assert names == _PHRASE.names(path)
