"""What lint, checks, submissions and commits tell is so, and each is an event that says the same."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import result, use
from suites.integration.bundles import PLAN, TODO
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.planners import planner_at_work
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, scene
from suites.integration.sessions import Session, new_session

_CHECK: Final = "manufacturability_check"

#: Lines of a file that is longer than a model is told at once.
_LINES: Final = 9_000

#: How an answer says that it is not whole, in any of some languages, or of how much it is a part;
#: nothing else that a prompt holds here says so.
_MARKS: Final = (
    *("runcat", "RUNCAT", "omitted", "Omitted", "hortened", "ncomplete", "xcerpt", " cut ", "[cut"),
    *("more lines", "more char", "more bytes", "remaining", "not shown", "has_more", "next_"),
    *("ekürzt", "bgeschnitten", "ek\\u00fcrzt", "ronqué", "ronqu\\u00e9", "runcad", "省略", "截断"),
    *("…", "\\u2026", "[...]", "(...)"),
)

#: What an answer to a submission and its event have in common.
_TOLD: Final = ("role", "stage", "findings", "files", "handover_id", "warnings", "refuses_plan")

#: How a request of the Messages API says that a tool's result is an error.
_ERRORS: Final = ('"is_error":true', '"is_error": true')

#: An operation that builds: seconds, most of them imports.
_WORK_S: Final = 60.0

#: Script → its volume in mm3, sides in mm, number of faces, and whether each method can make it, where
#: that is no matter of a shop's own rules.
_PARTS: Final = {
    "box.py": ("Box(10, 20, 5)", 1000.0, [10.0, 20.0, 5.0], 6, {"cnc": True, "print": True}),
    "thin.py": ("Box(30, 8, 0.3)", 72.0, [30.0, 8.0, 0.3], 6, {"cnc": None, "print": None}),
    "two.py": (
        "two.part",
        16.0,
        [11.0, 2.0, 2.0],
        12,
        {"cnc": None, "print": None},
    ),
}

#: A builder that holds two solids.
_TWO: Final = """\
with BuildPart() as two:
    Box(2, 2, 2)
    with Locations((9, 0, 0)):
        Box(2, 2, 2)
