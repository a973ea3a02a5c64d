"""INT-003: two sessions at work at the same time cannot reach each other's files, by no way at all."""

import dataclasses
import secrets
from functools import partial
from pathlib import PurePosixPath

import pytest
import trio
from workbench_contract.files import ListRequest

from harness_core.base.errors import HarnessError
from harness_core.doubles.http import HttpClient, Response
from suites.integration.messages import sent
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.refusals import OUTSIDE, expect_refused
from suites.integration.sessions import Session, new_session

#: Ways out of a folder, as paths; what is only spelt like one names nothing that is there.
WAYS_OUT = (
    *(
        "..",
        "../..",
        "../../..",
        "./..",
        "inner/../..",
        "inner/../../..",
        "/",
        "/tmp",
        "/proc/self",
    ),
    *("..%2f..", "%2e%2e/%2e%2e", "....//....//", "..\\..", "..;/..", "\u2025/", "~", "~root"),
)
#: The same as links that the session's own code has made.
LINKS = {"up": "..", "upper": "../..", "root": "/", "temporary": "/tmp", "self": "/proc/self/root"}
#: Where a worker may keep the files of a session, below a folder of its name.
INSIDE = ("", "workspace/", "files/", "data/", "home/")

#: What looks into a file, and how the file of a system's users begins.
LOOKING = {
    "/fs/read": {},
    "/fs/grep": {"pattern": "."},
    "/lint": {},
}
PASSWORDS = "root:"

#: How a picture is known, by its first bytes, as printf writes them.
PICTURE = r"\211PNG\r\n\032\n"

#: Reads of a link that changes; each may meet it at any moment.
SWAPS = 120


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One of the two: its session, and what only it may know.

    Attributes:
        name: of its file, unguessable; what another finds by it is this session's.
        secret: what stands in there, in its /tmp, and in the memory of its code.
    """

    session: Session
    name: str
    secret: str


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_003_sessions_cannot_read_each_other(worker):
    """Files, temporary files and running code of each session are there for that session alone."""
    one, other = await party(worker), await party(worker)
    before = {each.name: await state(each) for each in (one, other)}
    async with trio.open_nursery() as nursery:
        for each in (one, other):
            nursery.start_soon(work, each)
        for each in (one, other):
            await is_at_work(each)
        async with trio.open_nursery() as attacks:
            for attacker, victim in ((one, other), (other, one)):
                attacks.start_soon(attack_by_files, attacker, victim)
                attacks.start_soon(attack_by_links, attacker, victim)
                attacks.start_soon(attack_by_code, attacker, victim)
                attacks.start_soon(attack_by_name, worker, victim)
        for each in (one, other):
            await each.session.write(f"stop-{each.name}", "")
    for each in (one, other):
        assert before[each.name] == await state(each), "a session's own files were changed"


async def party(worker: HttpClient) -> Party:
    """A session with a file that holds its secret, and with links that lead out of it."""
    name, secret = f"note-{secrets.token_hex(8)}", f"secret-{secrets.token_hex(12)}"
    made = Party(session=new_session(worker), name=name, secret=secret)
    await made.session.write(f"inner/{name}.txt", secret)
    links = " && ".join(f"ln -s {target} {link}" for link, target in LINKS.items())
    done = await made.session.execute(f"{links} && cat inner/{name}.txt")

    assert (0, secret) == (done["exit_code"], done["stdout"].strip()), f"its own file: {done}"
    return made


async def state(party: Party) -> tuple[set[str], str]:
    """The session's own files, and what is in the one that matters."""
    answer = await party.session.read(f"inner/{party.name}.txt")

    assert answer.status == 200, f"expected a session to read its own file, found {answer}"
    names = {path for path in await party.session.files() if path.startswith("inner")}
    return names, answer.json()["content"]


async def work(party: Party) -> None:
    """The session's code: leaves its secret in /tmp, in its memory and arguments; a file ends it."""
    command = (
        f"echo {party.secret} > /tmp/{party.name}.txt; export SECRET={party.secret}; "
        f"sh -c 'touch ready-{party.name}; while [ ! -e stop-{party.name} ]; do sleep 0.05; done' "
        f"{party.secret}; cat /tmp/{party.name}.txt"
    )
    done = await party.session.execute(command, timeout_s=COMMAND_S)

    assert (0, party.secret) == (done["exit_code"], done["stdout"].strip()), f"its own work: {done}"


