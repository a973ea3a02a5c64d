"""Contract 4: after start the skill registry is populated, in order of need; no skill is dropped silently."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.front.skips import not_run
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.messages import ask, expect_health, request, say
from suites.daemon.wire import Keyword, lookup

#: Until health shows what has changed, on a machine with nothing else to do.
NOTICED_S = 6.0

pytestmark = [pytest.mark.covers("CONTRACT-4-SKILLS"), pytest.mark.capability("skill-list")]


@pytest.fixture(scope="module")
def skilled(share, subject):
    """A daemon whose skills directory holds good, broken and needy skills besides its own."""
    if "files" not in subject.table("skills"):
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    with share("skilled", Settings(skills=True)) as daemon:
        yield daemon


async def skills(connection):
    """The names of the skills in the order listed, and those rejected with their reasons."""
    answer = await ask(connection, request("SKILL", "LIST"))

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("SKILL-LIST"), answer.payload
    loaded = [lookup(row, "NAME") for row in answer.get("PAYLOAD", "SKILLS") or ()]
    rejected = {
        lookup(row, "NAME"): lookup(row, "REASON")
        for row in answer.get("PAYLOAD", "REJECTED") or ()
    }
    return loaded, rejected


async def expect_skilled(skilled: Daemon, connection) -> None:
    """The skill that the subject file adds answers what it is asked."""
    for question, answer in skilled.subject.table("skills")["answers"].items():
        assert answer == await say(connection, question)


def expect_refused_skill(name: str, loaded, rejected, *, reason: str) -> None:
    """A skill is not loaded, and is listed as rejected with the reason."""
    assert name not in loaded, f"{name} was loaded"
    assert name in rejected, f"contract 4: {name} is skipped without a word: {rejected}"
    assert str(rejected[name]).strip(), f"{name} is rejected without a reason"
    assert reason in str(rejected[name]), rejected


async def test_registry_is_populated(client) -> None:
    """Right after the handshake there is at least one skill, each by a name of its own."""
    loaded, _ = await skills(client)

    assert loaded, "contract 4: the skill registry is empty after start"
    assert all(isinstance(name, str) and name for name in loaded), loaded
    assert len(loaded) == len(set(loaded)), f"a skill is listed twice: {loaded}"


async def test_installed_skills_are_all_loaded(daemon: Daemon, client) -> None:
    """As many skills as setup installed are loaded or rejected with a reason; none is dropped."""
    table = daemon.subject.table("skills")
    files = sorted(Path(daemon.fill(table["directory"])).glob("*.*"))
    loaded, rejected = await skills(client)

    assert files, "setup installed no skills"
    assert len(files) == len(loaded) + len(rejected), (
        f"contract 4: {[file.name for file in files]} are installed, {loaded} are loaded and "
        f"{rejected} rejected"
    )


async def test_needs_come_first(skilled: Daemon) -> None:
    """A skill loads after what it needs, whatever the names say."""
    async with skilled.connect() as connection:
        loaded, _ = await skills(connection)

    order = skilled.subject.table("skills")["order"]

    assert set(order) <= set(loaded), f"contract 4: a skill is missing: {loaded}"
    assert order == [name for name in loaded if name in order], (
        f"contract 4: loaded before what it needs: {loaded}"
    )


async def test_a_new_skill_answers(skilled: Daemon) -> None:
    """A skill that is listed works: what it is asked, it answers."""
    async with skilled.connect() as connection:
        await expect_skilled(skilled, connection)


@pytest.mark.capability("rejected-skills")
@pytest.mark.parametrize("name", ["broken", "orphan"])
async def test_a_bad_skill_is_reported_and_skipped(skilled: Daemon, name: str) -> None:
    """A skill that cannot be read, or needs what is not there, is listed as rejected with a reason."""
    async with skilled.connect() as connection:
        loaded, rejected = await skills(connection)
        reason = skilled.subject.table("skills")["reasons"][name]
        expect_refused_skill(name, loaded, rejected, reason=reason)
        await expect_skilled(skilled, connection)


@pytest.mark.covers("CONTRACT-3-HEALTH")
@pytest.mark.capability("rejected-skills", "self-checks")
async def test_health_shows_rejected_skills(daemon: Daemon, skilled: Daemon) -> None:
    """With a rejected skill the daemon is degraded; with all of its own it is healthy."""
    assert Keyword("HEALTHY") == expect_health(await daemon.health())
    assert Keyword("DEGRADED") == expect_health(await skilled.health())


@pytest.mark.covers("CONTRACT-3-HEALTH")
@pytest.mark.capability("rejected-skills", "self-checks")
async def test_health_is_of_now(start, subject) -> None:
    """Health follows what happens: a skill breaks and it is degraded, is mended and it is healthy."""
    table = subject.table("skills")
    if "files" not in table:
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    async with start() as daemon:
        broken = Path(daemon.fill(table["directory"]), "broken.toml")

        async def becomes(wanted: Keyword) -> None:
            seen = None

            async def is_shown() -> bool:
                nonlocal seen
                seen = expect_health(await daemon.health())
                return seen == wanted

            with trio.move_on_after(patience(NOTICED_S)):
                await until(is_shown)

            assert wanted == seen, f"health is still {seen} after {NOTICED_S:g} s"

        await becomes(Keyword("HEALTHY"))
        broken.write_text(table["files"]["broken.toml"], encoding="utf-8")
        await becomes(Keyword("DEGRADED"))
        broken.unlink()
        await becomes(Keyword("HEALTHY"))
