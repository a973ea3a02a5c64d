"""INT-039: pictures and videos are made when they are asked for or handed over, and show what is there."""

from __future__ import annotations

import hashlib
import random
import re
from typing import Any, Final

import numpy as np
import pytest
from workbench_contract.benchmark import AnalyzeRequest, ModelRequest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.events import EventKind
from workbench_contract.handover import Handover
from workbench_contract.renders import (
    Filmed,
    Pictures,
    PreviewRequest,
    Rendered,
    RenderRequest,
    VideoRequest,
)
from workbench_contract.simulation import Outcome, Simulated, SimulateRequest

from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from suites.integration.bundles import Bundle, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.flows import block_of
from suites.integration.looking import (
    Solid,
    box,
    expect_at,
    expect_pictures,
    expect_turned_as,
    expect_view,
    frames_of,
    keep_sheet,
    keep_strip,
)
from suites.integration.planners import Planner, coder_at_work, handover, reviewer_at_work
from suites.integration.refusals import expect_refused
from suites.integration.reviews import front, judged, looked_at, review
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-039"), pytest.mark.integration_p1]

#: Building, or simulating, and pictures of it.
_MADE_S: Final = 120.0

_MODEL: Final = "model.py"
_SIZES: Final = "maße.py"
#: What a picture or a video is called by those who look for one.
_SHOWN: Final = (".png", ".jpg", ".jpeg", ".webp", ".mp4", ".webm")

#: Two parts that no mirror and no turn brings onto themselves.
_SCRIPT: Final = """\
from build123d import Align, Box, Pos
from maße import HIGH, SIDE

at = (Align.MIN, Align.MIN, Align.MIN)
parts = {
    "sockel": Pos(0, 0 if SIDE > 0 else -30, 0) * Box(60, 30, 10, align=at),
    "turm": Pos(40, 5 if SIDE > 0 else -20, 10) * Box(15, 15, HIGH, align=at),
}
"""


def _sizes(high: float, side: int = 1) -> str:
    return f"HIGH = {high}\nSIDE = {side}\n"


def _solids(high: float, side: int = 1) -> dict[str, Solid]:
    """The parts of that script, computed by hand."""
    mirror = np.array([1, side, 1])
    return {
        "sockel": box((0, 0, 0), (60, 30, 10)) * mirror,
        "turm": box((40, 5, 10), (55, 20, 10 + high)) * mirror,
    }


async def _asked(session: Session, path: str, request: Any) -> Response:
    body = request.model_dump(mode="json", exclude_none=True)
    return await session.client.post(path, body, seconds=patience(_MADE_S))


async def _rendered(session: Session, *, model: str = _MODEL) -> Rendered:
    answer = await _asked(session, "/benchmark/render", RenderRequest(model=model))

    assert 200 == answer.status, f"expected the views of {model}, found {answer}"
    return Rendered.model_validate_json(answer.body)


async def _bytes_of(session: Session, path: str, digest: str) -> bytes:
    answer = await session.client.get(f"/assets/{path}")

    assert 200 == answer.status, f"expected the file {path}, found {answer}"
    expect_same(digest, hashlib.sha256(answer.body).hexdigest(), what=f"the digest of {path}")
    return answer.body


async def _files_of(session: Session, pictures: Pictures) -> dict[str, bytes]:
    return {each.path: await _bytes_of(session, each.path, each.sha256) for each in pictures.views}


async def _designed(worker: Any, high: float, side: int = 1) -> Session:
    session = new_session(worker)
    await session.write(_SIZES, _sizes(high, side))
    await session.write(_MODEL, _SCRIPT)
    return session


async def _nothing_shown(session: Session, *, what: str) -> None:
    """No picture lies in a session, and no event speaks of one."""
    shown = sorted(path for path in await session.files() if path.endswith(_SHOWN))
    expect_same([], shown, what=f"pictures after {what}, which nobody asked for")
    events = calls(await session.events(), EventKind.RENDERED)
    expect_same([], events, what=f"events of pictures after {what}")


