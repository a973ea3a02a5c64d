"""INT-003: a session's own files are there for it, whole, by every operation and whoever asks at once."""

from __future__ import annotations

import hashlib
import secrets
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import pytest
import trio

from harness_core.doubles.http import Response, Unanswered
from suites.integration.comparing import consecutive, expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.record_files import left_in_the_middle, record_file
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

#: Path → content; names and sizes around what is split, decoded, cut or read at once.
_FILES: Final = {
    "empty.txt": "",
    "line.txt": "no newline at the end, and a needle",
    "windows.txt": "one\r\ntwo needle\r\n\r\n",
    "a:b:3.txt": "before the needle\nneedle: after\x0ca form feed\n",
    "deep/er/und/tiefer/ümläut 日本 😀.txt": "Nadel im Heu: needle ä\u2028ö\n",
    "with space + %41 & ? #.txt": "needle\n",
    "-n": "needle\n",
    "under.txt": "ä" * 32_767 + "z",
    "at.txt": "ä" * 32_768,
    "over.txt": "ä" * 32_768 + "z",
    "mega.txt": "0123456789abcde\n" * 65_536 + "needle",
    "nul.txt": "before\0after\n",
    ".hidden": "needle\n",
}

_WRITERS: Final = 12

#: Files that are edited and deleted at once, each as large as may be, so that an edit takes its time.
_DELETED: Final = 8
_WIDE: Final = "日"
_MANY: Final = (1_900_000, 300_000, 30_000)


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
async def test_int_003_a_session_has_its_own_files_whole(worker):
    """What is written is read, listed, found, edited and fetched as it is; deleted, it is gone.

    Sizes and digests are those of the bytes. What is not there is refused: 404.
    """
    session, other = new_session(worker), new_session(worker)
    for path, content in _FILES.items():
        answer = await session.post("/fs/write", path=path, content=content)
        assert answer.status == 200, f"expected {path!r} to be written, found {answer}"
        _is_about(answer.json(), path, content)
        await other.write(path, f"the other's {path}")
    for path, content in _FILES.items():
        await _is_there(session, path, content)
    await _is_listed(session)
    await _is_found(session)
    for path, content in _FILES.items():
        if content.count("needle") == 1:
            answer = await session.post("/fs/edit", path=path, old="needle", new="pin\n")
            assert answer.status == 200, f"expected {path!r} to be edited, found {answer}"
            _is_about(answer.json(), path, content.replace("needle", "pin\n"))
            await _is_there(session, path, content.replace("needle", "pin\n"))
        else:
            answer = await session.post("/fs/edit", path=path, old="needle", new="pin")
            expect_refused(answer, 409, 422)
            await _is_there(session, path, content)
    for path in _FILES:
        answer = await session.post("/fs/delete", path=path)
        assert answer.status == 200, f"expected {path!r} to be deleted, found {answer}"
        for operation, body in (("read", {}), ("edit", {"old": "a", "new": "b"}), ("delete", {})):
            gone = await session.post(f"/fs/{operation}", path=path, **body)
            expect_refused(gone, 404)
        expect_refused(await session.client.get(f"/assets/{quote(path)}"), 404)
    left = [path for path in await session.files() if path in _FILES]
    assert not left, f"files that were deleted are listed: {left}"
    for path in _FILES:
        await _is_there(other, path, f"the other's {path}")


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_003_what_code_leaves_is_kept_and_listed(worker):
    """Bytes that are no text are what they were beside an edit; of many files none is left out in silence."""
    session = new_session(worker)
    await _bytes_are_kept(session)
    await session.execute("mkdir many && cd many && touch $(seq 1 5100)")
    many = (await session.post("/fs/ls", path="many")).json()
    assert len(many["entries"]) == 5100 or many["truncated"], (
        f"of 5100 files {len(many['entries'])} are listed, as if there were no more"
    )