"""

_SOURCES: Final = {
    "tidy.py": ("x = 1\nprint(x)\n", []),
    "unused.py": ("def f():\n    x = 1\n    import os\n\n    return x\n", [("F401", 3)]),
    "several.py": ("import os, sys\nprint(nothing)\nif x == None: pass\n", None),
    "no python.py": ("def f(:\n", None),
}


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_parts_are_measured(worker):
    """Each part has its own volume, sides and verdict, for each method, in answer and event alike.

    Another part under the same name is measured anew, in that session and in another one.
    A script that leaves no solid, or none at all, is refused and says why.
    """
    session = new_session(worker)
    for path, (shape, volume, size, faces, verdicts) in _PARTS.items():
        await session.write(path, f"from build123d import *\n\n{_TWO}\npart = {shape}\n")
        for method, expected in verdicts.items():
            answer = await _asked(session, "/benchmark/analyze", model=path, method=method)
            assert answer.status == 200, f"expected a check of {path}, found {answer}"
            found = answer.json()
            near = abs(found["volume_mm3"] - volume) < 0.01
            assert near, f"expected a volume of {volume} of {path}, found {found}"
            expect_same(
                size, [round(side, 2) for side in found["size_mm"]], what=f"sides of {path}"
            )
            assert faces == found["faces"], f"expected {faces} faces of {path}, found {found}"
            makes = found["manufacturable"]
            assert expected in {None, makes}, f"expected {expected}, {path} by {method}: {found}"
            assert makes == (not found["reasons"]), f"a verdict beside its reasons: {found}"
            event = calls(await session.events(), "manufacturability_check")[-1]["payload"]
            told = {"model": path, "method": method, "manufacturable": makes}
            expect_same(told, {key: event[key] for key in told}, what="the event of a check")
            same = {key: found[key] for key in ("volume_mm3", "size_mm", "reasons")}
            expect_same(same, {key: event[key] for key in same}, what="the check beside its event")
    for edge, makes in ((19.9, False), (20.0, True), (20.1, True)):
        answer = await _asked(
            session, "/benchmark/analyze", model="box.py", method="print", max_size_mm=edge
        )
        assert makes == answer.json()["manufacturable"], f"20 mm on a machine of {edge}: {answer}"
    for of, what, sides in (
        (session, "now", [4.0, 5.0, 6.0]),
        (new_session(worker), "in another session", [7.0, 8.0, 9.0]),
    ):
        await of.write(
            "box.py", "from build123d import *\n\npart = Box({}, {}, {})\n".format(*sides)
        )
        found = (await _asked(of, "/benchmark/analyze", model="box.py")).json()
        measured = [round(side, 2) for side in found["size_mm"]]
        expect_same(sides, measured, what=f"sides of what box.py is {what}")
    for path, script in (
        ("none.py", "from build123d import *\nbox = Box(1, 1, 1)\n"),
        ("text.py", "part = 'a box'\n"),
        ("raises.py", "raise ValueError('out of material')\n"),
        ("ends.py", "raise SystemExit(0)\n"),
        ("part.txt", "part = 1\n"),
    ):
        await session.write(path, script)
        why = expect_refused(await _asked(session, "/benchmark/analyze", model=path), 409, 422)
        assert path in why, f"expected the refusal of {path} to name it, found {why!r}"
    checks = calls(await session.events(), "manufacturability_check")
    assert 10 == len(checks), f"expected an event for each of 10 checks, found {len(checks)}"


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_jobs_at_once_are_each_about_their_own_part(worker):
    """Checks, validations and simulations that one session asks for at once are each of its own part.

    Each answer and each event says what the same job says when it is alone.
    """
    session = new_session(worker)
    volumes = {f"part-{side}.py": 1000.0 * side for side in (1, 7, 40, 90)}
    for path, volume in volumes.items():
        script = f"from build123d import *\n\npart = Box(10, 100, {volume / 1000})\n"
        await session.write(path, script)
    rests = {}
    for path in list(volumes)[1:3]:
        alone = await _asked(session, "/benchmark/simulate", **_run_of(path))
        assert alone.status == 200, f"expected a simulation of {path}, found {alone}"
        rests[path] = alone.json()["bodies"]
    answers: dict[tuple[str, str], Response] = {}

    async def ask(operation: str, path: str, **body: Any) -> None:
        answers[operation, path] = await _asked(session, operation, **{"model": path, **body})

    async with trio.open_nursery() as nursery:
        for path in volumes:
            nursery.start_soon(ask, "/benchmark/analyze", path)
            nursery.start_soon(ask, "/benchmark/validate", path)
        for path in rests:
            nursery.start_soon(partial(ask, "/benchmark/simulate", path, **_run_of(path)))
    for (operation, path), answer in answers.items():
        assert answer.status == 200, f"{operation} of {path}, beside others: {answer}"
    checked = {path: answers["/benchmark/analyze", path].json() for path in volumes}
    found = {path: round(check["volume_mm3"], 2) for path, check in checked.items()}
    expect_same(volumes, found, what="volumes of parts that were checked at once")
    checks = [event["payload"] for event in calls(await session.events(), _CHECK)]
    recorded = {event["model"]: round(event["volume_mm3"], 2) for event in checks}
    expect_same(volumes, recorded, what="volumes in the events of checks at once")
    for path, bodies in rests.items():
        beside = answers["/benchmark/simulate", path].json()["bodies"]
        expect_same(bodies, beside, what=f"where {path} rests, alone and beside others")


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_validation_and_lint_tell_what_is(worker):
    """Models and sources are judged by what is in them; events tell the same."""
    session = new_session(worker)
    for path, content, bodies in (
        ("one.xml", scene(boxes=1), 1),
        ("four.xml", scene(boxes=4), 4),
        ("broken.xml", BROKEN_SCENE, 0),
        ("latin.xml", "<mujoco>\u00e4</mujoco", 0),
    ):
        await session.write(path, content)
        found = (await _asked(session, "/benchmark/validate", model=path)).json()
        told = {"valid": bodies > 0, "bodies": bodies}
        expect_same(told, {key: found[key] for key in told}, what=f"the validation of {path}")
        assert (bodies > 0) == (not found["reasons"]), f"a verdict beside its reasons: {found}"
    for path, (source, findings) in _SOURCES.items():
        await session.write(path, source)
        await _is_linted(session, path, findings)


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_a_submission_and_its_event_say_the_same(episodes: Episodes) -> None:
    """Refused or accepted: findings, digests and the id of the hand-over are the same in both.

    What is no submission leaves neither. The model provider is a stand-in: the gateway holds the planner's
    model.
    """
    async with planner_at_work(episodes, number=262) as planner:
        bundle = planner.sound()
        await planner.leave({TODO: bundle.todo})
        for text in (None, "", "# Plän 😀\n\n## 2. Parts\n", bundle.plan):
            answer = await planner.judged(bundle, plan=text)
            event = calls(await planner.session.events(), "plan_submission")[-1]["payload"]
            found = answer.json()
            accepted = text == bundle.plan
            assert (200 if accepted else 422) == answer.status, f"a plan of {text!r}: {answer}"
            assert accepted == event["accepted"], f"answered {answer}, and its event: {event}"
            same = {key: found[key] for key in _TOLD if key in found}
            expect_same(same, {key: event[key] for key in same}, what="an answer and its event")
            digest = text and hashlib.sha256(text.encode()).hexdigest()
            found_digests = {each["path"]: each["sha256"] for each in event["files"]}
            if text:
                expect_same(digest, found_digests[PLAN], what="the digest of what was submitted")
        before = len(await planner.session.events())
        for wrong in ({"kind": "plan"}, {"path": PLAN}, {"role": "coder"}, {"job_id": "../x"}):
            expect_refused(await planner.session.malformed("/benchmark/submit", **wrong), 400, 422)
        after = await planner.session.events()
        assert before == len(after), f"what is no submission has an event: {after[before:]}"


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_commits_keep_what_is_there(worker):
    """Each commit has its own id, its message and all files but the record; nothing new is no commit.

    Without a repository there is nothing to commit to: refused.
    """
    session = new_session(worker)
    expect_refused(await session.post("/git/commit", message="too early"), 409)
    made = await session.post("/git/init")
    assert made.status == 200, f"expected a repository, found {made}"
    branch = made.json()["branch"]
    commits = []
    for number, message in enumerate(("first", "zweite: 'ä' \"\n\nmit Text\n", "-m third")):
        await session.write(f"file-{number}.txt", f"{number}")
        answer = await session.post("/git/commit", message=message)
        assert answer.status == 200, f"expected a commit, found {answer}"
        commits.append(answer.json()["commit"])
        shown = await session.execute("git log -1 --format='%H|%B'; git ls-files; git branch")
        said = shown["stdout"]
        assert said.startswith(f"{commits[-1]}|{message.strip()}"), f"the last commit: {shown}"
        assert f"file-{number}.txt" in said, f"expected the new file in the commit, found {shown}"
        assert "events.jsonl" not in said, f"the record is committed: {shown}"
        assert f"* {branch}" in said, f"expected the branch {branch}, found {shown}"
    assert 3 == len(set(commits)), f"three commits have one id: {commits}"
    expect_refused(await session.post("/git/commit", message="nothing new"), 409)


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_an_agent_is_told_what_its_tools_found(episodes: Episodes) -> None:
    """What a tool answered is what the model works on; a tool of another role is refused to it.

    The model provider is a stand-in: the gateway does the turns, and hands on what it was told.
    """
    token = new_token()
    text = f'Zeile eins ä😀\nof {token} \\u0000 "quoted"\n' * 40
    episode = await episodes.run(
        token,
        (use("fs_write", path="a.txt", content=text), use("fs_write", path="b.txt", content="b")),
        use("fs_read", path="a.txt"),
        use("fs_write", path="copy.txt", content=result("fs_read", "content")),
        use("fs_ls", path="no/such/folder"),
        use("fs_grep", pattern="Zeile", path="."),
        use("fs_write", path="path.txt", content=result("fs_grep", "matches.0.path")),
    )
    session = episodes.session(episode["session_id"])
    copied = await session.read("copy.txt")
    assert text == copied.json()["content"], f"the agent was told another text: {copied}"
    matched = await session.read("path.txt")
    assert matched.json()["content"] in {"a.txt", "copy.txt"}, f"the agent was told: {matched}"
    tools = [(each["name"], each["ok"]) for each in episode["traces"] if each["kind"] == "tool"]
    names = ["fs_write", "fs_write", "fs_read", "fs_write", "fs_ls", "fs_grep", "fs_write"]
    wanted = [(name, name != "fs_ls") for name in names]
    expect_same(wanted, tools, what="tools of the agent, and whether each was carried out")


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_an_agent_is_told_which_of_its_calls_failed(episodes: Episodes) -> None:
    """The result of a call that failed is marked as an error for the model, as the provider has it.

    That of a call that was carried out is not. The model provider is a stand-in: the gateway does the
    turns, and notes what the prompts hold.
    """
    good, bad = new_token(), new_token()
    turns = {
        good: (use("fs_write", path="a.txt", content="a"), use("fs_read", path="a.txt")),
        bad: (use("fs_read", path="missing.txt"), use("fs_edit", path="a.txt", old="a", new="b")),
    }
    gateway = episodes.stack.gateway.client
    marked = {}
    for token, calls_of_it in turns.items():
        async with AsyncExitStack() as planted:
            # Without latency they are no trouble: they count the calls whose prompts hold the mark.
            numbers = [
                await planted.enter_async_context(
                    gateway.fault(Fault(kind="latency", times=99, contains=token, also=mark))
                )
                for mark in _ERRORS
            ]
            await episodes.run(token, *calls_of_it)
            marked[token] = sum([await gateway.fault_met(number) for number in numbers])
    spoken = {call.kind for call in await gateway.ledger() if bad in call.prompt}
    assert not marked[good], "the results of calls that were carried out are told as errors"
    # The other dialect of the gateway has no such mark.
    assert marked[bad] or "messages" not in spoken, (
        "the results of two calls that failed reached the model, and none was marked as an error"
    )


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
@pytest.mark.parametrize(
    ("role", "tool", "arguments"),
    [
        ("planner", "execute", {"command": "touch misused"}),
        ("reviewer", "fs_delete", {"path": "kept.txt"}),
        ("coder", "no_such_tool", {"path": "kept.txt"}),
    ],
)
async def test_int_026_a_tool_of_another_role_is_refused(
    episodes: Episodes, role: str, tool: str, arguments: dict[str, Any]
) -> None:
    """A tool that an agent was not offered is not carried out, whatever its model asks for.

    It is no success on record either. The model provider is a stand-in that asks for it.
    """
    token = new_token()
    await episodes.rehearse(token, use("fs_write", path="kept.txt", content="kept"))
    gateway = episodes.stack.gateway.client
    misused = Fault(kind="answer", tool=tool, input=arguments, contains=token, also="kept.txt")
    async with gateway.fault(misused) as number:
        accepted = await episodes.submit(token, role=role)
        episode = await episodes.until(accepted["episode_id"], "completed", "failed")
        assert await gateway.fault_met(number), "the model was never asked after its first call"
    files = await episodes.session(accepted["session_id"]).files()
    assert "kept.txt" in files, f"a {role} used {tool}, which it was not offered: kept.txt is gone"
    assert "misused" not in files, f"a {role} used {tool}, which it was not offered"
    done = [each for each in episode["traces"] if each["kind"] == "tool" and each["name"] == tool]
    assert not [each for each in done if each["ok"]], (
        f"a {role} was not offered {tool}: expected its call refused on record, found {done}"
    )
    ran = [
        event
        for event in calls(await episodes.record(accepted["session_id"]), "tool_call")
        if event["payload"]["tool"] == tool and event["payload"].get("ok") is not False
    ]
    assert not ran, f"a {role} was not offered {tool}, and the worker carried it out: {ran}"


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_an_agent_is_told_when_an_answer_is_cut(episodes: Episodes) -> None:
    """A long answer of a tool reaches the model whole, or says that it is not.

    The model provider is a stand-in: the gateway does the turns, and notes what the prompts hold.
    """
    token = new_token()
    lines = "".join(f"line {number} of {token}\n" for number in range(_LINES))
    await episodes.rehearse(token, use("fs_read", path="long.txt"))
    gateway = episodes.stack.gateway.client
    first, last = f"line 9 of {token}", f"line {_LINES - 1} of {token}"
    sizes = [f"{number:{form}}" for number in (_LINES, len(lines)) for form in ("d", ",", "_")]
    async with AsyncExitStack() as planted:
        # A fault without latency is no trouble: it counts the calls whose prompts hold both texts.
        numbers = [
            await planted.enter_async_context(
                gateway.fault(Fault(kind="latency", times=99, contains=first, also=mark))
            )
            for mark in (last, *_MARKS, *sizes, "")
        ]
        # The file is not written by the model: its own words are no answer of a tool.
        async with gateway.fault(Fault(kind="hold", contains=token)):
            accepted = await episodes.submit(token)
            await episodes.session(accepted["session_id"]).write("long.txt", lines)
        await episodes.until(accepted["episode_id"], "completed")
        *marked, silent = [await gateway.fault_met(number) for number in numbers]
    assert sum(marked), (
        f"expected the model to be told the last of {_LINES} lines, or that it is not told all, "
        f"found {silent} prompts that hold the first lines alone"
    )


async def _is_linted(session: Session, path: str, findings: list[tuple[str, int]] | None) -> None:
    """What is found in a source is answered with codes and lines; it is an event when there is any."""
    before = len(calls(await session.events(), "lint_failure"))
    answer = await session.post("/lint", path=path)
    assert answer.status == 200, f"expected {path} to be judged, found {answer}"
    found = answer.json()
    assert path == found["path"], f"expected a report on {path}, found {found}"
    assert found["passed"] == (not found["findings"]), f"a verdict beside its findings: {found}"
    listed = [(each["code"], each["line"]) for each in found["findings"]]
    if findings is None:
        assert listed, f"expected findings in {path}, found none"
    else:
        expect_same(findings, listed, what=f"codes and lines of the findings in {path}")
    assert all(each["message"] for each in found["findings"]), f"findings without words: {found}"
    events = calls(await session.events(), "lint_failure")[before:]
    assert (0 if found["passed"] else 1) == len(events), f"events of the lint of {path}: {events}"
    for event in events:
        payload = event["payload"]
        assert path == payload["path"], f"expected the event of {path}, found {payload}"
        codes = [code for code, _ in listed]
        expect_same(codes, payload["codes"], what=f"codes of {path} in the event")


def _run_of(path: str) -> dict[str, Any]:
    return {"model": path, "variant": f"of {path}", "seed": 5, "duration_s": 0.5}


async def _asked(session: Session, operation: str, **body: Any) -> Response:
    return await session.post(operation, **body, seconds=patience(_WORK_S))
