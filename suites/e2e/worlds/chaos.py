"""Takes parts of a running ecosystem away, and gives every one of them back.

What is broken is written down before it is broken, so that :meth:`Chaos.restore` knows it also when
the test that broke it failed in between. Restoring ends with a proof: everything is as healthy as
before, by the same probe. Without the proof the ecosystem is marked unusable, and every later test
on it is an error of the harness instead of a failure of the product.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import trio

from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.groups import lone_error
from harness_core.base.slowness import patience, slowness
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.infrastructure.databases import Database
from suites.e2e.ecosystem.handle import Butler, Ecosystem, Sent
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.waits import DUE

__all__ = [
    "Chaos",
    "expect_ended_well",
    "expect_in_time",
    "expect_soon",
    "processes_of",
    "refuses",
    "refuses_messages",
]

T = TypeVar("T")

#: One probe of one butler; a healthy one answers in some 20 ms.
_PROBE_S: Final = 10.0

#: From the last thing given back to an ecosystem as healthy as before: registrations included.
_RESTORE_S: Final = 60.0

#: From a butler that runs again to its place in the registry: a few heartbeats.
_REGISTER_S: Final = 20.0

#: Until a server has ended a connection.
_DROPPED_S: Final = 10.0

#: From a call to the commit of what it writes.
_COMMITS_S: Final = 20.0

#: Until a session that was started asks the model. Slowest seen on 2 loaded cores: 9 s.
_ASKS_S: Final = 30.0

#: Until butlers that have lost their database have tried to reach it some times: a few heartbeats.
_KNOCKS_S: Final = 30.0

#: Two heartbeats, where no attempt can be seen.
_BLIND_S: Final = 2.0

#: What the health of one butler is: ``status`` without its counters, and its place in the registry.
Health = dict[str, Any]


async def expect_soon(
    what: str,
    probe: Callable[[], Awaitable[T | None]],
    *,
    seconds: float,
    after_s: float = 0.0,
    story: str = "",
) -> T:
    """Wait for something the product owes.

    Args:
        what: a clause, for the failure: ``"health is registered again"``.
        probe: called again and again; the wait ends with the first answer that is neither None nor False.
        seconds: by when, on a machine with nothing else to do.
        after_s: a setting of the product that has to pass first, as it is.
        story: more for the failure.

    Raises:
        AssertionError: it did not come in time.
    """
    with DUE.waiting(seconds=seconds) as wait:
        with trio.move_on_after(after_s + patience(wait.seconds)):
            found = await until(probe)
            wait.came = True
            return found
        within = f"{after_s + wait.seconds:g} s{wait.note}"
        raise AssertionError(f"within {within} it did not happen that {what}\n{story}".rstrip())


def expect_in_time(
    what: str, took_s: float, *, deadline_s: float, slack_s: float, story: str = ""
) -> None:
    """A deadline of the contract was kept: nothing was cut off before it, and all was soon after.

    Args:
        what: what ran into the deadline, for the failure.
        took_s: how long it took, by the product's own clock where it has one.
        deadline_s: what the product was given.
        slack_s: what a machine with nothing else to do may add.
        story: more for the failure.

    Raises:
        AssertionError: it ended too early, or too late.
        HarnessError: it ended late on a machine that is too busy to judge it.
    """
    found = f"{what} ended after {took_s:.1f} s, its deadline is {deadline_s:g} s"

    assert took_s >= deadline_s, f"{found}: too early\n{story}"
    busy = slowness()
    if deadline_s + slack_s < took_s <= deadline_s + slack_s * busy:
        raise HarnessError(
            f"judge a deadline of {deadline_s:g} s",
            observed=f"{found}, on a machine {busy:.1f} times as busy as one that can tell",
            next_step="Run the test again with less beside it",
        )

    assert took_s <= deadline_s + slack_s, f"{found}: too late\n{story}"


def processes_of(butler: Butler) -> dict[int, str]:
    """Every process in the butler's session: pid → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # It may end meanwhile.
            with suppress(OSError):
                if os.getsid(int(entry.name)) == butler.pid:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode("utf-8", "replace").strip()
    return found


async def refuses(butler: Butler) -> bool:
    """Whether a butler refuses a trigger at once, as one that is going away does.

    A full queue is another refusal. A trigger that is taken and not answered in time is given up
    with its connection; where sessions run at a time, use :func:`refuses_messages`.
    """
    try:
        answer = await butler.try_call("trigger", {"prompt": "say hello"}, seconds=5)
    except CannotReach:
        return True
    except NotReady:
        return False
    if "overload_rejected" in answer.text:
        return False
    return answer.is_error or answer.value.get("success") is False


