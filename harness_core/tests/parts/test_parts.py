"""A system of parts: started in order, taken away with one meaning of each verb, given back."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest
from trio.testing import wait_all_tasks_blocked

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.wait import deadline, until
from harness_core.doubles.http import HttpClient, Silence, Unanswered, open_recorder
from harness_core.ports import Stage, lease_port
from harness_core.process import command_line, descendants, open_run, start_time
from harness_core.process._warden import is_stopped
from harness_core.system.parts import (
    DoublePart,
    Parts,
    ProcessPart,
    ProcessPlan,
    ServiceFailed,
    State,
    open_parts,
)

pytestmark = pytest.mark.real

#: Says when it begins, when it is asked to end, and when it has ended, in a file that all share.
PROGRAM = """
import pathlib, signal, subprocess, sys
name, notes, port, *children = sys.argv[1:]

def note(text):
    with open(notes, "a") as file:
        file.write(f"{name} {text}\\n")

def end(*_):
    note("ends")
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
note("begins")
for child in children:
    subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
if port != "0":
    import socket
    listener = socket.create_server(("127.0.0.1", int(port)))
print("up", flush=True)
signal.pause()
"""

#: Outlives whoever started it.
ORPHAN = "import time; time.sleep(600)"


@pytest.fixture
async def run(evidence):
    """A run of a test's own."""
    async with open_run(evidence=evidence) as opened:
        yield opened


def part(run, notes: Path, name: str, *children: str, lease=None) -> ProcessPart:
    """One process of the program; it serves once it has said so."""
    port = str(lease.port) if lease else "0"

    async def up() -> str:
        return "" if "up" in made.child.tail() else "it has not said so"

    plan = ProcessPlan(
        argv=[sys.executable, "-c", PROGRAM, name, str(notes), port, *children],
        environment={"PATH": "/usr/bin:/bin"},
        stages=[Stage(name="word", probe=up, seconds=30)],
    )
    leases = (lease,) if lease else ()
    made = ProcessPart(name, run, lambda: plan, leases=leases, evidence=run.evidence)
    return made


async def family(system: Parts) -> tuple[int, list[int]]:
    """The process of the shop, and those that it has started."""
    shop = system["shop"].place.pid

    async def started() -> list[int]:
        found = descendants(shop)
        return found if found and all(command_line(pid)[1:2] == ["-c"] for pid in found) else []

    with deadline("see what the shop starts", seconds=30):
        return shop, await until(started)


def written(notes: Path) -> list[str]:
    """What the processes have written so far."""
    return notes.read_text().splitlines() if notes.exists() else []


async def test_users_end_before_what_they_use(run, tmp_path):
    """They also start after it."""
    notes = tmp_path / "notes"
    with lease_port() as lease:
        parts = [
            part(run, notes, "shop"),
            part(run, notes, "till"),
            part(run, notes, "store", lease=lease),
        ]
        waits = {"shop": ["store"], "till": ["store"]}
        async with open_parts(parts, waits, title="a market", evidence=run.evidence) as system:
            assert ("store", "shop", "till") == system.names
            assert "store begins" == written(notes)[0]

    assert {"shop ends", "till ends"} == set(written(notes)[-3:-1])
    assert "store ends" == written(notes)[-1]


async def test_a_kill_reaches_the_main_process_alone_and_records_what_outlives_it(run, tmp_path):
    """As the kernel's out-of-memory killer does it; what was left behind is named, and ended."""
    notes = tmp_path / "notes"
    async with open_parts(
        [part(run, notes, "shop", ORPHAN)], title="a shop", evidence=run.evidence
    ) as system:
        _, children = await family(system)
        await system.kill("shop")

        assert [f"{sys.executable} -c {ORPHAN}"] == list(system.outlived("shop"))
        assert [] == [pid for pid in children if start_time(pid)]
        assert ["shop begins"] == written(notes), "it was asked to end"
        assert {"shop": State.STOPPED} == await system.states()
        await system.start("shop")
        await system.kill("shop")

        assert ["shop begins", "shop begins"] == written(notes)
    assert "time.sleep(600)" in (run.evidence.path / "outlived.log").read_text()


async def test_what_ends_with_its_main_process_has_not_outlived_it(run, tmp_path):
    """A child that notices is given the time to."""
    notes = tmp_path / "notes"
    heir = "import os, time\nparent = os.getppid()\nwhile os.getppid() == parent: time.sleep(0.02)"
    async with open_parts(
        [part(run, notes, "shop", heir)], title="a shop", evidence=run.evidence
    ) as system:
        await family(system)
        await system.kill("shop")

        assert () == system.outlived("shop")


async def test_a_pause_reaches_everything_it_started(run, tmp_path):
    """In sessions of its own too; and so does what undoes it."""
    notes = tmp_path / "notes"
    async with open_parts(
        [part(run, notes, "shop", ORPHAN)], title="a shop", evidence=run.evidence
    ) as system:
        shop, children = await family(system)
        await system.pause("shop")

        assert all(is_stopped(pid) for pid in (shop, *children))
        assert {"shop": "it does not run (paused)"} == await system.unhealthy()
        await system.resume("shop")

        assert not any(is_stopped(pid) for pid in (shop, *children))
        await system.kill("shop")  # else what it started would be a leak of the run


