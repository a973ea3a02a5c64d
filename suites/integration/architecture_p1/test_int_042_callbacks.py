"""Long work is answered at once; it moves on by signed reports, and by nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from workbench_contract.jobs import (
    SIGNATURE,
    Callback,
    CallbackTaken,
    Job,
    JobList,
    JobRequest,
    JobStatus,
    Operation,
    signature_of,
)

from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from harness_core.system.subject import Subject
from suites.integration.comparing import expect_same, in_order, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.messages import answered, sent
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.scenes import scene
from suites.integration.sessions import Session
from suites.integration.stack import layout_of

pytestmark = [pytest.mark.covers("INT-042"), pytest.mark.integration_p1]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000042"

#: As many as may be asked for at once, of so many bodies: what a job comes to is long.
_MOST_RUNS: Final = 100
_BODIES: Final = 9

#: A part whose script lasts until the test lets it go on.
_GATED: Final = """\
import os
import time

from build123d import Box

open("begun", "w").close()
while not os.path.exists("go-on"):
    time.sleep(0.02)
part = Box(10, 20, 30)
"""


async def test_int_042_work_completes_by_report(episodes: Episodes) -> None:
    """Jobs of two episodes at once are queued, then running, then completed or failed, each with its result.

    What it is asked for is what the worker's own operation answers, whole, however long it is. The model
    provider is a stand-in.
    """
    first, second = await _episode(episodes), await _episode(episodes)
    session = episodes.session(first["session_id"])
    await session.write("scene.xml", scene(boxes=_BODIES))
    held = await _gated(episodes, second)
    asked = {
        "model": "scene.xml",
        "seed": 7,
        "variant": "drop/7",
        "duration_s": 0.1,
        "runs": _MOST_RUNS,
    }
    quick = await _begin(episodes, first, Operation.SIMULATE, asked)
    lost = await _begin(episodes, first, Operation.SIMULATE, asked | {"model": "nowhere.xml"})

    done = await _until(episodes, quick.job_id, JobStatus.COMPLETED)
    assert done.result is not None, f"a completed job has its result: found {done}"
    expect_same(
        (7, "drop/7"), (done.result["seed"], done.result["variant"]), what="what was simulated"
    )
    direct = await session.post("/benchmark/simulate", **asked)
    assert 200 == direct.status, f"expected the same asked for directly, found {direct}"
    expect_same(direct.json()["outcome"], done.result["outcome"], what="outcome of the two")
    expect_same(_MOST_RUNS, len(done.result["runs"]), what="runs in the result of the job")
    expect_same(direct.json()["runs"], done.result["runs"], what="runs of the two")
    failed = await _until(episodes, lost.job_id, JobStatus.FAILED)
    assert "nowhere.xml" in failed.reason, f"the reason names what is missing: found {failed}"
    still = await _job(episodes, held.job_id)
    assert JobStatus.RUNNING is still.status, f"expected the other at work, found {still}"
    assert still.result is None, f"nothing has come of it yet: found {still}"
    await episodes.release(second["session_id"])
    other = await _until(episodes, held.job_id, JobStatus.COMPLETED)
    for job, episode in ((done, first), (failed, first), (other, second)):
        _is_of(job, episode)
    await _are_listed(episodes, first, [lost.job_id, quick.job_id])
    await _are_listed(episodes, second, [held.job_id])


async def _are_listed(
    episodes: Episodes, episode: Mapping[str, Any], latest_first: list[str]
) -> None:
    """An episode's own jobs, latest first, whole and page by page."""
    path = f"/episodes/{episode['episode_id']}/jobs"
    pages = [{}, *({"limit": 1, "offset": at} for at in range(len(latest_first) + 1))]
    for page in pages:
        answer = await episodes.controller.get(path, params=page)
        assert 200 == answer.status, f"expected the jobs of an episode, found {answer}"
        found = answered(answer, JobList)
        first = page.get("offset", 0)
        wanted = latest_first[first : first + page.get("limit", len(latest_first))]
        expect_same(wanted, [each.job_id for each in found.jobs], what=f"jobs listed by {page}")
        expect_same(len(latest_first), found.total, what=f"jobs in all, listed by {page}")


@pytest.mark.parametrize(("service", "how"), [("controller", "kill"), ("postgres", "stop")])
async def test_int_042_a_controller_that_was_away_is_told_later(
    breakable: Episodes, service: str, how: str
) -> None:
    """What a worker has to report while the controller is killed is there when it is back, once.

    So it is of one that is there and has no database, and says so. The model provider is a stand-in.
    """
    episode = await _episode(breakable)
    session = breakable.session(episode["session_id"])
    job = await _gated(breakable, episode)
    async with breakable.stack.outage(service, how):
        await session.write("go-on", "")

        async def over() -> bool:
            return bool(calls(await session.events(), "manufacturability_check"))

        await eventually(over, seconds=EPISODE_S, expected="the work done, while nobody is told")
    done = await _until(breakable, job.job_id, JobStatus.COMPLETED)
    _is_of(done, episode)
    again = await _begin(breakable, episode, Operation.ANALYZE, {"model": "part.py"})
    _is_of(await _until(breakable, again.job_id, JobStatus.COMPLETED), episode)


