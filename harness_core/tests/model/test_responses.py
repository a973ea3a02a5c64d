"""OpenAI's Responses API, asked by its official client: conversations, tools, streams and refusals."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
import trio

from harness_core.doubles.model import Fault
from harness_core.doubles.model._reply import Reply, text_block
from harness_core.doubles.turns import Rehearsal, fail, result, say, use
from harness_core.tests.model.openai_sdk import MODEL, asked, client_options
from harness_core.tests.model.served import KEY, left, rehearsed, served

PAIN_LOG = {
    "type": "function",
    "name": "pain_log",
    "description": "Log a pain.",
    "parameters": {
        "type": "object",
        "properties": {"severity": {"type": "integer"}, "after": {"type": "integer"}},
        "additionalProperties": False,
    },
    "strict": False,
}
ACHE = Rehearsal(
    message="I ache, severity {n:number}",
    turns=(
        use("pain_log", severity="{n}"),
        use("pain_log", severity=1, after=result("pain_log", "id")),
        say("Noted: {n}."),
    ),
)
GOOD = {"model": MODEL, "input": "hi"}


async def one(client: openai.AsyncOpenAI, *, stream, **body):
    """A response, of a stream the one in its last event."""
    answer = await client.responses.create(**{"model": MODEL, **body}, stream=stream)
    if not stream:
        return answer
    events = [event async for event in answer]
    assert "response.completed" == events[-1].type
    return events[-1].response


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", ["repeats", "refers", "references"])
async def test_a_product_works_through_its_tools(way: str, stream) -> None:
    """A loop of calls and results ends with the last words, however it says what went before."""
    logged, items = [], [{"role": "user", "content": "I ache, severity 7"}]
    body = {"instructions": "Use your tools.", "tools": [PAIN_LOG], "stream": stream}
    async with asked(rehearsed(ACHE)) as (client, control):
        response = await one(client, input=items, **body)
        while calls := [item for item in response.output if item.type == "function_call"]:
            logged += [json.loads(call.arguments) for call in calls]
            done = json.dumps({"id": 40 + len(logged)})
            results = [
                {"type": "function_call_output", "call_id": call.call_id, "output": done}
                for call in calls
            ]
            if way == "refers":
                body["previous_response_id"], items = response.id, results
            elif way == "repeats":
                items += [*(item.to_dict() for item in response.output), *results]
            else:
                named = [{"type": "item_reference", "id": item.id} for item in response.output]
                items += [*named, *results]
            response = await one(client, input=items, **body)
        entries = await control.ledger()

    assert [{"severity": 7}, {"severity": 1, "after": 41}] == logged
    assert "Noted: 7." == response.output_text
    assert [("pain_log",), ("pain_log",), ()] == [entry.called for entry in entries]
    assert {("responses", MODEL, stream, ("pain_log",), "", "")} == {
        (e.kind, e.model, e.stream, e.tools, e.missing, e.unrehearsed) for e in entries
    }
    assert all(entry.usd > 0 for entry in entries)


async def test_the_blocking_client_is_served() -> None:
    """The client without asyncio gets the same, and its helper puts a stream together."""

    def ask(options: dict) -> tuple[str, list, dict]:
        with openai.OpenAI(**options) as client:
            said = client.responses.create(model=MODEL, input="hi").output_text
            asking = client.responses.stream(
                model=MODEL, input="I ache, severity 7", tools=[PAIN_LOG]
            )
            with asking as stream:
                kinds = [event.type for event in stream]
                (call,) = stream.get_final_response().output
        return said, kinds, json.loads(call.arguments)

    async with served(rehearsed(ACHE)) as (http, _):
        said, kinds, arguments = await trio.to_thread.run_sync(ask, client_options(http))

    assert "Understood: hi" == said
    assert {"severity": 7} == arguments
    assert "response.function_call_arguments.done" in kinds


async def test_a_product_on_asyncio_is_served() -> None:
    """Calls at the same time, each streamed, on the loop that most products have."""

    async def ask(options: dict) -> list[str]:
        async with openai.AsyncOpenAI(**options) as client:

            async def said() -> str:
                stream = await client.responses.create(**GOOD, stream=True)
                events = [event async for event in stream]
                return events[-1].response.output_text

            return await asyncio.gather(*(said() for _ in range(5)))

    async with served() as (http, control):
        options = client_options(http)
        said = await trio.to_thread.run_sync(lambda: asyncio.run(ask(options)))
        entries = await control.ledger()

    assert ["Understood: hi"] * 5 == said
    assert 5 == len(entries)


async def test_a_stream_is_written_as_the_provider_writes_it() -> None:
    """Event by event, numbered; the last one holds what would have been sent whole."""
    model = rehearsed(Rehearsal(message="talk", turns=(say("x" * 30),)), ACHE)
    async with asked(model) as (client, _):
        whole = await client.responses.create(model=MODEL, input="talk", user="u")
        events = [
            event
            async for event in await client.responses.create(
                model=MODEL, input="talk", user="u", stream=True
            )
        ]
        calling = [
            event
            async for event in await client.responses.create(
                model=MODEL, input="I ache, severity 7", tools=[PAIN_LOG], stream=True
            )
        ]

    text = ("response.content_part.added", "response.output_text.delta",
            "response.output_text.delta", "response.output_text.done",
            "response.content_part.done")  # fmt: skip
    call = ("response.function_call_arguments.delta", "response.function_call_arguments.done")
    for seen, between in ((events, text), (calling, call)):
        assert ["response.created", "response.in_progress", "response.output_item.added", *between,
                "response.output_item.done", "response.completed"] == [
            event.type for event in seen
        ]  # fmt: skip
        assert list(range(len(seen))) == [event.sequence_number for event in seen]
    assert ["x" * 24, "x" * 6] == [e.delta for e in events if e.type.endswith("text.delta")]
    assert '{"severity": 7}' == calling[3].delta == calling[4].arguments
    assert ("in_progress", [], None) == (
        events[0].response.status,
        events[0].response.output,
        events[0].response.usage,
    )
    assert _without_ids(whole) == _without_ids(events[-1].response)


def _without_ids(response) -> dict:
    body = response.to_dict()
    return {**body, "id": "", "output": [{**item, "id": ""} for item in body["output"]]}


async def test_a_response_repeats_what_was_asked() -> None:
    """Instructions, tools, limits and zeros among the settings stand in it as they were given."""
    given = {"instructions": "Be brief.", "tools": [PAIN_LOG], "temperature": 0.0,
             "parallel_tool_calls": False, "max_output_tokens": 50, "metadata": {"a": "b"},
             "store": False, "tool_choice": "none"}  # fmt: skip
    async with asked() as (client, _):
        answer = (await client.responses.create(model=MODEL, input="hi", **given)).to_dict()
        plain = await client.responses.create(model=MODEL, input="hi")

    assert given == {name: answer[name] for name in given}
    assert (True, 1.0, "auto", []) == (
        plain.parallel_tool_calls,
        plain.temperature,
        plain.tool_choice,
        plain.tools,
    )


async def test_an_answer_that_ran_out_of_tokens_says_so() -> None:
    """It is incomplete, its reason named, in a stream by the name of its last event."""

    class Stopped:
        name, charges = "rehearsed", False

        async def answer(self, call):
            return Reply(content=(text_block("And then"),), stop_reason="max_tokens")

    async with asked(Stopped()) as (client, _):
        whole = await client.responses.create(**GOOD)
        *_, last = [event async for event in await client.responses.create(**GOOD, stream=True)]

    assert "response.incomplete" == last.type
    for response in (whole, last.response):
        assert ("incomplete", "max_output_tokens", "And then") == (
            response.status,
            response.incomplete_details.reason,
            response.output_text,
        )


async def test_usage_tells_what_was_cached() -> None:
    """Cached tokens are part of the input, as this provider counts; the ledger has them apart."""
    async with asked() as (client, control):
        fault = Fault(kind="answer", text="ok", cache_read_tokens=30, cache_write_tokens=5)
        await control.add_fault(fault)
        usage = (await client.responses.create(**GOOD)).usage
        (entry,) = await control.ledger()

    assert (30, 5) == (
        usage.input_tokens_details.cached_tokens,
        usage.input_tokens_details.cache_write_tokens,
    )
    assert entry.input_tokens + 35 == usage.input_tokens
    assert usage.input_tokens + usage.output_tokens == usage.total_tokens
    assert (30, 5) == (entry.cache_read_tokens, entry.cache_write_tokens)


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [True, False])
async def test_only_what_was_stored_can_be_referred_to(store) -> None:
    """A response goes on from a stored one; from another it is refused by its id, as a 400."""
    async with asked(rehearsed(ACHE)) as (client, control):
        first = await client.responses.create(**GOOD, store=store)
        words = [{"role": role, "content": "hi"} for role in ("assistant", "user")]
        after = {"model": MODEL, "input": words, "previous_response_id": first.id}
        if store:
            # Twice: what follows one response is no part of another that follows it.
            counted = [(await client.responses.create(**after)).usage for _ in range(2)]
            assert counted[0].input_tokens == counted[1].input_tokens > first.usage.input_tokens
            return
        with pytest.raises(openai.BadRequestError, match=first.id) as caught:
            await client.responses.create(**after)
        entries = await control.ledger()

    assert ("previous_response_not_found", "previous_response_id") == (
        caught.value.code,
        caught.value.param,
    )
    assert [200, 400] == [entry.status for entry in entries]


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, openai.BadRequestError, "invalid_request_error"),
        (401, openai.AuthenticationError, "invalid_api_key"),
        (429, openai.RateLimitError, "rate_limit_exceeded"),
        (500, openai.InternalServerError, "fault"),
    ],
)
async def test_the_client_knows_its_errors(status, error, code) -> None:
    """A malformed body, a wrong key and planted refusals are the errors of the client's own kinds."""
    key = f"{KEY}x" if status == 401 else KEY
    async with asked(key=key) as (client, control):
        if status in (429, 500):
            await control.add_fault(Fault(kind="status", status=status, text="not now"))
        given = [{"role": "robot", "content": "x"}] if status == 400 else "hi"
        with pytest.raises(error) as caught:
            await client.responses.create(model=MODEL, input=given)
        (entry,) = await control.ledger()

    assert (status, status, code) == (caught.value.status_code, entry.status, caught.value.code)
    assert ("input[0].role" if status == 400 else None) == caught.value.param
    assert "responses" == entry.kind


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/embeddings"])
@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
async def test_what_is_no_json_object_is_refused_in_this_providers_shape(path, body) -> None:
    """A body that cannot be read is a 400 whose error has a message, a type, a field and a code."""
    async with served() as (http, _):
        answer = await http.post(path, content=body)

    assert 400 == answer.status_code
    assert {"error"} == answer.json().keys()
    error = answer.json()["error"]
    assert {"message", "type", "param", "code"} == error.keys()
    assert ("invalid_request_error", None) == (error["type"], error["param"])
    assert "JSON" in error["message"]


