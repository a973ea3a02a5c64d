"""A backup is the database and its objects as of one moment, or it says that it is none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import pytest
from workbench_contract.backups import Backup, BackupList, BackupRefused, Kept, Manifest

from harness_core.base.errors import HarnessError
from harness_core.doubles.turns import fail, use
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import S3Object
from harness_core.system.subject import Subject
from suites.integration.backups import Backups, expect_one_moment, rows_of
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.patience import SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.stack import layout_of

pytestmark = [
    pytest.mark.covers("INT-057"),
    pytest.mark.integration_p1,
    pytest.mark.copies_the_store,
]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"

#: More than an object store takes in one part of an upload.
_LARGE: Final = 9_000_000


async def test_int_057_it_restores_to_what_was_there(breakable: Episodes) -> None:
    """Restored, a database has every row of its source, and the copies are the objects, byte for byte.

    So it is of the second backup too, which has what came since the first and none of the first. The
    model provider is a stand-in: the gateway does the turns.
    """
    backups = Backups(breakable)
    await _kept(breakable, "the first", large=True)
    await _failed(breakable)
    for name in ("the second", "third: Ångström, 日本語"):
        before, sources = await rows_of(_database(breakable)), await _sources(breakable)
        backup = await backups.take()
        after = await rows_of(_database(breakable))
        async with backups.restored(backup) as restored:
            expect_one_moment(before, await rows_of(restored), after, but=backup.backup_id)
        copies = await backups.copies(backup)
        expect_same(sorted(sources), sorted(copies), what="keys of objects beside their copies")
        for key, source in sources.items():
            expect_same(_told(source), _told(copies[key]), what=f"{key} beside its copy")
        await _is_on_record(breakable, backups, backup, len(sources))
        await _kept(breakable, name)


async def test_int_057_one_moment_while_episodes_run(breakable: Episodes) -> None:
    """What ends while a backup is taken is in it whole, or not at all: rows, events, objects.

    The model provider is a stand-in: the gateway does the turns.
    """
    backups = Backups(breakable)
    await _kept(breakable, "before it")
    async with backups.held() as table:
        begun = await backups.begin()
        await backups.until_dumping(table)
        late = await _kept(breakable, "after it began")
    held = await backups.until(begun.backup_id)
    tokens = [new_token() for _ in range(4)]
    for number, token in enumerate(tokens):
        await breakable.rehearse(
            token,
            *(
                use("fs_write", path=f"assets/{n}.txt", content=f"{number} {n} {token}")
                for n in range(3)
            ),
        )
    running = [await breakable.submit(token) for token in tokens]
    among = await backups.take()
    for each in running:
        await breakable.until(each["episode_id"], "completed")
    for backup in (held, among):
        async with backups.restored(backup) as restored:
            await _is_whole(restored, backup, await backups.copies(backup))
    async with backups.restored(held) as restored:
        rows = await restored.rows(
            "select status from episodes where episode_id = %s", (late["episode_id"],)
        )
    assert [] == rows, f"what began after the moment of a backup is not in it: found {rows}"


async def test_int_057_one_that_fails_is_on_record_and_leaves_nothing(breakable: Episodes) -> None:
    """Without its store, or with an object of other bytes, a backup fails, says so, and nothing stays.

    An object that the store had lost before is named. Without Temporal none begins. Afterwards backups
    are taken as before. The model provider is a stand-in: the gateway does the turns.
    """
    backups, stack = Backups(breakable), breakable.stack
    kept = await _kept(breakable, "whole")
    lost = await _kept(breakable, "lost")
    async with backups.held() as table:
        begun = await backups.begin()
        await backups.until_dumping(table)
        await stack.kill("minio")
    failed = await backups.until(begun.backup_id, "failed")
    await stack.mend()
    await stack.healthy()
    await _is_nothing(backups, failed)

    row = kept["assets"][0]
    change = "update assets set sha256 = %s where key = %s"
    await stack.rows(change, (hashlib.sha256(b"others").hexdigest(), row["key"]))
    try:
        torn = await backups.until((await backups.begin()).backup_id, "failed")
    finally:
        await stack.rows(change, (row["sha256"], row["key"]))
    assert row["key"] in str(torn.reason), f"the reason names {row['key']}: found {torn.reason!r}"
    await _is_nothing(backups, torn)

    await stack.remove_object(lost["assets"][0]["key"], bucket=lost["assets"][0]["bucket"])
    backup = await backups.take()
    missing = [lost["assets"][0]["key"]]
    expect_same(missing, [key for key in backup.missing if key in missing], what="lost objects")
    assert not set(missing) & set(await backups.copies(backup)), "a lost object has a copy"
    await _no_temporal(breakable, backups)
    await backups.take()


async def test_int_057_it_outlives_whoever_takes_it(breakable: Episodes) -> None:
    """Killed in the middle of one, controller and controller-worker go on with it: taken once, whole.

    Meanwhile another is refused. The model provider is a stand-in: the gateway does the turns.
    """
    backups, stack = Backups(breakable), breakable.stack
    await _kept(breakable, "it")
    async with backups.held() as table:
        begun = await backups.begin()
        await backups.until_dumping(table)
        expect_refused(await backups.ask(), 409)
        async with stack.outage("controller", "kill"):
            pass
        async with stack.outage("controller-worker", "kill"):
            pass
        assert "running" == (await backups.get(begun.backup_id)).status, (
            "it runs on while it is held"
        )
        expect_refused(await backups.ask(), 409)
    backup = await backups.until(begun.backup_id)
    sources = await _sources(breakable)
    await _is_on_record(breakable, backups, backup, len(sources))
    async with backups.restored(backup) as restored:
        await _is_whole(restored, backup, await backups.copies(backup))


async def test_int_057_the_latest_are_kept(breakable: Episodes, subject: Subject) -> None:
    """As many as are configured keep their objects; of older ones the record stays, and says since when.

    One that failed is none of them, and no other object goes. Records are shown to nobody without the
    key. The model provider is a stand-in: the gateway does the turns.
    """
    backups, stack = Backups(breakable), breakable.stack
    await _kept(breakable, "it")
    sources = await _sources(breakable)
    name = layout_of(subject).backups_kept
    kept = int(stack["controller-worker"].environment[name])
    taken = [await backups.take() for _ in range(kept)]
    async with stack.outage("minio", "kill"):
        await backups.until((await backups.begin()).backup_id, "failed")
    for _ in range(2):
        taken.append(await backups.take())

        async def expired() -> bool:
            found = [await backups.get(each.backup_id) for each in taken]
            return all(each.expired_at for each in found[:-kept])

        await eventually(expired, seconds=SOON_S, expected=f"all but the latest {kept} to expire")
        found = [await backups.get(each.backup_id) for each in taken]
        there = [bool(await backups.keys(each)) for each in found]
        expected = [False] * (len(taken) - kept) + [True] * kept
        expect_same(expected, there, what="whether a backup, oldest first, has its objects")
        assert not any(each.expired_at for each in found[-kept:]), f"the latest stay: found {found}"
        sizes = [each.size_bytes for each in found]
        expect_same(expected, [size > 0 for size in sizes], what=f"sizes on record, {sizes}")
    expect_same(sorted(sources), sorted(await _sources(breakable)), what="objects of episodes")
    answer = await breakable.controller.get("/ops/backups", params={"limit": len(taken) + 1})
    listed = BackupList.model_validate_json(answer.body)
    latest = [each.backup_id for each in reversed(taken)]
    told = [each.backup_id for each in listed.backups if each.status == "completed"]
    expect_same(latest, told, what="records of those that succeeded, latest first")
    bare = breakable.controller.having(x_api_key=None)
    for answer in (
        await bare.post("/ops/backup"),
        await bare.get("/ops/backups"),
        await bare.get(f"/ops/backups/{latest[0]}"),
    ):
        expect_refused(answer, 401)
    expect_refused(await breakable.controller.get(f"/ops/backups/{_UNKNOWN}"), 404)


async def _kept(episodes: Episodes, name: str, *, large: bool = False) -> dict[str, Any]:
    """An episode that has ended, with assets that no other has."""
    token = new_token()
    make = (
        f"open('assets/noise.bin', 'wb').write(bytes(range(251)) * {_LARGE // 251 if large else 7})"
    )
    return await episodes.run(
        token,
        use("fs_write", path="assets/report.md", content=f"{name} of {token}\n"),
        use("fs_write", path="make.py", content=f"{make}\nopen('assets/äöü {name[-1]}', 'w')\n"),
        use("execute", command="python3 make.py"),
    )


async def _failed(episodes: Episodes) -> None:
    """An episode that has failed is a row like others."""
    token = new_token()
    await episodes.rehearse(token, fail(400))
    accepted = await episodes.submit(token)
    await episodes.until(accepted["episode_id"], "failed")


def _database(episodes: Episodes) -> Database:
    found = episodes.stack.database
    if found is None:
        raise HarnessError("look at rows", observed="the stack has no database")
    return found


async def _sources(episodes: Episodes) -> dict[str, S3Object]:
    """Every object that a row names, by its key."""
    rows = await episodes.stack.rows("select bucket, key from assets where status = 'uploaded'")
    found = await episodes.stack.objects()
    there = {each.key for each in found}
    return {
        row["key"]: await episodes.stack.object(row["key"], bucket=row["bucket"])
        for row in rows
        if row["key"] in there
    }


def _told(found: S3Object) -> Mapping[str, Any]:
    return {
        "size": len(found.body),
        "sha256": hashlib.sha256(found.body).hexdigest(),
        "type": found.content_type,
        "metadata": dict(found.metadata),
    }


async def _is_on_record(episodes: Episodes, backups: Backups, backup: Backup, objects: int) -> None:
    """The record is what the store has, once; its event says the same."""
    found = await backups.objects(backup)
    assert objects == backup.objects, f"expected {objects} copies on record, found {backup.objects}"
    assert objects + 2 == len(found), (
        f"expected a dump, a manifest and {objects} copies, found {sorted(found)}"
    )
    assert backup.database is not None, f"the dump is on record: found {backup}"
    assert backup.manifest is not None, f"the manifest is on record: found {backup}"
    stored = {each.key: each.body for each in found.values()}
    for each in (backup.database, backup.manifest):
        _is_as_told(each, stored)
    manifest = Manifest.model_validate_json(stored[backup.manifest.key])
    expect_same(backup.database, manifest.database, what="the dump, as record and manifest have it")
    for copy in manifest.objects:
        _is_as_told(copy, stored)
    sources = {copy.source_key: copy.key for copy in manifest.objects}
    copies = {source: each.key for source, each in (await backups.copies(backup)).items()}
    expect_same(copies, sources, what="what each copy is a copy of, as the manifest has it")
    size = sum(len(body) for body in stored.values())
    assert size == backup.size_bytes, f"expected {size} bytes on record, found {backup.size_bytes}"
    assert backup.ended_at is not None, f"when it ended is on record: found {backup}"
    lasted_s = (backup.ended_at - backup.created_at).total_seconds()
    assert backup.duration_s == pytest.approx(lasted_s, abs=0.001), (
        f"expected a duration of {lasted_s} s, found {backup.duration_s}"
    )
    assert backup.created_at <= manifest.taken_at <= backup.ended_at, (
        f"its moment is between {backup.created_at} and {backup.ended_at}: found {manifest.taken_at}"
    )
    events = await episodes.stack.rows(
        "select payload from events where kind = 'backup' and payload ->> 'backup_id' = %s",
        (backup.backup_id,),
    )
    assert 1 == len(events), f"expected one event of a backup, found {events}"
    told = Backup.model_validate(events[0]["payload"])
    expect_same((backup.status, backup.database), (told.status, told.database), what="its event")


def _is_as_told(kept: Kept, stored: Mapping[str, bytes]) -> None:
    assert kept.key in stored, f"expected an object {kept.key}, found {sorted(stored)}"
    body = stored[kept.key]
    found = (len(body), hashlib.sha256(body).hexdigest())
    expect_same((kept.size_bytes, kept.sha256), found, what=f"size and hash of {kept.key}")


async def _is_whole(database: Database, backup: Backup, copies: Mapping[str, S3Object]) -> None:
    """Rows agree with each other and with the copies: nothing is torn."""
    assets = await database.rows("select key, sha256 from assets where status = 'uploaded'")
    told = {row["key"]: row["sha256"] for row in assets if row["key"] not in backup.missing}
    found = {key: hashlib.sha256(each.body).hexdigest() for key, each in copies.items()}
    expect_same(told, found, what="hashes of rows beside those of copies")
    torn = await database.rows(
        "select e.episode_id, e.status, t.to_status from episodes e join lateral"
        " (select to_status from episode_transitions t where t.episode_id = e.episode_id"
        " order by ordinal desc limit 1) t on true where e.status <> t.to_status"
    )
    assert not torn, f"a status is that of the last transition: found {torn}"
    gaps = await database.rows(
        "select session_id, source, count(*), max(seq) from events"
        " group by session_id, source having count(*) <> max(seq)"
    )
    assert not gaps, f"events are numbered without gaps: found {gaps}"
    alone = await database.rows(
        "select a.key from assets a where status = 'uploaded' and not exists (select from events e"
        " where e.kind = 'asset_uploaded' and e.payload ->> 'key' = a.key)"
    )
    assert not alone, f"an uploaded asset has its event: found {alone}"


async def _is_nothing(backups: Backups, failed: Backup) -> None:
    """One that failed has a reason and an end, and soon no object."""
    assert failed.reason, f"a failed backup has a reason: found {failed}"
    assert failed.ended_at is not None, f"a failed backup has an end: found {failed}"
    nothing = (failed.database, failed.manifest, failed.objects, failed.size_bytes)
    expect_same((None, None, 0, 0), nothing, what="what a failed backup has")
    left: list[str] = []

    async def gone() -> bool:
        left[:] = await backups.keys(failed)
        return not left

    await eventually(
        gone, seconds=SOON_S, expected="no object of a failed backup", seen=lambda: left
    )


async def _no_temporal(episodes: Episodes, backups: Backups) -> None:
    """Refused, and on record as failed."""
    async with episodes.stack.outage("temporal", "kill"):
        answer = await backups.ask()
        expect_refused(answer, 503)
        refused = BackupRefused.model_validate_json(answer.body)
        assert "failed" == refused.status, f"expected a failed backup, found {answer}"
        await _is_nothing(backups, await backups.get(refused.backup_id))
