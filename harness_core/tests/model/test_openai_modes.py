"""Responses and embeddings in the other modes: paid by a provider, recorded, and replayed."""

from __future__ import annotations

import datetime as dt
from contextlib import asynccontextmanager

import httpx
import openai
import pytest
import trio

from harness_core.base.evidence import Redactor
from harness_core.doubles.model import Fault
from harness_core.doubles.model._backend import Call
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.model._record import RecordBackend
from harness_core.doubles.model._replay import ReplayBackend
from harness_core.doubles.model._responses import Conversations
from harness_core.doubles.turns import Rehearsal, say, use
from harness_core.tests.model.openai_sdk import MODEL, asked
from harness_core.tests.model.served import rehearsed, served

UPSTREAM_KEY = "sk-proj-of-the-provider-0123456789"
EMBEDDING = "text-embedding-3-small"
PAIN_LOG = {"type": "function", "name": "pain_log", "strict": False,
            "parameters": {"type": "object", "properties": {"notes": {"type": "string"}}}}  # fmt: skip
LOG = Rehearsal(message="log {words}", turns=(use("pain_log", notes="log {words}"), say("Noted.")))


@asynccontextmanager
async def paid(**options):
    """A gateway that asks a second one, its provider, and the control APIs of both."""
    async with served(rehearsed(LOG), key=UPSTREAM_KEY) as (upstream, theirs):
        redactor = Redactor()
        redactor.add(UPSTREAM_KEY)
        backend = live = LiveBackend(str(upstream.base_url), key=UPSTREAM_KEY)
        if (cassette := options.pop("cassette", None)) is not None:
            backend = RecordBackend(live, cassette=cassette, redactor=redactor)
        async with asked(backend, redactor=redactor, **options) as (client, control):
            yield client, control, theirs
        await live.aclose()


def replaying(cassette):
    """A gateway that replays what was recorded."""
    redactor = Redactor()
    return asked(ReplayBackend(cassette, redactor=redactor), redactor=redactor)


async def converse(client: openai.AsyncOpenAI, words: str, *, stream) -> list[dict]:
    """What a model calls and says in a conversation that refers to what went before."""
    first = await respond(client, stream=stream, input=words)
    (call,) = first.output
    done = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    second = await respond(client, stream=stream, input=[done], previous_response_id=first.id)
    return [call.arguments, second.output_text]


async def respond(client: openai.AsyncOpenAI, *, stream, **body):
    """One response."""
    body = {"model": MODEL, "tools": [PAIN_LOG], **body}
    if not stream:
        return await client.responses.create(**body)
    return [event async for event in await client.responses.create(**body, stream=True)][
        -1
    ].response


@pytest.mark.parametrize("stream", [False, True])
async def test_live_responses_pass_through_and_are_paid(stream) -> None:
    """The provider's own answer, under its own ids; its usage is priced and charged."""
    async with paid() as (client, control, provider):
        said = await converse(client, "log the pain", stream=stream)
        entries = await control.ledger()
        upstream = await provider.ledger()
        totals = await control.totals()

    assert ['{"notes": "log the pain"}', "Noted."] == said
    assert [entry.usage for entry in upstream] == [entry.usage for entry in entries]
    assert [("tool_use", ("pain_log",), True), ("end_turn", (), True)] == [
        (entry.stop_reason, entry.called, entry.charged) for entry in entries
    ]
    assert totals.spent_usd == pytest.approx(sum(entry.usd for entry in entries))
    assert totals.spent_usd > 0 == totals.reserved_usd


async def test_live_vectors_pass_through_and_are_paid() -> None:
    """The same numbers as the provider's, whatever their encoding, at their price."""
    async with paid() as (client, control, provider):
        for encoding in ("float", "base64"):
            await client.embeddings.create(
                model=EMBEDDING, input=["a", "b"], encoding_format=encoding
            )
        entries = await control.ledger()
        upstream = await provider.ledger()

    assert [entry.usage for entry in upstream] == [entry.usage for entry in entries]
    assert [(2, True), (2, True)] == [(entry.input_tokens, entry.charged) for entry in entries]
    assert 2 * 0.02e-6 == pytest.approx(entries[0].usd)


@pytest.mark.parametrize(
    ("path", "header", "other"),
    [
        ("/v1/messages", ("x-api-key", UPSTREAM_KEY), "authorization"),
        ("/v1/responses", ("authorization", f"Bearer {UPSTREAM_KEY}"), "x-api-key"),
        ("/v1/embeddings", ("authorization", f"Bearer {UPSTREAM_KEY}"), "x-api-key"),
    ],
)
async def test_the_key_stands_where_its_provider_reads_it(path, header, other) -> None:
    """In one header and no other; what the caller sent in its place stays here."""
    seen = []

    def provider(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={})

    backend = LiveBackend("http://provider", key=UPSTREAM_KEY)
    await backend.aclose()
    backend._client = httpx.AsyncClient(transport=httpx.MockTransport(provider))
    asked_for = Conversations().parse({"model": MODEL, "input": "hi"})
    headers = {"authorization": "Bearer of-the-caller"}
    now = dt.datetime.now(dt.UTC)
    await backend.answer(Call(request=asked_for, raw=b"{}", path=path, now=now, headers=headers))
    await backend.aclose()

    (sent,) = seen
    assert header[1] == sent.headers[header[0]]
    assert other not in sent.headers
    assert b"{}" == sent.content


