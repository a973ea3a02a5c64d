"""INT-034: what a reviewer looked at is kept with its decision, as it was done, and found at the controller."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.files import Viewed
from workbench_contract.findings import Stage
from workbench_contract.flows import Decision as Kept

from harness_core.doubles.turns import use
from suites.integration.bundles import OBJECTIVES, PLAN, TODO, Bundle, milled, sound
from suites.integration.comparing import expect_same, in_order
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.flows import block_of, decisions
from suites.integration.planners import (
    Planner,
    coder_at_work,
    expect_found,
    handover,
    reviewer_at_work,
)
from suites.integration.refusals import expect_refused
from suites.integration.reviews import REVIEW, front, judged, looked_at, review
from suites.integration.sessions import Session

pytestmark = [pytest.mark.covers("INT-034"), pytest.mark.integration_p1]

_MODEL: Final = "model.py"
_IMAGE: Final = "renders/Ansicht 日.png"
#: Longer than what anything shortens for a list or a log.
_VIDEO: Final = f"renders/{'run-' * 40}/{'läuft-' * 20}.mp4"


def _png(number: int) -> bytes:
    """An image that no other number has."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    row = b"\0" + bytes([number % 256, number // 256, 7]) * 8
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    pixels = zlib.compress(row * 8)
    mark = b"\x89PNG\r\n\x1a\n"
    return mark + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _mp4(number: int, *, last: int = 0) -> bytes:
    """A video that no other number has in its head, and no other ``last`` in its end.

    What there is to look at does not matter here.
    """
    head = struct.pack(">I", 24) + b"ftypmp42" + struct.pack(">I", number) + b"isommp42"
    return head + struct.pack(">I", 8 + _FRAMES) + b"mdat" + bytes(_FRAMES - 1) + bytes([last])


#: More than anything reads at once to know what a file is; what fits into a command when encoded.
_FRAMES: Final = 70_000


async def _put(session: Session, path: str, data: bytes) -> None:
    """Write bytes that are no text, as an agent's own code does."""
    encoded = base64.b64encode(data).decode()
    folder = path.rpartition("/")[0]
    done = await session.execute(f"mkdir -p '{folder}'; echo {encoded} | base64 -d > '{path}'")
    assert 0 == done["exit_code"], f"expected {path} to be written, found {done}"


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=planner.number, made=made, units=100)


@asynccontextmanager
async def _reviewer(episodes: Episodes, number: int) -> AsyncIterator[tuple[str, str, Session]]:
    """A reviewer of a design with an image and a video: hand-over, episode, session."""
    async with coder_at_work(episodes, number=number, plan=_plan) as coder:
        await _put(coder.session, _IMAGE, _png(number))
        await _put(coder.session, _VIDEO, _mp4(number))
        verdict = await coder.judged(block_of(number))
        assert verdict.passed, f"expected the design to pass, found {verdict.findings}"
        answer = await coder.submit()
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
        design: str = answer.json()["handover_id"]
        await handover(episodes.controller, design)
    async with reviewer_at_work(episodes, handover_id=design) as (episode_id, session):
        yield design, episode_id, session


async def _viewed(session: Session, path: str) -> str:
    """Look at an image or a video; its digest."""
    answer = await session.post("/fs/view", path=path)
    assert 200 == answer.status, f"expected the reviewer to look at {path}, found {answer}"
    return Viewed.model_validate_json(answer.body).sha256


async def _decisions_of(episodes: Episodes, design: str, made: Sequence[str]) -> list[Kept]:
    """The decisions about a hand-over, once all of its reviews are stored."""
    for review_id in made:
        await handover(episodes.controller, review_id)
    found = await decisions(episodes.controller, handover_id=design)
    ids = [each.decision_id for each in found.decisions]
    expect_same([*made], ids, what=f"decisions about {design}, each once and in order")
    expect_same(len(ids), found.total, what=f"the number of decisions about {design}")
    return found.decisions


def _evidence(images: dict[str, str], videos: dict[str, str], files: dict[str, str]) -> Any:
    def rows(seen: dict[str, str]) -> list[dict[str, str]]:
        return [{"path": path, "sha256": digest} for path, digest in seen.items()]

    return {
        "images_viewed": rows(images),
        "videos_viewed": rows(videos),
        "files_checked": rows(files),
    }


