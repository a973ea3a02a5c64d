"""Contract 4: after start the skill registry is populated, in order of need; no skill is dropped silently."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

import pytest

from harness_core.front.skips import not_run
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.health import becomes, noticed
from suites.daemon.lists import listed
from suites.daemon.messages import ask, expect_health, request, say
from suites.daemon.wire import Keyword, lookup

pytestmark = pytest.mark.covers("CONTRACT-4-SKILLS")

#: The rows of the list, over the wire.
on_the_wire = pytest.mark.capability("skill-list")


async def skills(connection):
    """The names of the skills in the order listed, and those rejected with their reasons."""
    answer = await ask(connection, request("SKILL", "LIST"))

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("SKILL-LIST"), (
        f"contract 4: expected the list of skills, found {answer.payload}"
    )
    loaded = [lookup(row, "NAME") for row in answer.get("PAYLOAD", "SKILLS") or ()]
    rejected = {
        lookup(row, "NAME"): lookup(row, "REASON")
        for row in answer.get("PAYLOAD", "REJECTED") or ()
    }
    return loaded, rejected


async def expect_skilled(skilled: Daemon, connection) -> None:
    """The skill that the subject file adds answers what it is asked."""
    for question, answer in skilled.subject.table("skills")["answers"].items():
        found = await say(connection, question)

        assert answer == found, (
            f"contract 4: asked {question!r}, a skill answers {answer!r}; found {found!r}"
        )


def expect_refused_skill(name: str, loaded, rejected, *, reason: str) -> None:
    """A skill is not loaded, and is listed as rejected with the reason."""
    assert name not in loaded, f"{name} was loaded"
    assert name in rejected, f"contract 4: {name} is skipped without a word: {rejected}"
    assert str(rejected[name]).strip(), f"contract 4: {name} is rejected without a reason"
    assert reason in str(rejected[name]), (
        f"contract 4: {name} is rejected, and the reason does not name {reason!r}: {rejected[name]}"
    )


async def test_registry_is_populated(daemon: Daemon, run) -> None:
    """Right after the handshake there is at least one skill, each by a name of its own."""
    loaded = [row["name"] for row in await listed(daemon, run, "skills")]

    assert loaded, "contract 4: the skill registry is empty after start"
    assert all(isinstance(name, str) and name for name in loaded), (
        f"contract 4: each skill has a name, found {loaded}"
    )
    assert len(loaded) == len(set(loaded)), f"a skill is listed twice: {loaded}"


@on_the_wire
async def test_who_asks_for_the_skills_is_answered(client) -> None:
    """On the wire the list names each skill, and none twice."""
    loaded, _ = await skills(client)

    assert loaded, "contract 4: the list of skills is empty: expected a name at least"
    assert len(loaded) == len(set(loaded)), f"contract 4: a skill is listed twice: found {loaded}"


@on_the_wire
async def test_installed_skills_are_all_loaded(daemon: Daemon, skilled: Daemon) -> None:
    """As many skills as are installed are loaded or rejected with a reason; none is dropped."""
    for each in (daemon, skilled):
        table = each.subject.table("skills")
        files = sorted(Path(each.fill(table["directory"])).glob("*.*"))
        async with each.connect() as connection:
            loaded, rejected = await skills(connection)

        assert files, "contract 4: setup installed no skills"
        assert len(files) == len(loaded) + len(rejected), (
            f"contract 4: {[file.name for file in files]} are installed, {loaded} are loaded and "
            f"{rejected} rejected"
        )


@on_the_wire
async def test_the_list_shows_what_a_skill_is(skilled: Daemon) -> None:
    """The row of a skill shows what its file says of it: version, description, needs."""
    async with skilled.connect() as connection:
        answer = await ask(connection, request("SKILL", "LIST"))
    rows = {lookup(row, "NAME"): row for row in answer.get("PAYLOAD", "SKILLS") or ()}
    for name, texts in skilled.subject.table("skills").get("shown", {}).items():
        row = str(rows.get(name))
        lost = [text for text in texts if text not in row]

        assert not lost, f"contract 4: the row of {name} does not show {lost}: {row}"


@on_the_wire
async def test_needs_come_first(skilled: Daemon) -> None:
    """A skill loads after what it needs, whatever the names say."""
    async with skilled.connect() as connection:
        loaded, _ = await skills(connection)

    order = skilled.subject.table("skills")["order"]

    assert set(order) <= set(loaded), (
        f"contract 4: of {order} some are missing: {loaded} are loaded"
    )
    assert order == [name for name in loaded if name in order], (
        f"contract 4: loaded before what it needs: {loaded}"
    )


@on_the_wire
async def test_a_new_skill_answers(skilled: Daemon) -> None:
    """A skill that is listed works: what it is asked, it answers."""
    async with skilled.connect() as connection:
        await expect_skilled(skilled, connection)


@on_the_wire
@pytest.mark.capability("rejected-skills")
async def test_bad_skills_are_reported_and_skipped(skilled: Daemon) -> None:
    """What cannot be read, needs what is not there, or each other, is rejected with the reason."""
    async with skilled.connect() as connection:
        loaded, rejected = await skills(connection)
        for name, reason in skilled.subject.table("skills")["reasons"].items():
            expect_refused_skill(name, loaded, rejected, reason=reason)
        await expect_skilled(skilled, connection)


@on_the_wire
@pytest.mark.covers("CONTRACT-3-HEALTH")
@pytest.mark.capability("rejected-skills", "self-checks")
async def test_health_shows_rejected_skills(daemon: Daemon, skilled: Daemon) -> None:
    """With a rejected skill the daemon is degraded; with all of its own it is healthy."""
    for one, wanted in ((daemon, "HEALTHY"), (skilled, "DEGRADED")):
        found = expect_health(await one.health())

        assert Keyword(wanted) == found, f"contract 3: expected :{wanted}, found {found}"


@on_the_wire
@pytest.mark.capability("rejected-skills")
async def test_skills_follow_their_directory(start, subject) -> None:
    """What is linked, swapped, changed, unlinked and linked again is listed as it is now.

    What is no file at all, or leads nowhere, is rejected and takes no other skill with it.
    """
    table = subject.table("skills")
    if "files" not in table:
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    async with start() as daemon, daemon.connect() as connection:
        directory, store = Path(daemon.fill(table["directory"])), daemon.home / "store"
        store.mkdir()
        own, _ = await skills(connection)
        content = table["files"]["zzz-last.toml"]
        for version in ("first", "other"):
            text = content.replace("Comes last", f"Is {version} of all")
            (store / f"{version}.toml").write_text(text, encoding="utf-8")
        link = directory / "zzz-last.toml"

        async def becomes(step: str, *, shown: str = "", rejected: str = "") -> None:
            seen: tuple[str, list[object], list[object]] = ("", [], [])

            async def is_so() -> bool:
                nonlocal seen
                answer = await ask(connection, request("SKILL", "LIST"))
                rows = answer.get("PAYLOAD", "SKILLS") or ()
                bad = answer.get("PAYLOAD", "REJECTED") or ()
                names = [lookup(row, "NAME") for row in rows]
                text = " ".join(str(row) for row in rows if lookup(row, "NAME") == "zzz-last")
                seen = text, names, [lookup(row, "NAME") for row in bad]
                right = shown in text if shown else "zzz-last" not in names
                return right and set(own) <= set(names) and (not rejected or rejected in seen[2])

            if (await noticed(is_so)).came:
                return

            raise AssertionError(
                f"contract 4: {step}: expected {shown or 'no zzz-last'}, {rejected or 'none'} "
                f"rejected and {own} loaded; found {seen}"
            )

        link.symlink_to(store / "first.toml")
        await becomes("linked", shown="Is first of all")
        (directory / "beside").symlink_to(store / "other.toml")
        (directory / "beside").replace(link)
        await becomes("the link was swapped", shown="Is other of all")
        (store / "other.toml").write_text((store / "first.toml").read_text("utf-8"), "utf-8")
        await becomes("its file was changed", shown="Is first of all")
        link.unlink()
        await becomes("unlinked")
        link.symlink_to(store / "first.toml")
        await becomes("linked again", shown="Is first of all")
        (store / "first.toml").rename(store / "away.toml")
        await becomes("the link leads nowhere", rejected="zzz-last")
        (store / "away.toml").rename(store / "first.toml")
        await becomes("the link leads somewhere again", shown="Is first of all")
        os.mkfifo(directory / "pipe.toml")
        await becomes("a pipe lies there", shown="Is first of all", rejected="pipe")
        (directory / "pipe.toml").unlink()
        (directory / "folder.toml").mkdir()
        await becomes("a folder lies there", shown="Is first of all", rejected="folder")
        (directory / "folder.toml").rmdir()
        (directory / "bytes.toml").write_bytes(b"\xff\xfe")
        await becomes("a file that is no text", shown="Is first of all", rejected="bytes")
        expect_health(await daemon.health())


#: What a skill says of itself, in letters of one byte, two, three and four.
SAYS = "Fährt über 日本 😀 und zurück."


def parted(text: str, lines: int) -> bytes:
    """A skill with so many lines that mean nothing before its last one."""
    first, last = text.rstrip("\n").rsplit("\n", 1)
    return (first + "\n" + "# and so on\n" * lines + last + "\n").encode()


#: The bytes of a file that is no UTF-8, or not all of it: from the text of a skill that is sound.
SPOILED = {
    "latin-1": lambda text: text.replace(SAYS, "Fährt zurück.").encode("latin-1"),
    "windows": lambda text: text.replace(SAYS, "Fährt für 5 €.").encode("cp1252"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-without-a-mark": lambda text: text.encode("utf-16-le"),
    "utf-32": lambda text: text.encode("utf-32"),
    "one-byte-in-a-comment": lambda text: text.encode() + b"# \xff\n",
    "one-byte-in-a-text": lambda text: text.encode().replace("ü".encode(), b"\xfc", 1),
    "half-a-letter": lambda text: text.encode().replace("日".encode(), "日".encode()[:2], 1),
    "half-a-letter-at-the-end": lambda text: text.encode() + b"# " + "日".encode()[:2],
    "a-surrogate": lambda text: text.encode().replace("日".encode(), b"\xed\xa0\x80", 1),
    "an-overlong-letter": lambda text: text.encode().replace(b" und ", b"\xc0\xa0und ", 1),
    "a-zero": lambda text: text.replace(" und ", " \0 ").encode(),
    "cut": lambda text: text.encode()[: text.encode().index("本".encode()) + 1],
    "nothing": lambda _: b"",
    "two-mebibytes": lambda text: text.encode() + b"# and so on\n" * 180_000,
    **{
        f"its-last-line-behind-{lines}": functools.partial(parted, lines=lines)
        for lines in (800, 5_000, 24_000, 90_000, 180_000)
    },
}


@on_the_wire
@pytest.mark.capability("rejected-skills")
async def test_a_skill_is_loaded_as_it_is_written_or_not_at_all(start, subject) -> None:
    """A file of other bytes than its format has is rejected with a reason, or shown letter by letter."""
    table = subject.table("skills")
    if "files" not in table:
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    content = table["files"]["zzz-last.toml"]

    async with start() as daemon, daemon.connect() as connection:
        directory = Path(daemon.fill(table["directory"]))
        for how, spoil in ({"sound": str.encode} | SPOILED).items():
            file = directory / f"spoiled-{how}.toml"
            text = content.replace("zzz-last", file.stem).replace("Comes last by name.", SAYS)

            assert SAYS in text, "a skill of the subject file says of itself that it comes last"
            file.write_bytes(spoil(text))
            loaded: dict[str, str] = {}
            rejected: dict[str, object] = {}

            async def known(
                name: str = file.stem,
                loaded: dict[str, str] = loaded,
                rejected: dict[str, object] = rejected,
            ) -> bool:
                answer = await ask(connection, request("SKILL", "LIST"))
                rows = answer.get("PAYLOAD", "SKILLS") or ()
                loaded |= {str(lookup(row, "NAME")): str(row) for row in rows}
                bad = answer.get("PAYLOAD", "REJECTED") or ()
                rejected |= {str(lookup(row, "NAME")): lookup(row, "REASON") for row in bad}
                return name in loaded or name in rejected

            await noticed(known)
            if how == "sound":
                assert SAYS in loaded.get(file.stem, ""), (
                    f"contract 4: a skill is loaded as it is written: expected {SAYS!r}, found "
                    f"{loaded.get(file.stem)} ({rejected.get(file.stem)})"
                )
                file.unlink()
                continue

            assert file.stem in rejected or SAYS in loaded.get(file.stem, ""), (
                f"contract 4: a skill is loaded whole or reported as not loaded: expected a file with "
                f"{how} to be rejected, or {SAYS!r}, found {loaded.get(file.stem)}"
            )
            assert file.stem not in rejected or str(rejected[file.stem]).strip(), (
                f"contract 4: a file with {how} is rejected without a reason"
            )
            file.unlink()
        expect_health(await daemon.health())


@on_the_wire
async def test_what_a_skill_answers_is_what_it_says_now(start, subject) -> None:
    """A text alone meets the skills as they are: new, changed, without what they need, gone and back."""
    table = subject.table("skills")
    needs, needed = "aaa-needs-zzz.toml", "zzz-last.toml"
    if not {needs, needed} <= table.get("files", {}).keys():
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    question, said = next(iter(table["answers"].items()))
    content = table["files"][needs]
    other = "it is another now"

    assert said in content, f"a skill of the subject file answers {question!r} by {said!r}"
    async with start() as daemon, daemon.connect() as connection:
        directory = Path(daemon.fill(table["directory"]))
        unlearned = await say(connection, question)

        async def answers(step: str, *wanted: str) -> None:
            """The daemon answers so, at once or soon; nobody lists skills or asks for health."""
            found = ""

            async def is_so() -> bool:
                nonlocal found
                found = await say(connection, question)
                return (found in wanted) if wanted else found not in {said, other}

            if (await noticed(is_so)).came:
                return

            raise AssertionError(
                f"contract 4: {step}: asked {question!r}, a skill answers what its file says now: "
                f"expected {' or '.join(wanted) or 'an answer of no skill'}, found {found!r}"
            )

        for turn in (1, 2):
            (directory / needed).write_text(table["files"][needed], encoding="utf-8")
            (directory / needs).write_text(content, encoding="utf-8")
            await answers(f"two skills came (turn {turn})", said)
            (directory / needs).write_text(content.replace(said, other), encoding="utf-8")
            await answers("one was changed", other)
            (directory / needed).rename(daemon.home / needed)
            await answers("what it needs is gone")
            (daemon.home / needed).rename(directory / needed)
            await answers("what it needs is back", other)
            (directory / needs).write_text("[", encoding="utf-8")
            await answers("it is broken")
            (directory / needs).write_text(content, encoding="utf-8")
            await answers("it is mended", said)
            (directory / needs).unlink()
            (directory / needed).unlink()
            await answers(f"both are gone (turn {turn})")

        assert await say(connection, question) == unlearned, (
            f"contract 4: without those skills the daemon answers as before: expected {unlearned!r}"
        )


@on_the_wire
@pytest.mark.covers("CONTRACT-3-HEALTH")
@pytest.mark.capability("rejected-skills", "self-checks")
async def test_health_is_of_now(start, subject) -> None:
    """Health follows what happens: a skill breaks and it is degraded, is mended and it is healthy.

    It names the skill for as long as that is so; a directory of skills that goes is noticed too.
    """
    table = subject.table("skills")
    if "files" not in table:
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    async with start() as daemon:
        broken = Path(daemon.fill(table["directory"]), "broken.toml")
        await becomes(daemon, "HEALTHY", since="after start")
        for turn in (1, 2):
            broken.write_text(table["files"]["broken.toml"], encoding="utf-8")
            said = (await becomes(daemon, "DEGRADED", since="a skill is broken")).payload

            assert "broken" in said, f"contract 3: health names the skill that is broken: {said}"
            broken.unlink()
            said = (await becomes(daemon, "HEALTHY", since="that skill is gone")).payload

            assert "broken" not in said, (
                f"contract 3: health names no skill that was mended (turn {turn}): {said}"
            )
            broken.parent.rename(daemon.home / "away")
            await becomes(daemon, "DEGRADED", "UNHEALTHY", since="its skills are gone")
            (daemon.home / "away").rename(broken.parent)
            await becomes(daemon, "HEALTHY", since="its skills are back")


@on_the_wire
@pytest.mark.covers("CONTRACT-3-HEALTH")
@pytest.mark.capability("rejected-skills", "self-checks")
async def test_a_setup_that_comes_late_is_one(start, subject) -> None:
    """A daemon that was started without its setup is as healthy as any once that has been run."""
    if not subject.table("setup"):
        not_run("subject", f"{subject.path.name} has no [setup]")
    async with start(Settings(set_up=False)) as daemon:
        await becomes(daemon, "DEGRADED", "UNHEALTHY", since="started without its setup")
        daemon.settings = dataclasses.replace(daemon.settings, set_up=True)
        await daemon.set_up()
        await becomes(daemon, "HEALTHY", since="its setup was run")
