"""An upload that fails is retried as configured, and recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from harness_core.doubles.turns import use
from harness_core.infrastructure.services import parse_s3_url, remove_bucket
from suites.integration.comparing import expect_same, in_order, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import EPISODE_S
from suites.integration.refusals import expect_refused

#: A policy of retries has an end, and begins with one.
_MOST_ATTEMPTS: Final = 20


@pytest.mark.covers("INT-056")
@pytest.mark.integration_p0
async def test_int_056_uploads_are_retried_and_then_fail(breakable: Episodes) -> None:
    """A short outage of the object store ends in a stored object, a long one in a failed episode.

    Every attempt that failed is an event; no row claims an object that is not there. What was stored
    before is not given out while the store is away, and is afterwards. A store that comes back without
    its bucket is filled again. The model provider is a stand-in: the gateway does the turns.
    """
    began = datetime.now(UTC)
    before = {each.key for each in await breakable.stack.objects()}
    tokens = {name: new_token() for name in ("earlier", "short", "long", "afterwards", "empty")}
    for name, token in tokens.items():
        report = use("fs_write", path="assets/report.md", content=f"{name} of {token}")
        await breakable.rehearse(token, report)

    earlier = await breakable.run_submitted(tokens["earlier"])
    async with breakable.stack.outage("minio", "kill"):
        retried = await breakable.submit(tokens["short"])
        await breakable.until_event(
            retried["episode_id"], "upload_failed", seconds=EPISODE_S, before_end=True
        )
        expect_refused(await _report_of(breakable, earlier), 502, 503, 504)
    kept = await breakable.until(retried["episode_id"], "completed")
    async with breakable.stack.outage("minio", "kill"):
        given_up = await breakable.submit(tokens["long"])
        lost = await breakable.until(given_up["episode_id"], "failed", seconds=EPISODE_S)
    new = await breakable.run_submitted(tokens["afterwards"])

    await _was_kept_after_retries(breakable, kept, f"short of {tokens['short']}".encode(), began)
    await _was_lost(breakable, lost, began)
    for name, episode in (("earlier", earlier), ("afterwards", new)):
        statuses = [(asset["status"], asset["attempts"]) for asset in episode["assets"]]
        expect_same([("uploaded", 1)], statuses, what=f"uploads of the {name} one, without trouble")
        got = await _report_of(breakable, episode)
        assert f"{name} of {tokens[name]}" == got.text, f"the {name} report, once it is back: {got}"
    stored = {each.key for each in await breakable.stack.objects()} - before
    rows = {asset["key"] for episode in (earlier, kept, new) for asset in episode["assets"]}
    expect_same(sorted(rows), sorted(stored), what="keys of rows beside those of new objects")
    url = parse_s3_url(breakable.stack.access.s3_url, where=breakable.stack.title)
    await remove_bucket(url, kept["assets"][0]["bucket"])
    healed = await breakable.run_submitted(tokens["empty"])
    again = await breakable.stored(healed["assets"][0])
    expect_same(
        f"empty of {tokens['empty']}".encode(),
        again.body,
        what="a report in a store that was empty",
    )


@pytest.mark.covers("INT-056")
@pytest.mark.integration_p0
async def test_int_056_what_the_worker_does_not_give_is_on_record(breakable: Episodes) -> None:
    """A file below assets/ that cannot be read is a failed upload like any other: event, row, reason.

    So it is for what is no file, for a name that is no text, and for a worker that is away between
    two attempts. What can be kept beside it may be. The model provider is a stand-in: the gateway does
    the turns.
    """
    unread = {
        "pipe": ("mkfifo assets/pipe.bin", "pipe.bin"),
        "name": ("touch assets/$(printf 'na\\377me.bin')", "me.bin"),
    }
    tokens = {name: new_token() for name in (*unread, "away")}
    report = use("fs_write", path="assets/report.md", content="a report")
    for name, (command, _) in unread.items():
        await breakable.rehearse(tokens[name], report, use("execute", command=command))
    await breakable.rehearse(tokens["away"], report)
    accepted = {name: await breakable.submit(tokens[name]) for name in unread}
    for name, (_, path) in unread.items():
        episode = await breakable.until(
            accepted[name]["episode_id"], "failed", "completed", seconds=EPISODE_S
        )
        kept = [row for row in episode["assets"] if row["status"] == "uploaded"]
        if episode["status"] == "failed":
            await _is_failure_of(breakable, episode, path)
        else:
            # A product that keeps it, or knows that it is no file, has nothing to record.
            expected = 1 if name == "pipe" else 2
            assert expected == len(kept), f"{name}: completed, and kept {kept}"
    async with breakable.stack.outage("minio", "kill"):
        away = await breakable.submit(tokens["away"])
        await breakable.until_event(
            away["episode_id"], "upload_failed", seconds=EPISODE_S, before_end=True
        )
        async with breakable.stack.outage("worker", "kill"):
            lost = await breakable.until(away["episode_id"], "failed", seconds=EPISODE_S)
    failed = await _is_failure_of(breakable, lost, "report.md")
    assert 2 <= failed <= _MOST_ATTEMPTS, f"{failed} attempts are no policy of retries"


async def _is_failure_of(episodes: Episodes, episode: dict[str, Any], path: str) -> int:
    """An episode that failed for one asset names it in its reason, its row and each attempt's event.

    Returns:
        how many attempts are recorded.
    """
    events = calls(await episodes.events(episode["episode_id"]), "upload_failed")
    of_it = [event for event in events if event["payload"]["path"].endswith(path)]
    rows = [row for row in episode["assets"] if row["path"].endswith(path)]

    assert path in episode["reason"], f"expected {path} in the reason, found {episode['reason']!r}"
    assert of_it, f"expected an event upload_failed of {path}, found {events}: {episode['reason']}"
    assert ["failed"] == [row["status"] for row in rows], (
        f"expected a row of {path} that is failed, found {episode['assets']}"
    )
    attempts = rows[0]["attempts"]
    assert len(of_it) == attempts, f"{attempts} attempts of {path}, {len(of_it)} are recorded"
    assert rows[0]["error"], f"the row of {path} does not say why: {rows[0]}"
    silent = [event for event in of_it if not event["payload"]["error"]]
    assert not silent, f"failed attempts that do not say why: {silent}"
    return attempts


async def _report_of(episodes: Episodes, episode: dict[str, Any]) -> Any:
    path = f"/episodes/{episode['episode_id']}/assets/report.md"
    return await episodes.controller.get(path)


async def _was_kept_after_retries(
    episodes: Episodes, episode: dict[str, Any], content: bytes, began: datetime
) -> None:
    events = await episodes.events(episode["episode_id"])
    failed, uploaded = calls(events, "upload_failed"), calls(events, "asset_uploaded")
    rows = episode["assets"]

    expect_same(["uploaded"], [row["status"] for row in rows], what="assets after retries")
    assert 1 == len(uploaded), f"expected one upload on record, found {uploaded}"
    assert len(failed) >= 1, f"expected failed attempts on record, found none: {events}"
    attempts = rows[0]["attempts"]
    assert len(failed) + 1 == attempts, f"{attempts} attempts, of which {len(failed)} are recorded"
    assert rows[0]["error"] is None, f"an asset that is kept has an error: {rows[0]}"
    _are_attempts(episode, [*failed, *uploaded], began)
    found = await episodes.stored(rows[0])
    assert content == found.body, f"expected {content!r} in the store, found {found.body[:99]!r}"
    assert rows[0]["etag"] == found.etag, f"the store has etag {found.etag}, the row {rows[0]}"
    named = f"{found.key} {dict(found.metadata)} {dict(found.tags)}"
    lacking = [episode[key] for key in ("episode_id", "trace_id") if episode[key] not in named]
    assert not lacking, f"expected the object of a retry to name {lacking}, found {named}"


async def _was_lost(episodes: Episodes, episode: dict[str, Any], began: datetime) -> None:
    events = await episodes.events(episode["episode_id"])
    failed = calls(events, "upload_failed")

    steps = [step["to_status"] for step in episode["transitions"]]
    expect_same(
        ["queued", "running", "failed"], steps, what="steps of an episode whose asset is lost"
    )
    assert episode["reason"], "a failure without a reason"
    assert 2 <= len(failed) <= _MOST_ATTEMPTS, f"{len(failed)} attempts are no policy of retries"
    paths = {event["payload"]["path"] for event in failed}
    assert {"report.md"} == paths, f"expected failures of report.md, found {paths}"
    assert all(event["payload"]["error"] for event in failed), (
        f"failures without a reason: {failed}"
    )
    _are_attempts(episode, failed, began)
    uploaded = calls(events, "asset_uploaded")
    assert not uploaded, f"an upload that failed is recorded as carried out: {uploaded}"
    claimed = [row for row in episode["assets"] if row["status"] == "uploaded" or row["etag"]]
    assert not claimed, f"rows claim objects that are not there: {claimed}"
    assert "report.md" in episode["reason"], f"expected the file in the reason: {episode['reason']}"
    expect_refused(await _report_of(episodes, episode), 404)
    for row in episode["assets"]:
        told = {"status": "failed", "attempts": len(failed), "path": "report.md"}
        expect_same(told, {key: row[key] for key in told}, what="the row of an asset that is lost")
        assert row["error"], f"the row of an asset that is lost does not say why: {row}"
        found = await episodes.stack.objects(row["key"], bucket=row["bucket"])

        assert () == found, f"an object of an upload that failed: {found}"


def _are_attempts(episode: dict[str, Any], events: list[dict[str, Any]], began: datetime) -> None:
    """Attempts follow one another, each with the ids of the episode and what it was about."""
    ids = {key: episode[key] for key in ("episode_id", "trace_id", "session_id")}
    for number, event in enumerate(events, start=1):
        found = {key: event[key] for key in ids}
        expect_same(ids, found, what=f"ids of the event of attempt {number}")
        tried = event["payload"].get("attempt", number)
        assert number == tried, f"expected attempt {number} in its place, found {event}"
    times = [utc(event["time"], what="time of an attempt") for event in events]
    in_order([began, *times, datetime.now(UTC)], what="times of the attempts")
