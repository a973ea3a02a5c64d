"""INT-005: a planner hands over all four files, sound, or nothing; what it hands over is kept as it was."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any, Final

import pytest
import trio
from workbench_contract.findings import Stage

from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.turns import use
from suites.integration.bundles import (
    ESTIMATE,
    FILES,
    OBJECTIVES,
    PLAN,
    TODO,
    Bundle,
    changed,
    sound,
)
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.planners import (
    Planner,
    expect_accepted,
    expect_found,
    handover,
    planner_at_work,
)
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-005"), pytest.mark.integration_p0]

#: A hand-over that does not exist.
_UNKNOWN: Final = "00000000-0000-4000-8000-00000000dead"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _bought(episodes: Episodes, *categories: str) -> list[tuple[dict[str, Any], int]]:
    """One part of each category, each in a quantity of its own."""
    catalogue = Catalogue(episodes.controller)
    found = [
        (await catalogue.search(category=each, limit=1))["candidates"][0] for each in categories
    ]
    return [(part, 3 + place) for place, part in enumerate(found)]


async def _submissions(planner: Planner) -> list[dict[str, Any]]:
    events = calls(await planner.session.events(), "plan_submission")
    return [event["payload"] for event in events]


async def _is_kept(controller: HttpClient, handover_id: str, files: dict[str, str]) -> None:
    """The controller has a hand-over with exactly these files, by digest and byte for byte."""
    kept = await handover(controller, handover_id)
    expect_same(
        {path: _sha256(text) for path, text in files.items()},
        {each.path: each.sha256 for each in kept.files},
        what=f"digests of hand-over {handover_id}",
    )
    told = (await controller.get(f"/handovers/{handover_id}")).json()
    utc(told["accepted_at"], what=f"when hand-over {handover_id} was accepted")
    for path, text in files.items():
        answer = await controller.get(f"/handovers/{handover_id}/files/{path}")
        assert 200 == answer.status, f"expected {path} of a hand-over, found {answer}"
        assert text.encode() == answer.body, (
            f"expected {path} of hand-over {handover_id} byte for byte, found {answer.text[:300]!r}"
        )


async def test_int_005_an_agent_hands_over_and_the_next_starts_from_it(episodes: Episodes) -> None:
    """An agent is refused while a file is missing, told which, and accepted with all four.

    Whoever goes on starts from the bytes that were accepted, whatever has become of them since. The model
    provider is a stand-in: the gateway does the turns.
    """
    bought = await _bought(episodes, "screw", "bearing")
    bundle = sound("", number=101, bought=bought)
    files = bundle.files()
    turns = (
        use("fs_write", path=OBJECTIVES, content=files[OBJECTIVES]),
        use("fs_write", path=PLAN, content=files[PLAN]),
        use("fs_delete", path=ESTIMATE),
        use("submit"),
        use("fs_write", path=ESTIMATE, content=files[ESTIMATE]),
        use("submit"),
        use("fs_write", path=PLAN, content="what was accepted is not this\n"),
    )
    async with planner_at_work(episodes, *turns, number=101) as planner:
        ticked = planner.sound(bought=bought).todo
        await planner.leave({TODO: ticked})
    files[TODO] = ticked
    episode = await episodes.get(planner.episode_id)
    told = [trace for trace in episode["traces"] if trace["name"] == "submit"]
    expect_same([False, True], [trace["ok"] for trace in told], what="whether each was accepted")
    assert ESTIMATE in told[0]["detail"]["result"], (
        f"the agent was refused and not told that {ESTIMATE} is missing: {told[0]}"
    )
    stored = [each["payload"] for each in calls(await episodes.events(planner.episode_id), _KIND)]
    expect_same([False, True], [each["accepted"] for each in stored], what="events of submissions")
    expect_same([ESTIMATE], [each["file"] for each in stored[0]["findings"]], what="first findings")
    digests = {each["path"]: each["sha256"] for each in stored[1]["files"]}
    expected = {path: _sha256(text) for path, text in files.items()}
    expect_same(expected, digests, what="digests in the event of what was accepted")
    assert 1 == len(episode["handovers"]), f"expected one hand-over, found {episode['handovers']}"
    await _is_kept(episodes.controller, episode["handovers"][0], files)
    coder = await episodes.run(new_token(), handover_id=episode["handovers"][0])
    session = episodes.session(coder["session_id"])
    expect_same(
        files,
        {path: (await session.read(path)).json().get("content") for path in files},
        what="the files that the next role starts from",
    )


_KIND: Final = "plan_submission"


async def test_int_005_what_is_missing_is_named(episodes: Episodes) -> None:
    """Each file that is absent, empty, blank, a folder or a link is named, alone or with others.

    Refused is refused: there is no hand-over then, and one event that says so. The model provider is a
    stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=102) as planner:
        files = planner.sound().files()
        for path, text in itertools.product(FILES, (None, "", " \n\t\r\n", "\u2003\n")):
            await planner.leave(files | {path: text})
            answer = await planner.submit()
            expect_found(answer, Stage.PRESENT, {path}, what=f"{path} of {text!r}")
        for missing in ({PLAN, ESTIMATE}, {TODO, OBJECTIVES, ESTIMATE}, set(FILES)):
            await planner.leave(files | dict.fromkeys(missing))
            answer = await planner.submit()
            expect_found(answer, Stage.PRESENT, missing, what=f"no {sorted(missing)}")
        for path, command in (
            (PLAN, "ln -s /etc/passwd plan.md"),
            (OBJECTIVES, f"mkdir {OBJECTIVES}"),
            (ESTIMATE, f"ln -s nowhere {ESTIMATE}"),
            (TODO, f"mkfifo {TODO}"),
        ):
            await planner.leave(files | {path: None})
            made = await planner.session.execute(command)
            assert 0 == made["exit_code"], f"expected {command} to be run, found {made}"
            answer = await planner.submit()
            expect_found(answer, Stage.PRESENT, {path}, what=command)
            assert "root:" not in answer.text, f"a refusal shows what a link leads to: {answer}"
            await planner.session.execute(f"rm -rf {path}")
        refused = await _submissions(planner)
        assert 23 == len(refused), (
            f"expected an event for each of 23 refusals, found {len(refused)}"
        )
        taken = [each for each in refused if each["accepted"] or not each["findings"]]
        assert not taken, f"expected every event to say that it was refused, and why, found {taken}"
        found = await episodes.get(planner.episode_id)
        assert [] == found["handovers"], (
            f"a refused submission is a hand-over: {found['handovers']}"
        )
        await planner.leave(dict(reversed(files.items())))
        accepted = expect_accepted(await planner.submit(), "all four, in another order")
        await _is_kept(episodes.controller, accepted.handover_id, files)


