"""A loopback server that records every request and answers by rules.

It stands where a service of the world stands in production: a messenger's API, a calendar, a
collector of traces. What was really sent is then known, and trouble comes on request.
"""

from __future__ import annotations

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
from harness_core.doubles.http._recorded import Recorded
from harness_core.doubles.http._rules import Rule
from harness_core.doubles.http._state import LiveRule, State

#: Largest body taken, compressed and unfolded alike. A batch of 512 spans is about 0.5 MB.
_BODY_BYTES: Final = 8 * 1024 * 1024

#: Connections served at once; others wait in the backlog.
_CONNECTIONS: Final = 256


class Recorder:
    """A recording server; built only by :func:`open_recorder`.

    Its requests may be read, and its rules changed, from any loop and thread.

    Attributes:
        name: what evidence and errors call it.
        port: where it listens, on 127.0.0.1.
        url: its base URL, without a slash at the end.
    """

    def __init__(self, port: int, state: State) -> None:
        self.name = state.name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._state = state

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """Every request so far, in the order they were read; also those that were none.

        Raises:
            HarnessError: more came than is kept.
        """
        if self._state.dropped:
            raise HarnessError(
                f"show every request to {self.name}",
                observed=f"{self._state.dropped} did not fit after {len(self._state.kept)}",
                next_step="Open a recorder for each test, or send less",
            )
        return tuple(self._state.kept)

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
        return self._state.sequence

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

    def add_rule(self, rule: Rule) -> None:
        """Put a rule before all others."""
        self._state.rules = (LiveRule(rule), *self._state.rules)

    def remove_rule(self, rule: Rule) -> None:
        """Take a rule away again; nothing happens when it is not there."""
        self._state.rules = tuple(live for live in self._state.rules if live.rule is not rule)


@asynccontextmanager
async def open_recorder(
    name: str,
    *,
    evidence: Evidence,
    rules: Sequence[Rule] = (),
    port: int = 0,
    hosts: Sequence[str] = (),
) -> AsyncIterator[Recorder]:
    """Serve on 127.0.0.1 for the block and record everything that is asked.

    Args:
        name: what evidence (``<name>.jsonl``) and errors call it.
        evidence: where the requests are written, redacted.
        rules: tried in order; the first that matches and is not spent answers, else 404.
        port: a fixed one, e.g. of a :class:`~harness_core.ports.PortLease` handed over; 0 for any.
        hosts: ``HOST:PORT`` that callers know it by, besides ``127.0.0.1`` and ``localhost``; a
            request for any other is refused with 421.

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
    port = listener.socket.getsockname()[1]
    state = State(
        name=name,
        evidence=evidence,
        own=OwnHosts(port, further=hosts),
        body_bytes=_BODY_BYTES,
        rules=tuple(map(LiveRule, rules)),
    )
    places = trio.CapacityLimiter(_CONNECTIONS)

    async def serve(stream: trio.SocketStream) -> None:
        async with places:
            await serve_connection(stream, state)

    async with lone_error(), trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, [listener])
        try:
            yield Recorder(port, state)
        finally:
            nursery.cancel_scope.cancel()
