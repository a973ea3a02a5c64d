"""When a server counts as ready: a probe that gets no answer ends, and the next one may get one."""

from __future__ import annotations

import pytest
import trio

from harness_core.base.errors import ChildExited
from harness_core.infrastructure.services._in_container import ContainerServer
from harness_core.infrastructure.services._readiness import Readiness


class Engine:
    """A container as its engine describes it, without an engine."""

    name = "postgres-1"
    address = "127.0.0.1:1"

    def __init__(self, status: str = "running") -> None:
        self._status = status

    async def status(self) -> str:
        """What it does."""
        return self._status

    async def exit_code(self) -> int:
        """How it ended."""
        return 1

    async def tail(self) -> tuple[str, ...]:
        """What it wrote."""
        return ("FATAL:  out of luck",)


def silent(times: int) -> Readiness:
    """A server behind a forwarder: so many connections are accepted and never answered."""
    left = times

    async def probe(_address: str) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await trio.sleep_forever()

    return Readiness(probe=probe, seconds=600)


async def test_a_connection_without_an_answer_is_given_up(autojump_clock) -> None:
    """One probe is bounded, and reports what it waited for."""
    with trio.fail_after(120):
        seen = await silent(1).check("127.0.0.1:1")

    assert seen.startswith("no answer within ")


async def test_a_start_goes_on_with_another_connection(autojump_clock) -> None:
    """A server that is up is found by the next probe, long before the deadline of its start."""
    server = ContainerServer(Engine(), name="postgres", readiness=silent(1))
    with trio.fail_after(120):
        await server.ready()


async def test_a_start_ends_with_its_container(autojump_clock) -> None:
    """A container that ended while a probe waited ends the start, with its last words."""
    server = ContainerServer(Engine("exited"), name="postgres", readiness=silent(1))
    with trio.fail_after(120), pytest.raises(ChildExited) as ended:
        await server.ready()

    assert ("FATAL:  out of luck",) == ended.value.tail