async def test_int_005_all_findings_of_the_first_stage_that_has_any(episodes: Episodes) -> None:
    """What is missing comes before what is wrong, that before what disagrees; each stage tells all.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=103) as planner:
        bundle = planner.sound()
        no_plan = "## 1. Solution Overview\n"
        open_list = planner.issued
        outside = changed(bundle.objectives, "goal_zone.max_mm.0", 1_000)
        dear = changed(bundle.estimate, "constraints.benchmark_max_unit_cost_usd", 99)
        wrong = bundle.replaced(plan=no_plan, todo=open_list, objectives=outside)
        for bad, files, stage, found in (
            (wrong, {"objectives": None}, Stage.PRESENT, {OBJECTIVES}),
            (wrong, {}, Stage.VALID, {PLAN, TODO, OBJECTIVES}),
            (wrong.replaced(estimate=dear), {}, Stage.VALID, {PLAN, TODO, OBJECTIVES}),
            (bundle.replaced(todo=open_list, estimate=dear), {}, Stage.VALID, {TODO}),
            (bundle.replaced(estimate=dear), {}, Stage.AGREE, {ESTIMATE}),
            (bundle, {"preliminary_cost_estimation": "a: ["}, Stage.VALID, {ESTIMATE}),
        ):
            answer = await planner.judged(bad, **files)
            expect_found(answer, stage, found, what=f"a bundle wrong in {sorted(found)}")
        answer = await planner.judged(wrong)
        findings = expect_found(answer, Stage.VALID, {PLAN, TODO, OBJECTIVES}, what="all of it")
        of_plan = [each for each in findings if each.file == PLAN]
        of_list = [each for each in findings if each.file == TODO]
        entries = open_list.count("- [ ]")
        assert len(of_plan) >= 4, f"expected a finding for each of 4 headings, found {of_plan}"
        assert entries == len(of_list), f"expected {entries} open entries told, found {of_list}"
        several, says = _several(bundle, planner.issued)
        answer = await planner.judged(several)
        what = "several mistakes of several kinds in each file"
        expect_found(answer, Stage.VALID, set(FILES), what=what, says=says)
        expect_accepted(await planner.judged(bundle), "the same, corrected")


def _several(bundle: Bundle, issued: str) -> tuple[Bundle, list[str]]:
    """A bundle whose files each have several mistakes, none of which hides another, and words about each."""
    part = bundle.estimate["manufactured_parts"][0]["id"]
    plan = bundle.plan
    for text, other in (
        ("## 1. Solution Overview", "## 1. Overview"),
        ("1. Press the flap", "- Press the flap"),
        ("2. Screw the base", "- Screw the base"),
        ("## 5. Risk", "## 6. Appendix\n\nMore.\n\n## 5. Risk"),
        ("- The ball may miss: the flap is adjustable.", "- TODO"),
    ):
        plan = plan.replace(text, other)
    lines = [line for line in bundle.todo.split("\n") if line.startswith("- [")]
    first, second, *_, last = lines
    unticked = next(line for line in issued.split("\n") if last.removeprefix("- [x]") in line)
    todo = "\n".join([first.replace("[x]", "[X]"), *lines[2:-1], unticked, "All done.", ""])
    objectives, estimate = bundle.objectives, bundle.estimate
    for path, value in (
        ("build_zone.max_mm.0", 1_000),
        ("forbid_zones.0.min_mm.2", 500),
        ("moving_parts.1.name", "flap"),
        ("moving_parts.0.control", ...),
        ("constraints.max_weight_g", "many"),
        ("randomization.colour", "red"),
    ):
        objectives = changed(objectives, path, value)
    for path, value in (
        ("constraints.planner_target_max_unit_cost_usd", 900),
        ("manufactured_parts.0.stock_mm", [30, 30, 30]),
        ("manufactured_parts.1.volume_mm3", "some"),
        ("manufactured_parts.2.id", part),
        ("assembly.steps.0.parts", [part, "nobody"]),
        ("totals.colour", "red"),
    ):
        estimate = changed(estimate, path, value)
    second_id = second.rpartition("todo:")[2].partition(" ")[0]
    says = [
        *("1. Solution Overview", "6. Appendix", "3. Assembly Strategy", "TODO"),
        *("[X]", second_id, "open", "All done."),
        *("build_zone", "forbid_zones[0]", "moving_parts[1].name", "moving_parts[0].control"),
        *("max_weight_g", "randomization.colour"),
        *("planner_target_max_unit_cost_usd", "stock_mm", "manufactured_parts[1].volume_mm3"),
        *("manufactured_parts[2].id", "nobody", "totals.colour"),
    ]
    made = Bundle(plan=plan, todo=todo, objectives=objectives, estimate=estimate)
    return made, says


async def test_int_005_rounds(episodes: Episodes) -> None:
    """Accepted, refused, accepted: each acceptance is a hand-over with its own bytes, in order.

    A submission that is repeated, since its answer was lost, is answered as before and is not another
    one. The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=104) as planner:
        first = planner.sound()
        one = expect_accepted(await planner.judged(first), "the first round")
        bad = changed(first.estimate, "totals", ...)
        await planner.leave(first.replaced(estimate=bad).files())
        answers = [await planner.submit(job_id="round-2") for _ in range(2)]
        for answer in answers:
            expect_found(
                answer, Stage.VALID, {ESTIMATE}, what="an estimate without totals, second round"
            )
        await _is_kept(episodes.controller, one.handover_id, first.files())
        third = first.planned("A flap throws the ball", "In round 3 a flap throws the ball: ä😀")
        await planner.leave(third.files())
        answers = [await planner.submit(job_id="round-3") for _ in range(3)]
        two = expect_accepted(answers[0], "the third round")
        expect_same(
            [answers[0].json()] * 3,
            [each.json() for each in answers],
            what="a submission that was asked for three times under one id",
        )
        accepted = [each["accepted"] for each in await _submissions(planner)]
        expect_same([True, False, True], accepted, what="events of three submissions, one repeated")
        await _is_kept(episodes.controller, two.handover_id, third.files())
        await _is_kept(episodes.controller, one.handover_id, first.files())
        found = (await episodes.get(planner.episode_id))["handovers"]
        expect_same([one.handover_id, two.handover_id], found, what="hand-overs of the episode")