async def _bytes_are_kept(session: Session) -> None:
    """An edit changes the text that it names and no other byte; where it cannot, it is refused."""
    before = b"one \xff\xfe two \xc3 end\n"
    await session.execute(r"printf 'one \377\376 two \303 end\n' > mixed.bin")
    answer = await session.post("/fs/edit", path="mixed.bin", old="two", new="zwei")
    shown = await session.execute("od -An -v -tx1 mixed.bin")
    found = bytes.fromhex("".join(shown["stdout"].split()))
    if answer.status != 200:
        expect_refused(answer, 409, 415, 422)
    expected = before if answer.status != 200 else before.replace(b"two", b"zwei")
    assert expected == found, (
        f"an edit beside bytes that are no text: expected {expected!r}, found {found!r}"
    )


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
async def test_int_003_changes_at_once_are_all_there(worker):
    """Of several who change one file at once, everyone whose change was acknowledged finds it there.

    Who reads meanwhile reads one whole version of a file. Malformed changes are refused.
    """
    session = new_session(worker)
    lines = [f"line {number}: open\n" + "." * 4000 + "\n" for number in range(_WRITERS)]
    await session.write("shared.txt", "".join(lines))
    versions = [chr(ord("a") + number) * (70_000 + number) for number in range(_WRITERS)]
    await session.write("swapped.txt", versions[0])
    done = trio.Event()

    async def edit(number: int) -> None:
        answer = await session.post(
            "/fs/edit", path="shared.txt", old=f"line {number}: open", new=f"line {number}: done"
        )
        assert answer.status == 200, f"expected an edit of line {number}, found {answer}"

    async def read() -> None:
        while not done.is_set():
            answer = await session.read("swapped.txt")
            assert answer.status == 200, f"a file that is rewritten is not read: {answer.status}"
            content = answer.json()["content"]
            assert content in versions, f"half a version is read: {len(content)} characters"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        async with trio.open_nursery() as writing:
            for number in range(_WRITERS):
                writing.start_soon(edit, number)
                writing.start_soon(session.write, "swapped.txt", versions[number])
        done.set()
    answer = await session.read("shared.txt")
    lost = [n for n in range(_WRITERS) if f"line {n}: done" not in answer.json()["content"]]
    assert not lost, f"edits that were acknowledged are lost: of lines {lost}"
    for wrong in ({"path": "shared.txt"}, {"content": "x"}, {"path": "", "content": "x"}):
        expect_refused(await session.malformed("/fs/write", **wrong), 400, 422)


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
async def test_int_003_what_was_deleted_stays_away(worker):
    """A file that is deleted while it is edited is gone afterwards: whichever of the two came first.

    An edit that came too late is refused: 404.
    """
    session = new_session(worker)
    await _large_files(session)
    answers: dict[str, Response] = {}

    async def change(operation: str, path: str, **body: str) -> None:
        answers[operation] = await session.post(f"/fs/{operation}", path=path, **body)

    for number in range(_DELETED):
        path = f"{number}.txt"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(change, "edit", path, old="mark", new="done"))
            nursery.start_soon(change, "delete", path)
        deleted = answers["delete"]
        assert deleted.status == 200, f"expected {path} to be deleted, found {deleted}"
        if answers["edit"].status != 200:
            expect_refused(answers["edit"], 404)
        left = path in await session.files()
        assert not left, f"{path} was deleted, and an edit at the same time has brought it back"