async def test_int_039_pictures_are_made_when_asked_for(worker: Any, evidence: Evidence) -> None:
    """24 views show the design; once more they are the same bytes, and a changed design has others.

    Nothing is shown before somebody asks, whatever else is done with a design.
    """
    session = await _designed(worker, 40)
    for path, request in (
        ("/benchmark/validate", ModelRequest(model=_MODEL)),
        ("/benchmark/analyze", AnalyzeRequest(model=_MODEL)),
        ("/benchmark/simulate", SimulateRequest(model=_MODEL, duration_s=0.1, trajectories=True)),
    ):
        answer = await _asked(session, path, request)
        assert answer.status in {200, 409}, f"expected a verdict of {path}, found {answer}"
        await _nothing_shown(session, what=path)

    one = await _rendered(session)
    assert not one.from_store, f"expected pictures made anew, found {one.from_store=}"
    files = await _files_of(session, one)
    keep_sheet(evidence, "views.png", [files[each.path] for each in one.views])
    pictures = expect_pictures(files, one, _solids(40), what="the design")

    again = await _rendered(session)
    assert again.from_store, (
        "expected a design that was rendered before to be served, found it anew"
    )
    expect_same(one.views, again.views, what="views of the same design, a second time")
    expect_same(files, await _files_of(session, again), what="their bytes")

    await session.write(_SIZES, _sizes(25))
    other = await _rendered(session)
    changed = await _files_of(session, other)
    expect_pictures(
        changed, other, _solids(25), what="the design, once what it imports was changed"
    )

    # Another script of the session has its own.
    await session.write("zweites.py", _SCRIPT.replace("HIGH, align", "HIGH + 9, align"))
    second = await _rendered(session, model="zweites.py")
    expect_pictures(
        await _files_of(session, second), second, _solids(34), what="a second script's design"
    )
    expect_same(
        changed, await _files_of(session, other), what="views of the first script, after it"
    )

    # Of y mirrored it is seen from the other side as in a mirror.
    mirrored = await _designed(worker, 40, side=-1)
    glass = await _rendered(mirrored)
    opposite = expect_pictures(
        await _files_of(mirrored, glass), glass, _solids(40, -1), what="the mirrored design"
    )
    for (yaw, pitch), picture in pictures.items():
        other_side = opposite[-yaw % 360, pitch][:, ::-1]
        differing = float((picture != other_side).any(axis=2).mean())
        assert differing < 0.01, (
            f"the mirrored design from yaw {-yaw}: expected the mirrored picture, "
            f"found {differing:.1%} otherwise"
        )
    listed = [
        (each["payload"]["from_store"], [file["sha256"] for file in each["payload"]["files"]])
        for each in calls(await session.events(), EventKind.RENDERED)
    ]
    told = [
        (each.from_store, [view.sha256 for view in each.views])
        for each in (one, again, other, second)
    ]
    expect_same(told, listed, what="events of what was shown, one for each request")


async def test_int_039_nobody_is_shown_what_others_made(breakable: Episodes) -> None:
    """The same script with other sizes beside it has its own pictures, in whatever order they are asked for.

    The same design is the same bytes in any session, and after the worker was killed; a session sees no other's.
    """
    worker = breakable.worker
    low, high, same = [await _designed(worker, size) for size in (20, 60, 20)]
    shown = {}
    for name, session, size in (("low", low, 20), ("high", high, 60), ("same", same, 20)):
        shown[name] = await _rendered(session)
        files = await _files_of(session, shown[name])
        expect_pictures(files, shown[name], _solids(size), what=f"the design of {size} mm")
    digests = {name: [view.sha256 for view in each.views] for name, each in shown.items()}
    expect_same(digests["low"], digests["same"], what="views of the same design in two sessions")
    expect_same(
        shown["low"].design_sha256, shown["same"].design_sha256, what="the hash of the same design"
    )
    assert shown["same"].from_store, "expected the same design to be served, found it made anew"
    # Of the same solids by other names it is another design: its legend has other words.
    renamed = await _designed(worker, 20)
    words = re.sub(r'"([a-zäöüß-]+)":', r'"neu-\1":', _SCRIPT)
    assert words != _SCRIPT, "the script names its parts in a dictionary"
    await renamed.write(_MODEL, words)
    names = {f"neu-{each.name}" for each in shown["low"].parts}
    found = {each.name for each in (await _rendered(renamed)).parts}
    expect_same(names, found, what="names of parts of the same solids")
    # What an agent leaves in place of a picture is its own affair.
    view = shown["low"].views[0]
    await low.write(view.path, "no picture")
    async with breakable.stack.outage("worker", "kill"):
        pass
    later = await _rendered(same)
    expect_same(
        digests["same"], [each.sha256 for each in later.views], what="views after a restart"
    )
    assert later.from_store, "expected pictures to outlive the worker, found them made anew"
    await _bytes_of(same, view.path, view.sha256)
    await _bytes_of(low, (await _rendered(low)).views[0].path, view.sha256)
    stranger = new_session(worker)
    expect_refused(await stranger.client.get(f"/assets/{view.path}"), 404)