async def test_int_005_a_restart_forgets_nothing(breakable: Episodes) -> None:
    """Killed at any moment, the stack knows the list, what was handed over, and what is refused.

    Without the catalogue a hand-over that names parts of it is not judged: 503, and nothing is accepted.
    The model provider is a stand-in: the gateway holds the planner's model.
    """
    episodes = breakable
    bought = await _bought(episodes, "washer")
    async with planner_at_work(episodes, number=105) as planner:
        bundle = planner.sound(bought=bought)
        async with episodes.stack.outage("worker", "kill"):
            pass
        shorter = "\n".join(bundle.todo.split("\n")[:-2]) + "\n"
        answer = await planner.judged(bundle.replaced(todo=shorter))
        expect_found(
            answer, Stage.VALID, {TODO}, what="a list without its last entry, after a restart"
        )
        await planner.leave(bundle.files())
        one = expect_accepted(await planner.submit(), "a sound bundle, after a restart")
        async with episodes.stack.outage("controller", "kill"):
            refused = await planner.submit()
            expect_refused(refused, 503, says="catalogue")
            plain = planner.sound()
            two = expect_accepted(await planner.judged(plain), "what names no catalogue part")
            # Nobody has fetched it yet.
            await planner.leave({PLAN: "what was accepted is not this\n"})
            async with episodes.stack.outage("controller-worker", "kill"):
                pass
        await _is_kept(episodes.controller, one.handover_id, bundle.files())
        await _is_kept(episodes.controller, two.handover_id, plain.files())
        found = (await episodes.get(planner.episode_id))["handovers"]
        expect_same([one.handover_id, two.handover_id], found, what="hand-overs after restarts")