async def _large_files(session: Session) -> None:
    """Files of the greatest of some sizes that the worker lets edit; how much that is, is its own affair.

    Raises:
        AssertionError: it is none of them.
    """
    for count in _MANY:
        written = f"open(f'{{n}}.txt', 'w').write('mark' + '{_WIDE}' * {count})"
        done = await session.execute(f'python3 -c "for n in range({_DELETED}): {written}"')
        assert 0 == done["exit_code"], f"expected large files to be made, found {done}"
        answer = await session.post("/fs/edit", path="0.txt", old="mark", new="mark")
        if answer.status == 200:
            return
        expect_refused(answer, 409, 413, 422)
    raise AssertionError(f"expected a file of {_MANY[-1]} letters to be edited, found {answer}")


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
async def test_int_003_code_changes_neither_record_nor_key(worker, api_key):
    """A session's code can read its record and cannot change it; it finds no key of the worker.

    Names that are no text do not keep its files from being listed; a path with NUL is refused.
    """
    session = new_session(worker)
    await session.write("kept.txt", "kept")
    await session.execute("true")
    before = await session.events()
    harm = (
        "echo '{}' >> events.jsonl; true > events.jsonl; rm -f events.jsonl; mv events.jsonl e.jsonl; "
        "ln -sf /tmp/elsewhere events.jsonl; chmod 777 events.jsonl; truncate -s 0 events.jsonl; "
        "python3 -c \"open('events.jsonl', 'r+b').truncate(0)\"; mkdir -p sub"
    )
    await session.execute(harm)
    after = await session.events()
    expect_same(
        before, after[: len(before)], what="the record, after the session's code changed it"
    )
    for path in ("events.jsonl", "./events.jsonl", "sub/../events.jsonl"):
        for operation, body in (("write", {"content": "x"}), ("delete", {})):
            answer = await session.post(f"/fs/{operation}", path=path, **body)
            expect_refused(answer, 403, 409, 422)
    # The record goes with the folder that holds it.
    for path in (".", "./", "sub/..", "./."):
        for operation, body in (("write", {"content": "x"}), ("delete", {})):
            answer = await session.post(f"/fs/{operation}", path=path, **body)
            expect_refused(answer, 400, 403, 409, 422)
    await _is_there(session, "kept.txt", "kept")
    kept = await session.events()
    expect_same(after, kept[: len(after)], what="the record, after its folder was to be deleted")
    looked = await session.execute(
        "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
        "cat /proc/1/environ /proc/$PPID/environ 2>&1 | tr '\\0' '\\n'"
    )
    assert api_key not in looked["stdout"] + looked["stderr"], "the code finds the worker's key"
    # Looked at, not tried: a worker that fails this test must harm nothing.
    for forbidden in ("-w /usr/bin", "-w /etc/passwd", "-r /etc/shadow", "-w /proc/sys"):
        done = await session.execute(f"[ {forbidden} ]")
        assert 0 != done["exit_code"], f"the code finds [ {forbidden} ]: {done}"
    strange = await session.execute("touch \"$(printf 'a\\377b')\" 'new\nline' 'tab\t'; ls | wc -l")
    assert 0 == strange["exit_code"], f"expected strange names to be made, found {strange}"
    names = await session.files()
    assert {"kept.txt", "new\nline", "tab\t"} <= names, f"a strange name hides others: {names}"
    for path in ("kept.txt\0", "\0", "a\0/../kept.txt"):
        expect_refused(await session.read(path), 400, 403, 404, 422)


async def _is_there(session: Session, path: str, content: str) -> None:
    """By reading and as an asset: the same bytes, with their size and digest."""
    answer = await session.read(path)
    assert answer.status == 200, f"expected {path!r} to be read, found {answer}"
    found = answer.json()
    same = found["content"] == content
    assert same, f"{path!r}: expected {len(content)} characters, found others: {answer}"
    _is_about(found, path, content)
    asset = await session.client.get(f"/assets/{quote(path)}")
    assert asset.status == 200, f"expected {path!r} as an asset, found {asset}"
    assert asset.body == content.encode(), f"{path!r} as an asset has other bytes: {asset}"


