"""What every service must do, as a check that a provider passes by being called with a factory.

The fake at the end passes it too; it is what tests of service users run on.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import trio
import trio.testing

from harness_core.base import limits
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.groups import lone_error
from harness_core.infrastructure.services import Place, Service

Ask = Callable[[Service], Awaitable[object]]
Factory = Callable[[], AbstractAsyncContextManager[Service]]

#: A server on this machine answers in milliseconds; one that is silent for so long hangs.
_SILENCE_S: Final = 0.3

#: An answer, or a refusal, that is due.
_ANSWER_S: Final = limits.MCP_CALL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """How to leave something in a service and find it again.

    Args:
        write: leaves a mark.
        read: true when the mark is there.
    """

    write: Callable[[Service], Awaitable[None]]
    read: Callable[[Service], Awaitable[bool]]


async def check_service(
    factory: Factory,
    *,
    ask: Ask,
    state: ServiceState | None = None,
    leftovers: Callable[[], Collection[str]] = tuple,
    controllable: bool = True,
) -> None:
    """Hold a provider to the promises of :class:`~harness_core.infrastructure.services.Service`.

    Args:
        factory: opens one service; called twice, so it must not hand out the same one.
        ask: one round trip in the service's protocol; raises ``OSError`` when nobody listens.
        state: checks that data survives stop, kill and restart, where the provider promises it.
        leftovers: names what the provider has on this machine now (processes, directories);
            compared before and after.
        controllable: false for a provider that must refuse to take the server away.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    before = set(leftovers())
    async with factory() as service:
        address = service.address
        await _answers(service, ask, "after it was opened")
        await _start_refused(service, ask)
        if controllable:
            await _taken_away(service, ask, state)
        else:
            await _control_refused(service, ask)
        _same(address, service)
    if controllable:
        await _refuses(service, ask, "after it was closed")
    left = sorted(set(leftovers()) - before)
    if left:
        raise AssertionError(f"expected nothing left after close, found {', '.join(left)}")
    async with factory() as again:
        await _answers(again, ask, "when a second one is opened after the first")
        if controllable:
            await again.kill()
    left = sorted(set(leftovers()) - before)
    if left:
        raise AssertionError(f"expected nothing left after a kill, found {', '.join(left)}")


async def _taken_away(service: Service, ask: Ask, state: ServiceState | None) -> None:
    if service.place == Place():
        raise AssertionError(f"expected a pid or a container of {service.name}, found neither")
    if state is not None:
        await state.write(service)
    await service.pause()
    await _hangs(service, ask)
    await service.resume()
    await _answers(service, ask, "after resume")

    await service.stop()
    await _refuses(service, ask, "after stop")
    if service.place.pid is not None:
        raise AssertionError(f"expected no pid of {service.name} after stop, found {service.place}")
    await service.start()
    await _answers(service, ask, "after stop and start")
    await _remembers(service, state, "stop and start")

    await service.kill()
    await _refuses(service, ask, "after kill")
    await service.start()
    await _answers(service, ask, "after kill and start")
    await _remembers(service, state, "kill and start")

    await service.pause()
    await service.kill()
    await _refuses(service, ask, "after a kill while it was paused")
    await service.start()
    await _answers(service, ask, "after pause, kill and start")


async def _control_refused(service: Service, ask: Ask) -> None:
    operations = (service.stop, service.kill, service.pause, service.resume)
    for operation in operations:
        try:
            await operation()
        except Unavailable:
            await _answers(service, ask, f"after it refused to {operation.__name__}")
        else:
            raise AssertionError(
                f"expected {operation.__name__} to be refused with Unavailable, found it accepted"
            )


async def _start_refused(service: Service, ask: Ask) -> None:
    try:
        await service.start()
    except HarnessError:
        await _answers(service, ask, "after a second start was refused")
    else:
        raise AssertionError("expected a second start to be refused, found it accepted")


