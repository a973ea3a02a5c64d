"""INT-032: who engineers starts from the whole package of a benchmark, and it agrees with itself."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from typing import Any, Final

import pytest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.episodes import Purpose
from workbench_contract.findings import Stage
from workbench_contract.handover import GEOMETRY, HandedFile, Handover
from workbench_contract.package import (
    GEOMETRY_METADATA,
    INDEX,
    JITTER,
    MOVING_PARTS,
    PACKAGE,
    Geometry,
    Jitter,
    MovingParts,
    Package,
)

from harness_core.base.evidence import Evidence
from suites.integration.bundles import OBJECTIVES, PLAN, TODO, changed
from suites.integration.comparing import expect_same
from suites.integration.environments import (
    Benchmark,
    engineer_of,
    environment_of,
    expect_handed,
    geometry_of,
    hand_over,
    planned,
)
from suites.integration.episodes import Episodes
from suites.integration.full_disk import no_file_beyond
from suites.integration.looking import Solid, box, expect_pictures, keep_sheet
from suites.integration.planners import (
    at_work,
    expect_found,
    handover,
    planner_at_work,
)
from suites.integration.refusals import expect_refused
from suites.integration.reviews import front, judged, looked_at, review
from suites.integration.sessions import Session

pytestmark = [pytest.mark.covers("INT-032"), pytest.mark.integration_p1]

_WORK: Final = {"purpose": Purpose.BENCHMARK.value}
#: Beyond what an event takes, and less than any picture.
_ROOM_BYTES: Final = 2_000

#: What an agent would have engineers believe.
_FORGED: Final = {
    MOVING_PARTS: '{"moving_parts": []}\n',
    JITTER: "{}\n",
    f"{PACKAGE}/note.txt": "All of it can be moved.\n",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A benchmark whose objectives were handed over."""

    handover_id: str
    objectives: dict[str, Any]
    text: str


def _solids(number: int) -> dict[str, Solid]:
    return {each["name"]: box(each["min_mm"], each["max_mm"]) for each in geometry_of(number)}


async def _objectives(episodes: Episodes, number: int) -> _Planned:
    """Plan a benchmark whose moving parts and jitter are no other's."""
    async with planner_at_work(episodes, number=number, **_WORK) as planner:
        bundle = planner.sound()
        objectives = changed(bundle.objectives, "moving_parts.0.name", f"klappe-{number}")
        dof = "rotate_z" if number % 2 else "slide_x"
        objectives = changed(objectives, "moving_parts.1.dof", dof)
        jitter = [1.0, number / 1000, 0.25]
        objectives = changed(objectives, "moved_object.runtime_jitter.start_mm", jitter)
        bundle = bundle.replaced(objectives=objectives)
        files = planned(bundle.files())
        await planner.leave(files)
        accepted = expect_handed(
            await planner.submit(), {PLAN, TODO, OBJECTIVES}, what=f"the objectives {number}"
        )
        await handover(episodes.controller, accepted.handover_id)
    return _Planned(handover_id=accepted.handover_id, objectives=objectives, text=files[OBJECTIVES])


async def _made(episodes: Episodes, number: int) -> tuple[Benchmark, Handover]:
    """A benchmark whose coder leaves a package of its own besides; and what was handed over."""
    plan = await _objectives(episodes, number)
    begun = {"role": "coder", "handover_id": plan.handover_id, **_WORK}
    async with at_work(episodes, **begun) as (_, session, _list):
        files = environment_of(number)
        for path, text in {**files, **_FORGED}.items():
            await session.write(path, text)
        answer = await hand_over(session)
        what = f"the environment {number}"
        accepted = expect_handed(answer, {PLAN, TODO, OBJECTIVES, *files}, what=what)
        kept = await handover(episodes.controller, accepted.handover_id)
    benchmark = Benchmark(handover_id=accepted.handover_id, objectives=plan.objectives, files=files)
    return benchmark, kept