async def refuses_messages(ecosystem: Ecosystem, sent: Sent) -> bool:
    """Whether the switchboard refuses messages, found out with one that it knows already.

    A duplicate that is taken leaves nothing: the question does not change what is tested.
    """
    try:
        answer = await ecosystem.switchboard.try_call("ingest", sent.arguments, seconds=5)
    except CannotReach:
        return True
    except NotReady:
        return False
    return answer.is_error or answer.value.get("status") != "accepted"


def expect_ended_well(name: str, report: Any) -> None:
    """A butler that was asked to stop ended by itself, with status 0, and left no process behind.

    Raises:
        AssertionError: it did not.
    """
    assert report is not None, f"{name} was never asked to stop"
    assert not report.killed, (
        f"{name} did not end by itself within {report.waited_s:.1f} s of SIGTERM and was killed"
    )
    assert report.returncode == 0, (
        f"{name} ended with status {report.returncode} after SIGTERM, expected 0"
    )
    assert not report.strays, (
        f"{name} has ended and left processes behind: {'; '.join(report.strays)}"
    )


class Knocks:
    """Who looked for a server that is gone, counted.

    Args:
        of: what is looked for.
        blind: nothing can be seen of them.

    Attributes:
        count: connections that were made to its port.
    """

    def __init__(self, of: str, *, blind: bool = False) -> None:
        self.count = 0
        self._of = of
        self._blind = blind

    async def hang_up(self, stream: trio.SocketStream) -> None:
        """One connection."""
        self.count += 1
        await stream.aclose()

    async def more(self, number: int) -> None:
        """Wait until so many more were made.

        Raises:
            AssertionError: they were not.
        """
        if self._blind:
            # What they do meanwhile cannot be seen.
            await trio.sleep_until(trio.current_time() + _BLIND_S)
            return
        wanted = self.count + number

        async def enough() -> bool:
            return self.count >= wanted

        await expect_soon(
            f"butlers look for {self._of} {number} more times", enough, seconds=_KNOCKS_S
        )


@asynccontextmanager
async def knocks_at(url: str, *, of: str) -> AsyncIterator[Knocks]:
    """Stand at the port of a server that is down: who looks for it is hung up on.

    A port that answers and hangs up is as good as none to who wants that server. Where it has an
    address of its own (in a container), it cannot be stood in for.
    """
    place = urlsplit(url)
    if place.hostname not in {"127.0.0.1", "localhost"}:
        yield Knocks(of, blind=True)
        return
    (listener,) = await trio.open_tcp_listeners(place.port or 0, host="127.0.0.1")
    knocks = Knocks(of)
    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, knocks.hang_up, [listener])
        yield knocks
        nursery.cancel_scope.cancel()


