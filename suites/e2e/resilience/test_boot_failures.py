"""What a butler does that cannot start: one clear error, exit status, no other butler disturbed.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.errors import BadInput
from harness_core.ports import lease_port
from harness_core.process import Run
from harness_core.system.parts import ServiceFailed
from harness_core.system.subject import Subject, load_subject
from suites.e2e.ecosystem.boot import open_ecosystem, roster_directory
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.observe.expect_broken_journey import expect_carried_out
from suites.e2e.worlds.canned import TOOL_OF, to_health
from suites.e2e.worlds.chaos import Chaos

pytestmark = pytest.mark.covers("E2E-LIFECYCLE")

#: Generous: a daemon that cannot have its port or its database gives up within seconds.
END_S = 60.0


async def test_a_busy_port_fails_that_butler_alone(ecosystem: Ecosystem) -> None:
    """A second process on the same port ends with status 1 and one clear line; the first lives."""
    general = ecosystem["general"]
    returncode, output = await general.attempt(seconds=END_S)

    assert 1 == returncode, output
    assert str(general.port) in output
    assert "Traceback" not in output
    assert "started" not in output.casefold().replace("not started", ""), output
    assert general.child.returncode is None
    assert "general" == (await general.status())["name"]


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

    assert 1 == returncode, output
    assert [] == closed, "a process that could not start closed the session of another"
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

    assert 1 == returncode, output
    assert str(closed.port) in output
    assert "Traceback" not in output
    assert "hunter2secret" not in output


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

    assert str(tmp_path / "b" / "butler.toml") == caught.value.where
    assert named in str(caught.value)


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
