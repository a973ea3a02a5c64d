"""The Responses API on the wire: what is refused with which field, and that what is written is read."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply, Usage, call_block, text_block
from harness_core.doubles.model._responses import Conversations
from harness_core.doubles.model._responses_wire import ResponseReader, response_ids, response_parts

GOOD = {"model": "gpt-5-mini", "input": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
TEXTUAL = {"type": "function", "name": "f", "parameters": {"type": "string"}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": [3]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{**CALL, "name": None}]}, "input[0].name"),
        ({"input": [{**CALL, "call_id": None}]}, "input[0].call_id"),
        ({"input": [{**CALL, "arguments": "{"}]}, "input[0].arguments"),
        ({"input": [CALL, {**OUTPUT, "output": None}]}, "input[1].output"),
        ({"input": [CALL]}, "input"),
        ({"input": [{"role": "user", "content": "x"}, OUTPUT]}, "input"),
        ({"input": [{"type": "item_reference", "id": "msg_9"}]}, "input[0]"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
        ({"tools": [TEXTUAL]}, "tools[0].parameters"),
        ({"stream": "yes"}, "stream"),
        ({"max_output_tokens": "many"}, "max_output_tokens"),
        ({"previous_response_id": "resp_of_another"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
    ],
)
def test_a_malformed_request_is_refused_by_field(change, field) -> None:
    """What the provider would refuse, and what no gateway does, is refused with its field named."""
    body = {key: value for key, value in {**GOOD, **change}.items() if value is not None}

    with pytest.raises(Refusal) as caught:
        Conversations().parse(body)

    assert (400, field) == (caught.value.status, caught.value.field)


def test_input_becomes_a_conversation() -> None:
    """Items of any order and age are one conversation; what the provider ran itself is left out."""
    request = Conversations().parse(
        {
            **GOOD,
            "instructions": "be brief",
            "input": [
                {"role": "assistant", "content": [{"type": "output_text", "text": "Hello?"}]},
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": [{"type": "input_text", "text": "log it"}]},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "item_reference", "id": "rs_2"},
                {"type": "computer_call_output", "call_id": "x", "output": {"type": "screenshot"}},
                CALL,
                {**CALL, "call_id": "c2"},
                OUTPUT,
                {**OUTPUT, "call_id": "c2", "output": [{"type": "input_text", "text": "too"}]},
            ],
            "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
            "tool_choice": {"type": "function", "name": "f"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "max_output_tokens": 9,
            "safety_identifier": "s-1",
        }
    )

    assert ("be brief\nbe kind",) == request.system
    assert ["assistant", "user", "assistant", "user"] == [turn.role for turn in request.turns]
    assert ["c1", "c2"] == [block.id for block in request.turns[2].blocks]
    assert ["done", "too"] == [block.text for block in request.turns[3].blocks]
    assert (["f"], "tool") == ([tool.name for tool in request.tools], request.tool_choice)
    assert ({"type": "object"}, 9, "s-1") == (
        request.output_schema,
        request.max_tokens,
        request.user_id,
    )


replies = st.builds(
    Reply,
    content=st.lists(
        st.builds(text_block, st.text())
        | st.builds(
            partial(call_block, "f"), st.dictionaries(st.text(), st.integers() | st.text())
        ),
        max_size=4,
    ).map(tuple),
    usage=st.builds(
        Usage,
        input_tokens=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
        cache_read_tokens=st.integers(0, 10**6),
    ),
)


@given(reply=replies, short=st.booleans(), cuts=st.lists(st.integers(1, 400), min_size=1))
def test_what_is_written_is_read_again(reply: Reply, short, cuts: list[int]) -> None:
    """Whole, or as events cut into pieces anywhere, an answer is read as it was."""
    ends = "max_tokens" if short else "tool_use" if reply.calls else "end_turn"
    reply = structs.replace(reply, stop_reason=ends)
    asking = Conversations()
    request = asking.parse(GOOD)
    whole, streamed = ResponseReader(streaming=False), ResponseReader(streaming=True)
    whole.feed(*response_parts(reply, request, "msg_1"))
    whole.end()
    stream = b"".join(response_parts(reply, asking.parse({**GOOD, "stream": True}), "msg_1"))
    at = number = 0
    while at < len(stream):
        step = cuts[number % len(cuts)]
        streamed.feed(stream[at : at + step])
        at, number = at + step, number + 1

    assert reply == whole.reply == streamed.reply
    assert tuple(response_ids(reply, "msg_1")) == whole.ids == streamed.ids


@pytest.mark.parametrize("streaming", [True, False])
def test_a_failed_response_is_an_error(streaming) -> None:
    """A response that failed is not kept as an answer; what it cost is."""
    error = {"code": "server_error", "message": "sorry"}
    body = {"object": "response", "id": "resp_1", "status": "failed", "output": [],
            "error": error, "usage": {"input_tokens": 7}}  # fmt: skip
    reader = ResponseReader(streaming=streaming)
    event = json.dumps({"type": "response.failed", "response": body})
    reader.feed(f"data: {event}\n\n".encode() if streaming else json.dumps(body).encode())
    reader.end()

    assert (None, "server_error", "sorry") == (reader.reply, reader.error, reader.problem)
    assert 7 == reader.usage.input_tokens