async def test_int_039_previews_are_from_anywhere(worker: Any) -> None:
    """A preview of any pitch and yaw is one picture that shows the design from there; nonsense is refused."""
    session = await _designed(worker, 33)
    straight = [(0.0, 0.0), (90.0, 0.0), (0.0, 90.0), (-180.0, -90.0), (360.0, 0.0)]
    random_ones = [
        (round(random.uniform(-360, 360), 3), round(random.uniform(-90, 90), 3)) for _ in range(5)
    ]
    for yaw, pitch in [*straight, *random_ones]:
        request = PreviewRequest(yaw_deg=yaw, pitch_deg=pitch)
        answer = await _asked(session, "/benchmark/preview", request)
        assert 200 == answer.status, f"expected a preview from {yaw}, {pitch}, found {answer}"
        found = Rendered.model_validate_json(answer.body)
        [view] = found.views
        expect_same((yaw, pitch), (view.yaw_deg, view.pitch_deg), what="from where it is looked")
        data = await _bytes_of(session, view.path, view.sha256)
        expect_view(data, view, found, _solids(33), what="the preview")
    near = [(12.0, 7.0), (12.25, 7.0), (12.0, 7.25), (12.00001, 7.0), (12.0, 7.00001), (-12.0, 7.0)]
    views = []
    for yaw, pitch in near:
        request = PreviewRequest(yaw_deg=yaw, pitch_deg=pitch)
        answer = await _asked(session, "/benchmark/preview", request)
        assert 200 == answer.status, f"expected a preview from {yaw}, {pitch}, found {answer}"
        views += Rendered.model_validate_json(answer.body).views
    expect_same(len(near), len({view.path for view in views}), what="files of previews near others")
    for view in views:
        await _bytes_of(session, view.path, view.sha256)
    shown = [path for path in await session.files() if path.endswith(_SHOWN)]
    expect_same(
        len({*straight, *random_ones, *near}), len(shown), what="pictures, one for each preview"
    )
    for wrong in ({"yaw_deg": 361}, {"pitch_deg": 90.5}, {"yaw_deg": "north"}, {"zoom": 2}):
        answer = await session.malformed("/benchmark/preview", **wrong)
        expect_refused(answer, 422)
    await session.write("scene.xml", "<mujoco/>")
    await session.write("nothing.py", "part = None\n")
    await session.write("broken.py", "raise ValueError('kaputt')\n")
    for path in ("/benchmark/preview", "/benchmark/render"):
        expect_refused(await session.post(path, model="none.py"), 404)
        expect_refused(await session.post(path, model="../model.py"), 403, 404, 409)
        for model in ("scene.xml", "nothing.py", "broken.py"):
            answer = await _asked(session, path, RenderRequest(model=model))
            expect_refused(answer, 409, says=model)
    after = [path for path in await session.files() if path.endswith(_SHOWN)]
    expect_same(sorted(shown), sorted(after), what="pictures after requests that were refused")


_SCENE: Final = """\
<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="5 5 .1"/>
<body name="klotz" pos="0.05 0.05 0.01"><geom type="box" size=".02 .02 .01"/></body>
<body name="hebel" pos="-0.1 0.06 0.09"><joint type="hinge" axis="0 1 0"/>
<geom type="box" size=".03 .006 .006" pos=".03 0 0"/>
<body name="spitze" pos=".06 0 0"><geom type="sphere" size=".002"/></body></body>
</worldbody></mujoco>
"""

#: About which the lever turns, in mm, by an axis along y; how long and how thick it is.
_HINGE_MM: Final = (-100.0, 60.0, 90.0)
_LEVER_MM: Final = (60.0, 12.0)


def _objectives(*, drop_at: tuple[float, float], forbidden: bool) -> dict[str, Any]:
    """A ball that falls, 100 mm, into what lies below it: the goal, or a zone that is forbidden."""
    x, y = drop_at
    below = {"min_mm": [x - 15, y - 15, 1], "max_mm": [x + 15, y + 15, 25]}
    aside = {"min_mm": [x + 40, y - 15, 1], "max_mm": [x + 60, y + 15, 25]}
    goal, pit = (aside, below) if forbidden else (below, aside)
    return {
        "goal_zone": goal,
        "forbid_zones": [{"name": "grube", **pit}],
        "build_zone": {"min_mm": [-90, -90, 30], "max_mm": [90, 90, 60]},
        "simulation_bounds": {"min_mm": [-200, -200, -20], "max_mm": [200, 200, 300]},
        "moved_object": {
            "label": "kugel",
            "shape": "sphere",
            "size": {"radius_mm": 12},
            "start_mm": [x, y, 140],
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50, "max_weight_g": 1200},
        "randomization": {"variant": "v", "seeds": [1]},
    }


