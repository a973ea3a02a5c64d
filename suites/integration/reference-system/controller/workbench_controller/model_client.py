"""One turn of a model, by the Messages API."""

from __future__ import annotations

import functools
import ssl
from typing import Annotated, Any

import httpx
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from workbench_controller.settings import Model
from workbench_foundation import faults

_TOKENS = 4096
_SHOWN_CHARS = 500


class ModelRefused(Exception):
    """There is no answer, and asking again gives none."""


class ModelTroubled(Exception):
    """There is no answer now; asking again may give one."""


class _Block(BaseModel):
    """A part of an answer; what else stands in it is kept."""

    type: str


class _Text(_Block):
    text: str


class _ToolUse(_Block):
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    input: dict[str, Any]


_BLOCKS = {"text": _Text, "tool_use": _ToolUse}


def _as_known(block: dict[str, Any]) -> dict[str, Any]:
    _BLOCKS.get(str(block.get("type")), _Block).model_validate(block, strict=True)
    return block


class _Message(BaseModel):
    """An answer, as far as the workflow goes by it."""

    content: list[Annotated[dict[str, Any], AfterValidator(_as_known)]]
    stop_reason: str | None
    usage: dict[str, Any] = {}


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust; reading them takes longer than a question to a model that is near."""
    return httpx.create_ssl_context(trust_env=False)


async def ask(model: Model, *, system: str, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """The model's answer: its ``content`` blocks and ``stop_reason``.

    Raises:
        ModelRefused: no key, a request it does not take, or no answer to this conversation.
        ModelTroubled: it is overloaded, failed or away.
    """
    if model.key is None:
        raise ModelRefused("cannot ask the model: ANTHROPIC_API_KEY is not set. Give the stack a key")
    body = {
        "model": model.name,
        "max_tokens": _TOKENS,
        "system": system,
        "messages": messages,
        "tools": tools,
    }
    key = model.key[:-1] if faults.on("model-key-cut") else model.key
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    try:
        async with httpx.AsyncClient(
            timeout=model.timeout_s, trust_env=False, verify=_certificates()
        ) as http:
            answer = await http.post(f"{model.url}/v1/messages", json=body, headers=headers)
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        raise ModelTroubled(f"cannot ask the model: {why}. See whether {model.url} serves") from error
    if answer.status_code == httpx.codes.OK:
        return _read(answer)
    observed = f"cannot ask the model: {answer.status_code} {_said(answer)}"
    final = answer.status_code < 500 and answer.status_code not in (408, 429)
    if final or answer.headers.get("x-should-retry") == "false":
        raise ModelRefused(observed)
    raise ModelTroubled(observed)


def _read(answer: httpx.Response) -> dict[str, Any]:
    """The message; the workflow takes its shape for granted.

    Raises:
        ModelTroubled: it is no message.
    """
    try:
        message = _Message.model_validate_json(answer.content, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in wrong["loc"]) or "the whole of it"
        why = f"{where}: {' '.join(wrong['msg'].split())[:_SHOWN_CHARS]}"
        observed = answer.text[:_SHOWN_CHARS]
        raise ModelTroubled(f"cannot read the model's answer: {why} in {observed!r}") from error
    return message.model_dump(mode="json")


def _said(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])[:_SHOWN_CHARS]
    except (ValueError, KeyError, TypeError):
        return answer.text[:_SHOWN_CHARS]