async def test_one_that_died_by_itself_is_reported_and_mended(run, tmp_path):
    """Its state says that it ended by itself."""
    notes = tmp_path / "notes"
    async with open_parts(
        [part(run, notes, "shop")], title="a shop", evidence=run.evidence
    ) as system:
        child = system["shop"].child
        os.kill(child.pid, signal.SIGKILL)  # not by its handle, which would know of it

        async def ended() -> bool:
            return child.returncode is not None

        with deadline("see it end", seconds=20):
            await until(ended)

        assert {"shop": State.ENDED} == await system.states()
        assert ["shop was killed by SIGKILL, its last words: up"] == list(system.deaths())
        (found,) = await system.mend()

        assert "shop" in found
        assert [] == list(system.deaths()), "it runs again"
        await system.kill("shop")
        assert [] == list(system.deaths()), "that was asked for"
        await system.start("shop")
        assert [] == list(await system.mend())
        assert {} == await system.unhealthy()


async def test_a_double_is_taken_away_and_given_back(run, tmp_path):
    """On the port it had."""
    with lease_port() as lease:
        double = DoublePart(
            "world",
            kind="recorder",
            opener=lambda port: open_recorder("world", evidence=run.evidence, port=port),
            lease=lease,
            evidence=run.evidence,
        )
        async with open_parts([double], title="the world", evidence=run.evidence) as system:
            client = HttpClient(system.url("world"), name="world")
            async with system.outage("world", "kill"):
                with pytest.raises(Unanswered) as silent:
                    await client.get("/")
            answer = await client.get("/")
            with pytest.raises(HarnessError, match="recorder in the harness's own process"):
                await system.pause("world")

    assert Silence.REFUSED is silent.value.how
    assert 404 == answer.status


async def test_a_part_that_does_not_come_up_is_named_and_the_rest_taken_down(run, tmp_path):
    """Not the one that only waited for it."""
    notes = tmp_path / "notes"
    plan = ProcessPlan(
        argv=[sys.executable, "-c", "raise SystemExit('no stock')"],
        environment={"PATH": "/usr/bin:/bin"},
    )
    with lease_port() as lease:
        store = ProcessPart("store", run, lambda: plan, leases=(lease,), evidence=run.evidence)
        parts = [part(run, notes, "shop"), store, part(run, notes, "till")]
        with pytest.raises(ServiceFailed, match="no stock") as failed:
            async with open_parts(
                parts, {"shop": ["store"]}, title="a market", evidence=run.evidence
            ):
                raise AssertionError("it was opened")

    assert "store" == failed.value.service
    assert "shop begins" not in written(notes)
    assert written(notes) in ([], ["till begins"], ["till begins", "till ends"])


@pytest.mark.parametrize(
    ("names", "waits", "said"),
    [
        (["a", "a"], {}, "found 'a', expected a name of its own"),
        (["a"], {"a": ["b"]}, "found 'b', expected one of a"),
        (["a"], {"b": ["a"]}, "found 'b', expected one of a"),
        (["a", "b"], {"a": ["b"], "b": ["a"]}, "expected no circle"),
        (["a"], {"a": ["a"]}, "expected no circle"),
    ],
)
async def test_nonsense_is_refused_before_anything_starts(run, tmp_path, names, waits, said):
    """Names that are taken twice or not there, and circles."""
    notes = tmp_path / "notes"
    parts = [part(run, notes, name) for name in names]
    with pytest.raises(BadInput, match=said):
        async with open_parts(parts, waits, title="nonsense", evidence=run.evidence):
            raise AssertionError("it was opened")

    assert [] == written(notes)


async def test_verbs_and_names_that_there_are_not_are_refused(run, tmp_path):
    """With those that there are."""
    async with open_parts(
        [part(run, tmp_path / "notes", "shop")], title="a shop", evidence=run.evidence
    ) as system:
        for wrong, said in (
            (lambda: system.act("shop", "sell"), "one of kill, pause"),
            (lambda: system.stop("bank"), "one of shop"),
            (lambda: system.start("shop"), "it runs already"),
        ):
            with pytest.raises(HarnessError, match=said):
                await wrong()
        with pytest.raises(BadInput, match="one that has a port"):
            system.url("shop")
        with contextlib.suppress(HarnessError):
            await system.kill("shop")
            await system.pause("shop")

        assert {"shop": State.STOPPED} == await system.states()


@pytest.mark.parametrize(("at_once", "expected"), [(None, 3), (1, 1)])
async def test_no_more_are_starting_at_a_time_than_may(run, at_once, expected):
    """All side by side, or so many after the others."""
    starting, most = 0, 0

    @contextlib.asynccontextmanager
    async def opener(_port):
        nonlocal starting, most
        starting += 1
        most = max(most, starting)
        await wait_all_tasks_blocked()
        starting -= 1
        yield

    with contextlib.ExitStack() as leases:
        parts = [
            DoublePart(
                name,
                kind="recorder",
                opener=opener,
                lease=leases.enter_context(lease_port()),
                evidence=run.evidence,
            )
            for name in "abc"
        ]
        async with open_parts(parts, title="t", evidence=run.evidence, at_once=at_once):
            assert expected == most