def _is_about(found: dict[str, Any], path: str, content: str) -> None:
    data = content.encode()
    told = {
        "path": path,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    expect_same(told, {key: found[key] for key in told}, what=f"what is answered of {path!r}")


async def _is_listed(session: Session) -> None:
    """Every file once, with its kind and size; not recursively, the first level alone."""
    for recursive in (True, False):
        answer = await session.post("/fs/ls", path=".", recursive=recursive)
        assert answer.status == 200, f"expected a listing, found {answer}"
        entries = {entry["path"]: entry for entry in answer.json()["entries"]}
        wanted = {path for path in _FILES if recursive or "/" not in path}
        folders = (
            {"deep", "deep/er", "deep/er/und", "deep/er/und/tiefer"} if recursive else {"deep"}
        )
        assert len(entries) == len(answer.json()["entries"]), f"something is listed twice: {answer}"
        found = {path for path in entries if path != "events.jsonl"}
        expect_same(
            sorted(wanted | folders), sorted(found), what=f"the files, recursive is {recursive}"
        )
        for path in wanted:
            size = len(_FILES[path].encode())
            told = {"kind": "file", "size_bytes": size}
            expect_same(told, {key: entries[path][key] for key in told}, what=f"entry of {path!r}")
        for path in folders:
            assert "directory" == entries[path]["kind"], f"expected a folder, found {entries[path]}"
    expect_refused(await session.post("/fs/ls", path="line.txt"), 404, 409, 422)
    expect_refused(await session.read("deep"), 404, 409, 422)


async def _is_found(session: Session) -> None:
    """Each line that matches, in each file of text, with its number and as it is."""
    answer = await session.post("/fs/grep", path=".", pattern="needle")
    assert answer.status == 200, f"expected the lines with needle, found {answer}"
    found = sorted(
        (match["path"], match["line"], match["text"]) for match in answer.json()["matches"]
    )
    wanted = sorted(
        (path, number, line)
        for path, content in _FILES.items()
        for number, line in enumerate(content.split("\n"), start=1)
        if "needle" in line
    )
    expect_same(wanted, found, what="lines with needle")
    assert answer.json()["truncated"] is False, f"all of it is found, and said to be cut: {answer}"
    within = await session.post("/fs/grep", path="deep/er", pattern="^Nadel.*needle")
    paths = [match["path"] for match in within.json()["matches"]]
    deep = [path for path in _FILES if path.startswith("deep/er/")]
    expect_same(deep, paths, what="files below deep/er with needle")
    await session.write("many.txt", "pin\n" * 700)
    many = (await session.post("/fs/grep", path="many.txt", pattern="pin")).json()
    numbers = [match["line"] for match in many["matches"]]
    consecutive(numbers, what="lines of 700 that match")
    cut = len(numbers) < 700
    assert cut == many["truncated"], f"of 700 matches {len(numbers)}, truncated {many['truncated']}"
    await session.post("/fs/delete", path="many.txt")
    nothing = await session.post("/fs/grep", path=".", pattern="no such text at all")
    assert nothing.status == 200, f"expected no match to be no error, found {nothing}"
    assert [] == nothing.json()["matches"], f"matches of what is nowhere: {nothing}"
    expect_refused(await session.post("/fs/grep", path=".", pattern="("), 400, 409, 422)
    expect_refused(await session.post("/fs/grep", path="no/such", pattern="x"), 404)


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_003_what_was_acknowledged_outlives_the_worker(breakable):
    """Killed in the middle of its work, twice, the worker has every file and event it acknowledged.

    Numbers go on without a gap; the command that ran is gone, and the next one runs.
    """
    session = breakable.session(f"session-{secrets.token_hex(8)}")
    acknowledged: dict[str, str] = {}
    events: list[dict[str, Any]] = []
    for life in range(3):
        if life:
            for path, content in acknowledged.items():
                await _is_there(session, path, content)
            found = await session.events()
            expect_same(events, found[: len(events)], what=f"events of the life before {life}")
            consecutive((each["seq"] for each in found), what=f"seq of the events in life {life}")
        for path, content in _FILES.items():
            where = f"{life}/{path}"
            await session.write(where, f"{life}{content}")
            acknowledged[where] = f"{life}{content}"
        done = await session.execute(f"echo {life} >> said.txt; cat said.txt")
        said = "".join(f"{number}\n" for number in range(life + 1))
        assert said == done["stdout"], f"expected what every life has said, found {done}"
        if life < 2:
            events = await _killed_at_work(breakable, session, life)


@pytest.mark.covers("INT-003")
@pytest.mark.integration_p0
@pytest.mark.slow
@pytest.mark.not_in_containers("tears a line of a record, which is in a volume")
async def test_int_003_a_torn_line_costs_none_beside_it(breakable):
    """A line of the record that was begun when its worker was killed, and never ended, cuts nothing that follows."""
    session = breakable.session(f"session-{secrets.token_hex(8)}")
    await session.write("before.txt", "there")
    record = record_file(breakable.stack["worker"], session.id)
    before = await session.events()
    async with breakable.stack.outage("worker", "kill"):
        left_in_the_middle(record)
    paths = ["before.txt", *(f"after-{number}.txt" for number in range(2))]
    for path in paths[1:]:
        await session.write(path, path)
    after = await session.events()
    expect_same(before, after[: len(before)], what="events before a line that was torn")
    consecutive((each["seq"] for each in after), what="seq of the events around a torn line")
    written = [
        each["payload"]["arguments"]["path"]
        for each in calls(after, "tool_call")
        if each["payload"]["tool"] == "fs_write"
    ]
    expect_same(paths, written, what="what was written before a line was torn, and after it")


async def _killed_at_work(breakable: Episodes, session: Session, life: int) -> list[dict[str, Any]]:
    """Kill the worker under a command of the session; the events that were there before."""
    mark = f"6{secrets.randbelow(10**9):09}"
    begun = f"begun-{life}"

    async def run() -> None:
        with pytest.raises(Unanswered):
            await session.execute(f"touch {begun}; sleep {mark}; touch ended", timeout_s=COMMAND_S)

    async def runs() -> bool:
        return begun in await session.files()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await eventually(runs, seconds=SOON_S, expected="the command to run")
        events = await session.events()
        async with breakable.stack.outage("worker", "kill"):
            left = [line for line in breakable.stack.outlived("worker") if mark in line]
    assert not left, f"the command of a killed worker runs on: {left}"
    assert "ended" not in await session.files(), "the command of a killed worker came to its end"
    return events
