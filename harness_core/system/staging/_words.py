"""What another terminal, or the page, may ask of what is held: each word, and what answers it.

Whoever may open the socket is the user who holds the system; nobody else can (``_host.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec
import trio

from harness_core.base.errors import BadInput, HarnessError

if TYPE_CHECKING:
    from harness_core.doubles.model import Totals
    from harness_core.system.staging._messages import Messages

__all__ = ["Environment", "Held"]


class Environment(Protocol):
    """What a suite boots, and its tests or ``harness up`` hold."""

    def describe(self) -> Mapping[str, Any]:
        """Its parts for people, as JSON: a list ``parts``.

        A part has ``name``, ``kind``, ``state``, ``address``, ``pid``, ``log`` and ``urls``, and
        ``container`` when it is one; ``restarts``, ``died`` and ``verbs`` where :class:`Acts` holds.
        """


@runtime_checkable
class Acts(Protocol):
    """An environment whose parts may be taken away and given back."""

    async def act(self, name: str, verb: str) -> None:
        """Do something to a part: one of ``start stop kill pause resume restart``.

        Raises:
            HarnessError: it cannot be done.
        """


@runtime_checkable
class Spends(Protocol):
    """An environment with a model gateway."""

    async def spent(self) -> Totals | None:
        """What it has counted so far, and the budget; ``None`` without one."""


class _Asked(msgspec.Struct, frozen=True):
    """One request: a word, and what it is about."""

    ask: str
    part: str = ""
    verb: str = ""
    offer: str = ""
    text: str = ""
    message: str = ""


class Held:
    """Answers for what is held.

    Args:
        staged: a person holds it: its parts may be taken away, and messages sent.

    Attributes:
        environment: once that is up.
        messages: what can be sent to it, where its suite says so.
        stopping: set when it was asked to end.
    """

    def __init__(self, *, staged: bool) -> None:
        self.environment: Environment | None = None
        self.messages: Messages | None = None
        self.stopping = trio.Event()
        self._staged = staged
        self._busy: dict[str, str] = {}
        self._under_way: dict[trio.CancelScope, trio.Event] = {}

    async def answer(self, line: bytes) -> dict[str, Any]:
        """Answer one request; what it raises is an error of what was asked."""
        try:
            asked = msgspec.json.decode(line, type=_Asked)
        except msgspec.DecodeError:
            return {"error": f"found {line[:80]!r}, expected a JSON object with the key `ask`"}
        if asked.ask == "describe":
            return {"answer": self._describe()}
        if asked.ask == "stop":
            self.stopping.set()
            return {"answer": None}
        words = {
            "act": self._act,
            "offers": self._offers,
            "send": self._send,
            "way": self._way,
            "spent": self._spent,
        }
        if asked.ask not in words:
            expected = ", ".join(["describe", "stop", *words])
            return {"error": f"found {asked.ask!r}, expected one of {expected}"}
        if not self._staged:
            return {"error": f"cannot {asked.ask}: a test run holds it"}
        return {"answer": await self._bounded(words[asked.ask], asked)}

    async def settle(self) -> None:
        """End what is being done to parts, before all of them are taken down; nothing more is begun."""
        self.stopping.set()
        for scope, ended in tuple(self._under_way.items()):
            scope.cancel()
            await ended.wait()

    async def _bounded(self, word: Any, asked: _Asked) -> Any:
        if self.environment is None or self.stopping.is_set():
            raise HarnessError(
                asked.ask, observed="it is ending" if self.environment else "it is booting"
            )
        ended = trio.Event()
        with trio.CancelScope() as scope:
            self._under_way[scope] = ended
            try:
                return await word(asked)
            finally:
                del self._under_way[scope]
                ended.set()
        raise HarnessError(asked.ask, observed="it is ending")

    def _describe(self) -> dict[str, Any] | None:
        if self.environment is None:
            return None
        busy = {"busy": dict(self._busy)} if self._busy else {}
        return {**self.environment.describe(), **busy}

    async def _act(self, asked: _Asked) -> None:
        environment: object = self.environment
        if not isinstance(environment, Acts):
            expected = "an environment with a method `act`, as `open_parts` yields"
            raise BadInput("act", found=type(environment).__name__, expected=expected)
        if asked.part in self._busy:
            raise HarnessError(
                f"{asked.verb} {asked.part}",
                observed=f"{self._busy[asked.part]} of it is not done yet",
            )
        self._busy[asked.part] = asked.verb
        try:
            await environment.act(asked.part, asked.verb)
        finally:
            del self._busy[asked.part]

    async def _offers(self, asked: _Asked) -> Any:  # noqa: ARG002 - a word's signature
        if self.messages is None:
            return None
        return {
            "offers": msgspec.to_builtins(list(self.messages.offers())),
            "free_text": self.messages.free_text,
        }

    async def _send(self, asked: _Asked) -> str:
        if not asked.offer and not (self._sends.free_text and asked.text.strip()):
            expected = "a text, where something answers that understands it (--llm live)"
            raise BadInput("send", key="text", found=asked.text[:80], expected=expected)
        return await self._sends.send(asked.offer, asked.text)

    async def _way(self, asked: _Asked) -> Any:
        return msgspec.to_builtins(await self._sends.way(asked.message), enc_hook=str)

    async def _spent(self, asked: _Asked) -> Any:  # noqa: ARG002 - a word's signature
        environment: object = self.environment
        if not isinstance(environment, Spends):
            return None
        return msgspec.to_builtins(await environment.spent())

    @property
    def _sends(self) -> Messages:
        if self.messages is None:
            expected = "a suite whose suite.toml has `messages`"
            raise BadInput("send", found="an environment without messages", expected=expected)
        return self.messages
