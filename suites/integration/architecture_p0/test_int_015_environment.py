"""INT-015: who engineers in a benchmark leaves its environment, its objectives and its caps as they were."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from workbench_contract.episodes import Purpose
from workbench_contract.findings import Stage
from workbench_contract.handover import GEOMETRY

from harness_core.doubles.turns import Turn, use
from suites.integration.bundles import ESTIMATE, FILES, OBJECTIVES, PLAN, TODO, Bundle, milled
from suites.integration.bundles import sound as sound_bundle
from suites.integration.comparing import expect_same
from suites.integration.environments import (
    SIZES,
    Benchmark,
    benchmark_made,
    digests_of,
    engineer_of,
    environment_kept,
    environment_of,
    expect_handed,
    geometry_of,
    hand_over,
    planned,
)
from suites.integration.episodes import Episodes
from suites.integration.planners import (
    Coder,
    Planner,
    at_work,
    expect_found,
    handover,
    planner_at_work,
)
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session
from suites.integration.shares import shares

pytestmark = [pytest.mark.covers("INT-015"), pytest.mark.integration_p0]

#: What an engineer may do to an environment → files that are named, and a word about each.
_ATTACKS: Final[dict[str, tuple[str, set[str], str]]] = {
    "another number": (f"sed -i s/=/=1+/ {SIZES}", {SIZES}, "sha256"),
    "an empty line more": (f"echo >> {GEOMETRY}", {GEOMETRY}, "sha256"),
    "an empty file": (f": > {SIZES}", {SIZES}, "sha256"),
    "a file removed": (f"rm {SIZES}", {SIZES}, "no such file"),
    "a link to the same bytes": (
        f"mv {SIZES} kept.py; ln -s ../kept.py {SIZES}",
        {SIZES},
        "link",
    ),
    "a link to the system": (f"ln -sf /etc/passwd {SIZES}", {SIZES}, "link"),
    "a link for the folder": (
        "mv environment moved; ln -s moved environment",
        {"environment"},
        "link",
    ),
    "a pipe in place of a file": (f"rm {SIZES}; mkfifo {SIZES}", {SIZES}, "no plain file"),
    "a module of its name": (
        "echo WALL_MM = 5 > environment.py",
        {"environment.py"},
        "in place of the environment",
    ),
    "bytecode of its name": (": > environment.pyc", {"environment.pyc"}, "in place of"),
    "a library of its name": (
        ": > environment.cpython-311-x86_64-linux-gnu.so",
        {"environment.cpython-311-x86_64-linux-gnu.so"},
        "in place of",
    ),
    "its name in another folder": (
        "mkdir -p lib/environment; echo WALL_MM = 5 > lib/environment/sizes.py",
        {"lib/environment/sizes.py"},
        "in place of",
    ),
    "a module of its name in another folder": (
        "mkdir -p lib; echo WALL_MM = 5 > lib/environment.py",
        {"lib/environment.py"},
        "in place of",
    ),
    "a package in place of a module": (
        "mkdir environment/sizes; echo WALL_MM = 5 > environment/sizes/__init__.py",
        {"environment/sizes/__init__.py"},
        "does not have",
    ),
    "bytecode without its source": (
        ": > environment/sizes.pyc",
        {"environment/sizes.pyc"},
        "does not have",
    ),
    "exported again with another number": (
        f"mv {SIZES} environment/before.py; printf 'from before import *\\nWALL_MM = 5\\n' > {SIZES}",
        {SIZES, "environment/before.py"},
        "",
    ),
    "a digest of its own": (
        f"sed -i s/=/=1+/ {SIZES}; sha256sum {SIZES} > environment/SHA256SUMS",
        {SIZES, "environment/SHA256SUMS"},
        "",
    ),
    "objectives with another cap": (
        f"sed -i 's/max_weight_g: .*/max_weight_g: 9999/' {OBJECTIVES}",
        {OBJECTIVES},
        "sha256",
    ),
    "a link for the objectives": (
        f"mv {OBJECTIVES} wider.yaml; ln -s wider.yaml {OBJECTIVES}",
        {OBJECTIVES},
        "",
    ),
    "an estimate with another cap": (
        f"sed -i 's/benchmark_max_weight_g: .*/benchmark_max_weight_g: 9999/' {ESTIMATE}",
        {ESTIMATE},
        "sha256",
    ),
}


def _plan(planner: Planner, benchmark: Benchmark) -> Bundle:
    number = planner.number
    made = [milled(f"block-{number}", 12_000, (42, 32, 12), units=100)]
    return sound_bundle(
        planner.issued, number=number, made=made, units=100, objectives=benchmark.objectives
    )


def _script(number: int) -> str:
    return (
        f'from build123d import Box, Pos\n\nparts = {{"block-{number}": '
        "Pos(30, 0, 5) * Box(40, 30, 10)}\n"
    )


async def _restored(session: Session, files: dict[str, str]) -> None:
    """What was handed over stands there again, and nothing beside it."""
    strange = "kept.py moved lib wider.yaml environment environment.*"
    back = "cp -a /tmp/kept-environment environment"
    done = await session.execute(f"rm -rf {strange} {OBJECTIVES}; {back}")
    assert 0 == done["exit_code"], f"expected the session to be cleaned, found {done}"
    for path, text in files.items():
        await session.write(path, text)


async def _holds(session: Session, files: dict[str, str], what: str) -> None:
    found = {path: (await session.read(path)).json().get("content") for path in files}
    expect_same(files, found, what=f"the files that {what} starts from")
    # For what is no text of it, its pictures say.
    done = await session.execute("cp -a environment /tmp/kept-environment")
    assert 0 == done["exit_code"], f"expected the environment to be copied, found {done}"


@asynccontextmanager
async def _coder_in(
    episodes: Episodes, benchmark: Benchmark, *turns: Turn, number: int
) -> AsyncIterator[tuple[Coder, str]]:
    """A coder who was handed a plan in an environment, and the hand-over of that plan.

    Args:
        episodes: of the stack.
        benchmark: whose environment it is.
        turns: what the coder's model does when it is let go.
        number: of the plan.
    """
    async with engineer_of(episodes, benchmark, number=number) as planner:
        bundle = _plan(planner, benchmark)
        answer = await planner.judged(bundle)
        names = {*FILES, *benchmark.files}
        accepted = expect_handed(answer, names, what=f"the plan {number}")
        await handover(episodes.controller, accepted.handover_id)
    begun = {"role": "coder", "handover_id": accepted.handover_id}
    async with at_work(episodes, *turns, **begun) as (started, session, _):
        coder = Coder(episode_id=started["episode_id"], session=session, bundle=bundle)
        yield coder, accepted.handover_id


@pytest.mark.parametrize("share", shares(3))
async def test_int_015_what_a_coder_may_not_do(episodes: Episodes, share: slice) -> None:
    """The digests of the benchmark are those of the plan and of the design; each attack is refused and named.

    The controller has recorded them, whatever an agent says. Restored, the design goes on; spoilt again it
    does not; what was handed over stays. The model provider is a stand-in: the gateway holds the models.
    """
    benchmark = await benchmark_made(episodes, 151)
    wanted = digests_of(benchmark.files)
    # Spoilt again when it is let go, it finds that out, and mends it.
    mended = use("fs_write", path=SIZES, content=benchmark.files[SIZES])
    turns = (use("submit"), mended, use("submit"))
    async with _coder_in(episodes, benchmark, *turns, number=152) as (coder, plan):
        session, given = coder.session, coder.bundle.files() | benchmark.files
        await _holds(session, given, "the coder")
        await session.write("model.py", _script(152))
        for name, (command, files, word) in [*_ATTACKS.items()][share]:
            done = await session.execute(command)
            assert 0 == done["exit_code"], f"expected {command} to be run, found {done}"
            answer = await coder.submit()
            says = [word] if word else []
            expect_found(answer, Stage.AGREE, files, what=name, says=says)
            await _restored(session, given)
        await session.execute(f"sed -i s/=/=1+/ {SIZES}")
        judged = await coder.judged(_script(152))
        found = [each.file for each in judged.findings]
        expect_same([SIZES], found, what="findings about a design in another environment")
        expect_refused(await coder.simulate(), 409, says=SIZES)
        await _restored(session, given)
        # What Python leaves of its own is no other environment.
        used = await session.execute("python3 -c 'import environment.sizes'")
        assert 0 == used["exit_code"], f"expected the environment to be imported, found {used}"
        judged = await coder.judged(_script(152))
        assert judged.passed, f"expected the design to pass, found {judged.findings}"
        simulated = await coder.simulate()
        assert 200 == simulated.status, f"expected the design to be simulated, found {simulated}"
        names = {*FILES, *benchmark.files, "model.py"}
        one = expect_handed(await coder.submit(), names, what="the design")
        await session.execute(f"sed -i s/=/=1+/ {SIZES}")
        # It has passed, been simulated and handed over: none of it holds in another environment.
        expect_refused(await coder.simulate(), 409, says=SIZES)
        expect_found(await coder.submit(), Stage.AGREE, {SIZES}, what="the design, spoilt again")
        for handed in (benchmark.handover_id, plan, one.handover_id):
            recorded = await environment_kept(episodes.controller, handed)
            expect_same(wanted, recorded, what=f"digests on record of the environment in {handed}")
            path = f"/handovers/{handed}/files/{SIZES}"
            kept = await episodes.controller.get(path)
            expect_same(benchmark.files[SIZES], kept.text, what=f"bytes of {path}")
    kept_geometry = (await handover(episodes.controller, benchmark.handover_id)).geometry
    found_solids = [each.model_dump() for each in kept_geometry]
    expect_same(geometry_of(151), found_solids, what="solids of the environment on record")
    episode = await episodes.get(coder.episode_id)
    tools = [each for each in episode["traces"] if each["kind"] == "tool"]
    expect_same([False, True, True], [each["ok"] for each in tools], what="its agent's own calls")
    told = tools[0]["detail"]["result"]
    assert SIZES in told, f"expected the agent to be told about {SIZES}, found {told}"
    first, *more = episode["handovers"]
    expect_same(one.handover_id, first, what="the first hand-over of the coder")
    expect_same(1, len(more), what="hand-overs of its agent's own")
    recorded = await environment_kept(episodes.controller, more[0])
    expect_same(wanted, recorded, what="digests of what its agent handed over")


async def test_int_015_planners_and_sessions(breakable: Episodes) -> None:
    """A planner hands the environment on as it is; one environment is none of another session, after a restart too.

    Of its objectives a planner may lower the caps, and no more. The model provider is a stand-in: the gateway
    holds the models.
    """
    episodes = breakable
    one, other = await benchmark_made(episodes, 153), await benchmark_made(episodes, 154)
    async with (
        engineer_of(episodes, one, number=155) as planner,
        engineer_of(episodes, other, number=156) as second,
    ):
        bundle = _plan(planner, one)
        for engineer, benchmark in ((planner, one), (second, other)):
            await _holds(engineer.session, benchmark.files, f"planner {engineer.number}")
        for name in ("another number", "a link to the same bytes", "a module of its name"):
            command, files, word = _ATTACKS[name]
            await planner.session.execute(command)
            answer = await planner.judged(bundle)
            expect_found(answer, Stage.AGREE, files, what=f"a plan beside {name}", says=[word])
            await _restored(planner.session, one.files | {OBJECTIVES: bundle.files()[OBJECTIVES]})
        async with episodes.stack.outage("worker", "kill"):
            pass
        await planner.session.write(SIZES, other.files[SIZES])
        answer = await planner.judged(bundle)
        expect_found(answer, Stage.AGREE, {SIZES}, what="a file of another environment")
        await planner.session.write(SIZES, one.files[SIZES])
        for engineer, benchmark in ((second, other), (planner, one)):
            answer = await engineer.judged(_plan(engineer, benchmark))
            names = {*FILES, *benchmark.files}
            what = f"the plan {engineer.number}"
            accepted = expect_handed(answer, names, what=what)
            recorded = await environment_kept(episodes.controller, accepted.handover_id)
            expect_same(digests_of(benchmark.files), recorded, what=f"environment of {what}")


def _with(number: int, text: str, other: str) -> dict[str, str]:
    made = environment_of(number)
    script = made[GEOMETRY].replace(text, other)
    assert script != made[GEOMETRY], f"cannot change {text!r}: the script does not have it"
    return made | {GEOMETRY: script}


def _unsound(number: int) -> dict[str, tuple[dict[str, str], Collection[str]]]:
    """Environments that are none, and words about each."""
    wide = _with(number, "Box(180, 80, 4)", "Box(280, 80, 4)")
    through = _with(number, "Pos(120, 0, 20)", "Pos(120, 0, -2)")
    return {
        "a floor beyond the simulation's bounds": (wide, [f"floor-{number}.max_mm.x", "190"]),
        "a wall within the floor": (through, [f"floor-{number}", "within"]),
        "a script that fails": (_with(number, "sizes", "size"), ["No module named"]),
        "a script that leaves nothing": (_with(number, "parts", "pieces"), ["no solid"]),
        "what lies elsewhere in the session": (
            _with(number, "from sizes", "import sys\nsys.path.append('..')\nfrom lengths"),
            ["lengths"],
        ),
    }


#: Cubes of 10 mm in one environment, and where each is.
_CUBES: Final = {
    "Alpha": (0, 0, 20),
    "bravo": (60, 0, 20),
    "çarli": (0, 30, 20),
    "delta": (5, 5, 25),
    "echo": (110, 0, 20),
    "fox": (67, 3, 20),
    "golf": (120, 0, 20),
    "hotel": (-9.9, -9.9, 15),
}


async def _each_that_meets(session: Session) -> None:
    """Of several solids each two that pass through each other are told of, next to each other or not."""
    rows = "".join(f"    {name!r}: Pos{at} * Box(10, 10, 10),\n" for name, at in _CUBES.items())
    await session.write(GEOMETRY, f"from build123d import Box, Pos\n\nparts = {{\n{rows}}}\n")
    found = expect_found(
        await hand_over(session), Stage.PRICE, {GEOMETRY}, what="cubes of which some meet"
    )
    # "echo" and "golf" have a face in common, "Alpha" and "hotel" a volume that is not worth a finding.
    told = [f"{each.where} {each.found}" for each in found]
    meeting = {
        (one, other)
        for one, other in itertools.combinations(_CUBES, 2)
        if any(one in words and other in words for words in told)
    }
    expect_same(
        {("Alpha", "delta"), ("bravo", "fox")}, meeting, what="solids that are told to meet"
    )


async def test_int_015_an_environment_is_sound_before_it_is_fixed(episodes: Episodes) -> None:
    """Geometry that is not there, cannot be built or does not fit is refused and named; its benchmark stays.

    The coder of a benchmark makes its environment, and leaves its objectives as they are. The model provider
    is a stand-in: the gateway holds the models.
    """
    work: dict[str, Any] = {"purpose": Purpose.BENCHMARK.value}
    async with planner_at_work(episodes, number=157, **work) as planner:
        bundle = planner.sound()
        await planner.leave(planned(bundle.files()) | {PLAN: None})
        expect_found(await planner.submit(), Stage.PRESENT, {PLAN}, what="no plan of a benchmark")
        await planner.leave({PLAN: bundle.plan})
        accepted = expect_handed(
            await planner.submit(), {PLAN, TODO, OBJECTIVES}, what="a benchmark's plan"
        )
        await handover(episodes.controller, accepted.handover_id)
    begun = {"role": "coder", "handover_id": accepted.handover_id, **work}
    async with at_work(episodes, **begun) as (started, session, _):
        expect_found(await hand_over(session), Stage.PRESENT, {GEOMETRY}, what="no geometry")
        await session.write("lengths.py", "WALL_MM = 20\n")
        for name, (files, says) in _unsound(157).items():
            for path, text in files.items():
                await session.write(path, text)
            answer = await hand_over(session)
            expect_found(answer, Stage.PRICE, {GEOMETRY}, what=name, says=says)
        await _each_that_meets(session)
        for path, text in environment_of(157).items():
            await session.write(path, text)
        objectives = bundle.files()[OBJECTIVES]
        wider = objectives.replace("max_weight_g: ", "max_weight_g: 9")
        await session.write(OBJECTIVES, wider)
        answer = await hand_over(session)
        expect_found(answer, Stage.AGREE, {OBJECTIVES}, what="other objectives of its planner")
        await session.write(OBJECTIVES, objectives)
        for _ in range(2):
            names = {PLAN, TODO, OBJECTIVES, "lengths.py", *environment_of(157)}
            expect_handed(await hand_over(session), names, what="a sound environment")
        await session.write(SIZES, "WALL_MM = 30\n")
        two = expect_handed(await hand_over(session), names, what="another sound environment")
        found = (await handover(episodes.controller, two.handover_id)).geometry
        volumes = [each.volume_mm3 for each in found]
        expect_same([57_600.0, 7_200.0], volumes, what="volumes of the other environment")
    assert started["episode_id"], f"expected the coder to have an episode, found {started}"
