"""A running system of parts: opened, probed, taken away and given back by name."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import Loop, anywhere, at_home, this_loop
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import Evidence
from harness_core.base.groups import lone_error
from harness_core.base.slowness import patience, slowness
from harness_core.base.wait import passed, until
from harness_core.system.parts._boot import boot
from harness_core.system.parts._order import Condition, bottom_up, check_order
from harness_core.system.parts._part import VERBS, Part, State

if TYPE_CHECKING:
    from harness_core.doubles.model import Gateway, Totals

__all__ = ["OUTAGES", "Booted", "Parts", "open_booted", "open_parts"]

Say = Callable[[str], None]

#: One probe of one part: a paused one accepts and never answers.
_PROBE_S: Final = 2.0

#: How a part may be taken away → what is done, and what undoes it.
OUTAGES: Final[Mapping[str, tuple[str, str]]] = {
    "kill": ("kill", "start"),
    "pause": ("pause", "resume"),
    "stop": ("stop", "start"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Booted:
    """Parts that were started together.

    Attributes:
        title: what messages call the system.
        parts: by name, each after those that it waits for.
        boot_s: seconds from nothing to the last part that serves.
        evidence: directory of the logs.
        loop: the loop they live on.
    """

    title: str
    parts: Mapping[str, Part]
    boot_s: float
    evidence: Path
    loop: Loop


class Parts:
    """A running system; built by :func:`open_parts`, and by what opens more on top of it.

    Every method may be awaited in a task of trio, asyncio or anyio, in any thread; what it does to
    parts is done where they live. Synchronous code calls ``loop.run(lambda: system.stop(…))``. A call
    that is cut off has ended when its caller goes on: a part whose start was cut off is down, and
    :meth:`mend` brings it back.

    Args:
        booted: what was started.
        names: what tests call a part → its own name, where that is another.

    Attributes:
        title: what messages call it.
        boot_s: seconds from nothing to the last part that serves.
        evidence: directory of the logs.
        loop: the loop it lives on.
    """

    def __init__(self, booted: Booted, *, names: Mapping[str, str] = MappingProxyType({})) -> None:
        self._called = names
        self.title = booted.title
        self.boot_s = booted.boot_s
        self.evidence = booted.evidence
        self.loop = booted.loop
        self._parts = booted.parts

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parts, each after those that it waits for."""
        return tuple(self._parts)

    def __contains__(self, name: str) -> bool:
        return self.called(name) in self._parts

    def called(self, name: str) -> str:
        """What the system itself calls the part that tests know by ``name``."""
        return self._called.get(name, name)

    def __getitem__(self, name: str) -> Part:
        found = self._parts.get(self.called(name))
        if found is None:
            known = ", ".join(self._parts)
            raise BadInput(self.title, key="part", found=name, expected=f"one of {known}")
        return found

    def address(self, name: str) -> str:
        """``host:port`` of a part.

        Raises:
            BadInput: there is no such part, or it has no port.
        """
        return self.url(name).removeprefix("http://")

    def url(self, name: str) -> str:
        """Its base URL, without a slash at the end.

        Raises:
            BadInput: there is no such part, or it has no port.
        """
        return self[name].url

    def log_files(self, name: str) -> tuple[Path, ...]:
        """The logs of all lives of a part, oldest first."""
        return self[name].logs()

    def logs(self, name: str) -> tuple[str, ...]:
        """Every line that a part has written so far, in all its lives; secrets redacted."""
        return tuple(
            line
            for path in self.log_files(name)
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        )

    def outlived(self, name: str) -> tuple[str, ...]:
        """The command lines of what outlived the last kill of a part."""
        return self[name].outlived

    def describe(self) -> Mapping[str, Any]:
        """Every part for people, as data: what ``harness ps`` shows."""
        return {
            "title": self.title,
            "parts": [
                {
                    "name": name,
                    "kind": part.kind,
                    "state": str(part.state),
                    "address": part.address,
                    **dataclasses.asdict(part.place),
                    "log": str(next(iter(part.logs()[-1:]), "")),
                    "urls": dict(part.urls),
                    "secrets": dict(part.secrets),
                    "restarts": max(0, part.starts - 1),
                    "died": part.died(),
                    "verbs": list(part.verbs),
                }
                for name, part in self._parts.items()
            ],
        }

    async def spent(self) -> Totals | None:
        """What its model gateway has counted so far, and the budget; ``None`` without a gateway.

        Raises:
            Unavailable: the gateway does not answer.
        """
        for part in self._parts.values():
            gateway: Gateway | None = getattr(part, "gateway", None)
            if gateway is not None:
                return await gateway.client.totals()
        return None

    # --- parts are taken away and given back --------------------------------------------------------

    async def start(self, name: str) -> None:
        """Start it and wait until it serves, on the address it had."""
        await self.act(name, "start")

    async def stop(self, name: str) -> None:
        """Shut it down in order: SIGTERM to its main process, and the stop ladder."""
        await self.act(name, "stop")

    async def kill(self, name: str) -> None:
        """SIGKILL to its main process alone; what outlives it is recorded, then ended."""
        await self.act(name, "kill")

    async def pause(self, name: str) -> None:
        """Freeze it and everything it started: connections stay open and nothing answers."""
        await self.act(name, "pause")

    async def resume(self, name: str) -> None:
        """Undo :meth:`pause`."""
        await self.act(name, "resume")

    async def restart(self, name: str) -> None:
        """Stop and start; address and data stay, connections do not."""
        await self.act(name, "restart")

    @at_home
    async def act(self, name: str, verb: str) -> None:
        """Do something to a part: one of ``start stop kill pause resume restart``.

        A start that is cut off leaves it down; the rest takes no time and is always done whole.

        Raises:
            BadInput: no such part, or no such verb.
            HarnessError: it cannot be done.
        """
        part = self[name]
        if verb not in VERBS:
            known = ", ".join(sorted(VERBS))
            raise BadInput(self.title, key="verb", found=verb, expected=f"one of {known}")
        for step in {"restart": ("stop", "start")}.get(verb, (verb,)):
            await trio.lowlevel.checkpoint_if_cancelled()
            with trio.CancelScope(shield=step != "start"):
                await getattr(part, step)()

    @at_home
    async def processes(self, name: str) -> Sequence[str]:
        """The command lines of a part's processes now: evidence of where something runs.

        None for a server that the harness provides in its place.
        """
        return await self[name].processes()

    def deaths(self) -> Sequence[str]:
        """Parts that died by themselves and were not started again, each in a sentence.

        Processes alone: of a container nothing is known between two looks.
        """
        return list(filter(None, (part.died() for part in self._parts.values())))

    @at_home
    async def states(self) -> Mapping[str, State]:
        """What is known of every part."""
        for part in self._parts.values():
            await part.refresh()
        return {name: part.state for name, part in self._parts.items()}

    @at_home
    async def unhealthy(self) -> dict[str, str]:
        """Probe every part, side by side: those that do not serve, and what is seen instead."""
        seen: dict[str, str] = {}

        async def one(part: Part) -> None:
            bound_s = patience(_PROBE_S)
            seen[part.name] = f"no answer within {bound_s:g} s"
            with trio.move_on_after(bound_s):
                await part.refresh()
                death = part.death()
                seen[part.name] = death.observed if death else await part.probe()

        async with trio.open_nursery() as nursery:
            for part in self._parts.values():
                nursery.start_soon(one, part)
        return {name: seen[name] for name in self._parts if seen[name]}

    @anywhere
    async def healthy(self, *names: str, seconds: float = limits.STACK_READY_S) -> None:
        """Wait until these parts serve, or all of them.

        Raises:
            AssertionError: one does not within ``seconds``; says which, and what is seen.
        """
        seen: dict[str, str] = {}

        async def all_serve() -> bool:
            nonlocal seen
            found = await self.unhealthy()
            wanted = {self.called(name) for name in names}
            seen = {name: why for name, why in found.items() if not names or name in wanted}
            return not seen

        factor = slowness()
        with trio.move_on_after(seconds * factor):
            await until(all_serve)
            return
        found = "; ".join(f"{name}: {why}" for name, why in seen.items())
        logs = ", ".join(str(path) for name in seen for path in self.log_files(name)[-1:])
        raise AssertionError(
            f"expected {self.title} to serve, found {found}; {passed(seconds, factor)} (logs: {logs})"
        )

    @at_home
    async def mend(self) -> Sequence[str]:
        """Resume what is paused and start what is down; returns what that was."""
        found: list[str] = []
        for name, part in self._parts.items():
            await part.refresh()
            death, state = part.death(), part.state
            if state in {State.RUNNING, State.COMPLETED}:
                continue
            found.append(death.observed if death else f"{name} was {state}")
            if state is State.PAUSED:
                await part.resume()
            else:
                await _start_again(part)
        return found

    @asynccontextmanager
    async def outage(
        self, name: str, how: str = "stop", *, healthy_again_s: float = limits.STACK_READY_S
    ) -> AsyncIterator[None]:
        """A part is away during the block; afterwards the system is as it was before.

        It is restored also when the block raises or is cancelled, and every part that served before
        is waited for until it serves again.

        Args:
            name: which.
            how: ``stop`` (in order), ``kill`` (as a crash) or ``pause`` (it hangs).
            healthy_again_s: how long the others may take to recover.

        Raises:
            BadInput: no such part, or no such way.
            HarnessError: the harness could not take it away, or bring it back.
            AssertionError: after a block that raised nothing: another part did not recover.
        """
        if how not in OUTAGES:
            known = ", ".join(OUTAGES)
            raise BadInput(self.title, key="how", found=how, expected=f"one of {known}")
        part = self[name]
        away, back = OUTAGES[how]
        unwell = await self.unhealthy()
        served = [each for each in self.names if each not in unwell]
        in_block = True
        try:
            await self.act(name, away)
            yield
            in_block = False
        finally:
            try:
                await self._restore(part, back)
            finally:
                await self._recovered(served, seconds=healthy_again_s, in_block=in_block)

    @anywhere
    async def _restore(self, part: Part, back: str) -> None:
        with trio.CancelScope(shield=True):
            state = (await self.states())[part.name]
            if state not in {State.RUNNING, State.COMPLETED}:
                await self.act(part.name, "resume" if state is State.PAUSED else back)

    @anywhere
    async def _recovered(self, served: Sequence[str], *, seconds: float, in_block: bool) -> None:
        with trio.CancelScope(shield=in_block):
            try:
                await self.healthy(*served, seconds=seconds)
            except AssertionError:
                if not in_block:  # else the block's own error says more
                    raise