async def test_int_042_what_waits_to_be_told_outlives_the_worker(breakable: Episodes) -> None:
    """A worker that is killed while the controller is away tells it later how the job ended, once.

    Killed before its report is written, it tells of a failure. The model provider is a stand-in.
    """
    episode = await _episode(breakable)
    session = breakable.session(episode["session_id"])
    job = await _gated(breakable, episode)
    async with breakable.stack.outage("controller", "kill"):
        await session.write("go-on", "")

        async def over() -> bool:
            return bool(calls(await session.events(), "manufacturability_check"))

        await eventually(over, seconds=EPISODE_S, expected="the work done, while nobody is told")
        async with breakable.stack.outage("worker", "kill"):
            pass

    async def told() -> Job | None:
        found = await _job(breakable, job.job_id)
        return found if found.status in {JobStatus.COMPLETED, JobStatus.FAILED} else None

    ended: Job = await eventually(
        told, seconds=EPISODE_S, expected="the end of a job whose worker was killed untold"
    )
    _is_of(ended, episode)


async def test_int_042_a_worker_that_is_killed(breakable: Episodes) -> None:
    """The job that it was at has failed, with the reason, and one that it never had as well.

    The next one is done. The model provider is a stand-in.
    """
    episode = await _episode(breakable)
    job = await _gated(breakable, episode)
    async with breakable.stack.outage("worker", "kill"):
        kept = await _job(breakable, job.job_id)
        assert JobStatus.RUNNING is kept.status, f"expected it as it was told last, found {kept}"
        answer = await _ask(breakable, episode["episode_id"], Operation.ANALYZE, {"model": "x.py"})
        expect_refused(answer, 503, says="worker")
        never = await _job(breakable, answer.json()["job_id"])
        assert JobStatus.FAILED is never.status, f"a job that nobody has has failed: found {never}"
    lost = await _until(breakable, job.job_id, JobStatus.FAILED)
    assert "preempted" in lost.reason, f"the reason says what became of it: found {lost.reason!r}"
    session = breakable.session(episode["session_id"])
    await session.write("go-on", "")
    again = await _begin(breakable, episode, Operation.ANALYZE, {"model": "part.py"})
    _is_of(await _until(breakable, again.job_id, JobStatus.COMPLETED), episode)
    expect_same(lost, await _job(breakable, job.job_id), what="the job that was lost, afterwards")


async def test_int_042_what_is_no_report_changes_nothing(
    breakable: Episodes, subject: Subject
) -> None:
    """Forged, unknown, malformed, out of order, repeated and late reports leave a job as it is.

    The worker is away while the test reports in its place. The model provider is a stand-in.
    """
    key = breakable.stack["controller"].environment[layout_of(subject).callback_key]
    episode = await _episode(breakable)
    job, beside = (
        await _gated(breakable, episode),
        await _gated(breakable, await _episode(breakable)),
    )
    async with breakable.stack.outage("worker", "kill"):
        before = await _job(breakable, job.job_id)
        ends = _report(2, JobStatus.COMPLETED, result={"manufacturable": True})
        signed = signature_of(key, job.job_id, ends)
        for why, body, signature, status in (
            ("without a signature", ends, "", 403),
            ("signed with another key", ends, signature_of(key + "x", job.job_id, ends), 403),
            ("signed for another job", ends, signature_of(key, beside.job_id, ends), 403),
            ("signed for another body", _report(2, JobStatus.FAILED), signed, 403),
            ("in capitals", ends, signed.upper(), 403),
        ):
            answer = await _tell(breakable, job.job_id, body, signature)
            assert status == answer.status, f"a report {why} is refused: found {answer}"
            expect_same(before, await _job(breakable, job.job_id), what=f"the job, after one {why}")
        for why, body, status in (
            ("out of order", _report(3, JobStatus.COMPLETED), 409),
            ("with the number of another", _report(1, JobStatus.FAILED), 409),
            ("that goes back", _report(2, JobStatus.QUEUED), 409),
            ("without a number", b'{"status": "completed"}', 422),
            ("that is no JSON", b"completed", 422),
        ):
            answer = await _tell(breakable, job.job_id, body, signature_of(key, job.job_id, body))
            assert status == answer.status, f"a report {why} is refused: found {answer}"
            expect_same(before, await _job(breakable, job.job_id), what=f"the job, after one {why}")
        nobody = await _tell(breakable, _UNKNOWN, ends, signature_of(key, _UNKNOWN, ends))
        expect_refused(nobody, 404)
        keyless = breakable.controller.having(x_api_key=None)
        expect_refused(await keyless.post(f"/callbacks/{job.job_id}"), 401)

        for repeated in (False, True, True):
            answer = await _tell(breakable, job.job_id, ends, signed)
            assert 200 == answer.status, f"expected the report to be taken, found {answer}"
            taken = answered(answer, CallbackTaken)
            assert repeated is taken.repeated, f"expected repeated={repeated}, found {answer}"
        done = await _job(breakable, job.job_id)
        _is_of(done, episode)
        late = _report(3, JobStatus.FAILED, reason="too late")
        answer = await _tell(breakable, job.job_id, late, signature_of(key, job.job_id, late))
        assert 409 == answer.status, f"a report after the end is refused: found {answer}"
        expect_same(
            done, await _job(breakable, job.job_id), what="the job, after one after the end"
        )
    # Now the worker has its own to say of both.
    await _until(breakable, beside.job_id, JobStatus.FAILED)
    expect_same(done, await _job(breakable, job.job_id), what="the job, after the worker's own")


