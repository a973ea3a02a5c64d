"""One container of a run: created through testcontainers, reached, taken away, given back, removed.

testcontainers makes and starts it. Readiness, addresses and removal are ours: its address rules
take a virtual machine for a container, and a container whose start fails stays behind.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import Mutex, blocking
from harness_core.base.errors import HarnessError, NotReady
from harness_core.infrastructure.containers._client import (
    engine_client,
    engine_errors,
    library,
    unless_gone,
)
from harness_core.infrastructure.containers._labels import announce, run_labels
from harness_core.infrastructure.containers._logs import ContainerLog
from harness_core.infrastructure.engine import Engine, check_listening
from harness_core.ports import lease_port

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: In an engine's refusal of a published port, and of a name, that is taken: the next ones are free.
_PASSING: Final = (
    "port is already allocated",
    "address already in use",
    "is already in use by container",
    "name is already in use",
    "Conflict",
)

#: The library's settings and its reaper are shared by the whole process.
_LIBRARY_LOCK: Final = Mutex()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """What to run.

    Args:
        name: what it is, e.g. ``"postgres"``; part of the container's name.
        image: which image; must be at hand (see :func:`harness_core.infrastructure.containers.provide_image`).
        port: TCP port its server listens on inside.
        command: replaces the image's command; ``()`` keeps it.
        env: variables.
        mounts: host path → path inside; read-only unless in ``writable``.
        writable: those of ``mounts`` that it may write.
        tmpfs: path inside → options, e.g. ``{"/tmp": "size=64m"}``; lost when it stops.
        shared_network: gives it the engine host's own network, so that it reaches loopback
            addresses and serves on ``port``, which the caller has leased; only with an engine on
            this machine.
    """

    name: str
    image: str
    port: int
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: Mapping[str, str] = field(default_factory=dict)
    writable: frozenset[str] = frozenset()
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    shared_network: bool = False


class Container:
    """A container of ours; built only by :func:`open_container` and :func:`adopt_container`.

    Attributes:
        name: its name in the engine.
        id: the beginning of its id, as the engine lists it.
        host: where its port is published.
        port: the published port; the same for its whole life, over restarts too.
        engine: which engine holds it.
        log: the file its output is written to while it runs.
    """

    def __init__(
        self,
        wrapped: Any,
        *,
        name: str,
        port: int,
        engine: Engine,
        evidence: Evidence,
        log: str = "",
    ) -> None:
        path = evidence.path / f"{log or name}.log"
        self._wrapped = wrapped
        self._following = ContainerLog(engine, name, path=path, redactor=evidence.redactor)
        self.log = path
        self.name = name
        self.id = str(wrapped.short_id)
        self.host = engine.host
        self.port = port
        self.engine = engine

    @property
    def address(self) -> str:
        """``host:port`` of its server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def status(self) -> str:
        """Its state in the engine: ``running``, ``paused``, ``exited`` and the like."""
        return str((await self._state())["Status"])

    async def exit_code(self) -> int:
        """Of its last life; meaningful once it has exited."""
        return int((await self._state())["ExitCode"])

    async def pid(self) -> int:
        """Of its first process, in the engine's own process namespace; 0 when it is down."""
        return int((await self._state())["Pid"])

    async def start(self) -> None:
        """Start it again, on the same port and with its files."""
        await self._following.life_read()
        info = await self._do("ask for the time before the start of", self._wrapped.client.info)
        await self._do("start", self._wrapped.start)
        # The engine's own record of when it started may be later than the first line.
        began = datetime.fromisoformat(info["SystemTime"])  # nanoseconds are cut off
        self._following.follow(since_s=began.timestamp())

    async def stop(self, *, grace_s: float = limits.CHILD_STOP_GRACE_S) -> None:
        """Ask it to stop, then kill it; nothing happens when it is down."""
        await self._do("stop", lambda: self._wrapped.stop(timeout=round(grace_s)))

    async def kill(self) -> None:
        """SIGKILL to all of it, and wait until it is gone; nothing happens when it is down."""
        await self.resume()
        if await self.status() == "running":
            await self._do("kill", self._wrapped.kill)
            await self._do("kill", self._wrapped.wait)

    async def pause(self) -> None:
        """Freeze every process of it."""
        await self._do("pause", self._wrapped.pause)

    async def resume(self) -> None:
        """Undo :meth:`pause`; nothing happens when it was not paused."""
        if await self.status() == "paused":
            await self._do("resume", self._wrapped.unpause)

    async def processes(self) -> tuple[str, ...]:
        """The command lines of its processes now."""
        found = await self._do("list the processes of", self._wrapped.top)
        return tuple(row[-1] for row in found.get("Processes") or ())

    async def tail(self, *, lines: int = limits.TAIL_LINES) -> tuple[str, ...]:
        """The last lines it wrote."""
        raw: bytes = await self._do("read the log of", lambda: self._wrapped.logs(tail=lines))
        return tuple(raw.decode("utf-8", "replace").splitlines())

    async def _state(self) -> dict[str, Any]:
        await self._do("inspect", self._wrapped.reload)
        state: dict[str, Any] = self._wrapped.attrs["State"]
        return state

    async def _do(self, verb: str, call: Callable[[], Any]) -> Any:
        def guarded() -> Any:
            with engine_errors(f"{verb} container {self.name}"):
                check_listening(self.engine)
                return call()

        return await blocking(guarded)


