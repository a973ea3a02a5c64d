"""``butlers up``: the butlers that it finds are those that the harness finds, and they end with it."""

from __future__ import annotations

import shutil
from collections import ChainMap
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import structs

from harness_core.base.bridge import Loop
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.front.skips import not_run
from harness_core.ports import listeners
from harness_core.process import Run, descendants
from harness_core.system.parts import ServiceFailed
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import open_ecosystem, roster_directory
from suites.e2e.ecosystem.handle import ALL_BUTLERS, Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.subject_file import OWN_PROCESS, tables_of
from suites.e2e.worlds.chaos import expect_ended_well, expect_soon

pytestmark = [pytest.mark.covers("E2E-PROVISIONING"), pytest.mark.slow]

#: Some butlers of one roster, started by one command.
SERVES_S = 60.0

#: Ports of nobody: the switchboard that a butler.toml names, where the environment names another.
NOBODY = 9

#: Whose tables a butler of another name has as well, and what is to stay in its own.
MODEL = "general"
KEPT = {"key": "up/庭", "value": [1, None]}

#: Folders of odd names, for some of the butlers.
FOLDERS = {"switchboard": "Switch board (ö)", "garden-2": "_garden", "a": ".attic"}

#: The name of nobody.
UNKNOWN = "garden"

#: Names and descriptions that have nothing in common but their place in the roster.
ADDED = {
    "garden-2": "Garden: Pflanzen, Säen, Gießen; 庭.",
    "a": "Attic: everything that nobody needs.",
}


def test_up_finds_what_the_harness_finds(
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    tmp_path: Path,
    progress: Callable[[str], None],
) -> None:
    """Every folder with a butler.toml is started, nothing else is; --only starts those it names.

    Asked to stop, the command ends with all of them; killed, it takes all of them along.
    """
    tables = tables_of(subject)
    if not tables.roster.up or tables.one_process:
        not_run("subject", "the subject file names no command that starts a roster ([roster] up)")
    roster = tmp_path / "roster"
    write_roster(roster, source=roster_directory(subject))
    together = structs.replace(
        subject,
        argv=tables.roster.up,
        capabilities=subject.capabilities - {OWN_PROCESS},
        tables={**subject.tables, "process": {"layout": "one"}},
    )
    found = set(read_roster(roster))

    assert found == {"switchboard", *ADDED}, f"the harness itself finds {sorted(found)}"
    manager = open_ecosystem(harness_run, together, evidence=evidence, roster=roster, say=progress)
    try:
        with harness_loop.hold(manager) as ecosystem:
            harness_loop.run(lambda: expect_those(ecosystem))
            harness_loop.run(lambda: ecosystem["garden-2"].call("state_set", **KEPT))
            harness_loop.run(lambda: expect_an_end(ecosystem))
            harness_loop.run(lambda: expect_any_folder(ecosystem, roster, tmp_path / "odd"))
            harness_loop.run(lambda: expect_only(ecosystem, ["switchboard", "a"]))
            harness_loop.run(lambda: expect_a_failure_is_told(ecosystem, "garden-2"))
    except HarnessError as error:
        if "registry" not in str(error) and ALL_BUTLERS not in str(error):
            raise
        raise AssertionError(
            f"one command starts every butler of the roster, expected {sorted(found)} to serve, where "
            f"the environment says (port, database, switchboard) whatever its file says: {error}"
        ) from error


def write_roster(roster: Path, *, source: Path) -> None:
    """Three butlers, and what looks like one and is none."""
    shutil.copytree(source / "switchboard", roster / "switchboard")
    for number, (name, description) in enumerate(ADDED.items()):
        (roster / name).mkdir()
        (roster / name / "butler.toml").write_text(
            f'[butler]\nname = "{name}"\nport = {8170 + number}\ndescription = "{description}"\n'
            f'[butler.db]\nname = "{name}-elsewhere"\n'
            f'[butler.switchboard]\nurl = "http://127.0.0.1:{NOBODY + number}/sse"\n',
            encoding="utf-8",
        )
    # A chain of migrations of its own, at each of its starts.
    for file in ("migrations", "tools.py"):
        if (original := source / MODEL / file).is_dir():
            shutil.copytree(original, roster / "garden-2" / file)
        elif original.exists():
            shutil.copy(original, roster / "garden-2" / file)
    for folder, file in (
        ("backup", "butler.toml.bak"),
        ("shouting", "BUTLER.TOML"),
        ("empty", ".keep"),
        ("described", "MANIFESTO.md"),
    ):
        (roster / folder).mkdir()
        (roster / folder / file).write_text('[butler]\nname = "none"\nport = 8179\n')
    (roster / "general.toml").write_text('[butler]\nname = "general"\nport = 8101\n')