async def test_int_042_what_cannot_be_asked_for(episodes: Episodes) -> None:
    """An unknown episode, job or operation is refused, and leaves no job."""
    episode = await _episode(episodes)
    model = {"model": "part.py"}
    expect_refused(await _ask(episodes, _UNKNOWN, Operation.ANALYZE, model), 404)
    expect_refused(await episodes.controller.get(f"/jobs/{_UNKNOWN}"), 404)
    path = f"/episodes/{episode['episode_id']}/jobs"
    for malformed in ({"operation": "dig", "arguments": {}}, {"operation": "analyze"}, {}):
        expect_refused(await episodes.controller.post(path, malformed), 422)


async def _episode(episodes: Episodes) -> dict[str, Any]:
    """An episode that is over; its session stays."""
    return await episodes.run(new_token(), use("execute", command="true"))


async def _gated(episodes: Episodes, episode: Mapping[str, Any]) -> Job:
    """A job at work, in a session whose gate is closed."""
    session: Session = episodes.session(episode["session_id"])
    await session.write("part.py", _GATED)
    job = await _begin(episodes, episode, Operation.ANALYZE, {"model": "part.py"})

    async def begun() -> bool:
        return "begun" in await session.files()

    await eventually(begun, seconds=EPISODE_S, expected=f"job {job.job_id} at work")
    return await _until(episodes, job.job_id, JobStatus.RUNNING)


async def _ask(
    episodes: Episodes, episode_id: str, operation: Operation, arguments: dict[str, Any]
) -> Response:
    body = sent(JobRequest(operation=operation, arguments=arguments))
    return await episodes.controller.post(f"/episodes/{episode_id}/jobs", body)


async def _begin(
    episodes: Episodes,
    episode: Mapping[str, Any],
    operation: Operation,
    arguments: dict[str, Any],
) -> Job:
    """A job that is accepted."""
    answer = await _ask(episodes, episode["episode_id"], operation, arguments)

    assert 202 == answer.status, f"expected the job to be accepted with 202, found {answer}"
    job = answered(answer, Job)
    expect_same(operation, job.operation, what="operation of the job")
    return job


async def _job(episodes: Episodes, job_id: str) -> Job:
    answer = await episodes.controller.get(f"/jobs/{job_id}")

    assert 200 == answer.status, f"expected the job that was accepted, found {answer}"
    return answered(answer, Job)


async def _until(episodes: Episodes, job_id: str, status: JobStatus) -> Job:
    """The job when it has a status."""
    last: list[Job] = []

    async def there() -> Job | None:
        last[:] = [await _job(episodes, job_id)]
        return last[0] if last[0].status is status else None

    found: Job = await eventually(
        there, seconds=EPISODE_S, expected=f"job {job_id} to be {status.value}", seen=lambda: last
    )
    return found


def _report(
    sequence: int,
    status: JobStatus,
    *,
    reason: str = "by the test",
    result: dict[str, Any] | None = None,
) -> bytes:
    said = Callback(
        sequence=sequence, status=status, reason=reason, at=datetime.now(UTC), result=result
    )
    return json.dumps(said.model_dump(mode="json")).encode()


async def _tell(episodes: Episodes, job_id: str, body: bytes, signature: str) -> Response:
    headers = {"content-type": "application/json", **({SIGNATURE: signature} if signature else {})}
    return await episodes.controller.request(
        "POST", f"/callbacks/{job_id}", content=body, headers=headers
    )


def _is_of(job: Job, episode: Mapping[str, Any]) -> None:
    """A job that has ended names its episode, and has each step once, in order."""
    ids = ("episode_id", "session_id", "trace_id")
    expect_same(
        [episode[key] for key in ids], [getattr(job, key) for key in ids], what="whose a job is"
    )
    steps = [(step.sequence, step.status) for step in job.steps]
    wanted = [(0, JobStatus.QUEUED), (1, JobStatus.RUNNING), (2, job.status)]
    expect_same(wanted, steps, what="steps of a job")
    in_order([utc(step.at.isoformat(), what="a step") for step in job.steps], what="their times")