@asynccontextmanager
async def open_container(
    run: Run, spec: ContainerSpec, *, engine: Engine, evidence: Evidence
) -> AsyncIterator[Container]:
    """Create and start a container; remove it and its volumes at the end.

    What the engine cannot remove in ``limits.CONTAINER_REMOVE_S`` is reported and left to
    ``harness sweep``.

    Args:
        run: what it belongs to.
        spec: what to run.
        engine: where.
        evidence: directory for its log.

    Raises:
        Unavailable: no image, no engine, no space.
        NotReady: the engine did not answer in time.
    """
    with ExitStack() as stack:
        container = await blocking(_start, run, spec, engine, evidence, stack)
        container._following.open(run)  # noqa: SLF001 - the one maker of containers
        async with _until_removed(run, container, evidence):
            yield container


@asynccontextmanager
async def adopt_container(
    run: Run, name: str, *, engine: Engine, port: int, evidence: Evidence, log: str
) -> AsyncIterator[Container]:
    """Look after a container that was created for this run and not started; removed at the end.

    Args:
        run: what it belongs to.
        name: of the container.
        engine: where.
        port: where its server is published; 0 for none.
        evidence: directory for its log.
        log: name of the log there, without suffix.

    Raises:
        HarnessError: the engine has none of that name.
    """
    with ExitStack() as stack:

        def find() -> Any:
            client = stack.enter_context(engine_client(engine))
            with engine_errors(f"find container {name}"):
                return client.containers.get(name)

        wrapped = await blocking(find)
        container = Container(
            wrapped, name=name, port=port, engine=engine, evidence=evidence, log=log
        )
        container._following.open(run, started=False)  # noqa: SLF001 - see above
        async with _until_removed(run, container, evidence):
            yield container


@asynccontextmanager
async def _until_removed(run: Run, container: Container, evidence: Evidence) -> AsyncIterator[None]:
    """Remove the container after the block, under the client's own deadlines.

    What goes wrong is in the evidence; it is raised when the block has no error of its own.
    """
    quiet = True
    try:
        yield
        quiet = False
    finally:
        with trio.CancelScope(shield=True):
            if (problem := await _close(container)) is not None:
                run.ledger.record("handed-over", what=f"container {container.name}")
                evidence.append("containers.log", str(problem))
                if not quiet:
                    raise HarnessError(
                        f"remove container {container.name}",
                        observed=problem.observed,
                        next_step="It stays in the ledger: run `harness sweep` once the engine "
                        "answers",
                    ) from problem


async def _close(container: Container) -> HarnessError | None:
    """End the container, read the rest of its log, remove it; returns why that was not possible."""
    ended = False
    try:
        await blocking(_end, container.engine, container.name)
        ended = True
    except HarnessError as error:
        return error
    finally:
        await container._following.close(ended=ended)  # noqa: SLF001 - its own half
    try:
        await blocking(_remove, container.engine, container.name)
    except HarnessError as error:
        return error
    return None