async def expect_those(ecosystem: Ecosystem) -> None:
    """Each serves under its name, at its port, and no further port is open."""
    for name, butler in ecosystem.butlers.items():
        status = await butler.status()

        assert status["name"] == name, f"at the port of {name} answers {status['name']!r}"
    wanted = {butler.port for butler in ecosystem.butlers.values()}
    open_ports = ports_below(ecosystem.switchboard.pid)

    assert open_ports == wanted, (
        f"the butlers of the roster listen on {sorted(wanted)}, found {sorted(open_ports)}"
    )
    rows = await ecosystem.switchboard.database.rows("SELECT name FROM butler_registry")
    listed = {str(row["name"]) for row in rows} | {"switchboard"}

    assert listed == set(ecosystem.butlers), (
        f"the registry lists {sorted(listed)}, the roster has {sorted(ecosystem.butlers)}"
    )


async def expect_an_end(ecosystem: Ecosystem) -> None:
    """The command ends with all that it started: asked to, and killed."""
    child = ecosystem.switchboard.child
    await ecosystem.parts.stop(ALL_BUTLERS)
    expect_ended_well("the command that starts a roster", child.stop_report)
    try:
        await ecosystem.parts.start(ALL_BUTLERS)
    except ServiceFailed as error:
        raise AssertionError(
            f"what was stopped is started again, on the databases that it has made: {error}"
        ) from error
    kept = await ecosystem["garden-2"].database.rows("SELECT key, value FROM state")

    assert [KEPT] == [dict(row) for row in kept], (
        f"acknowledged means kept, also by a second start: expected {KEPT}, found {kept}"
    )
    await ecosystem.parts.kill(ALL_BUTLERS)
    outlived = ecosystem.parts.outlived(ALL_BUTLERS)

    assert not outlived, (
        f"nothing outlives its owner: the command was killed, and its butlers went on: {outlived}"
    )


async def expect_a_failure_is_told(ecosystem: Ecosystem, name: str) -> None:
    """A butler whose port is busy fails alone, first of all; the command says so when all have ended."""
    board, unlucky = ecosystem.switchboard, ecosystem[name]
    others = [each for each in ecosystem.butlers if each != name]
    (listener,) = await trio.open_tcp_listeners(unlucky.port, host="127.0.0.1")
    async with (
        listener,
        board.run.child(
            board.command,
            name="up-with-a-busy-port",
            env=dict(ChainMap(*(each.environment for each in ecosystem.butlers.values()))),
            evidence=board.process.evidence,
            grace_s=40,
        ) as child,
    ):

        async def all_is_said() -> bool:
            return str(unlucky.port) in child.log.read_text(encoding="utf-8")

        await expect_serving(ecosystem, others, child=child)
        await expect_soon(
            f"the command names port {unlucky.port}, which is taken",
            all_is_said,
            seconds=SERVES_S,
            story=child.tail(),
        )
    report = child.stop_report

    assert not report.killed, f"the command did not end by itself within {report.waited_s:.1f} s"
    assert report.returncode == 1, (
        f"a busy port is a failure, exit code 1, whatever becomes of the others later: found "
        f"{report.returncode}\n{child.tail()}"
    )


async def expect_serving(ecosystem: Ecosystem, names: Sequence[str], *, child: Any) -> None:
    """A command brings some butlers up, and goes on, whatever becomes of others.

    Raises:
        AssertionError: it has ended instead.
        NotReady: neither has happened in time.
    """

    async def up_or_over() -> bool:
        return child.returncode is not None or await they_serve(ecosystem, names)

    with deadline(f"see {names} serve", seconds=SERVES_S, tail=child.tail):
        await until(up_or_over)
    tail = "\n".join(child.tail())

    assert child.returncode is None, (
        f"a failure is that of one butler alone: expected {names} to serve, and the command ended with "
        f"{child.returncode}\n{tail}"
    )