async def _answers(service: Service, ask: Ask, when: str) -> None:
    with trio.move_on_after(_ANSWER_S) as scope:
        try:
            await ask(service)
        except OSError as error:
            raise AssertionError(
                f"expected an answer from {service.address} {when}, found {error}"
            ) from error
    if scope.cancelled_caught:
        raise AssertionError(
            f"expected an answer from {service.address} {when}, found none in {_ANSWER_S:g} s"
        )


async def _refuses(service: Service, ask: Ask, when: str) -> None:
    found = f"a connection that hangs for {_ANSWER_S:g} s"
    with trio.move_on_after(_ANSWER_S):
        try:
            found = f"the answer {await ask(service)!r}"
        except ConnectionRefusedError:
            return
        except OSError as error:
            found = str(error)
    raise AssertionError(f"expected {service.address} to refuse connections {when}, found {found}")


async def _hangs(service: Service, ask: Ask) -> None:
    with trio.move_on_after(_SILENCE_S):
        try:
            found = f"the answer {await ask(service)!r}"
        except OSError as error:
            found = str(error)
        raise AssertionError(f"expected a paused {service.name} to hang, found {found}")


async def _remembers(service: Service, state: ServiceState | None, how: str) -> None:
    if state is not None and not await state.read(service):
        raise AssertionError(f"expected {service.name} to keep its data over {how}, found it lost")


def _same(address: str, service: Service) -> None:
    if service.address != address:
        raise AssertionError(f"expected the address {address} to stay, found {service.address}")


class FakeService:
    """A TCP server in this process that answers every connection with one line.

    Built only by :func:`open_fake_service`.

    Attributes:
        marks: what clients left in it; stands for data on disk.
    """

    name: Final = "fake"

    def __init__(self, nursery: trio.Nursery) -> None:
        self.marks: set[str] = set()
        self._nursery = nursery
        self._port = 0
        self._scope: trio.CancelScope | None = None
        self._running = trio.Event()

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self._port}"

    @property
    def place(self) -> Place:
        """This process, while it listens."""
        return Place(pid=os.getpid()) if self._scope is not None else Place()

    async def start(self) -> None:
        """Listen.

        Raises:
            HarnessError: it is running already.
        """
        if self._scope is not None:
            raise HarnessError(f"start fake on {self.address}", observed="it is running already")
        listeners = await trio.open_tcp_listeners(self._port, host="127.0.0.1")
        self._port = listeners[0].socket.getsockname()[1]
        self._running.set()
        self._scope = await self._nursery.start(self._serve, listeners)

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None
            await trio.testing.wait_all_tasks_blocked()

    async def kill(self) -> None:
        """The same as :meth:`stop`: there is nothing to say goodbye to."""
        await self.stop()

    async def pause(self) -> None:
        """Accept connections and answer none."""
        self._running = trio.Event()

    async def resume(self) -> None:
        """Answer again."""
        self._running.set()

    async def _serve(
        self,
        listeners: list[trio.SocketListener],
        task_status: trio.TaskStatus[trio.CancelScope],
    ) -> None:
        async def answer(stream: trio.SocketStream) -> None:
            await self._running.wait()
            await stream.send_all(b"here\n")

        with trio.CancelScope() as scope:
            async with trio.open_nursery() as connections:
                for listener in listeners:
                    connections.start_soon(trio.serve_listeners, answer, [listener])
                task_status.started(scope)


@asynccontextmanager
async def open_fake_service() -> AsyncIterator[FakeService]:
    """Open a fake service."""
    async with lone_error(), trio.open_nursery() as nursery:
        service = FakeService(nursery)
        await service.start()
        try:
            yield service
        finally:
            nursery.cancel_scope.cancel()


async def ask_fake(service: Service) -> bytes:
    """One round trip with a fake.

    Raises:
        OSError: nobody listens, or the connection broke.
    """
    _, _, port = service.address.rpartition(":")
    connection = trio.socket.socket()
    try:
        await connection.connect(("127.0.0.1", int(port)))
    except BaseException:
        connection.close()
        raise
    stream = trio.SocketStream(connection)
    async with stream:
        if answer := await stream.receive_some(16):
            return bytes(answer)
    raise ConnectionResetError("the connection was closed without an answer")