async def is_at_work(party: Party) -> None:
    """Wait until the session's code runs."""

    async def runs() -> bool:
        return f"ready-{party.name}" in await party.session.files()

    await eventually(runs, seconds=SOON_S, expected=f"the code of {party.session.id} to run")


def reveals_nothing(answer: Response, victim: Party, *, what: str) -> None:
    """Whatever was answered, nothing of the victim stands in it."""
    assert victim.secret not in answer.text, f"{what} reveals the other's secret: {answer}"
    assert victim.name not in answer.text, f"{what} reveals the other's file: {answer}"


async def attack_by_files(attacker: Party, victim: Party) -> None:
    """Every way out by path is refused, for every operation, or leads back to the session's own root."""
    mine, theirs = attacker.session, f"inner/{victim.name}.txt"
    for way in WAYS_OUT:
        for operation in ("/fs/ls", "/fs/grep"):
            body = {"path": way, "recursive": True} if operation == "/fs/ls" else {"path": way}
            body |= {"pattern": "secret-"} if operation == "/fs/grep" else {}
            answer = await mine.post(operation, **body)
            reveals_nothing(answer, victim, what=f"{operation} {way!r}")
            if await shows_its_own(mine, answer):
                continue
            assert answer.status in OUTSIDE, (
                f"{operation} leads out of the session by {way!r}: {answer}"
            )
            expect_refused(answer, *OUTSIDE)
    ways = [
        f"{up}{victim.session.id}/{inside}{theirs}"
        for up in ("", "../", "../../", "../../../", "/", "inner/../../", "inner/../../../")
        for inside in INSIDE
    ]
    for way in ways:
        tries = {
            "/fs/read": {"path": way},
            "/fs/edit": {"path": way, "old": victim.secret, "new": "changed"},
            "/fs/delete": {"path": way},
        }
        for operation, body in tries.items():
            answer = await mine.post(operation, **body)
            assert answer.status in OUTSIDE, (
                f"{operation} reaches the other session by {way!r}: {answer}"
            )
            assert victim.secret not in answer.text, f"{operation} reveals the secret: {answer}"
        if way.startswith(("..", "/", "inner")):
            answer = await mine.post("/fs/write", path=way, content="changed")
            assert answer.status in OUTSIDE, (
                f"/fs/write reaches the other session by {way!r}: {answer}"
            )
        escaped = way.replace("/", "%2f").replace("..", "%2e%2e")
        answer = await mine.client.get(f"/assets/{escaped}")
        assert answer.status in OUTSIDE, (
            f"/assets reaches the other session by {escaped!r}: {answer}"
        )


async def attack_by_links(attacker: Party, victim: Party) -> None:
    """No operation follows a link that the session's code has made to somewhere else.

    It is refused, or taken for a name inside the session, where nothing or the session's own is found.
    """
    mine = attacker.session
    for link, target in LINKS.items():
        for operation, body in {
            "/fs/ls": {"path": link, "recursive": False},
            "/fs/grep": {"path": link, "pattern": "secret-"},
            "/fs/delete": {"path": f"{link}/{victim.session.id}"},
        }.items():
            answer = await mine.post(operation, **body)
            reveals_nothing(answer, victim, what=f"{operation} {link!r}")
            inside = answer.status in OUTSIDE or await shows_its_own(mine, answer)
            assert inside, f"{operation} follows a link to {target!r}: {answer}"
        name = f"from-{attacker.name}-by-{link}"
        answer = await mine.post("/fs/write", path=f"{link}/{name}", content="changed")
        inside = answer.status in OUTSIDE or await has_file(mine, name)
        assert inside, f"/fs/write follows a link to {target!r}: {answer}"
        for path in ("etc/passwd", f"{victim.name}.txt", f"{victim.session.id}/inner"):
            answer = await mine.read(f"{link}/{path}")
            assert answer.status in OUTSIDE, f"/fs/read follows a link to {target!r}: {answer}"
            answer = await mine.client.get(f"/assets/{link}/{path}")
            assert answer.status in OUTSIDE, f"/assets follows a link to {target!r}: {answer}"