class Chaos:
    """What one test breaks.

    Args:
        ecosystem: what it breaks.
    """

    def __init__(self, ecosystem: Ecosystem) -> None:
        self._ecosystem = ecosystem
        self._before: dict[str, Health] = {}
        self._paused: set[str] = set()
        self._environments: dict[str, dict[str, str]] = {}
        self._given_back: dict[str, Any] = {}
        self._database = "up"
        self._commits_held = False
        self._turned_away: set[str] = set()

    async def begin(self) -> None:
        """Record the ecosystem as it is before anything is broken.

        Raises:
            HarnessError: it is not whole to begin with.
        """
        self._ecosystem.check_usable()
        # A heartbeat that came late on a busy machine is no state to come back to.
        with trio.move_on_after(patience(_REGISTER_S)):
            await until(self._settled)
        self._before = await self._health()
        missing = sorted(name for name, health in self._before.items() if not health)
        if missing:
            raise HarnessError(
                "break a healthy ecosystem",
                observed=f"before anything was broken, {', '.join(missing)} did not answer",
                next_step="See their logs among the evidence of the run",
            )

    # Butlers

    async def kill(self, name: str) -> None:
        """SIGKILL to a butler's process alone; returns when it is gone.

        Raises:
            AssertionError: what it had started went on without it.
        """
        butler = self._ecosystem[name]
        await butler.kill()
        outlived = butler.process.outlived

        assert not outlived, (
            f"nothing outlives its owner: {name} was killed, and {len(outlived)} processes of it "
            f"went on: {'; '.join(outlived)}"
        )

    async def pause(self, name: str) -> None:
        """SIGSTOP: its connections stay open and nothing answers."""
        self._paused.add(name)
        await self._ecosystem[name].pause()

    async def resume(self, name: str) -> None:
        """Undo :meth:`pause`."""
        await self._note_return(name)
        await self._ecosystem[name].resume()
        self._paused.discard(name)

    async def stop(self, name: str) -> Any:
        """SIGTERM, and wait for the end; returns how it ended (``StopReport``)."""
        child = self._ecosystem[name].child
        await self._ecosystem[name].stop()
        return child.stop_report

    async def stop_well(self, name: str) -> Any:
        """SIGTERM; returns how it ended (``StopReport``).

        Raises:
            AssertionError: it did not end by itself, with status 0, and with all that it had started.
        """
        report = await self.stop(name)
        expect_ended_well(name, report)
        return report

    async def start(self, name: str, **environment: str) -> None:
        """Start a butler that is stopped or dead.

        Args:
            name: which.
            environment: changes to its environment, undone by :meth:`restore`.
        """
        butler = self._ecosystem[name]
        if environment:
            self._environments.setdefault(name, dict(butler.environment))
            butler.environment.update(environment)
        await self._note_return(name)
        await butler.restart()

    async def expect_back(self, name: str) -> None:
        """A butler that was given back is registered as active again, by itself.

        Raises:
            AssertionError: it is not, within a few heartbeats.
        """
        began = self._given_back.get(name)

        async def active() -> bool:
            rows = await self._ecosystem.switchboard.database.rows(
                "SELECT 1 FROM butler_registry WHERE name = %s AND eligibility_state = 'active'"
                " AND last_seen_at >= %s",
                (name, began),
            )
            return bool(rows)

        await expect_soon(f"{name} is registered as active again", active, seconds=_REGISTER_S)

    async def expect_all_back(self) -> None:
        """Every butler that was registered before the test has renewed its lease, by itself.

        Raises:
            AssertionError: one has not, within a few heartbeats.
        """
        known = [name for name, health in self._before.items() if health.get("registry")]

        assert known, "no butler was registered before the test"
        for name in known:
            await self.expect_back(name)

    async def _note_return(self, name: str) -> None:
        row = await self._ecosystem.switchboard.database.one("SELECT clock_timestamp() AS now")
        self._given_back[name] = row["now"]

    # The database

    async def kill_database(self) -> None:
        """End PostgreSQL as a crash would."""
        self._database = "down"
        await self._ecosystem.parts.kill("postgres")

    async def start_database(self) -> None:
        """Bring PostgreSQL back, with its data."""
        await self._ecosystem.parts.start("postgres")
        self._database = "up"
        for name in self._ecosystem.butlers:
            await self._note_return(name)

    def knocks(self) -> AbstractAsyncContextManager[Knocks]:
        """While the database is down, stand at its port: see :func:`knocks_at`."""
        return knocks_at(self._ecosystem.switchboard.database.url, of="their lost database")

    def knocks_at_switchboard(self) -> AbstractAsyncContextManager[Knocks]:
        """While the switchboard is down, stand at its port: see :func:`knocks_at`."""
        return knocks_at(self._ecosystem.switchboard.url, of="the lost switchboard")

    async def pause_database(self) -> None:
        """Freeze PostgreSQL with its connections open."""
        self._database = "paused"
        await self._ecosystem.parts.pause("postgres")

    async def resume_database(self) -> None:
        """Undo :meth:`pause_database`."""
        await self._ecosystem.parts.resume("postgres")
        self._database = "up"

    async def drop_connections(self) -> int:
        """End every connection of every butler from the server's side; returns how many.

        Each has ended when this returns: one that is only asked to may still take a statement, and lose it.

        Raises:
            HarnessError: the server did not end one.
        """
        names = [
            (await butler.database.one("SELECT current_database() AS name"))["name"]
            for butler in self._ecosystem.butlers.values()
        ]
        rows = await self._ecosystem.switchboard.database.rows(
            "SELECT pid, pg_terminate_backend(pid, %s) AS ended FROM pg_stat_activity"
            " WHERE datname = ANY(%s)"
            " AND application_name <> 'staging-harness' AND backend_type = 'client backend'",
            (round(patience(_DROPPED_S) * 1000), names),
        )
        lasting = [row["pid"] for row in rows if not row["ended"]]
        if lasting:
            raise HarnessError(
                "end the butlers' connections to the database",
                observed=f"after {_DROPPED_S:g} s the server still has those of {lasting}",
                next_step="Run the test again with less beside it",
            )
        return len(rows)

    async def turn_away(self, name: str) -> None:
        """From now on the server answers a butler, and refuses it its database; its connections end.

        So it is while a server starts, ends or has as many connections as it may have.
        """
        self._turned_away.add(name)
        await self._let(name, "false")
        await self._ecosystem.switchboard.database.execute(
            "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE datname = %s"
            " AND application_name <> 'staging-harness' AND backend_type = 'client backend'",
            (round(patience(_DROPPED_S) * 1000), self._database_of(name)),
        )

    async def let_in(self, name: str) -> None:
        """Undo :meth:`turn_away`."""
        await self._let(name, "true")
        self._turned_away.discard(name)
        for each in self._ecosystem.butlers:
            await self._note_return(each)

    async def _let(self, name: str, allowed: str) -> None:
        if name == "switchboard":
            raise HarnessError(
                "turn a butler away from its database",
                observed="that of the switchboard is the one that is asked to",
                next_step="Name another butler",
            )
        await self._ecosystem.switchboard.database.execute(  # lint: allow writes-rows: a setting of the server, no row
            f'ALTER DATABASE "{self._database_of(name)}" ALLOW_CONNECTIONS {allowed}'
        )

    def _database_of(self, name: str) -> str:
        return urlsplit(self._ecosystem[name].database.url).path.removeprefix("/")

    async def hold_commits(self) -> None:
        """From now on commits of every butler wait, as for a standby that has not confirmed them.

        What waits is committed already: its butler does not know it, and a connection that is cut
        then has lost the answer alone.
        """
        self._commits_held = True
        await self._set_standby("'absent'")
        url = self._ecosystem.switchboard.database.url

        async def commit() -> None:
            while True:
                await own.execute("SELECT pg_logical_emit_message(true, 'harness', 'held?')")

        async def waits() -> bool:
            rows = await self._ecosystem.switchboard.database.rows(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
            return bool(rows)

        # A setting counts from when the server has read it, which a commit of ours shows.
        async with Database(url) as own, lone_error(), trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            with deadline("hold the commits of a server", seconds=_COMMITS_S):
                await until(waits)
            nursery.cancel_scope.cancel()

    async def release_commits(self) -> None:
        """Undo :meth:`hold_commits`; commits that wait are answered."""
        await self._set_standby("''")
        self._commits_held = False

    async def until_committing(self, butler: Butler, table: str) -> int:
        """Wait for a held commit of a butler that has written a table.

        Returns:
            The number of its connection (``pid`` of ``pg_stat_activity``).

        Raises:
            AssertionError: there was none.
        """

        async def waiting() -> int | None:
            rows = await butler.database.rows(
                "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid)"
                " WHERE datname = current_database() AND wait_event = 'SyncRep'"
                " AND relation = %s::regclass"
                " AND mode = 'RowExclusiveLock'",
                (table,),
            )
            return int(rows[0]["pid"]) if rows else None

        return await expect_soon(f"{butler.name} commits to {table}", waiting, seconds=_COMMITS_S)

    async def cut_connection(self, number: int) -> None:
        """End a connection to the database from the server's side."""
        await self._ecosystem.switchboard.database.execute(
            "SELECT pg_terminate_backend(%s, %s)", (number, round(patience(_DROPPED_S) * 1000))
        )

    async def _set_standby(self, name: str) -> None:
        database = self._ecosystem.switchboard.database
        await database.execute(  # lint: allow writes-rows: a setting of the server, no row
            f"ALTER SYSTEM SET synchronous_standby_names = {name}"
        )
        await database.execute("SELECT pg_reload_conf()")

    # The model

    async def provider(self, fault: Fault) -> int:
        """Plant trouble of the model provider; returns its number."""
        return await self._ecosystem.gateway.client.add_fault(fault)

    async def hold(self, contains: str) -> int:
        """Hold the next model call that contains a text until :meth:`release`."""
        return await self.provider(Fault(kind="hold", contains=contains))

    async def release(self, number: int) -> None:
        """Withdraw a fault; calls that it holds go on."""
        await self._ecosystem.gateway.client.withdraw_fault(number)

    async def until_met(self, number: int, *, calls: int = 1) -> None:
        """Wait until the product's model calls have run into a fault.

        Raises:
            AssertionError: they did not come.
        """

        async def met() -> bool:
            return await self._ecosystem.gateway.client.fault_met(number) >= calls

        await expect_soon("a session asks the model", met, seconds=_ASKS_S)

    # The registry

    async def enlist(self, name: str, *, like: str, url: str, description: str) -> None:
        """Put an entry into the registry that is a copy of another but for these three columns."""
        await self._ecosystem.switchboard.database.execute(  # lint: allow writes-rows: no API registers a false one
            "INSERT INTO butler_registry SELECT (jsonb_populate_record(known, jsonb_build_object("
            "'name', %s::text, 'endpoint_url', %s::text, 'description', %s::text,"
            " 'last_seen_at', now() + interval '1 hour'))).* FROM butler_registry AS known"
            " WHERE name = %s",
            (name, url, description, like),
        )

    async def redirect(self, name: str, *, url: str) -> None:
        """Have the registry say that a butler is somewhere else.

        The butler must not register again meanwhile: start it with a long ``heartbeat_s`` first,
        which :meth:`restore` undoes.
        """
        await self._ecosystem.switchboard.database.execute(  # lint: allow writes-rows: no API registers a false one
            "UPDATE butler_registry SET endpoint_url = %s, last_seen_at = now() + interval '1 hour'"
            " WHERE name = %s",
            (url, name),
        )

    # The way back

    async def restore(self) -> None:
        """Give everything back, and prove that the ecosystem is what it was.

        Raises:
            HarnessError: it is not, and is marked unusable.
        """
        with trio.CancelScope(shield=True):
            try:
                with deadline("restore the ecosystem", seconds=_RESTORE_S * 4):
                    await self._give_back()
                    await self._prove()
            except HarnessError as error:
                self._ecosystem.unusable = f"a test broke it for good: {error.observed}"
                raise

    async def _give_back(self) -> None:
        await self._ecosystem.gateway.client.clear()
        if self._database == "paused":
            await self.resume_database()
        elif self._database == "down":
            await self.start_database()
        if self._commits_held:
            await self.release_commits()
        for name in sorted(self._turned_away):
            await self.let_in(name)
        for name in sorted(self._paused):
            await self.resume(name)
        await self._strike_out()
        for name, environment in self._environments.items():
            butler = self._ecosystem[name]
            butler.environment.clear()
            butler.environment.update(environment)
            await butler.restart()
        for name, butler in self._ecosystem.butlers.items():
            if butler.child.returncode is not None and name not in self._environments:
                await butler.restart()
        self._environments.clear()

    async def _strike_out(self) -> None:
        """Take entries out of the registry that were not there; of a product without any it may be a view."""
        database = self._ecosystem.switchboard.database
        known = (list(self._before),)
        if await database.rows("SELECT name FROM butler_registry WHERE name <> ALL(%s)", known):
            await database.execute(  # lint: allow writes-rows: removes that entry
                "DELETE FROM butler_registry WHERE name <> ALL(%s)", known
            )

    async def _prove(self) -> None:
        """As healthy as before; a butler that does not come back by itself is restarted once."""
        with DUE.waiting(seconds=_RESTORE_S / 2) as wait:
            wait.came = await self._recovered(seconds=wait.seconds)
        if not wait.came:
            async with lone_error(), trio.open_nursery() as nursery:
                for name in await self._different():
                    nursery.start_soon(self._ecosystem[name].restart)
            if not await self._recovered(seconds=_RESTORE_S):
                different = await self._different()
                raise HarnessError(
                    "restore the ecosystem",
                    observed="; ".join(
                        f"{name} was {self._before[name]} and is {health or 'not answering'}"
                        for name, health in different.items()
                    ),
                    next_step="See what the test broke, and the logs among the run's evidence",
                )

    async def _settled(self) -> bool:
        found = await self._health()
        return all(
            health and health.get("registry") in (None, "active") for health in found.values()
        )

    async def _recovered(self, *, seconds: float) -> bool:
        async def same() -> bool:
            return not await self._different()

        with trio.move_on_after(patience(seconds)):
            return await until(same)
        return False

    async def _different(self) -> dict[str, Health]:
        now = await self._health()
        return {name: now[name] for name in self._before if now[name] != self._before[name]}

    async def _health(self) -> dict[str, Health]:
        found: dict[str, Health] = {}
        try:
            registry = {
                str(row["name"]): str(row["eligibility_state"])
                for row in await self._ecosystem.switchboard.database.rows(
                    "SELECT name, eligibility_state FROM butler_registry"
                )
            }
        except (Unavailable, NotReady):
            registry = {}

        async def probe(name: str, butler: Butler) -> None:
            found[name] = {}
            with suppress(CannotReach, NotReady):
                answer = await butler.try_call("status", seconds=_PROBE_S)
                # Its status says nothing of its database.
                read = await butler.try_call("state_get", {"key": "chaos"}, seconds=_PROBE_S)
                if not answer.is_error and not read.is_error:
                    modules = answer.value.get("modules", {})
                    found[name] = {
                        "health": answer.value.get("health"),
                        "modules": {key: module["status"] for key, module in modules.items()},
                        "registry": registry.get(name),
                    }

        async with trio.open_nursery() as nursery:
            for name, butler in self._ecosystem.butlers.items():
                nursery.start_soon(probe, name, butler)
        return found