def _start(
    run: Run, spec: ContainerSpec, engine: Engine, evidence: Evidence, stack: ExitStack
) -> Container:
    """Create and start, a bounded number of times; what a failed attempt made is removed."""
    problem: Exception | None = None
    for _ in range(limits.CONTAINER_STARTS):
        name = f"{spec.name}-{run.id}-{secrets.token_hex(3)}"
        with ExitStack() as attempt:
            port = attempt.enter_context(_port(spec, engine))
            announce(run, "container", name, engine)
            try:
                with engine_errors(f"start container {name} of {spec.image}"):
                    wrapped = _create(run, spec, engine, name, port, attempt)
            except (HarnessError, OSError) as error:
                try:
                    _remove(engine, name)
                except HarnessError:
                    run.ledger.record("handed-over", what=f"container {name}")
                if not _may_pass(error):
                    raise
                problem = error
                continue
            stack.push(attempt.pop_all())
            return Container(wrapped, name=name, port=port, engine=engine, evidence=evidence)
    assert problem is not None
    raise problem


def _create(
    run: Run, spec: ContainerSpec, engine: Engine, name: str, port: int, stack: ExitStack
) -> Any:
    from testcontainers.core.container import DockerContainer

    _settle_library(engine)
    made = DockerContainer(
        spec.image,
        docker_client_kw={
            "environment": engine.environment,
            "timeout": limits.CONTAINER_START_S,
        },
        name=name,
    )
    stack.callback(made.get_docker_client().client.close)
    made.with_envs(**spec.env)
    if spec.command:
        made.with_command(list(spec.command))
    for outside, inside in spec.mounts.items():
        made.with_volume_mapping(outside, inside, "rw" if outside in spec.writable else "ro")
    made.tmpfs.update(spec.tmpfs)
    more: dict[str, Any] = {"labels": run_labels(run.id)}
    if spec.shared_network:
        more["network"] = "host"
    else:
        made.ports[f"{spec.port}/tcp"] = (_bind_address(engine), port)  # type: ignore[assignment]
    made.with_kwargs(**more)
    made.start()
    return made.get_wrapped_container()


def _bind_address(engine: Engine) -> str:
    """Loopback where that reaches it: the server's password is not the only guard."""
    return "127.0.0.1" if engine.host == "127.0.0.1" else "0.0.0.0"  # noqa: S104


@contextmanager
def _port(spec: ContainerSpec, engine: Engine) -> Iterator[int]:
    """A port of the engine's host for the life of the container.

    On this machine it is leased, so that no other run is given it while the container is down. A remote
    engine is asked for a number from the same range; a conflict is met with another one.
    """
    if spec.shared_network:
        yield spec.port
    elif engine.local and engine.host == "127.0.0.1":
        with lease_port() as lease:
            yield lease.hand_over()
    else:
        yield 20_000 + secrets.randbelow(12_000)


def _settle_library(engine: Engine) -> None:
    """Point testcontainers at the engine; its reaper only where its image is at hand."""
    from testcontainers.core.config import testcontainers_config

    with _LIBRARY_LOCK:
        # It guesses a network for the container where no engine is named.
        os.environ.setdefault("DOCKER_HOST", engine.url)
        if os.environ.get("TESTCONTAINERS_RYUK_DISABLED") is None and not engine.url.startswith(
            "ssh://"
        ):
            with engine_client(engine) as client:
                at_hand = client.images.list(name=testcontainers_config.ryuk_image)
            testcontainers_config.ryuk_disabled = not at_hand


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt may succeed: known to pass, never a refusal."""
    return isinstance(error, NotReady) or any(each in str(error) for each in _PASSING)


def _end(engine: Engine, name: str) -> None:
    """SIGKILL, so that its log ends; nothing happens when it is down or gone already."""

    def kill(client: Any) -> None:
        try:
            client.api.kill(name)
        except library().errors.APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:
                raise

    unless_gone(engine, f"end container {name}", kill)


def _remove(engine: Engine, name: str) -> None:
    unless_gone(
        engine,
        f"remove container {name}",
        lambda client: client.api.remove_container(name, force=True, v=True),
    )