async def shows_its_own(session: Session, answer: Response) -> bool:
    """Whether a listing or search names nothing but what the session itself has by that name."""
    if answer.status != 200 or not {"entries", "matches"} & set(answer.json()):
        return False
    found = [*answer.json().get("entries", ()), *answer.json().get("matches", ())]
    own = {PurePosixPath(path).name for path in await session.files()}
    return {PurePosixPath(each["path"]).name for each in found} <= own


async def has_file(session: Session, name: str) -> bool:
    """Whether the session's own code finds a file of that name, without following any link."""
    found = await session.execute(f"find . -type f -name '{name}'")
    return bool(found["stdout"].strip())


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_003_a_link_that_changes_leads_nowhere(worker):
    """While its code swaps a link between inside and outside, a session reads what is inside, or nothing.

    A link to a file outside is refused, or is a name like any other: nothing of that file is told, and
    writing and deleting change the link alone.
    """
    session = new_session(worker)
    other = await party(worker)
    await session.write("inside/passwd", "mine")
    theirs = f"../../{other.session.id}/workspace/inner/{other.name}.txt"
    made = "ln -s /etc/passwd out; ln -s inside stays; cat out"
    seen_by_code = (await session.execute(f"ln -s {theirs} theirs; {made}"))["stdout"]
    for link in ("out", "theirs"):
        for operation, body in LOOKING.items():
            answer = await session.post(operation, path=link, **body)
            # What the session's code can read by itself is told by a program that runs where it runs.
            program = operation in {"/fs/grep", "/lint"} and PASSWORDS in seen_by_code
            tells = answer.status not in OUTSIDE and not program and PASSWORDS in answer.text
            followed = tells or other.secret in answer.text or is_accepted(answer)
            assert not followed, f"{operation} follows a link out by {link!r}: {answer}"
    await no_picture_is_seen(session, other.session)
    answer = await session.post("/fs/edit", path="theirs", old=other.secret, new="changed")
    assert answer.status in OUTSIDE, f"/fs/edit follows a link out by 'theirs': {answer}"
    # A worker that fails this test must harm nothing but a session of it.
    answer = await session.post("/fs/write", path="theirs", content="changed")
    inside = answer.status in OUTSIDE or await has_file(session, "theirs")
    assert inside, f"/fs/write follows a link out by 'theirs': {answer}"
    for link in ("out", "theirs"):
        answer = await session.client.get(f"/assets/{link}")
        told = [text for text in (PASSWORDS, other.secret) if text in answer.text]
        assert not told, f"/assets follows a link out by {link!r}: {answer}"
    folders = f"ln -s ../../{other.session.id}/workspace/inner their-folder; ln -s inside my-folder"
    await session.execute(folders)
    for link in ("theirs", "their-folder", "my-folder"):
        answer = await session.post("/fs/delete", path=link)
        assert answer.status == 200, f"expected the link {link!r} to be deleted, found {answer}"
        left = await session.execute(f"test -L {link}")
        assert left["exit_code"] != 0, f"{link!r} was deleted, and the link is there still: {left}"
    _, content = await state(other)
    assert other.secret == content, "what a link of another session led to was changed"
    mine = await session.read("inside/passwd")
    assert mine.status == 200, f"a link to a folder was deleted, and its files with it: {mine}"
    swapping = (
        "python3 -c \"import os\nwhile not os.path.exists('stop'):\n    for to in ('inside', '/etc'):"
        "\n        os.symlink(to, 'new')\n        os.replace('new', 'swapped')\""
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(session.execute, swapping, timeout_s=COMMAND_S))

        async def swaps() -> bool:
            return "swapped" in await session.files()

        await eventually(swaps, seconds=SOON_S, expected="the code to swap the link")
        seen = set()
        for number in range(SWAPS):
            asset = await session.client.get("/assets/swapped/passwd")
            read = await session.read("swapped/passwd")
            for answer, found in ((asset, asset.text), (read, read.json().get("content", ""))):
                seen.add(answer.status)
                if answer.status == 200:
                    assert "mine" == found, f"read {number} led outside: {found[:200]!r}"
                else:
                    assert answer.status in OUTSIDE, f"read {number}: {answer}"
        await session.write("stop", "")
    # Who follows no link at all need not follow one that stays inside.
    if (await session.read("stays/passwd")).status == 200:
        assert {200} < seen, f"expected the link to lead in and out, found reads with {seen} alone"


