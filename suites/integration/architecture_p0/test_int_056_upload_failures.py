"""An upload that fails is retried as configured, and recorded."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import EPISODE_S
from suites.integration.refusals import expect_refused

#: A policy of retries has an end, and begins with one.
_MOST_ATTEMPTS = 20


@pytest.mark.covers("INT-056")
@pytest.mark.integration_p0
async def test_int_056_uploads_are_retried_and_then_fail(breakable: Episodes) -> None:
    """A short outage of the object store ends in a stored object, a long one in a failed episode.

    Every attempt that failed is an event; no row claims an object that is not there. The model
    provider is a stand-in: the gateway does the turns.
    """
    short, long, afterwards = new_token(), new_token(), new_token()
    for token in (short, long, afterwards):
        report = use("fs_write", path="assets/report.md", content=f"of {token}")
        await breakable.rehearse(token, report)

    async with breakable.stack.outage("minio", "kill"):
        retried = await breakable.submit(short)
        await breakable.until_event(
            retried["episode_id"], "upload_failed", seconds=EPISODE_S, before_end=True
        )
    kept = await breakable.until(retried["episode_id"], "completed")
    async with breakable.stack.outage("minio", "kill"):
        given_up = await breakable.submit(long)
        lost = await breakable.until(given_up["episode_id"], "failed", seconds=EPISODE_S)
    new = await breakable.run_submitted(afterwards)

    await _was_kept_after_retries(breakable, kept, f"of {short}".encode())
    await _was_lost(breakable, lost)
    assert ["uploaded"] == [asset["status"] for asset in new["assets"]]
    assert 1 == new["assets"][0]["attempts"], "an upload without trouble was retried"


async def _was_kept_after_retries(
    episodes: Episodes, episode: dict[str, Any], content: bytes
) -> None:
    events = await episodes.events(episode["episode_id"])
    failed, uploaded = calls(events, "upload_failed"), calls(events, "asset_uploaded")
    rows = episode["assets"]

    assert ["uploaded"] == [row["status"] for row in rows]
    assert 1 == len(uploaded)
    assert len(failed) >= 1
    assert len(failed) + 1 == rows[0]["attempts"], "attempts that are not recorded"
    found = await episodes.stored(rows[0])
    assert (content, rows[0]["etag"]) == (found.body, found.etag)


async def _was_lost(episodes: Episodes, episode: dict[str, Any]) -> None:
    events = await episodes.events(episode["episode_id"])
    failed = calls(events, "upload_failed")

    assert ["queued", "running", "failed"] == [s["to_status"] for s in episode["transitions"]]
    assert episode["reason"], "a failure without a reason"
    assert 2 <= len(failed) <= _MOST_ATTEMPTS, f"{len(failed)} attempts are no policy of retries"
    assert {"report.md"} == {event["payload"]["path"] for event in failed}
    assert all(event["payload"]["error"] for event in failed), failed
    assert [] == calls(events, "asset_uploaded")
    assert [] == [row for row in episode["assets"] if row["status"] == "uploaded" or row["etag"]]
    got = await episodes.controller.get(f"/episodes/{episode['episode_id']}/assets/report.md")
    expect_refused(got, 404)
    for row in episode["assets"]:
        found = await episodes.stack.objects(row["key"], bucket=row["bucket"])

        assert () == found, f"an object of an upload that failed: {found}"