async def _is_as_it_was_done(
    episodes: Episodes, kept: Kept, done: dict[str, Any], *, whose: tuple[str, str], design: str
) -> None:
    """A decision on record is what the reviewer wrote, and each piece of it was looked at by then."""
    whole = kept.model_dump(mode="json")
    without = {
        kind: [{key: each[key] for key in ("path", "sha256")} for each in rows]
        for kind, rows in whole["evidence"].items()
    }
    expect_same(done["evidence"], without, what="evidence on record")
    said = {key: whole[key] for key in ("decision", "comments")}
    expect_same({key: done[key] for key in said}, said, what="decision and comments on record")
    about = (kept.episode_id, kept.session_id, kept.reviewed_id)
    expect_same((*whose, design), about, what="whose decision it is, and about what")
    events = await episodes.events(kept.episode_id)
    of_worker = {each["seq"]: each for each in events if each["source"] == "worker"}
    decision = of_worker[kept.event_seq]
    expect_same("review_decision", decision["kind"], what="the event of a decision")
    expect_same(
        kept.decision_id, decision["payload"]["handover_id"], what="the hand-over of a decision"
    )
    for rows in whole["evidence"].values():
        for row in rows:
            event = of_worker[row["event_seq"]]
            assert event["seq"] < kept.event_seq, f"evidence looked at after it was given: {row}"
            payload = event["payload"]
            seen = (payload["arguments"]["path"], payload["sha256"], payload["ok"])
            expect_same((row["path"], row["sha256"], True), seen, what="the event of evidence")


async def test_int_034_evidence_is_kept_as_it_was_done(breakable: Episodes) -> None:
    """Images, videos and files of each decision are on record with the events that show them as viewed.

    In every round, in two sessions at once, and over a restart. The model provider is a stand-in: the gateway
    holds the models.
    """
    episodes = breakable
    async with (
        _reviewer(episodes, 341) as (one, one_episode, first),
        _reviewer(episodes, 342) as (two, two_episode, second),
    ):
        files = await looked_at(first, _MODEL)
        images = {_IMAGE: await _viewed(first, _IMAGE)}
        expect_same(hashlib.sha256(_png(341)).hexdigest(), images[_IMAGE], what="an image's digest")
        done = [_made(Decision.REJECTED, images, {}, files, "Zu dünn: 日本 😀")]
        made = [await _accepted(first, done[-1])]
        videos = {_VIDEO: await _viewed(first, _VIDEO)}
        files |= await looked_at(first, PLAN)
        done.append(_made(Decision.REJECTED, {}, videos, files, "Still too thin.", "Look at both."))
        made.append(await _accepted(first, done[-1]))
        of_second = await looked_at(second, PLAN)
        images_of_second = {_IMAGE: await _viewed(second, _IMAGE)}
        other = _made(Decision.APPROVED, images_of_second, {}, of_second)
        async with episodes.stack.outage("controller", "kill"):
            of_other = await _accepted(second, other)
            done.append(_made(Decision.APPROVED, images, videos, files))
            made.append(await _accepted(first, done[-1]))
        kept = await _decisions_of(episodes, one, made)
        in_order((each.decided_at for each in kept), what="times of the decisions")
        for each, wanted in zip(kept, done, strict=True):
            whose = (one_episode, first.id)
            await _is_as_it_was_done(episodes, each, wanted, whose=whose, design=one)
        (alone,) = await _decisions_of(episodes, two, [of_other])
        whose = (two_episode, second.id)
        await _is_as_it_was_done(episodes, alone, other, whose=whose, design=two)
    page = await decisions(episodes.controller, episode_id=one_episode, limit="1", offset="1")
    expect_same((3, [kept[1]]), (page.total, page.decisions), what="a page of decisions")
    nobody = await decisions(episodes.controller, handover_id="nobody")
    expect_same((0, []), (nobody.total, nobody.decisions), what="decisions about nothing")
    for wrong in ({"limit": "0"}, {"offset": "-1"}, {"flow_id": "../x"}, {"limit": "x"}):
        answer = await episodes.controller.get("/decisions", params=wrong)
        expect_refused(answer, 422)


def _made(
    decision: Decision,
    images: dict[str, str],
    videos: dict[str, str],
    files: dict[str, str],
    *comments: str,
) -> dict[str, Any]:
    made = review(decision, files, comments=comments)
    return {**made, "evidence": _evidence(images, videos, files)}


