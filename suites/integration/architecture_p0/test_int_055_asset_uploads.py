"""An uploaded asset is what its row says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import pytest

from harness_core.doubles.turns import use
from harness_core.infrastructure.services import S3Summary
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused

#: Names of files, of which each differs from its neighbours where a path, a URL or a key could be cut,
#: split, decoded or folded, and how many bytes each has: around what is read or sent at once.
_SIZES: Final[Mapping[str, int]] = {
    "empty": 0,
    "one.bin": 1,
    "a": 65_535,
    "a.txt": 65_536,
    "A.TXT": 65_537,
    "deep/er/noise.bin": 1_048_577,
    "deep/er/er/noise.bin": 17,
    "with space & plus+.md": 257,
    "query?x=1.txt": 258,
    "hash#1.txt": 259,
    "per%20cent%2F.txt": 260,
    "Prüfung/日本語/😀.stl": 261,
    "semi;colon:at@.obj": 262,
    "-rf": 263,
    "events.jsonl": 264,
    ".config/.hidden.json": 265,
    "large.bin": 9_000_000,
}

#: Makes a file of so many bytes that nobody else has: a hash of the token and the name, repeated.
_MAKE: Final = (
    "import hashlib,os,sys\n"
    "for name, size in {sizes!r}.items():\n"
    "    path = os.path.join('assets', name)\n"
    "    os.makedirs(os.path.dirname(path), exist_ok=True)\n"
    "    seed = hashlib.sha512(('{token}' + name).encode()).digest()\n"
    "    open(path, 'wb').write((seed * (size // 64 + 1))[:size])\n"
)


@pytest.mark.covers("INT-055")
@pytest.mark.integration_p0
async def test_int_055_an_asset_is_what_its_row_says(episodes: Episodes) -> None:
    """The object in the row's bucket under its key has the row's bytes, size and etag.

    So it is for any name and size, for two episodes that keep files of the same names at the same
    time, and for a file that was written twice. An asset that was never uploaded has no row, and is a
    404. The model provider is a stand-in: the gateway does the turns.
    """
    before = set(await episodes.stack.objects())
    tokens = {name: new_token() for name in ("many", "same", "bare")}
    text = {name: f"a report of {token}\nmit Umlauten: äöü\n" for name, token in tokens.items()}
    await episodes.rehearse(
        tokens["many"],
        use("fs_write", path="make.py", content=_made_by(tokens["many"])),
        use(
            "fs_write",
            path="assets/report.md",
            content="the first draft, longer than the second" * 9,
        ),
        use("fs_write", path="not-an-asset.md", content=text["many"]),
        use("execute", command="python3 make.py"),
        use("fs_write", path="assets/report.md", content=text["many"]),
    )
    await episodes.rehearse(
        tokens["same"],
        use("fs_write", path="assets/report.md", content=text["same"]),
        use("fs_write", path="assets/a", content=text["same"]),
    )
    await episodes.rehearse(tokens["bare"], use("fs_write", path="a.txt", content="x"))
    accepted = {name: await episodes.submit(token) for name, token in tokens.items()}
    ended = {
        name: await episodes.until(each["episode_id"], "completed")
        for name, each in accepted.items()
    }
    contents = {
        "many": {name: _bytes_of(tokens["many"], name) for name in _SIZES},
        "same": {"a": text["same"].encode()},
        "bare": {},
    }
    for name in ("many", "same"):
        contents[name]["report.md"] = text[name].encode()
    kept = []
    for name, episode in ended.items():
        kept += await _are_kept(episodes, episode, contents[name])
    _belong(set(await episodes.stack.objects()) - before, kept)

    for episode_id, path in (
        (ended["many"]["episode_id"], "never.md"),
        (ended["many"]["episode_id"], "not-an-asset.md"),
        (ended["many"]["episode_id"], "repor"),
        (ended["many"]["episode_id"], "REPORT.MD"),
        (ended["many"]["episode_id"], "deep/er"),
        (ended["many"]["episode_id"], "../report.md"),
        (ended["same"]["episode_id"], "a.txt"),
        (ended["bare"]["episode_id"], "report.md"),
        ("no-such-episode", "report.md"),
    ):
        expect_refused(await episodes.controller.get(f"/episodes/{episode_id}/assets/{path}"), 404)


def _made_by(token: str) -> str:
    return _MAKE.format(sizes=dict(_SIZES), token=token)


def _bytes_of(token: str, name: str) -> bytes:
    seed = hashlib.sha512(f"{token}{name}".encode()).digest()
    return (seed * (_SIZES[name] // 64 + 1))[: _SIZES[name]]


async def _are_kept(
    episodes: Episodes, episode: dict[str, Any], contents: Mapping[str, bytes]
) -> list[dict[str, Any]]:
    """The episode has these files and no other, by every route; its rows."""
    identity = episode["episode_id"]
    answer = await episodes.controller.get(f"/episodes/{identity}/assets")

    assert 200 == answer.status, f"expected the assets of an episode, found {answer}"
    assert identity == answer.json()["episode_id"], f"expected those of {identity}, found {answer}"
    listed = answer.json()["assets"]
    rows = {row["path"]: row for row in listed}
    expect_same(sorted(contents), sorted(rows), what="paths of the files below assets/")
    assert len(listed) == len(rows), f"an asset is listed twice: {listed}"
    expect_same(
        rows, {row["path"]: row for row in episode["assets"]}, what="assets beside the episode's"
    )
    events = calls(await episodes.events(identity), "asset_uploaded")
    recorded = {event["payload"]["path"]: event for event in events}
    assert len(events) == len(rows), f"expected {len(rows)} uploads on record, found {len(events)}"
    for path, content in contents.items():
        await _is_kept(episodes, episode, rows[path], content, recorded[path])
    return listed


async def _is_kept(
    episodes: Episodes,
    episode: dict[str, Any],
    row: dict[str, Any],
    content: bytes,
    event: dict[str, Any],
) -> None:
    path, identity = row["path"], episode["episode_id"]
    found = await episodes.stored(row)
    got = await episodes.controller.get(f"/episodes/{identity}/assets/{quote(path)}")
    digest = hashlib.sha256(content).hexdigest()

    assert "uploaded" == row["status"], f"{path}: expected it uploaded, found {row}"
    assert content == found.body, (
        f"{path}: other bytes in the object store: expected {len(content)} with sha256 {digest}, "
        f"found {len(found.body)}"
    )
    assert found.etag == row["etag"], f"{path}: the row has another object's etag: {row}"
    told = {"size_bytes": len(content), "sha256": digest, "attempts": 1, "error": None}
    expect_same(told, {key: row[key] for key in told}, what=f"the row of {path}")
    assert 200 == got.status, f"{path}: expected its bytes from the controller, found {got}"
    assert content == got.body, f"{path}: other bytes from the controller: {len(got.body)}"
    assert str(len(content)) == got.header("content-length"), f"{path}: length {got.headers}"
    assert "json" not in got.content_type, f"{path}: bytes are no JSON: {got.headers}"
    same = ("bucket", "key", "etag", "version_id", "size_bytes", "sha256")
    expect_same(
        {key: row[key] for key in same},
        {key: event["payload"][key] for key in same},
        what=f"the row of {path} beside its event",
    )
    ids = {key: episode[key] for key in ("episode_id", "trace_id")}
    expect_same(ids, {key: event[key] for key in ids}, what=f"ids of the upload of {path}")
    named = f"{row['key']} {dict(found.metadata)} {dict(found.tags)}"
    lacking = [value for value in ids.values() if value not in named]
    assert not lacking, f"{path}: expected its object to name {lacking}, found {named}"
    made = utc(row["created_at"], what=f"created_at of {path}")
    steps = [utc(step["at"], what="a step") for step in episode["transitions"]]
    assert steps[1] <= made <= steps[-1], f"{path}: kept at {made}, while it ran {steps}"


def _belong(objects: set[S3Summary], rows: list[dict[str, Any]]) -> None:
    """What is new in the bucket is what the rows say, each object of one row."""
    keys = sorted(row["key"] for row in rows)

    assert len(keys) == len(set(keys)), f"two assets have one object: {keys}"
    expect_same(keys, sorted(each.key for each in objects), what="keys of new objects")