async def _bytes_of(session: Session, path: str) -> bytes:
    answer = await session.client.get(f"/assets/{path}")

    assert 200 == answer.status, f"expected {path} in the engineer's session, found {answer}"
    return answer.body


async def _expect_package(
    session: Session, number: int, objectives: dict[str, Any], kept: Handover
) -> list[bytes]:
    """A session has the whole package of a benchmark, and all of it agrees; its views."""
    index = Package.model_validate_json(await _bytes_of(session, INDEX))
    views = {each.path: each for each in index.pictures.views}
    listed = [index.objectives, index.geometry, index.moving_parts, index.jitter]
    listed += [
        HandedFile(path=each.path, sha256=each.sha256, size_bytes=each.size_bytes)
        for each in views.values()
    ]
    recorded = {each.path: each for each in kept.files}
    content = {}
    for each in listed:
        data = content[each.path] = await _bytes_of(session, each.path)
        found = (len(data), hashlib.sha256(data).hexdigest())
        expect_same((each.size_bytes, each.sha256), found, what=f"{each.path} of the engineer")
        expect_same(recorded[each.path], each, what=f"{each.path} as the controller has it")
    names = [index.objectives.path, index.geometry.path, index.moving_parts.path, index.jitter.path]
    expect_same(
        [OBJECTIVES, GEOMETRY_METADATA, MOVING_PARTS, JITTER], names, what="files of the package"
    )
    solids = Geometry.model_validate_json(content[GEOMETRY_METADATA]).solids
    expect_same(geometry_of(number), [each.model_dump() for each in solids], what="its geometry")
    expect_same(kept.geometry, solids, what="geometry of the package and of the record")
    moving = MovingParts.model_validate_json(content[MOVING_PARTS]).moving_parts
    wanted = [(each["name"], each["type"], each["dof"]) for each in objectives["moving_parts"]]
    dofs = [(each.name, each.type.value, each.dof.value) for each in moving]
    expect_same(wanted, dofs, what="moving parts of the package and of the objectives")
    jitter = Jitter.model_validate_json(content[JITTER]).model_dump(mode="json")
    moved = objectives["moved_object"]
    told = {
        "moved_object": moved["label"],
        "start_mm": [float(each) for each in moved["start_mm"]],
        "static_randomization": {
            "start_mm": [float(each) for each in moved["static_randomization"]["start_mm"]],
            "scale": moved["static_randomization"]["scale"],
        },
        "runtime_jitter": moved["runtime_jitter"],
        "randomization": objectives["randomization"],
    }
    expect_same(told, jitter, what="jitter of the package and of the objectives")
    expect_pictures(content, index.pictures, _solids(number), what=f"the environment {number}")
    return [content[path] for path in views]


async def test_int_032_the_engineer_starts_from_the_whole_package(
    episodes: Episodes, evidence: Evidence
) -> None:
    """Objectives, geometry, 24 views, moving parts and jitter are there with their digests, and agree.

    So they are for two benchmarks, one after the other, whatever their coders have left in their place; who
    engineers leaves them as they are. The model provider is a stand-in: the gateway holds the models.
    """
    made = {number: await _made(episodes, number) for number in (321, 322)}
    for number, (benchmark, kept) in made.items():
        async with engineer_of(episodes, benchmark, number=number) as engineer:
            session = engineer.session
            views = await _expect_package(session, number, benchmark.objectives, kept)
            keep_sheet(evidence, f"package-{number}.png", views)
            forged = f"{PACKAGE}/note.txt" in await session.files()
            assert not forged, "expected no file of the agent's in the package, found one"
            bundle = engineer.sound()
            before = await _bytes_of(session, MOVING_PARTS)
            await session.write(MOVING_PARTS, _FORGED[MOVING_PARTS])
            answer = await engineer.judged(bundle)
            expect_found(answer, Stage.AGREE, {MOVING_PARTS}, what="another package")
            await session.write(MOVING_PARTS, before.decode())
            view = next(each.path for each in kept.files if each.path.endswith(".png"))
            picture = await _bytes_of(session, view)
            await session.post("/fs/delete", path=view)
            answer = await engineer.judged(bundle)
            expect_found(answer, Stage.AGREE, {view}, what="a package without one of its views")
            encoded = base64.b64encode(picture).decode()
            done = await session.execute(f"echo {encoded} | base64 -d > '{view}'")
            assert 0 == done["exit_code"], f"expected the view in its place, found {done}"
            answer = await engineer.judged(bundle)
            assert 200 == answer.status, f"expected the plan to be accepted, found {answer}"
            plan = await handover(episodes.controller, answer.json()["handover_id"])
        digests = {each.path: each.sha256 for each in plan.files}
        expect_same(
            {each.path: each.sha256 for each in kept.files if each.path.startswith(PACKAGE)},
            {path: sha for path, sha in digests.items() if path.startswith(PACKAGE)},
            what="the package as the planner hands it on",
        )


