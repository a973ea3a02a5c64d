"""A loopback server that records every request and answers by rules.

It stands where a service of the world stands in production: a messenger's API, a calendar, a
collector of traces. What was really sent is then known, and trouble comes on request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from harness_core.base.bridge import anywhere
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.base.groups import lone_error
from harness_core.base.wait import deadline, until
from harness_core.doubles.http._connection import serve_connection
from harness_core.doubles.http._own_host import OwnHosts
from harness_core.doubles.http._recorded import Recorded, written
from harness_core.doubles.http._rules import Answer, Rule

#: Largest body taken, compressed and unfolded alike. A batch of 512 spans is about 0.5 MB.
_BODY_BYTES: Final = 8 * 1024 * 1024

#: What is kept in memory; a run of a whole suite leaves some thousand requests of some kB.
_KEPT_REQUESTS: Final = 50_000
_KEPT_BYTES: Final = 256 * 1024 * 1024

#: Connections served at once; others wait in the backlog.
_CONNECTIONS: Final = 256

#: Said when no rule matches: the request is recorded, and the client told that nobody serves it.
_NOBODY: Final = Answer(status=404, json={"error": "no rule of the recorder matches this request"})


class Recorder:
    """A recording server; built only by :func:`open_recorder`.

    Its requests may be read, and its rules changed, from any loop and thread.

    Attributes:
        name: what evidence and errors call it.
        port: where it listens, on 127.0.0.1.
        url: its base URL, without a slash at the end.
    """

    def __init__(
        self,
        *,
        name: str,
        port: int,
        hosts: Sequence[str],
        evidence: Evidence,
        rules: Sequence[Rule],
        body_bytes: int,
    ) -> None:
        self.name = name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._desk = _Desk(
            name=name,
            evidence=evidence,
            rules=tuple(_Live(rule) for rule in rules),
            body_bytes=body_bytes,
            own=OwnHosts(port, further=hosts),
        )

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """Every request so far, in the order they were read; also those that were none.

        Raises:
            HarnessError: more came than is kept, so nothing can be said of all of them.
        """
        if self._desk.dropped:
            raise HarnessError(
                f"tell every request to {self.name}",
                observed=f"{self._desk.dropped} did not fit after {len(self._desk.kept)}",
                next_step="Call forget() between tests, or send less",
            )
        return tuple(self._desk.kept)

    @property
    def problems(self) -> tuple[Recorded, ...]:
        """The requests that were malformed, for another host, too large or cut off."""
        return tuple(request for request in self.requests if request.problem)

    def matching(self, path: str = "*", *, method: str = "", since: int = 0) -> list[Recorded]:
        """The good requests for a path (a shell pattern) with a greater sequence than ``since``."""
        wanted = Rule(path=path, method=method)
        return [
            request
            for request in self.requests
            if request.sequence > since and not request.problem and wanted.matches(request)
        ]

    def mark(self) -> int:
        """Sequence number of the last request so far, for a later ``since``."""
        return self._desk.sequence

    @anywhere
    async def wait_for(
        self,
        path: str = "*",
        *,
        method: str = "",
        count: int = 1,
        since: int = 0,
        where: Callable[[Recorded], bool] = lambda _request: True,
        seconds: float,
    ) -> list[Recorded]:
        """Wait until ``count`` good requests have come that ``where`` accepts; returns them.

        Raises:
            NotReady: fewer came within ``seconds``; says which did. A test for which that is the
                product's failure asserts on :meth:`matching` instead.
        """

        async def enough() -> list[Recorded] | None:
            found = [r for r in self.matching(path, method=method, since=since) if where(r)]
            return found if len(found) >= count else None

        def observed() -> str:
            seen = [f"{r.method} {r.path}" for r in self.requests if r.sequence > since]
            return f"it received {', '.join(seen[-10:]) or 'nothing'}"

        action = f"see {count} requests for {method or 'any method'} {path} at {self.name}"
        with deadline(action, seconds=seconds, observed=observed):
            return await until(enough)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force, first to last."""
        return tuple(live.rule for live in self._desk.rules)

    def add_rule(self, rule: Rule) -> None:
        """Put a rule before all others."""
        self._desk.rules = (_Live(rule), *self._desk.rules)

    def remove_rule(self, rule: Rule) -> None:
        """Take a rule away again; nothing happens when it is not there."""
        self._desk.rules = tuple(live for live in self._desk.rules if live.rule is not rule)

    def forget(self) -> None:
        """Forget the requests so far; the evidence keeps them, and the numbers go on."""
        self._desk.forget()


@dataclasses.dataclass(slots=True)
class _Live:
    """A rule in use, and how often it has answered."""

    rule: Rule
    used: int = 0


@dataclasses.dataclass(slots=True, kw_only=True)
class _Desk:
    """Where the connections of one recorder meet."""

    name: str
    evidence: Evidence
    rules: tuple[_Live, ...]
    body_bytes: int
    own: OwnHosts
    sequence: int = 0
    kept: list[Recorded] = dataclasses.field(default_factory=list)
    kept_bytes: int = 0
    dropped: int = 0

    def begin(self) -> int:
        self.sequence += 1
        return self.sequence

    def decide(self, request: Recorded) -> tuple[Answer, str]:
        for live in self.rules:
            rule = live.rule
            if rule.matches(request) and (rule.times is None or live.used < rule.times):
                live.used += 1
                return rule.made(request), rule.called()
        return _NOBODY, ""

    def record(self, request: Recorded) -> None:
        size = len(request.body)
        if len(self.kept) >= _KEPT_REQUESTS or self.kept_bytes + size > _KEPT_BYTES:
            self.dropped += 1
            return
        self.kept.append(request)
        self.kept_bytes += size
        self.evidence.append_json(f"{self.name}.jsonl", written(request, self.evidence.redactor))

    def forget(self) -> None:
        self.kept, self.kept_bytes, self.dropped = [], 0, 0


@asynccontextmanager
async def open_recorder(
    name: str,
    *,
    evidence: Evidence,
    rules: Sequence[Rule] = (),
    port: int = 0,
    hosts: Sequence[str] = (),
    body_bytes: int = _BODY_BYTES,
) -> AsyncIterator[Recorder]:
    """Serve on 127.0.0.1 for the block and record everything that is asked.

    Args:
        name: what evidence (``<name>.jsonl``) and errors call it.
        evidence: where the requests are written, redacted.
        rules: tried in order; the first that matches and is not spent answers, else 404.
        port: a fixed one, e.g. of a :class:`~harness_core.ports.PortLease` handed over; 0 for any.
        hosts: ``HOST:PORT`` that callers know it by, besides ``127.0.0.1`` and ``localhost``; a
            request for any other is refused with 421.
        body_bytes: a larger body is refused with 413.

    Raises:
        HarnessError: the port is taken.
    """
    try:
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    except OSError as error:
        action = f"serve {name} on 127.0.0.1:{port}"
        raise HarnessError(
            action, observed=str(error.strerror), next_step="Leave the port to the system: 0"
        ) from error
    recorder = Recorder(
        name=name,
        port=listener.socket.getsockname()[1],
        hosts=hosts,
        evidence=evidence,
        rules=rules,
        body_bytes=body_bytes,
    )
    places = trio.CapacityLimiter(_CONNECTIONS)

    async def serve(stream: trio.SocketStream) -> None:
        async with places:
            await serve_connection(stream, recorder._desk)  # noqa: SLF001 - built here

    async with lone_error(), trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, [listener])
        try:
            yield recorder
        finally:
            nursery.cancel_scope.cancel()
