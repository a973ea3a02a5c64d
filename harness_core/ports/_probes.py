"""Probes of a server: does it accept a connection?

A probe answers ``""`` when it saw what it wants, else what it saw instead, in a few words. It
asks once and bounds itself; waiting and deadlines are the business of ``_readiness.py``.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Final

import trio

Probe = Callable[[], Awaitable[str]]

#: One probe may not take longer: a paused server accepts into its backlog and never answers.
LOOK_S: Final = 2.0


def tcp_accepts(port: int, *, host: str = "127.0.0.1") -> Probe:
    """The port accepts a connection."""

    async def probe() -> str:
        with trio.move_on_after(LOOK_S):
            try:
                stream = await trio.open_tcp_stream(host, port)
            except OSError as error:
                return f"port {port}: {reason_of(error)}"
            await stream.aclose()
            return ""
        return f"port {port}: no answer to a connection within {LOOK_S:g} s"

    return probe


def reason_of(error: OSError) -> str:
    """The system's reason; trio wraps the attempts of a connection in a group."""
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup) and cause.exceptions:
        cause = cause.exceptions[0]
    inner = cause if isinstance(cause, OSError) else error
    reason = os.strerror(inner.errno) if inner.errno and inner.errno > 0 else str(inner)
    return reason.lower()