async def _run(session: Session, objectives: dict[str, Any], job: str) -> Simulated:
    import yaml

    await session.write("objectives.yaml", yaml.safe_dump(objectives, allow_unicode=True))
    await session.write("szene.xml", _SCENE)
    request = SimulateRequest(
        model="szene.xml",
        objectives="objectives.yaml",
        trajectories=True,
        runs=2,
        job_id=job,
        seed=3,
    )
    answer = await _asked(session, "/benchmark/simulate", request)
    assert 200 == answer.status, f"expected the run {job}, found {answer}"
    return Simulated.model_validate_json(answer.body)


async def _filmed(
    session: Session,
    done: Simulated,
    run: int,
    start_mm: list[float],
    evidence: Evidence,
    *,
    yaw_deg: float = 270,
) -> Filmed:
    """The video of a run, which is as long as that, and shows where it begins and how it ends."""
    request = VideoRequest(simulation=done.job_id, run=run, yaw_deg=yaw_deg, pitch_deg=20)
    answer = await _asked(session, "/benchmark/video", request)
    what = f"the video of {done.job_id}, run {run}"
    assert 200 == answer.status, f"expected {what}, found {answer}"
    video = Filmed.model_validate_json(answer.body)
    of_run = done.runs[run]
    told = (video.outcome, video.seed, video.simulation, video.run)
    expect_same((of_run.outcome, of_run.seed, done.job_id, run), told, what=f"what {what} tells")
    data = await _bytes_of(session, video.path, video.sha256)
    length, pictures = frames_of(
        data,
        evidence,
        f"{session.id}-{done.job_id}-{run}.mp4",
        size_px=(video.width_px, video.height_px),
    )
    a_frame = of_run.simulated_s / max(1, len(pictures))
    assert abs(length - of_run.simulated_s) <= max(0.011, a_frame), (
        f"the length of {what}: expected the run's {of_run.simulated_s} s, found {length}"
    )
    assert len(pictures) >= 3, f"expected {what} to move, found {len(pictures)} pictures"
    [ball] = [each for each in video.bodies if each.name == "kugel"]
    [last] = [each.position_m for each in of_run.bodies if each.name == "kugel"]
    places = (("its first picture", 0, start_mm), ("its last", -1, [1000 * each for each in last]))
    for where, number, point in places:
        expect_at(
            pictures[number],
            ball,
            point,
            video.drawing,
            yaw_deg=yaw_deg,
            pitch_deg=20,
            within_px=4,
            what=f"{where} of {what}",
        )
    if yaw_deg == 270:
        [lever] = [each for each in video.bodies if each.name == "hebel"]
        [tip] = [each.position_m for each in of_run.bodies if each.name == "spitze"]
        expect_turned_as(
            pictures[-1],
            lever,
            _lever([1000 * each for each in tip]),
            video.drawing,
            yaw_deg=yaw_deg,
            pitch_deg=20,
            what=f"the last picture of {what}, turned as it is",
        )
    keep_strip(evidence, f"{session.id}-{done.job_id}-{run}.png", pictures)
    return video


def _lever(tip_mm: list[float]) -> Solid:
    """The corners of the lever whose tip is there."""
    hinge, (length, thick) = np.array(_HINGE_MM), _LEVER_MM
    along = (np.array(tip_mm) - hinge) / length
    axes = np.array([along, (0, 1, 0), np.cross(along, (0, 1, 0))])
    corners = box((0, -thick / 2, -thick / 2), (length, thick / 2, thick / 2))
    turned: Solid = corners @ axes + hinge
    return turned