async def _accepted(session: Session, made: dict[str, Any]) -> str:
    answer = await judged(session, front(made))
    assert 200 == answer.status, f"expected the review {made} to be accepted, found {answer}"
    review_id: str = answer.json()["handover_id"]
    return review_id


async def _read_by_other_names(session: Session) -> dict[str, str]:
    """Read some files, each named otherwise than it was handed over: path to sha256 of those."""
    names = {PLAN: f"./{PLAN}", TODO: f"renders/../{TODO}", OBJECTIVES: f".//{OBJECTIVES}"}
    read = await looked_at(session, *names.values())
    return {path: read[name] for path, name in names.items()}


async def test_int_034_what_was_not_viewed_is_no_evidence(episodes: Episodes) -> None:
    """An image that was listed, read as text, changed, or viewed by another is refused as evidence.

    Nothing of what was refused is on record. The model provider is a stand-in: the gateway holds the models.
    """
    async with _reviewer(episodes, 343) as (design, _, session):
        files = await looked_at(session, _MODEL)
        digest = hashlib.sha256(_png(343)).hexdigest()
        claimed = _made(Decision.APPROVED, {_IMAGE: digest}, {}, files)
        says = ["evidence.images_viewed[0]"]
        await session.post("/fs/ls", path="renders")
        as_text = await session.post("/fs/read", path=_IMAGE)
        expect_refused(as_text, 409)
        expect_refused(await session.post("/fs/view", path=_MODEL), 409, says="image")
        expect_refused(await session.post("/fs/view", path="renders/none.png"), 404)
        expect_refused(await session.post("/fs/view", path="../../etc/passwd"), 403, 404)
        answer = await judged(session, front(claimed))
        expect_found(answer, Stage.AGREE, {REVIEW}, what="an image nobody viewed", says=says)
        await _put(session, _IMAGE, _png(344))
        await _viewed(session, _IMAGE)
        answer = await judged(session, front(claimed))
        expect_found(answer, Stage.AGREE, {REVIEW}, what="an image of another kind", says=says)
        found = await decisions(episodes.controller, handover_id=design)
        expect_same((0, []), (found.total, found.decisions), what="decisions that were refused")
        video = {_VIDEO: hashlib.sha256(_mp4(343)).hexdigest()}
        await _put(session, _VIDEO, _mp4(343, last=1))
        seen = await _viewed(session, _VIDEO)
        other = hashlib.sha256(_mp4(343, last=1)).hexdigest()
        expect_same(other, seen, what="the digest of a video with another end")
        answer = await judged(session, front(_made(Decision.APPROVED, {}, video, files)))
        says = ["evidence.videos_viewed[0]"]
        expect_found(answer, Stage.AGREE, {REVIEW}, what="a video with another end", says=says)
        await _put(session, _IMAGE, _png(343))
        await _viewed(session, _IMAGE)
        first = await _accepted(session, claimed)
        read = await _read_by_other_names(session)
        comment = "Read by other names."
        second = await _accepted(session, _made(Decision.REJECTED, {}, {}, read, comment))
        kept, by_others = await _decisions_of(episodes, design, [first, second])
        expect_same(digest, kept.evidence.images_viewed[0].sha256, what="the image on record")
        paths = [each.path for each in by_others.evidence.files_checked]
        expect_same([*read], paths, what="files on record that were read by other names")
    token = new_token()
    again = _made(Decision.REJECTED, {_IMAGE: digest}, {}, files, "By its own tools.")
    turns = (
        use("fs_view", path=_IMAGE),
        use("fs_read", path=_MODEL),
        use("fs_write", path=REVIEW, content=front(again)),
        use("submit"),
    )
    episode = await episodes.run(token, *turns, role="reviewer", handover_id=design)
    told = [trace["ok"] for trace in episode["traces"] if trace["kind"] == "tool"]
    expect_same([True] * 4, told, what="the reviewer's own calls")
    views = [
        each["payload"]["sha256"]
        for each in calls(await episodes.events(episode["episode_id"]), "tool_call")
        if each["payload"]["tool"] == "fs_view"
    ]
    expect_same([digest], views, what="what the reviewer's own tool looked at")
    kept_of = (await decisions(episodes.controller, episode_id=episode["episode_id"])).decisions
    by_tool = [each.decision for each in kept_of]
    expect_same([Decision.REJECTED], by_tool, what="decisions by the reviewer's own tools")
