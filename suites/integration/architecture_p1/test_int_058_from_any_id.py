"""From any one id of an episode all its others are found, and none of another episode's."""

from __future__ import annotations

from typing import Any, Final

import pytest
from workbench_contract.jobs import Job, JobRequest, Operation

from harness_core.doubles.turns import fail, use
from suites.integration.comparing import expect_same
from suites.integration.document import live_document
from suites.integration.episodes import Episodes, new_token
from suites.integration.following import JOB, OBJECT, Id, Records, ids_of
from suites.integration.messages import answered, sent
from suites.integration.observed import Langfuse, linked
from suites.integration.patience import EPISODE_S, eventually

pytestmark = [pytest.mark.covers("INT-058"), pytest.mark.integration_p1]

_SCENE: Final = (
    '<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .2"><freejoint/>'
    '<geom type="box" size=".05 .05 .05"/></body></worldbody></mujoco>'
)
_PART: Final = "from build123d import Box\n\npart = Box(10, 20, 30)\n"


async def test_int_058_from_any_id_to_all_others(episodes: Episodes, langfuse: Langfuse) -> None:
    """Episode, trace, workflow, job, object, trace at Langfuse: who has one of them has all, by reads alone.

    Three episodes run at once, with files of the same names: two are completed and have jobs, of which one
    fails, and one fails itself. The model provider and Langfuse are stand-ins: the gateway does the turns, a
    recorder takes what is sent.
    """
    known = await _three_at_once(episodes)
    jobs = await _their_jobs(episodes, known[0], known[1])
    documents = [await linked(episodes, each["episode_id"]) for each in known]
    whose = [ids_of(*each) for each in zip(documents, [*jobs, []], strict=True)]
    counts = [sorted(one.kind for one in ids if one.kind in (JOB, OBJECT)) for ids in whose]
    expect_same(
        [[JOB] * len(jobs[0]) + [OBJECT] * 2, [JOB, OBJECT, OBJECT], []],
        counts,
        what="jobs and objects of the three",
    )
    live = await live_document(episodes.controller)
    records = Records(episodes, langfuse, live, frozenset[Id]().union(*whose))
    for ids in whose:
        for start in sorted(ids):
            ways = await records.found_from(start)
            lost = [str(each) for each in sorted(ids - ways.keys())]
            assert not lost, (
                f"from {start} all of its episode is found: expected {lost} too, found what hangs together "
                f"as {sorted(ways.values())}; on record of it: {await records.text_of(start)}"
            )
            others = [ways[each] for each in sorted(ways.keys() - ids)]
            assert not others, f"from {start} nothing of another episode is found, found {others}"


async def _three_at_once(episodes: Episodes) -> list[dict[str, Any]]:
    """Three that have ended, the last by its failure; the work of each began before that of any ended."""
    tokens = [new_token() for _ in range(3)]
    for token, ends in zip(tokens, ((), (), (fail(400),)), strict=True):
        await episodes.rehearse(
            token,
            use("fs_write", path="assets/report.md", content=f"of {token}"),
            use("fs_write", path="assets/parts/list.md", content=f"parts of {token}"),
            episodes.waiting(),
            *ends,
        )
    accepted = [await episodes.submit(token) for token in tokens]
    for each in accepted:
        await episodes.begun(each["session_id"])
    for each in accepted:
        await episodes.release(each["session_id"])
    ends = ("completed", "completed", "failed")
    return [
        await episodes.until(each["episode_id"], end)
        for each, end in zip(accepted, ends, strict=True)
    ]


async def _their_jobs(
    episodes: Episodes, first: dict[str, Any], second: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Ids of jobs of two episodes that were at work at once, once all have ended."""
    await episodes.session(first["session_id"]).write("scene.xml", _SCENE)
    await episodes.session(second["session_id"]).write("part.py", _PART)
    asked = {"model": "scene.xml", "seed": 7, "variant": "drop/7", "duration_s": 0.1}
    of_first = [await _begun(episodes, first, Operation.SIMULATE, asked)]
    of_second = [await _begun(episodes, second, Operation.ANALYZE, {"model": "part.py"})]
    # What the operation does not take is refused now, or the end of a job that is on record all the same.
    malformed = sent(JobRequest(operation=Operation.ANALYZE, arguments={"model": 7}))
    path = f"/episodes/{first['episode_id']}/jobs"
    answer = await episodes.controller.post(path, malformed)
    assert answer.status in {202, 422}, f"expected 202 or 422 for what is no work, found {answer}"
    if answer.status == 202:
        of_first.append(answered(answer, Job).job_id)
    for job_id in (*of_first, *of_second):
        await _ended(episodes, job_id)
    return of_first, of_second


async def _begun(
    episodes: Episodes, episode: dict[str, Any], operation: Operation, arguments: dict[str, Any]
) -> str:
    body = sent(JobRequest(operation=operation, arguments=arguments))
    answer = await episodes.controller.post(f"/episodes/{episode['episode_id']}/jobs", body)

    assert 202 == answer.status, f"expected the job to be accepted with 202, found {answer}"
    return answered(answer, Job).job_id


async def _ended(episodes: Episodes, job_id: str) -> None:
    last: list[Job] = []

    async def over() -> bool:
        answer = await episodes.controller.get(f"/jobs/{job_id}")
        last[:] = [answered(answer, Job)]
        return last[0].status.final

    await eventually(
        over, seconds=EPISODE_S, expected=f"job {job_id} to have ended", seen=lambda: last
    )