async def test_int_005_two_at_once_are_not_mixed_up(episodes: Episodes) -> None:
    """Two planners at the same time have lists of their own, and hand over what is theirs.

    What is one's is refused of the other. The model provider is a stand-in: the gateway holds the models.
    """
    async with (
        planner_at_work(episodes, number=106, seed=106) as one,
        planner_at_work(episodes, number=107, seed=207) as other,
    ):
        assert one.issued != other.issued, f"two planners have one list: {one.issued}"
        answer = await one.judged(one.sound().replaced(todo=other.sound().todo))
        expect_found(answer, Stage.VALID, {TODO}, what="the list of another planner")
        answers: dict[int, Response] = {}

        async def submit(planner: Planner) -> None:
            answers[planner.number] = await planner.judged(planner.sound())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit, one)
            nursery.start_soon(submit, other)
        for planner in (one, other):
            accepted = expect_accepted(answers[planner.number], f"the bundle {planner.number}")
            files = planner.sound().files()
            await _is_kept(episodes.controller, accepted.handover_id, files)
            kept = await handover(episodes.controller, accepted.handover_id)
            owner = (kept.episode_id, kept.session_id)
            mine = (planner.episode_id, planner.session.id)
            expect_same(mine, owner, what=f"whose hand-over {planner.number} is")


async def test_int_005_only_what_was_handed_over_is_started_from(episodes: Episodes) -> None:
    """By single and batch route alike: a hand-over that there is not is refused, and nothing starts.

    A batch of two starts from the same one, each in a session of its own. The model provider is a
    stand-in: the gateway does the turns.
    """
    for unknown in (_UNKNOWN, "x", "../etc", ""):
        word = new_token()
        single = {"task": word, "role": "coder", "handover_id": unknown}
        for path, body in (
            ("/episodes", single),
            ("/episodes/batch", {"episodes": [{"task": word, "role": "coder"}, single]}),
        ):
            expect_refused(await episodes.controller.post(path, body), 404, 422)
        listed = await episodes.controller.get("/episodes", params={"limit": 500})
        assert word not in listed.text, f"an episode was started from hand-over {unknown!r}"
    async with planner_at_work(episodes, number=108) as planner:
        bundle = planner.sound()
        accepted = expect_accepted(await planner.judged(bundle), "a sound bundle")
        await handover(episodes.controller, accepted.handover_id)
    tokens = [new_token(), new_token()]
    for token in tokens:
        await episodes.rehearse(token)
    answer = await episodes.ask_batch(
        {token: {"handover_id": accepted.handover_id} for token in tokens}
    )
    assert 202 == answer.status, f"expected a batch from a hand-over accepted, found {answer}"
    for each in answer.json()["episodes"]:
        found = await episodes.until(each["episode_id"], "completed")
        expect_same(accepted.handover_id, found["handover_id"], what="what the episode starts from")
        read = await episodes.session(each["session_id"]).read(PLAN)
        expect_same(bundle.plan, read.json()["content"], what="the plan that a batch starts from")


async def test_int_005_files_that_are_no_text(episodes: Episodes) -> None:
    """Bytes that are no UTF-8, a byte order mark, U+0000 and a file far too large are findings.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=109) as planner:
        files = planner.sound().files()
        for path, command in (
            (PLAN, r"printf '\377\376' >> plan.md"),
            (OBJECTIVES, rf"printf '\000' >> {OBJECTIVES}"),
            (TODO, r"(printf '\357\273\277'; cat todo.md) > t && mv t todo.md"),
            (ESTIMATE, rf"head -c 3000000 /dev/zero | tr '\0' 'a' >> {ESTIMATE}"),
        ):
            await planner.leave(files)
            made = await planner.session.execute(command)
            assert 0 == made["exit_code"], f"expected {command} to be run, found {made}"
            answer = await planner.submit()
            expect_found(answer, Stage.VALID, {path}, what=command)
            assert len(answer.body) < 200_000, f"a refusal of {len(answer.body)} bytes: {command}"
        await planner.leave(files)
        expect_accepted(await planner.submit(), "the same files without what was added")