async def _start_again(part: Part) -> None:
    try:
        await part.start()
    except HarnessError as error:
        raise HarnessError(
            f"bring {part.name} back",
            observed=error.observed,
            next_step="The system is not what it was: run again",
            tail=error.tail,
            log=error.log,
        ) from error


@asynccontextmanager
async def open_parts(
    parts: Sequence[Part],
    waits: Mapping[str, Collection[str]] | None = None,
    *,
    title: str,
    evidence: Evidence,
    at_once: int | None = None,
    say: Say = lambda _text: None,
) -> AsyncIterator[Parts]:
    """Start parts side by side, each as soon as those it waits for serve; take them down at the end.

    At the end a part is taken down when nothing that waited for it is up any more.

    Args:
        parts: what the system is made of.
        waits: name → the names of those that must serve before it is started.
        title: what messages call the system.
        evidence: directory of its logs.
        at_once: how many may be starting at a time; all when left out.
        say: gets a line for each part that is ready.

    Raises:
        BadInput: two parts of one name, a name that is not there, or a circle.
        ServiceFailed: a part did not come up: names the culprit, not those that waited for it, with
            stage, last lines and log.
    """
    known = {part.name: part for part in parts}
    if len(known) < len(parts):
        names = [part.name for part in parts]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(title, key="parts", found=twice, expected="a name of its own for each part")
    needed = {name: tuple((waits or {}).get(name, ())) for name in [*known, *(waits or {})]}
    check_order(title, needed, key="waits.{name}", known=known)
    conditions = {name: dict.fromkeys(needed[name], Condition.HEALTHY) for name in known}
    async with open_booted(
        known, conditions, title=title, evidence=evidence, at_once=at_once, say=say
    ) as booted:
        yield Parts(booted)