async def test_the_client_retries_as_it_is_told() -> None:
    """A 429 that says when to come back is asked again, and both attempts are in the ledger."""
    async with asked() as (client, control):
        await control.add_fault(Fault(kind="status", status=429, retry_after_s=0.01))
        answer = await client.with_options(max_retries=1).responses.create(**GOOD)
        entries = await control.ledger()

    assert "Understood: hi" == answer.output_text
    assert [429, 200] == [entry.status for entry in entries]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_rehearsed_failure_is_the_providers(stream) -> None:
    """A turn that fails is an error of the client, streamed or not."""
    async with asked(rehearsed(Rehearsal(message="work", turns=(fail(503),)))) as (client, _):
        with pytest.raises(openai.InternalServerError) as caught:
            await client.responses.create(model=MODEL, input="work", stream=stream)

    assert 503 == caught.value.status_code


async def test_a_cut_stream_breaks_off() -> None:
    """The client has what came, then an error in place of an end; nothing can go on from it."""
    async with asked() as (client, control):
        await control.add_fault(Fault(kind="cut", after_events=4))
        stream = await client.responses.create(**GOOD, stream=True)
        seen = [await anext(stream) for _ in range(4)]
        with pytest.raises(openai.APIConnectionError):
            await anext(stream)
        (entry,) = await control.ledger()
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(**GOOD, previous_response_id=seen[0].response.id)

    assert "cut after 4 events" == entry.fault


async def test_an_endless_stream_goes_on_until_its_client_leaves() -> None:
    """Words keep coming, also where the request itself holds the word."""
    seen = ""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="endless"))
        body = {**GOOD, "instructions": "once again", "stream": True}
        with trio.CancelScope() as reading:
            async with http.stream("POST", "/v1/responses", json=body) as answer:
                async for text in answer.aiter_text():
                    seen += text
                    if seen.count("event: ") >= 9:
                        reading.cancel()  # thrown into the client, which then hangs up
        entry = await left(control)

    assert 1 == seen.count("event: response.created")
    assert seen.count("event: response.output_text.delta") >= 4
    assert ("endless", 499) == (entry.fault, entry.status)