async def test_int_039_a_video_is_its_run(worker: Any, evidence: Evidence) -> None:
    """A video is as long as its run, begins where it begins, and its last picture is how it ended.

    So it is for each of two runs of two simulations in two sessions; none is made before it is asked for.
    """
    one, two = new_session(worker), new_session(worker)
    goal = await _run(one, _objectives(drop_at=(-40, 10), forbidden=False), "zum-ziel")
    pit = await _run(one, _objectives(drop_at=(20, -30), forbidden=True), "in-die-grube")
    other = await _run(two, _objectives(drop_at=(60, 40), forbidden=False), "zum-ziel")
    outcomes = [each.outcome for each in (goal, pit, other)]
    wanted = [Outcome.GOAL_HIT, Outcome.FORBID_HIT, Outcome.GOAL_HIT]
    expect_same(wanted, outcomes, what="how the runs ended")
    for session in (one, two):
        await _nothing_shown(session, what="simulations")
    seen = [
        await _filmed(one, goal, 0, [-40, 10, 140], evidence),
        await _filmed(one, pit, 1, [20, -30, 140], evidence),
        await _filmed(two, other, 0, [60, 40, 140], evidence),
    ]
    # Of two runs of one simulation each has its own, whichever was shown first.
    first = await _filmed(one, pit, 0, [20, -30, 140], evidence)
    different = {each.sha256 for each in seen}
    expect_same(3, len(different), what="the number of different videos")
    again = VideoRequest(simulation="zum-ziel", run=0, yaw_deg=270, pitch_deg=20)
    answer = await _asked(one, "/benchmark/video", again)
    served = Filmed.model_validate_json(answer.body)
    expect_same(
        (seen[0].sha256, True), (served.sha256, served.from_store), what="a video once more"
    )
    aside = await _filmed(one, goal, 0, [-40, 10, 140], evidence, yaw_deg=200)
    assert not aside.from_store, "a run from another side is another video: found the first one"
    shown = calls(await one.events(), EventKind.RENDERED)
    digests = [file["sha256"] for each in shown for file in each["payload"]["files"]]
    wanted_digests = [each.sha256 for each in (seen[0], seen[1], first, seen[0], aside)]
    expect_same(wanted_digests, digests, what="events of videos")

    expect_refused(await two.post("/benchmark/video", simulation="in-die-grube"), 404)
    expect_refused(await one.post("/benchmark/video", simulation="nie"), 404)
    expect_refused(await one.post("/benchmark/video", simulation="zum-ziel", run=2), 404, 409)
    expect_refused(await one.malformed("/benchmark/video", simulation="../zum-ziel"), 422)
    untracked = SimulateRequest(model="szene.xml", duration_s=0.1, job_id="ohne-spur")
    assert 200 == (await _asked(one, "/benchmark/simulate", untracked)).status, "expected a run"
    expect_refused(await one.post("/benchmark/video", simulation="ohne-spur"), 404)


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=planner.number, made=made, units=100)


async def test_int_039_a_reviewer_finds_what_was_made(episodes: Episodes) -> None:
    """What is handed over has its views, which the reviewer finds, looks at and names as evidence.

    They are in the list of the coder's assets, and in nobody else's. The model provider is a stand-in: the
    gateway holds the models.
    """
    async with coder_at_work(episodes, number=391, plan=_plan) as coder:
        verdict = await coder.judged(block_of(391))
        assert verdict.passed, f"expected the design to pass, found {verdict.findings}"
        await _nothing_shown(coder.session, what="a verdict")
        answer = await coder.submit()
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
        design = answer.json()["handover_id"]
        kept: Handover = await handover(episodes.controller, design)
    images = {each.path: each.sha256 for each in kept.files if each.path.endswith(".png")}
    assert len(images) >= 24, f"expected the 24 views of the design handed over, found {images}"
    async with reviewer_at_work(episodes, handover_id=design) as (reviewer_id, session):
        viewed = {}
        for path in sorted(images)[:3]:
            answer = await session.post("/fs/view", path=path)
            assert 200 == answer.status, f"expected the reviewer to find {path}, found {answer}"
            viewed[path] = answer.json()["sha256"]
            expect_same(images[path], viewed[path], what=f"the digest of {path}")
        read = await looked_at(session, _MODEL)
        made = review(Decision.APPROVED, read, comments=[], images=viewed)
        answer = await judged(session, front(made))
        assert 200 == answer.status, f"expected the review to be accepted, found {answer}"
    listed = await _assets(episodes, coder.episode_id)
    digests = {each["sha256"] for each in listed if each["kind"] == "render"}
    assert set(images.values()) <= digests, f"expected the views among the assets, found {listed}"
    expect_same([], await _assets(episodes, reviewer_id), what="assets of the reviewer's episode")
    stranger = new_session(episodes.worker)
    for path in sorted(images)[:2]:
        expect_refused(await stranger.client.get(f"/assets/{path}"), 404)


async def _assets(episodes: Episodes, episode_id: str) -> list[dict[str, Any]]:
    answer = await episodes.controller.get(f"/episodes/{episode_id}/assets")

    assert 200 == answer.status, f"expected the assets of {episode_id}, found {answer}"
    found: list[dict[str, Any]] = answer.json()["assets"]
    return found
