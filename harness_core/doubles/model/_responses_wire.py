"""An answer of the Responses API on the wire: written, whole or as events, and read as it passes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness_core.doubles.model._reply import Content, Reply, Usage, text_block
from harness_core.doubles.model._request import MessagesRequest
from harness_core.doubles.model._stream import AnswerReader, parsed, pieces

#: Fields of a response that repeat what was asked, with what stands there when nothing was.
_REPEATED: Final[Mapping[str, Any]] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}

#: The last event of a stream: a response that is whole, that ran out of tokens, or that failed.
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def response_ids(reply: Reply, message_id: str) -> list[str]:
    """The id of a response, then of the items of its output, one for each block of the answer."""
    rest = message_id.removeprefix("msg_")
    kinds = ("fc" if block["type"] == "tool_use" else "msg" for block in reply.content)
    return [f"resp_{rest}", *(f"{kind}_{rest}{index}" for index, kind in enumerate(kinds))]


def response_parts(reply: Reply, request: MessagesRequest, message_id: str) -> list[bytes]:
    """An answer as this API sends it: the events of a stream, or one JSON text."""
    response_id, *item_ids = response_ids(reply, message_id)
    cut_short = reply.stop_reason == "max_tokens"
    status = "incomplete" if cut_short else "completed"
    pairs = zip(item_ids, reply.content, strict=True)
    output = [_item(item_id, block, status) for item_id, block in pairs]
    asked = request.received
    whole = {
        "id": response_id,
        "object": "response",
        "created_at": 0,
        "model": request.model,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut_short else None,
        "output": output,
        "usage": _usage(reply.usage),
        **_REPEATED,
        **{key: asked[key] for key in _REPEATED if asked.get(key) is not None},
    }
    if not request.stream:
        return [json.dumps(whole).encode()]
    return [
        f"event: {body['type']}\ndata: {json.dumps(body | {'sequence_number': at})}\n\n".encode()
        for at, body in enumerate(_events(whole))
    ]


def _item(item_id: str, block: Content, status: str) -> dict[str, Any]:
    if block["type"] == "tool_use":
        call = {"id": item_id, "type": "function_call", "status": status, "call_id": block["id"]}
        return call | {"name": block["name"], "arguments": json.dumps(block["input"])}
    content = [_text(str(block.get("text", "")))]
    message = {"id": item_id, "type": "message", "status": status, "role": "assistant"}
    return message | {"content": content}


def _text(words: str) -> dict[str, Any]:
    return {"type": "output_text", "text": words, "annotations": [], "logprobs": []}


def _events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**whole, "status": "in_progress", "incomplete_details": None}
    begun |= {"output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        key, empty = ("content", []) if item["type"] == "message" else ("arguments", "")
        added = {**item, "status": "in_progress", key: empty}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        at = {"item_id": item["id"], "output_index": index}
        yield from _spoken(item, at) if item["type"] == "message" else _called(item, at)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _spoken(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    (part,) = item["content"]
    at = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _called(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **at, **done}


def _usage(usage: Usage) -> dict[str, Any]:
    cached, written = usage.cache_read_tokens, usage.cache_write_tokens
    read = usage.input_tokens + cached + written
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.output_tokens,
    }


class ResponseReader(AnswerReader):
    """Reads a provider's response while it passes.

    Its usage stands in the last event alone: of a stream that broke off nothing is known.
    """

    def end(self) -> None:
        """All bytes have been seen: a response that is not streamed can be read."""
        body = parsed(self._whole)
        whole = body.get("object") == "response"
        self._take({"type": _ENDS[0], "response": body} if whole else body)

    def _read(self, body: Mapping[str, Any]) -> None:
        kind = body.get("type")
        if kind == "response.output_item.added":
            self._blocks[body["output_index"]] = dict(*_blocks(body["item"], finished=False))
        elif kind in _ENDS:
            self._end(body["response"])
        elif kind == "error" and "message" in body:
            self.error, self.problem = str(body.get("code") or "error"), str(body["message"])
        elif body.get("error"):
            super()._read({"error": body["error"]})

    def _end(self, response: Mapping[str, Any]) -> None:
        self.usage = _read_usage(response.get("usage") or {})
        if failed := response.get("error"):
            self.error, self.problem = str(failed["code"]), str(failed["message"])
            return
        found = [(item["id"], block) for item in response["output"] for block in _blocks(item)]
        self._blocks = dict(enumerate(block for _, block in found))
        calls = any(block["type"] == "tool_use" for _, block in found)
        self.stop_reason = "tool_use" if calls else "end_turn"
        if response.get("status") == "incomplete":
            self.stop_reason = "max_tokens"
        self.ids = (str(response["id"]), *(item_id for item_id, _ in found))
        self._finish()


def _blocks(item: Mapping[str, Any], *, finished: bool = True) -> Sequence[dict[str, Any]]:
    """An item of the output as blocks of a message; none of reasoning and the provider's tools."""
    if item["type"] == "function_call":
        arguments = json.loads(item["arguments"] or "{}") if finished else {}
        call = {"type": "tool_use", "id": item["call_id"], "name": item["name"]}
        return [call | {"input": arguments}]
    if item["type"] == "message":
        parts = item["content"]
        words = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
        return [dict(text_block(words))]
    return []


def _read_usage(body: Mapping[str, Any]) -> Usage:
    details = body.get("input_tokens_details") or {}
    cached, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    return Usage(
        input_tokens=max(0, (body.get("input_tokens") or 0) - cached - written),
        output_tokens=body.get("output_tokens") or 0,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
