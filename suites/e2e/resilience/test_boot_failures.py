"""What a butler does that cannot start: one clear error, exit status, no other butler disturbed.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.errors import BadInput
from harness_core.front.skips import not_run
from harness_core.ports import lease_port
from harness_core.process import Run
from harness_core.system.parts import ServiceFailed
from harness_core.system.subject import Subject, load_subject
from suites.e2e.ecosystem.boot import open_ecosystem, roster_directory
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.observe.expect_broken_journey import expect_carried_out
from suites.e2e.worlds.beside import open_beside
from suites.e2e.worlds.canned import TOOL_OF, to_general, to_health
from suites.e2e.worlds.chaos import Chaos, expect_ended_well, expect_soon

pytestmark = pytest.mark.covers("E2E-LIFECYCLE")

#: Generous: a daemon that cannot have its port or its database gives up within seconds.
END_S = 60.0


async def test_a_busy_port_fails_that_butler_alone(ecosystem: Ecosystem) -> None:
    """A second process on the same port ends with status 1 and one clear line; the first lives."""
    general = ecosystem["general"]
    returncode, output = await general.attempt(seconds=END_S)

    expect_one_clear_error(returncode, output, names=[str(general.port)])
    assert "started" not in output.casefold().replace("not started", ""), (
        f"a butler that could not have its port logged a start\n{output}"
    )
    assert general.child.returncode is None, (
        f"the butler that has the port ended with {general.child.returncode}, expected it to live"
    )
    await expect_serves(general)


@pytest.mark.capability("own-process")
@pytest.mark.disturbs
async def test_a_busy_port_leaves_running_work_alone(fragile: Ecosystem, chaos: Chaos) -> None:
    """A second process that cannot have the port touches nothing of the first one's work."""
    health = fragile["health"]
    held = await chaos.hold(TOOL_OF["health"])
    message = to_health()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    returncode, output = await health.attempt(seconds=END_S)
    closed = await health.database.rows(
        "SELECT error FROM sessions WHERE prompt LIKE %s AND completed_at IS NOT NULL",
        (f"%{message.token}%",),
    )
    await chaos.release(held)

    expect_one_clear_error(returncode, output, names=[str(health.port)])
    assert not closed, (
        f"a process that could not start closed the session of another: {closed[0]['error']}"
    )
    await expect_carried_out(fragile, sent, "health")
    await message.expect_row(fragile, "health")


async def test_a_database_that_is_not_there_is_one_clear_error(ecosystem: Ecosystem) -> None:
    """Without its database a butler ends with a clear line, without a traceback or a password."""
    general = ecosystem["general"]
    with lease_port() as port, lease_port() as closed:
        url = f"postgresql://postgres:hunter2secret@127.0.0.1:{closed.port}/nowhere"
        changes = {
            key: str(port.hand_over()) if value == str(general.port) else value
            for key, value in general.environment.items()
        } | {
            key: url for key, value in general.environment.items() if value == general.database.url
        }
        returncode, output = await general.attempt(seconds=END_S, environment=changes)

    expect_one_clear_error(returncode, output, names=[str(closed.port)])
    assert "hunter2secret" not in output, f"the error shows the database's password\n{output}"


#: What a butler.toml may ask of the environment, and what is missing then.
ASKS = [
    pytest.param('description = "${HARNESS_ABSENT}"', "description", id="in-a-key"),
    pytest.param('capabilities = ["a", "b ${HARNESS_ABSENT} c"]', "capabilities", id="in-a-list"),
    pytest.param(
        'description = "${HOME} ${HARNESS_ABSENT}"', "description", id="the-second-of-two"
    ),
    pytest.param(
        '[[butler.schedule]]\nname = "s"\ncron = "0 0 29 2 *"\nprompt = "say ${HARNESS_ABSENT}"',
        "prompt",
        id="in-a-schedule",
    ),
    pytest.param('[modules.telegram]\nchat_id = "${HARNESS_ABSENT}"', "chat_id", id="in-a-module"),
    pytest.param('[butler.runtime]\nmodel = "${HARNESS_ABSENT}"', "model", id="in-the-runtime"),
    pytest.param('[butler.db]\nname = "b_${HARNESS_ABSENT}"', "name", id="in-the-database"),
    pytest.param('[butler.env]\nrequired = ["HOME", "HARNESS_ABSENT"]', "required", id="required"),
]

#: Names that a variable may have as well.
NAMES = ("harness_absent", "Harness_Absent", "_HARNESS_ABSENT_2")


@pytest.mark.parametrize(("asks", "key"), ASKS)
async def test_a_butler_without_its_environment_does_not_start(
    ecosystem: Ecosystem, tmp_path: Path, asks: str, key: str
) -> None:
    """A variable that is missing is one error, which names file, key and variable."""
    folder = tmp_path / "general"
    folder.mkdir()
    general = ecosystem["general"]
    file = folder / "butler.toml"
    file.write_text(f'[butler]\nname = "general"\nport = 8101\n{asks}\n', encoding="utf-8")
    returncode, output = await attempt_with(general, folder)

    assert returncode != 0, f"a butler that lacks a variable ended as if all were well\n{output}"
    for word in (str(file), key, "HARNESS_ABSENT"):
        assert word in output, f"the error does not name {word!r}\n{output}"
    assert "Traceback" not in output, f"a mistake of the operator is a traceback\n{output}"
    # With the variable it gets further: to the port that the running butler has.
    returncode, output = await attempt_with(general, folder, HARNESS_ABSENT="here")

    assert returncode == 1, f"with the variable the busy port is what is left to fail\n{output}"
    assert str(general.port) in output, f"with the variable its port is the trouble\n{output}"
    assert "HARNESS_ABSENT" not in output, f"the variable is set, and called missing\n{output}"