async def no_picture_is_seen(session: Session, other: Session) -> None:
    """A link to a picture of another session is not followed by who looks at pictures."""
    await other.execute(f"printf '{PICTURE}' > picture.png")
    await session.execute(f"ln -s ../../{other.id}/workspace/picture.png theirs.png")
    own = await other.post("/fs/view", path="picture.png")
    answer = await session.post("/fs/view", path="theirs.png")
    # A product that shows no pictures shows none of others.
    if own.status == 200:
        assert answer.status in OUTSIDE, f"/fs/view follows a link out by 'theirs.png': {answer}"


def is_accepted(answer: Response) -> bool:
    """Whether a submission was accepted, so that its file was read."""
    return answer.status == 200 and answer.json().get("accepted") is True


async def attack_by_code(attacker: Party, victim: Party) -> None:
    """Executed code finds neither the other's files nor its /tmp nor its processes."""
    commands = {
        "its files by name": f"find / -name '*{victim.name}*' 2>/dev/null",
        "its /tmp": f"ls -laR /tmp /var/tmp /dev/shm; cat /tmp/{victim.name}.txt",
        "its processes": "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '",
        "its root by its processes": (
            f"for p in /proc/[0-9]*; do cat $p/root/tmp/{victim.name}.txt "
            f"$p/cwd/inner/{victim.name}.txt; done 2>/dev/null"
        ),
        "the folder above": f"ls -laR ../.. | head -c 100000; cat ../*/inner/{victim.name}.txt",
        "a path of its name": (
            f"cat ../{victim.session.id}/inner/* ../../{victim.session.id}/*/inner/*"
        ),
    }
    for what, command in commands.items():
        done = await attacker.session.execute(command, timeout_s=COMMAND_S)
        output = done["stdout"]
        assert victim.secret not in output, f"code finds the other's secret: {what}: {output[:500]}"
        assert f"{victim.name}.txt" not in output, (
            f"code finds the other session: {what}: {output[:500]}"
        )
        if done["timed_out"]:
            raise HarnessError(
                f"search for {what}",
                observed=f"the command did not end within {COMMAND_S:g} s",
                next_step="Run it on a machine that is less busy",
            )


async def attack_by_name(worker: HttpClient, victim: Party) -> None:
    """A session with a name like the other's is not the other, and no malformed name is a session."""
    theirs = victim.session.id
    for name in (theirs[:-1], f"{theirs}x", theirs.upper(), f"{theirs}-1"):
        answer = await Session(worker, name).read(f"inner/{victim.name}.txt")
        assert answer.status in OUTSIDE, f"session {name!r} reads the file of {theirs!r}: {answer}"
        assert victim.secret not in answer.text, (
            f"session {name!r} is answered the secret: {answer}"
        )
    malformed = (
        *("", ".", "..", f"../{theirs}", f"x/../{theirs}", f"{theirs}/", f"./{theirs}"),
        *(f"/{theirs}", "a b", "a\\b", "%2e%2e", f"{theirs}%00", "x" * 300, "*", "~", "$HOME"),
    )
    for name in malformed:
        answer = await Session(worker, name).post("/fs/ls", path=".", recursive=True)
        assert answer.status in OUTSIDE, f"{name!r} is taken for a session: {answer}"
        assert victim.name not in answer.text, f"{name!r} lists the other's files: {answer}"
    answer = await worker.post("/fs/ls", sent(ListRequest(path=".")))
    assert answer.status in {400, 401, 403, 422}, f"a request without a session: {answer}"