@asynccontextmanager
async def open_booted(
    parts: Mapping[str, Part],
    waits: Mapping[str, Mapping[str, Condition]],
    *,
    title: str,
    evidence: Evidence,
    at_once: int | None = None,
    say: Say,
) -> AsyncIterator[Booted]:
    """As :func:`open_parts`, for what puts a handle of its own around the parts."""
    began = trio.current_time()

    def note(text: str) -> None:
        say(f"{text} ({trio.current_time() - began:.1f} s)")

    async with lone_error(), AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        for part in parts.values():
            part.nursery = nursery
        stack.push_async_callback(_take_down, parts, waits)
        await boot(parts, waits, title=title, at_once=at_once, say=note)
        loop = await stack.enter_async_context(this_loop(title))
        yield Booted(
            title=title,
            parts={name: parts[name] for name in bottom_up(waits)},
            boot_s=trio.current_time() - began,
            evidence=evidence.path,
            loop=loop,
        )


async def _take_down(
    parts: Mapping[str, Part], waits: Mapping[str, Mapping[str, Condition]]
) -> None:
    """End every part, users before what they use, the others side by side.

    Raises:
        HarnessError: the first that could not be ended; the others are ended all the same.
    """
    closed = {name: trio.Event() for name in parts}
    errors: list[HarnessError] = []

    async def close(part: Part) -> None:
        for user in (name for name, others in waits.items() if part.name in others):
            await closed[user].wait()
        try:
            await part.close()
        except HarnessError as error:
            errors.append(error)
        finally:
            closed[part.name].set()

    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for part in parts.values():
                nursery.start_soon(close, part)
    for error in errors:
        raise error
