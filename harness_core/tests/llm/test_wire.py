"""The wire formats: what is refused with which field, and that streams say what messages say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.llm._openai import ChatDialect
from harness_core.llm._refusal import Refusal
from harness_core.llm._reply import Reply, Usage, estimate_tokens, message_body
from harness_core.llm._request import TextBlock, ToolUseBlock, parse_request
from harness_core.llm._sse import EventDecoder, UsageReader, message_events

GOOD = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
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
        parse_request(json.dumps(body).encode())

    assert 400 == caught.value.status
    assert caught.value.message.startswith(f"{field}")
    assert "invalid_request_error" == caught.value.body()["error"]["type"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(raw) -> None:
    """A body that is no JSON object is the caller's mistake, not ours."""
    with pytest.raises(Refusal) as caught:
        parse_request(raw)

    assert 400 == caught.value.status


def test_unknown_fields_are_kept() -> None:
    """Fields nobody here knows travel on to a live provider."""
    request = parse_request(json.dumps({**GOOD, "speed": "fast"}).encode())

    assert "fast" == request.body["speed"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
blocks = st.lists(
    st.builds(TextBlock, text=st.text())
    | st.builds(
        ToolUseBlock,
        id=st.text(min_size=1),
        name=st.text(min_size=1),
        input=st.dictionaries(st.text(), json_values, max_size=3),
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
    reply = Reply(blocks=tuple(blocks), stop_reason="end_turn", usage=usage)
    stream = b"".join(message_events(reply, model="m", message_id="msg_1"))
    decoder, reader = EventDecoder(), UsageReader()
    events, at, number = [], 0, 0
    while at < len(stream):
        piece = stream[at : at + cuts[number % len(cuts)]]
        events += decoder.feed(piece)
        reader.feed(piece)
        at, number = at + len(piece), number + 1

    message: dict = {}
    partial: dict[int, str] = {}
    for event in events:
        body = event.json()
        assert event.name == body["type"]
        if event.name == "message_start":
            message = body["message"]
        elif event.name == "content_block_start":
            message["content"].append(body["content_block"])
            partial[body["index"]] = ""
        elif event.name == "content_block_delta":
            delta = body["delta"]
            partial[body["index"]] += delta.get("text", delta.get("partial_json"))
        elif event.name == "content_block_stop":
            block = message["content"][body["index"]]
            said = partial[body["index"]]
            block |= {"text": said} if block["type"] == "text" else {"input": json.loads(said)}
        elif event.name == "message_delta":
            message |= body["delta"]
            message["usage"] |= body["usage"]

    assert message_body(reply, model="m", message_id="msg_1") == message
    assert "message_stop" == events[-1].name
    assert usage == reader.usage
    assert reader.complete
    assert [block.name for block in blocks if isinstance(block, ToolUseBlock)] == reader.called


def test_a_broken_stream_is_priced_by_what_was_seen() -> None:
    """A stream that breaks off before its usage is estimated by its deltas, not taken as free."""
    reply = Reply(
        blocks=(TextBlock(text="x" * 400),), usage=Usage(input_tokens=50, output_tokens=99)
    )
    events = list(message_events(reply, model="m", message_id="msg_1"))
    reader = UsageReader()
    for event in events[:-3]:
        reader.feed(event)

    assert Usage(input_tokens=50, output_tokens=100) == reader.best_usage()
    assert not reader.complete


@given(st.text())
def test_estimated_tokens_are_a_quarter_of_the_bytes(text: str) -> None:
    """The offline token count is deterministic and documented: bytes over four, rounded up."""
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
    }  # fmt: skip

    request = ChatDialect().parse(json.dumps(body).encode())

    assert ("be brief",) == request.system
    assert ["user", "assistant", "user"] == [turn.role for turn in request.turns]
    assert ["f"] == [tool.name for tool in request.tools]
    assert "any" == request.tool_choice


def test_chat_completions_are_answered() -> None:
    """Text and calls come back under the names of that API, whole and streamed."""
    reply = Reply(
        blocks=(TextBlock(text="so"), ToolUseBlock(id="c1", name="f", input={"a": 1})),
        stop_reason="tool_use",
        usage=Usage(input_tokens=3, output_tokens=4),
    )
    dialect = ChatDialect()
    request = dialect.parse(json.dumps({**GOOD, "stream": True}).encode())

    whole = dialect.whole(reply, model="m", message_id="msg_1")
    stream = b"".join(dialect.events(reply, request=request, message_id="msg_1")).decode()

    message = whole["choices"][0]["message"]
    assert "so" == message["content"]
    assert {"name": "f", "arguments": '{"a": 1}'} == message["tool_calls"][0]["function"]
    assert "tool_calls" == whole["choices"][0]["finish_reason"]
    assert 7 == whole["usage"]["total_tokens"]
    assert stream.endswith("data: [DONE]\n\n")
    assert '"finish_reason": "tool_calls"' in stream


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"tools": [{"name": "x"}]}, "tools[0].function"),
    ],
)
def test_a_malformed_chat_request_is_refused_by_field(change, field) -> None:
    """The second dialect names its own fields."""
    with pytest.raises(Refusal) as caught:
        ChatDialect().parse(json.dumps({**GOOD, **change}).encode())

    assert caught.value.message.startswith(field)