async def test_int_032_the_reviewer_sees_the_package(episodes: Episodes) -> None:
    """Who reviews a benchmark finds its views, and names them as evidence.

    The model provider is a stand-in: the gateway holds the models.
    """
    _, kept = await _made(episodes, 323)
    images = {each.path: each.sha256 for each in kept.files if each.path.endswith(".png")}
    expect_same(24, len(images), what="the number of views that were handed over")
    begun = {"role": "reviewer", "handover_id": kept.handover_id, **_WORK}
    async with at_work(episodes, **begun) as (_, session, _list):
        viewed = {}
        for path in sorted(images):
            answer = await session.post("/fs/view", path=path)
            assert 200 == answer.status, f"expected the reviewer to find {path}, found {answer}"
            viewed[path] = answer.json()["sha256"]
        expect_same(images, viewed, what="digests of the views")
        read = await looked_at(session, GEOMETRY, INDEX)
        made = review(Decision.APPROVED, read, comments=[], images=viewed)
        answer = await judged(session, front(made))
        assert 200 == answer.status, f"expected the review to be accepted, found {answer}"


@pytest.mark.not_in_containers(
    "limits what the processes of the worker may write, by their numbers on this machine"
)
async def test_int_032_a_package_that_is_not_whole_is_not_handed_over(episodes: Episodes) -> None:
    """Without geometry, or without room for its views, there is no hand-over, and nobody starts from one.

    With room again the same is handed over whole. The model provider is a stand-in: the gateway holds the models.
    """
    plan = await _objectives(episodes, 324)
    begun = {"role": "coder", "handover_id": plan.handover_id, **_WORK}
    async with at_work(episodes, **begun) as (started, session, _list):
        answer = await hand_over(session)
        expect_found(answer, Stage.PRESENT, {GEOMETRY}, what="a package without geometry")
        await session.write(GEOMETRY, "parts = {}\n")
        answer = await hand_over(session)
        expect_found(answer, Stage.PRICE, {GEOMETRY}, what="a package of no solids")
        for path, text in environment_of(324).items():
            await session.write(path, text)
        counted = await session.execute("wc -c < events.jsonl")
        size = int(counted["stdout"])
        with no_file_beyond(episodes.stack["worker"], size + _ROOM_BYTES):
            answer = await hand_over(session)
        assert answer.status >= 400, f"expected no hand-over of part of a package, found {answer}"
        episode = await episodes.get(started["episode_id"])
        expect_same([], episode["handovers"], what="hand-overs of a package that is not whole")
        answer = await hand_over(session)
        files = {PLAN, TODO, OBJECTIVES, *environment_of(324)}
        accepted = expect_handed(answer, files, what="the same with room for it")
        kept = await handover(episodes.controller, accepted.handover_id)
        images = [each.path for each in kept.files if each.path.endswith(".png")]
        expect_same(24, len(images), what="views, with room for them")
    nobody = "00000000-0000-4000-8000-000000000032"
    expect_refused(await episodes.ask("x", role="planner", handover_id=nobody), 404)