@pytest.mark.parametrize("name", NAMES)
async def test_a_variable_of_any_name_is_missed(
    ecosystem: Ecosystem, tmp_path: Path, name: str
) -> None:
    """Small letters, digits or a line at the beginning: a variable that is missing is one error."""
    folder = tmp_path / "general"
    folder.mkdir()
    (folder / "butler.toml").write_text(
        f'[butler]\nname = "general"\nport = 8101\ndescription = "a ${{{name}}} b"\n',
        encoding="utf-8",
    )
    returncode, output = await attempt_with(ecosystem["general"], folder)

    assert returncode != 0, f"a butler that lacks a variable ended as if all were well\n{output}"
    for word in (str(folder / "butler.toml"), "description", name):
        assert word in output, f"the error does not name {word!r}\n{output}"


@pytest.mark.capability("own-process")
@pytest.mark.disturbs
async def test_start_beside_start(fragile: Ecosystem, chaos: Chaos) -> None:
    """Of two processes of one butler started at once, one serves and the other fails, clearly."""
    general = fragile["general"]
    message = to_general()
    await chaos.stop_well("general")
    async with open_beside(general) as first, open_beside(general) as second:

        async def one_ended() -> bool:
            return first.returncode is not None or second.returncode is not None

        await expect_soon("the second of two processes on one port ends", one_ended, seconds=END_S)
        loser, winner = (first, second) if first.returncode is not None else (second, first)
        expect_one_clear_error(
            loser.returncode, loser.log.read_text(encoding="utf-8"), names=[str(general.port)]
        )

        async def serves() -> bool:
            with suppress(CannotReach):
                return not (await general.try_call("status")).is_error
            return False

        await expect_soon("the other of the two serves", serves, seconds=END_S)
        await general.call("trigger", prompt=message.text)
        await message.expect_row(fragile, "general")

        assert winner.returncode is None, (
            f"both processes ended, the other with {winner.returncode}"
        )
    expect_ended_well("the one that served", winner.stop_report)
    await chaos.start("general")
    await chaos.expect_back("general")


@pytest.mark.aside("an error of the harness's own reading")
def test_a_missing_program_is_named(
    harness_loop: Loop, harness_run: Run, tmp_path: Path, butler_ecosystem: Ecosystem, evidence
) -> None:
    """A subject whose program does not exist is the harness's error, and names the program."""
    subject = subject_file(tmp_path, butler_ecosystem.subject, argv='["/no/such/butlers"]')
    manager = open_ecosystem(harness_run, subject, evidence=evidence)
    with pytest.raises(ServiceFailed, match="/no/such/butlers"), harness_loop.hold(manager):
        pass


@pytest.mark.aside("an error of the harness's own reading")
@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param("[butler\nname = 'x'\n", "line 1", id="broken-toml"),
        pytest.param("port = 8101\n", "butler", id="no-butler-table"),
        pytest.param("[butler]\nname = 'X!'\nport = 8150\n", "butler.name", id="bad-name"),
        pytest.param("[butler]\nname = 'x'\nport = 'high'\n", "butler.port", id="bad-port"),
        pytest.param("[butler]\nname = 'a'\nport = 8150\n", "a unique name", id="same-name"),
    ],
)
def test_a_malformed_butler_toml_is_named(tmp_path: Path, content: str, named: str) -> None:
    """The first mistake of a roster is one error with file and line or key."""
    for folder, text in (("a", "[butler]\nname = 'a'\nport = 8149\n"), ("b", content)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "butler.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_roster(tmp_path)

    assert caught.value.where == str(tmp_path / "b" / "butler.toml"), f"it names {caught.value}"
    assert named in str(caught.value), f"the error does not name {named!r}: {caught.value}"


@pytest.mark.aside("an error of the harness's own reading")
def test_a_roster_without_a_switchboard_is_refused(
    harness_loop: Loop, harness_run: Run, subject: Subject, tmp_path: Path, evidence
) -> None:
    """Messages need a switchboard: its absence is reported before anything is started."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "butler.toml").write_text("[butler]\nname = 'a'\nport = 8149\n")
    manager = open_ecosystem(harness_run, subject, evidence=evidence, roster=tmp_path)
    with pytest.raises(BadInput, match="switchboard"), harness_loop.hold(manager):
        pass


def subject_file(directory: Path, original: Subject, *, argv: str) -> Subject:
    """A copy of a subject file with another command line."""
    roster = roster_directory(original)
    path = directory / "subject.toml"
    path.write_text(
        f'[subject]\nname = "wrong"\nargv = {argv}\n[roster]\ndirectory = "{roster}"\n',
        encoding="utf-8",
    )
    return load_subject(path)


def expect_one_clear_error(returncode: int, output: str, *, names: Sequence[str]) -> None:
    """A start that failed: status 1, the reason by name, and no traceback."""
    assert returncode == 1, f"a butler that cannot start ends with 1, found {returncode}\n{output}"
    for name in names:
        assert name in output, f"the error does not name {name!r}\n{output}"
    assert "Traceback" not in output, f"what an operator can mend is a traceback\n{output}"


async def expect_serves(butler: Butler) -> None:
    """A butler answers by its name."""
    status = await butler.status()

    assert status["name"] == butler.name, f"{butler.name} calls itself {status['name']!r}"


async def attempt_with(butler: Butler, folder: Path, **environment: str) -> tuple[int, str]:
    """Start a butler from another folder, which is to end by itself."""
    own = str(butler.config.directory)
    if own not in butler.command:
        not_run("subject", "its command line does not name the folder of a butler")
    words = [str(folder) if word == own else word for word in butler.command]
    return await dataclasses.replace(butler, command=words).attempt(
        seconds=END_S, environment=environment
    )
