"""One turn of a model, by the Messages API."""

from __future__ import annotations

from typing import Any

import httpx

from workbench_controller.settings import Model
from workbench_foundation import faults

_TOKENS = 4096
_SHOWN_CHARS = 500


class ModelRefused(Exception):
    """There is no answer, and asking again gives none."""


class ModelTroubled(Exception):
    """There is no answer now; asking again may give one."""


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
        async with httpx.AsyncClient(timeout=model.timeout_s, trust_env=False) as http:
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
    try:
        found = answer.json()
        content, stop = found["content"], found["stop_reason"]
    except (ValueError, KeyError, TypeError) as error:
        observed = answer.text[:_SHOWN_CHARS]
        raise ModelTroubled(f"cannot read the model's answer: {observed!r}") from error
    return {"content": content, "stop_reason": stop, "usage": found.get("usage", {})}


def _said(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])[:_SHOWN_CHARS]
    except (ValueError, KeyError, TypeError):
        return answer.text[:_SHOWN_CHARS]
