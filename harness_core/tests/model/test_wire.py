"""The wire formats: what is refused with which field, and that streams say what messages say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.doubles.model._dialect import CHAT
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import (
    Reply,
    Usage,
    estimate_tokens,
    text_block,
)
from harness_core.doubles.model._request import parse_body, parse_request
from harness_core.doubles.model._stream import AnswerReader, EventDecoder, message_parts

GOOD = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
REQUEST = parse_request(GOOD)
STREAMED = parse_request({**GOOD, "stream": True})
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "bot", "content": "hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "what"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]},
         "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": [RESULT]}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [USE]},
                       {"role": "user", "content": "y"}]}, "messages.2"),
        ({"system": 4}, "system"),
        ({"tools": [{"description": "nameless"}]}, "tools.0.name"),
        ({"tools": [{"name": "a"}]}, "tools.0.input_schema"),
        ({"tools": [{"name": "a", "input_schema": {"type": "string"}}]},
         "tools.0.input_schema.type"),
        ({"stream": "yes"}, "stream"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "perhaps"}}, "tool_choice.type"),
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused_by_field(change, field) -> None:
    """What the provider would refuse is refused, naming the field it names."""
    body = {key: value for key, value in {**GOOD, **change}.items() if value is not None}

    with pytest.raises(Refusal) as caught:
        parse_request(body)

    assert 400 == caught.value.status
    assert caught.value.message.startswith(f"{field}")
    assert "invalid_request_error" == caught.value.body()["error"]["type"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(raw) -> None:
    """A body that is no JSON object is the caller's mistake, not ours."""
    with pytest.raises(Refusal) as caught:
        parse_body(raw)

    assert 400 == caught.value.status


def test_unknown_fields_are_kept() -> None:
    """Fields that are not read travel on to a live provider."""
    request = parse_request({**GOOD, "speed": "fast"})

    assert "fast" == request.body["speed"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
blocks = st.lists(
    st.builds(text_block, st.text())
    | st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": st.text(min_size=1),
            "name": st.text(min_size=1),
            "input": st.dictionaries(st.text(), json_values, max_size=3),
        }
    )
    | st.fixed_dictionaries(
        {"type": st.just("thinking"), "thinking": st.text(), "signature": st.just("abc")}
    ),
    max_size=4,
)
counts = st.integers(min_value=0, max_value=10**6)
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
)


@given(blocks=blocks, usage=usages, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_a_stream_says_what_the_message_says(blocks, usage, cuts) -> None:
    """Events, cut into pieces anywhere, add up to the message that would have been sent whole."""
    reply = Reply(content=tuple(blocks), usage=usage)
    stream = b"".join(message_parts(reply, STREAMED, "msg_1"))
    reader, at, number = AnswerReader(streaming=True), 0, 0
    while at < len(stream):
        piece = stream[at : at + cuts[number % len(cuts)]]
        reader.feed(piece)
        at, number = at + len(piece), number + 1
    whole = AnswerReader(streaming=False)
    whole.feed(*message_parts(reply, REQUEST, "msg_1"))
    whole.end()

    assert reply == reader.reply == whole.reply
    assert usage == reader.usage == whole.usage
    assert tuple(block["name"] for block in reply.calls) == reader.called == whole.called


def test_a_stream_is_written_as_the_provider_writes_it() -> None:
    """Event by event: each named by its type, texts in several deltas, arguments as partial JSON."""
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
    reply = Reply(content=(text_block("x" * 30), call), stop_reason="tool_use")
    stream = b"".join(message_parts(reply, STREAMED, "msg_1"))
    events = list(EventDecoder().feed(stream))

    assert [f"event: {event['type']}" for event in events] == [
        line for line in stream.decode().splitlines() if line.startswith("event:")
    ]
    assert [
        ("message_start", None),
        ("ping", None),
        ("content_block_start", text_block("")),
        ("content_block_delta", {"type": "text_delta", "text": "x" * 24}),
        ("content_block_delta", {"type": "text_delta", "text": "x" * 6}),
        ("content_block_stop", None),
        ("content_block_start", call | {"input": {}}),
        ("content_block_delta", {"type": "input_json_delta", "partial_json": '{"a": 1}'}),
        ("content_block_stop", None),
        ("message_delta", {"stop_reason": "tool_use", "stop_sequence": None}),
        ("message_stop", None),
    ] == [(each["type"], each.get("content_block", each.get("delta"))) for each in events]
    assert (
        json.loads(*message_parts(reply, REQUEST, "msg_1"))
        | {"content": [], "stop_reason": None}
        | {"usage": events[0]["message"]["usage"]}
        == events[0]["message"]
    )


def test_a_broken_stream_is_priced_by_what_was_seen() -> None:
    """A stream that breaks off before its usage is estimated by its deltas, not taken as free."""
    usage = Usage(input_tokens=50, output_tokens=99)
    events = list(
        message_parts(Reply(content=(text_block("x" * 400),), usage=usage), STREAMED, "m")
    )
    reader = AnswerReader(streaming=True)
    for event in events[:-3]:
        reader.feed(event)

    assert Usage(input_tokens=50, output_tokens=100) == reader.usage
    assert reader.reply is None


@given(st.text())
def test_estimated_tokens_are_a_quarter_of_the_bytes(text: str) -> None:
    """Of its UTF-8, rounded up; half a surrogate pair, which JSON allows, is counted too."""
    size = len(text.encode("utf-8", "surrogatepass"))

    assert (size + 3) // 4 == estimate_tokens(text)


def test_chat_completions_are_translated() -> None:
    """A chat request with tools and results becomes the same conversation."""
    body = {
        "model": "gpt-5-mini",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "log it"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
    }  # fmt: skip

    request = CHAT.parse(body)

    assert ("be brief",) == request.system
    assert ["user", "assistant", "user"] == [turn.role for turn in request.turns]
    assert ["f"] == [tool.name for tool in request.tools]
    assert "any" == request.tool_choice
    assert {"type": "object"} == request.output_schema


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"tools": [{"name": "x"}]}, "tools[0].function"),
    ],
)
def test_a_malformed_chat_request_is_refused_by_field(change, field) -> None:
    """The second dialect names its own fields."""
    with pytest.raises(Refusal) as caught:
        CHAT.parse({**GOOD, **change})

    assert caught.value.message.startswith(field)
    error = CHAT.error(caught.value)["error"]
    assert ("invalid_request_error", field) == (error["type"], error["param"])