async def they_serve(ecosystem: Ecosystem, names: Sequence[str]) -> bool:
    """Whether each of some butlers answers."""
    for name in names:
        try:
            answer = await ecosystem[name].try_call("status")
        except CannotReach:
            return False
        if answer.is_error:
            return False
    return True


async def expect_only(ecosystem: Ecosystem, names: list[str]) -> None:
    """``--only`` starts those it names, and no other."""
    board = ecosystem.switchboard
    wanted = {ecosystem[name].port for name in names}
    async with board.run.child(
        [*board.command, "--only", ",".join(names)],
        name="up-only",
        env=dict(ChainMap(*(ecosystem[name].environment for name in names))),
        evidence=board.process.evidence,
        grace_s=40,
    ) as child:
        await expect_serving(ecosystem, names, child=child)
        found = ports_below(child.pid)

    await expect_unknown_refused(ecosystem, [*names, UNKNOWN])
    assert found == wanted, f"--only {names} listens on {sorted(wanted)}, found {sorted(found)}"
    expect_ended_well("the command with --only", child.stop_report)


async def expect_unknown_refused(ecosystem: Ecosystem, names: list[str]) -> None:
    """A name in ``--only`` that is no butler's is an error that names it: nobody waits for that one."""
    board = ecosystem.switchboard
    async with board.run.child(
        [*board.command, "--only", ",".join(names)],
        name="up-only-unknown",
        env=dict(ChainMap(*(each.environment for each in ecosystem.butlers.values()))),
        evidence=board.process.evidence,
        grace_s=40,
    ) as child:

        async def over_or_up() -> bool:
            return child.returncode is not None or await they_serve(ecosystem, names[:-1])

        with deadline(f"see --only {names} be refused", seconds=SERVES_S, tail=child.tail):
            await until(over_or_up)
        returncode = child.returncode
    output = child.log.read_text(encoding="utf-8")

    assert returncode not in {None, 0}, (
        f"{names[-1]} is no butler of the roster, and the command with --only {names} went on or ended "
        f"well ({returncode})\n{output}"
    )
    assert names[-1] in output, f"the error names what is no butler, {names[-1]}\n{output}"
    assert "Traceback" not in output, f"a mistake of the operator is a traceback\n{output}"


async def expect_any_folder(ecosystem: Ecosystem, roster: Path, odd: Path) -> None:
    """A folder that holds a butler.toml is a butler's, whatever its name begins with or holds.

    The ports are busy, so that the command ends by itself, having tried every one.

    Args:
        ecosystem: started by the command with the roster.
        roster: as its command line has it.
        odd: an empty directory, for a roster of the same butlers in folders of other names.
    """
    board = ecosystem.switchboard
    if str(roster) not in board.command:
        not_run("subject", "its command line does not name the roster")
    for name, folder in FOLDERS.items():
        shutil.copytree(roster / name, odd / folder)
    async with AsyncExitStack() as held:
        for name in FOLDERS:
            for listener in await trio.open_tcp_listeners(ecosystem[name].port, host="127.0.0.1"):
                await held.enter_async_context(listener)
        child = await held.enter_async_context(
            board.run.child(
                [str(odd) if word == str(roster) else word for word in board.command],
                name="up-of-odd-folders",
                env=dict(ChainMap(*(each.environment for each in ecosystem.butlers.values()))),
                evidence=board.process.evidence,
                grace_s=40,
            )
        )
        with deadline("see a command whose ports are busy end", seconds=SERVES_S, tail=child.tail):
            await child.wait()
    output = child.log.read_text(encoding="utf-8")
    untried = [
        folder for name, folder in FOLDERS.items() if str(ecosystem[name].port) not in output
    ]

    assert not untried, (
        f"every folder with a butler.toml is a butler's: of {list(FOLDERS.values())} the command did not "
        f"try {untried}, whose ports are busy\n{output}"
    )


def ports_below(pid: int) -> set[int]:
    """The ports on which a process, or what it started, listens."""
    own = {pid, *descendants(pid)}
    return {entry.port for entry in listeners() if entry.pid in own}
