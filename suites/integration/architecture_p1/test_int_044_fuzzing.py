"""Both services under a fuzzer that has read their documents: nothing breaks, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
import trio
from workbench_contract.files import LintReport

from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import use
from harness_core.process import Run, open_run
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.fuzzing import Fuzzed, fuzz
from suites.integration.messages import answered
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-044"), pytest.mark.integration_p1]

#: The same in every run, unless ``--explore-seed`` and ``--explore-seconds`` say otherwise.
_SEED: Final = 44
_SECONDS: Final = 30.0

#: One answer, of an operation that builds or simulates.
_ANSWER_S: Final = 60.0

#: An answer is bounded, whatever is asked for.
_LARGEST_BYTES: Final = 8 * 1024 * 1024

_SCENE: Final = (
    '<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .2"><freejoint/>'
    '<geom type="box" size=".05 .05 .05"/></body></worldbody></mujoco>'
)


async def test_int_044_a_fuzzer_finds_nothing(
    apart: Episodes, evidence: Evidence, pytestconfig: pytest.Config
) -> None:
    """No 500, no status, header or body that the document does not have, no answer without bound.

    Afterwards every service is the process that it was, and healthy; an episode that had ended is as it was,
    another session has its files, and the next episode is carried out. The stack is the test's own. The model
    provider is a stand-in: the gateway does the turns.
    """
    before, other = await _kept(apart), apart.session("beside-the-fuzzer")
    await other.write("notes.txt", "untouched")
    session = apart.session("under-the-fuzzer")
    await _filled(session)
    pids = {name: apart.stack[name].place.pid for name in ("controller", "worker")}
    option = pytestconfig.getoption
    seed = option("--explore-seed") if option("--explore-seed") is not None else _SEED
    results: list[Fuzzed] = []

    async def under(run: Run, service: str, headers: dict[str, str], words: list[str]) -> None:
        result = await fuzz(
            run,
            service=service,
            url=apart.stack.url(service),
            headers={**apart.controller.headers, **headers},
            words=words,
            seed=seed,
            seconds=option("--explore-seconds") or _SECONDS,
            answer_s=patience(_ANSWER_S),
            evidence=evidence,
        )
        results.append(result)

    async with open_run(evidence=evidence) as run, trio.open_nursery() as nursery:
        nursery.start_soon(under, run, "controller", {}, list(_known(before)))
        nursery.start_soon(under, run, "worker", {"x-session-id": session.id}, _FILES)

    found = [f"{each.service}: {one}" for each in results for one in each.found]
    assert not found, (
        f"expected the services to keep to their documents, found with seed {seed}: {'; '.join(found)}"
    )
    for each in results:
        assert each.largest_bytes <= _LARGEST_BYTES, (
            f"answers of the {each.service} have a bound, {_LARGEST_BYTES} bytes at most: "
            f"found {each.largest_bytes}; see {each.report}"
        )
        statuses = {int(key.split()[-1]) for key in each.answered}
        assert 422 in statuses, f"what no operation takes is refused: found {each.answered}"
        assert 500 not in statuses, f"no request breaks the {each.service}: found {each.answered}"
        taken = [key for key in each.answered if " 2" in key]
        assert len(taken) >= 4, f"nothing is proven where nothing is taken: {each.answered}"
    await apart.stack.healthy()
    now = {name: apart.stack[name].place.pid for name in pids}
    expect_same(pids, now, what="processes of the services, which none had to start again")
    after = await apart.get(before["episode_id"])
    for key in ("status", "transitions", "assets", "todo"):
        expect_same(before[key], after[key], what=f"{key} of an episode that had ended")
    notes = await other.read("notes.txt")
    assert 200 == notes.status, f"expected another session's file where it was, found {notes}"
    expect_same("untouched", notes.json()["content"], what="another session's file")
    await apart.run(new_token(), use("execute", command="true"))


async def test_int_044_more_findings_than_an_answer_holds(worker: HttpClient) -> None:
    """A file in which a linter finds thousands of mistakes is answered with the first, and says so."""
    session = new_session(worker)
    await session.write("long.py", "".join(f"import module_{n}\n" for n in range(4000)))
    await session.write("short.py", "import os\nimport sys\n")
    for path, count, more in (("long.py", 100, True), ("short.py", 2, False)):
        answer = await session.post("/lint", path=path)
        assert 200 == answer.status, f"expected {path} to be checked, found {answer}"
        report = answered(answer, LintReport)
        assert not report.passed, f"{path} has mistakes: found {str(answer)[:300]}"
        assert more is report.truncated, f"{path} has more mistakes than told: expected {more}"
        assert len(report.findings) >= count, (
            f"expected {count} mistakes of {path} at least, found {len(report.findings)}"
        )
        lines = [finding.line for finding in report.findings[:count]]
        expect_same([*range(1, count + 1)], lines, what=f"lines of the first mistakes of {path}")


_FILES: Final = ["script.py", "scene.xml", "assets/a.txt", "assets", ".", "plan.md", "events.jsonl"]


async def _kept(episodes: Episodes) -> dict[str, Any]:
    """An episode that is over, with all that it can have."""
    report = use("fs_write", path="assets/report.md", content="kept")
    return await episodes.run(new_token(), report, use("execute", command="true"))


async def _filled(session: Session) -> None:
    """A session with files of several kinds, large and small."""
    await session.write("script.py", "import os\n" * 3000)
    await session.write("scene.xml", _SCENE)
    await session.write("assets/a.txt", "ä" * 70_000)
    await session.write("plan.md", "## 1. Solution Overview\n")


def _known(episode: dict[str, Any]) -> Iterator[str]:
    """What the controller knows by name."""
    yield from (
        str(episode[key]) for key in ("episode_id", "session_id", "workflow_id", "trace_id")
    )
    yield from (str(trace["id"]) for trace in episode["traces"])
    yield from (str(asset["path"]) for asset in episode["assets"])
