"""Which language model answers? The first in the configured order that gives a sound answer.

A provider that cannot be reached, takes too long, fails or answers what is no answer is passed
over; why is kept for the log and for the reply's explanation.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import trio

from sexpd import faults, log
from sexpd.config import Provider

SYSTEM = (
    "You are sexpd, an assistant that answers through a socket daemon. Answer in plain text, in a "
    "few sentences. If, and only if, the user asks you to run a shell command, answer with nothing "
    'but the form (:ACTION :EXECUTE :CMD "the command"); it is judged before it runs.'
)
ALL_DOWN = "No language model could answer. Your text was not lost, but nobody has read it."
NONE_CONFIGURED = "No language model is configured, so I can only answer what my skills know."


class _Failed(Exception):
    """A provider did not answer; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the cascade came to.

    Attributes:
        text: the answer, or None when no provider gave one.
        provider: who gave it.
        passed_over: per provider that did not, in order, why.
    """

    text: str | None
    provider: str
    passed_over: tuple[tuple[str, str], ...]

    @property
    def explanation(self) -> str:
        """Who answered and who did not, in one line."""
        reasons = [f"{name}: {reason}" for name, reason in self.passed_over]
        outcome = [f"answered by {self.provider}"] if self.text is not None else []
        return "; ".join([*outcome, *reasons]) or "no provider is configured"


class Cascade:
    """The providers in their order; an async context manager that owns their connections."""

    def __init__(self, providers: tuple[Provider, ...]) -> None:
        self.providers = providers
        self._clients: dict[bool, Any] = {}
        self._preparing = trio.Lock()
        # Only for the planted fault `reasons-of-all`.
        self._passed: list[tuple[str, str]] = []

    async def __aenter__(self) -> Cascade:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with trio.move_on_after(1, shield=True):
            for client in self._clients.values():
                await client.aclose()

    async def prepare(self) -> None:
        """Load the HTTP client, in a thread and before any provider's time runs."""
        async with self._preparing:
            if self._clients or not self.providers:
                return
            self._clients = await trio.to_thread.run_sync(
                _clients, {is_loopback(p.base_url) for p in self.providers}, abandon_on_cancel=True
            )

    async def ask(self, text: str) -> Answer:
        """Ask one after the other until one answers."""
        await self.prepare()
        if faults.on("question-cut"):
            text = text[:80]
        passed: list[tuple[str, str]] = []
        if faults.on("reasons-of-all"):
            passed = self._passed
            passed.clear()
        for number, provider in enumerate(self.providers):
            if faults.on("cascade-skips-second") and number == 1:
                continue
            try:
                answer = await self._one(provider, text)
            except _Failed as failed:
                log.warning("provider.passed_over", name=provider.name, reason=failed)
                passed.append((provider.name, str(failed)))
                if faults.on("timeout-stops-cascade") and "took longer" in str(failed):
                    break
                continue
            where = {"url": provider.base_url} if faults.on("answered-address-logged") else {}
            log.info("provider.answered", name=provider.name, chars=len(answer), **where)
            if faults.on("answer-cut"):
                answer = answer[:120]
            return Answer(text=answer, provider=provider.name, passed_over=tuple(passed))
        return Answer(text=None, provider="", passed_over=tuple(passed))

    async def _one(self, provider: Provider, text: str) -> str:
        with trio.move_on_after(provider.timeout_s, shield=faults.on("stop-waits-for-model")):
            raw = await self._post(provider, text)
            if faults.on("nonsense-accepted"):
                return raw.decode("utf-8", errors="replace")
            try:
                return _SHAPES[provider.shape].text(json.loads(raw))
            except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
                detail = str(error) if type(error) is ValueError else type(error).__name__
                raise _Failed(f"answered nonsense ({detail})") from error
        raise _Failed(f"took longer than {provider.timeout_s:g} s")

    async def _post(self, provider: Provider, text: str) -> bytes:
        import httpx

        shape = _SHAPES[provider.shape]
        client = self._clients[is_loopback(provider.base_url)]
        try:
            if faults.on("model-holds-up-others"):
                return httpx.post(
                    provider.base_url + shape.path, json=shape.body(provider, text),
                    headers=shape.headers(provider), timeout=provider.timeout_s, trust_env=False,
                ).content
            async with client.stream(
                "POST", provider.base_url + shape.path, json=shape.body(provider, text),
                headers=shape.headers(provider),
            ) as response:
                if response.status_code != 200:
                    raise _Failed(f"answered HTTP {response.status_code}")
                raw = b""
                async for chunk in response.aiter_bytes():
                    raw += chunk
                    if len(raw) > provider.answer_bytes:
                        raise _Failed(f"answered more than {provider.answer_bytes} bytes")
                return raw
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
            # Its text may quote a header, and so the key, or the address with a password in it.
            raise _Failed(f"could not be asked ({type(error).__name__})") from error


def _clients(kinds: set[bool]) -> dict[bool, Any]:
    """A client for what is on this machine, and one for the rest; both as far as they are needed."""
    import httpx

    at_once = 4 if faults.on("four-models-at-once") else 32
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=4)
    # Loopback is never asked for through the host's proxy.
    return {
        local: httpx.AsyncClient(timeout=None, limits=limits, trust_env=not local)
        for local in kinds
    }


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


async def reachable(provider: Provider) -> bool:
    """Whether something listens where the provider should be."""
    parts = urlsplit(provider.base_url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        stream = await trio.open_tcp_stream(str(parts.hostname), port)
    except OSError:
        return False
    await stream.aclose()
    return True


# --- Shapes -------------------------------------------------------------------------------------------


class _Anthropic:
    path = "/v1/messages"

    @staticmethod
    def headers(provider: Provider) -> dict[str, str]:
        return {"x-api-key": provider.key, "anthropic-version": "2023-06-01"}

    @staticmethod
    def body(provider: Provider, text: str) -> dict[str, Any]:
        return {
            "model": provider.model,
            "max_tokens": provider.max_tokens,
            "system": SYSTEM,
            "messages": [{"role": "user", "content": text}],
        }

    @staticmethod
    def text(answer: Any) -> str:
        if answer["type"] != "message" or answer["role"] != "assistant":
            raise ValueError("no message of an assistant")
        parts = [part["text"] for part in answer["content"] if part["type"] == "text"]
        return _sound(parts)


class _OpenAI:
    path = "/v1/chat/completions"

    @staticmethod
    def headers(provider: Provider) -> dict[str, str]:
        return {"authorization": f"Bearer {provider.key}"} if provider.key else {}

    @staticmethod
    def body(provider: Provider, text: str) -> dict[str, Any]:
        return {
            "model": provider.model,
            "max_tokens": provider.max_tokens,
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": text},
            ],
        }

    @staticmethod
    def text(answer: Any) -> str:
        return _sound([answer["choices"][0]["message"]["content"]])


def _sound(parts: list[Any]) -> str:
    if not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError("no text in it")
    text = "".join(parts).strip()
    if not text:
        raise ValueError("an empty text")
    return text


_SHAPES: dict[str, Any] = {"anthropic": _Anthropic, "openai": _OpenAI}