async def test_the_budget_stops_both() -> None:
    """What no longer fits never reaches the provider; a model without a price never does."""
    async with paid(budget_usd=1e-9) as (client, _, provider):
        with pytest.raises(openai.APIStatusError) as dear:
            await client.responses.create(model=MODEL, input="hi")
        with pytest.raises(openai.APIStatusError) as large:
            await client.embeddings.create(model=EMBEDDING, input="x" * 4000)
        with pytest.raises(openai.PermissionDeniedError) as unknown:
            await client.embeddings.create(model="no-such-model-9", input="x")
        reached = await provider.ledger()

    assert [402, 402] == [dear.value.status_code, large.value.status_code]
    assert ["budget_exceeded", "budget_exceeded", "unpriced_model"] == [
        caught.value.code for caught in (dear, large, unknown)
    ]
    assert () == reached


async def test_a_response_that_breaks_off_is_booked_at_its_worst() -> None:
    """Its tokens would have come last: the client has an error, the budget the whole reservation."""

    def ask(options: dict) -> None:
        with openai.OpenAI(**options) as client:
            list(client.responses.create(model=MODEL, input="hi", stream=True))

    async with paid() as (client, control, provider):
        await provider.add_fault(Fault(kind="cut", after_events=4))
        options = {"base_url": client.base_url, "api_key": client.api_key, "max_retries": 0}
        with pytest.raises(openai.APIError, match="the upstream broke off"):
            await trio.to_thread.run_sync(ask, options)
        (entry,) = await control.ledger()
        totals = await control.totals()

    assert entry.usd > 4096 * 2e-6  # max_tokens of output
    assert totals.spent_usd == pytest.approx(entry.usd)


async def test_a_providers_refusal_is_passed_on_and_costs_nothing() -> None:
    """Status and words are the provider's."""
    async with paid() as (client, control, provider):
        await provider.add_fault(Fault(kind="status", status=429, text="slow down"))
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.responses.create(model=MODEL, input="hi")
        (entry,) = await control.ledger()

    assert (429, 0.0) == (entry.status, entry.usd)


@pytest.mark.parametrize("recorded", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("replayed", [True, False], ids=["to-stream", "to-whole"])
async def test_a_conversation_is_replayed_without_its_provider(
    tmp_path, recorded, replayed
) -> None:
    """Streamed or not, with this run's values in place of the recorded ones and fresh ids."""
    old, new = "zxbcdfghjk", "zxmnpqrstv"
    async with paid(cassette=tmp_path) as (client, control, _):
        first = await converse(client, f"log the pain {old}", stream=recorded)
        usages = [entry.usage for entry in await control.ledger()]
    async with replaying(tmp_path) as (client, control):
        second = await converse(client, f"log the pain {new}", stream=replayed)
        entries = await control.ledger()
        unmatched = await control.unmatched()

    assert [text.replace(old, new) for text in first] == second
    assert usages == [entry.usage for entry in entries]
    assert [False, False] == [entry.charged for entry in entries]
    assert not unmatched


async def test_vectors_are_replayed_without_their_provider(tmp_path) -> None:
    """In either encoding, whichever was recorded; another length or text was not recorded."""
    asking = {"model": EMBEDDING, "input": ["a", "b"]}
    async with paid(cassette=tmp_path) as (client, control, _):
        first = await client.embeddings.create(**asking, encoding_format="float")
    async with replaying(tmp_path) as (client, control):
        second = await client.embeddings.create(**asking)
        for change, differs in (
            ({"dimensions": 8}, "embedding.dimensions: recorded 1536, asked 8"),
            ({"input": ["a"]}, r"messages\[1\]"),
        ):
            with pytest.raises(openai.InternalServerError, match=differs):
                await client.embeddings.create(**{**asking, **change})
        entries = await control.ledger()

    assert [each.embedding for each in first.data] == [each.embedding for each in second.data]
    assert first.usage == second.usage
    assert ["", "cassette_miss", "cassette_miss"] == [entry.error for entry in entries]


async def test_no_secret_reaches_a_cassette_or_the_ledger(tmp_path) -> None:
    """The provider's key, and anything that looks like one, is left out of both."""
    other = "sk-proj-AAAABBBBCCCCDDDD1234"
    ledger = tmp_path / "ledger.jsonl"
    async with paid(cassette=tmp_path / "cassette", ledger=ledger) as (client, *_):
        text = f"log {UPSTREAM_KEY} and {other}"
        await respond(client, stream=False, input=text, user="mallory")
        await client.embeddings.create(model=EMBEDDING, input=text)
    recorded = [path.read_text() for path in (tmp_path / "cassette").iterdir()]
    written = [*recorded, ledger.read_text()]

    assert 2 == len(recorded)
    assert [] == [key for key in (UPSTREAM_KEY, other) if key in "".join(written)]
    assert "mallory" not in "".join(recorded)  # whose question it was makes it no other question
    assert all("[redacted]" in text for text in written)


async def test_a_refused_request_is_replayed_in_its_own_shape(tmp_path) -> None:
    """What the provider will refuse again is recorded, and is the client's error again."""
    async with paid(cassette=tmp_path) as (client, _, provider):
        await provider.add_fault(Fault(kind="status", status=400, text="too long"))
        with pytest.raises(openai.BadRequestError, match="too long"):
            await client.responses.create(model=MODEL, input="hi")
    async with replaying(tmp_path) as (client, _):
        with pytest.raises(openai.BadRequestError, match="too long"):
            await client.responses.create(model=MODEL, input="hi")
