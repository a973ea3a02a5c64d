"""Skills come from a git repository, one commit for each run, and each read of them is seen."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

import pytest
from workbench_contract.skills import SkillRead, SkillsGiven, SkillsKnown

from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import Turn, say, use
from suites.integration.comparing import expect_same
from suites.integration.episodes import FINAL, Episodes, calls, new_token
from suites.integration.messages import answered
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.refusals import OUTSIDE, expect_refused
from suites.integration.skilling import LINK, SUBMODULE, Content, Skills, skill

pytestmark = [
    pytest.mark.covers("INT-045"),
    pytest.mark.integration_p1,
    pytest.mark.not_in_containers(
        "makes the repository of skills in the folder of the worker, which is in a volume"
    ),
]

BOLTING: Final = "skills/bolting/SKILL.md"
WELDING: Final = "skills/welding/SKILL.md"

#: Ways for code to read a file, whose path is in ``$p``.
WAYS: Final = {
    "cat": 'cat "$p"',
    "python": "python3 -c 'import os; print(open(os.environ[\"p\"]).read())'",
    "one-byte": 'head -c 1 "$p"',
    "mapped": 'python3 -c \'import mmap, os; f = open(os.environ["p"]);'
    " print(bytes(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)))'",
    "sent": 'python3 -c \'import os; a = open(os.environ["p"]); b = open("sent", "w");'
    " print(os.sendfile(b.fileno(), a.fileno(), 0, 99))'",
    "copied": 'cp "$p" taken && cat taken',
    "linked": 'ln -sf "$p" pointer && cat pointer',
    "searched": 'grep . "$p"',
    "included": 'sh "$p"',
    "elsewhere": 'cd /tmp && cat "/workspace/$p"',
    "by-proc": 'cat "/proc/self/cwd/$p"',
    "later": '(sleep 0.2; cat "$p") & wait',
    "detached": "setsid sh -c 'cat \"$p\"; touch gone' & until [ -e gone ]; do sleep 0.05; done",
}


async def test_int_045_a_run_keeps_the_version_that_it_began_with(
    episodes: Episodes, skills: Skills, controller: HttpClient
) -> None:
    """A later commit changes nothing in a run under way, and the next run has it.

    Rows and events name the commit, and each run's events are its own; what is fetched whole is read, too. The
    model provider is a stand-in: the gateway does the turns.
    """
    first = await skills.commit({"bolting/SKILL.md": skill("bolting", "turn left twice")})
    tokens = [new_token(), new_token()]
    again = [
        use("fs_read", path=BOLTING),
        use("execute", command=f"cat {BOLTING}"),
        use("fs_grep", pattern="turn", path="skills"),
    ]
    await episodes.rehearse(
        tokens[0], use("fs_read", path=BOLTING), episodes.waiting(), *again, say("done")
    )
    early = await episodes.submit(tokens[0])
    await episodes.begun(early["session_id"])
    fetched = await episodes.session(early["session_id"]).client.get(f"/assets/{BOLTING}")
    has_it = fetched.status == 200
    if not has_it:
        expect_refused(fetched, *OUTSIDE)

    second = await skills.commit(
        {
            "bolting/SKILL.md": skill("bolting", "turn right once"),
            "welding/SKILL.md": skill("welding", "no sparks"),
        }
    )
    both = [use("fs_read", path=WELDING), use("execute", command=f"cat {BOLTING}")]
    late = await episodes.run(tokens[1], *both)
    await episodes.release(early["session_id"])
    ended = await episodes.until(early["episode_id"], "completed")

    expect_same(first, _given(ended).commit, what="the version of the run that began first")
    expect_same(second, _given(late).commit, what="the version of the run that began later")
    names = [[each.name for each in _given(run).skills] for run in (ended, late)]
    expect_same([["bolting"], ["bolting", "welding"]], names, what="skills of the two runs")
    told = [_results(run) for run in (ended, late)]
    assert told[0].count("turn left twice") == 4, (
        f"four reads show the version of the run: {told[0]}"
    )
    assert "turn right" not in told[0], f"a later version does not reach a run: {told[0]}"
    assert "turn right once" in told[1], f"the next run has the next version: {told[1]}"
    found = await _reads(episodes, ended)
    expected = [
        (BOLTING, first, "file_api"),
        *([(BOLTING, first, "file_api")] if has_it else []),
        (BOLTING, first, "file_api"),
        (BOLTING, first, "code"),
        (BOLTING, first, "file_api"),
    ]
    expect_same(expected, [_told(each) for each in found], what="reads of the first run")
    found = await _reads(episodes, late)
    expected = [(WELDING, second, "file_api"), (BOLTING, second, "code")]
    expect_same(expected, [_told(each) for each in found], what="reads of the second run")
    now = await _now(controller)
    expect_same(second, now.commit, what="the version that there is now")
    runs = {each.commit: each.runs for each in now.versions}
    ours = {each: runs.get(each) for each in (first, second)}
    expect_same({first: 1, second: 1}, ours, what="runs of each version")


async def test_int_045_reads_by_code_are_seen_whatever_way_they_go(
    episodes: Episodes, skills: Skills
) -> None:
    """Each file that code reads is an event with its path, and no file is that was only there.

    The model provider is a stand-in.
    """
    names = {way: f"ways/{way} \"$x\" '日本'.md" for way in WAYS}
    files = {name: f"echo {way}\n" for way, name in names.items()}
    plain = {"ways/SKILL.md": skill("ways", "many"), "ways/unread.md": "nobody\n"}
    commit = await skills.commit({**plain, **files})
    turns = [
        use("execute", command=f"export p={shlex.quote(f'skills/{names[way]}')}; {command}")
        for way, command in WAYS.items()
    ]
    episode = await episodes.run(new_token(), *turns)

    found = await _reads(episodes, episode)
    expected = [(f"skills/{names[way]}", commit, "code") for way in WAYS]
    expect_same(expected, [_told(each) for each in found], what="reads by code, one of each way")
    jobs = {each.job_id for each in found}
    assert len(jobs) == len(WAYS), f"each read names the job that did it: found {jobs}"


async def test_int_045_a_build_that_reads_a_skill_is_seen(
    episodes: Episodes, skills: Skills
) -> None:
    """A script that geometry is built by reads a skill, and that is an event like any other.

    The model provider is a stand-in.
    """
    commit = await skills.commit(
        {"sizes/SKILL.md": skill("sizes", "small"), "sizes/width.txt": "7"}
    )
    script = (
        "from build123d import Box\n"
        "width = float(open('skills/sizes/width.txt').read())\n"
        "part = Box(width, 3, 3)\n"
    )
    built = [use("fs_write", path="model.py", content=script), use("analyze", model="model.py")]
    episode = await episodes.run(new_token(), *built)
    found = {_told(each) for each in await _reads(episodes, episode)}
    expected = {("skills/sizes/width.txt", commit, "code")}
    expect_same(expected, found, what="reads of a build")


async def test_int_045_a_promise_is_no_read(episodes: Episodes, skills: Skills) -> None:
    """Who says that it has read a skill, and has at most looked where it lies, has no event of it.

    The model provider is a stand-in.
    """
    commit = await skills.commit(
        {"bolting/SKILL.md": skill("bolting", "turn left"), "bolting/more/notes.md": "quietly"}
    )
    look = "ls -laR skills; stat skills/*/*; find skills -size +0; test -r skills/bolting/SKILL.md"
    episode = await episodes.run(
        new_token(),
        use("fs_ls", path="skills"),
        use("execute", command=look),
        use("fs_write", path="report.md", content=f"I have read {BOLTING}: turn left."),
        use("execute", command=f"echo read {BOLTING}, cat {BOLTING}; cat report.md"),
        say(f"I have read {BOLTING} at {commit} whole, and did as it says."),
    )
    expect_same(commit, _given(episode).commit, what="the version of a run that reads nothing")
    expect_same([], await _reads(episodes, episode), what="reads of a run that reads nothing")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(None, id="away"),
        pytest.param({}, id="empty"),
        pytest.param({"README.md": "no skills yet"}, id="without-skills"),
        pytest.param({"welding/SKILL.md": "no front matter"}, id="broken"),
        pytest.param({"welding/SKILL.md": skill("casting", "another's")}, id="misnamed"),
        pytest.param({"welding/data": (LINK, "../../../../etc/passwd")}, id="link-out"),
        pytest.param({"welding/SKILL.md": (LINK, "/etc/passwd")}, id="link-for-a-skill"),
        pytest.param({"welding": (SUBMODULE, "1" * 40)}, id="submodule"),
    ],
)
async def test_int_045_without_sound_skills_no_version_is_claimed(
    episodes: Episodes,
    skills: Skills,
    controller: HttpClient,
    files: dict[str, Content] | None,
) -> None:
    """Skills that cannot be had whole are not had at all: the run says why, and claims no version.

    Once they are in order the next run has them. The model provider is a stand-in.
    """
    sound = {"bolting/SKILL.md": skill("bolting", "turn left")}
    if files:
        await skills.commit({**(sound if "README.md" not in files else {}), **files})
    elif files is not None:
        await skills.made()
    reads = [use("fs_read", path=BOLTING), use("execute", command="cat skills/*/*; true")]
    run = await _ended(episodes, new_token(), reads)

    given = _given(run)
    assert given.commit is None, f"no version is claimed of skills that cannot be had: {given}"
    assert given.problem.strip(), f"the run says why it has no skills: found {given}"
    expect_same([], given.skills, what="skills of a run that has none")
    expect_same([], await _reads(episodes, run), what="reads of a run that has no skills")
    assert "turn left" not in _results(run), f"nothing of a version that is not taken: {run}"
    now = await _now(controller)
    assert now.commit is None, f"no version is claimed of skills that cannot be had: {now}"
    assert now.problem.strip(), f"it is said why there are no skills: {now}"

    commit = await skills.commit(sound)
    mended = await episodes.run(new_token(), use("fs_read", path=BOLTING))
    expect_same(commit, _given(mended).commit, what="the version once it is in order")
    expect_same(
        [(BOLTING, commit, "file_api")],
        [_told(each) for each in await _reads(episodes, mended)],
        what="reads once it is in order",
    )
    stays = await episodes.get(run["episode_id"])
    expect_same(given, _given(stays), what="what the run without skills says afterwards")


async def test_int_045_forced_dirty_and_away_again(
    episodes: Episodes, skills: Skills, controller: HttpClient
) -> None:
    """The next run has what is committed: after a force push that, and never what only lies there.

    With the repository gone again, a run that began before keeps its skills and one that begins has none. The
    model provider is a stand-in.
    """
    first = await skills.commit({"bolting/SKILL.md": skill("bolting", "turn left")})
    look = use("execute", command=f"cat {BOLTING}")
    before = await episodes.run(new_token(), look)
    forced = await skills.commit({"bolting/SKILL.md": skill("bolting", "pull")}, forced=True)
    await skills.dirty(first)
    token = new_token()
    await episodes.rehearse(token, episodes.waiting(), look, say("done"))
    during = await episodes.submit(token)
    await episodes.begun(during["session_id"])
    with skills.away():
        without = await _ended(episodes, new_token(), [look])
        now = await _now(controller)
        await episodes.release(during["session_id"])
        after = await episodes.until(during["episode_id"], "completed")

    versions = [_given(run).commit for run in (before, after, without)]
    expect_same([first, forced, None], versions, what="versions of the three runs")
    assert "pull" in _results(after), f"a run has what is committed: {_results(after)}"
    assert "turn left" not in _results(after), f"and not what only lies there: {_results(after)}"
    assert _given(without).problem.strip(), f"a run without skills says why: {_given(without)}"
    assert now.commit is None, f"no version is claimed of what is away: found {now}"
    assert now.problem.strip(), f"it is said why there are no skills: found {now}"


async def test_int_045_skills_outlive_the_worker(breakable: Episodes, skills: Skills) -> None:
    """Killed in between, the worker gives a run the skills that it began with, and loses no read of it.

    The model provider is a stand-in.
    """
    first = await skills.commit({"bolting/SKILL.md": skill("bolting", "turn left")})
    token = new_token()
    reads = [use("fs_read", path=BOLTING), use("execute", command=f"cat {BOLTING}")]
    await breakable.rehearse(token, *reads, breakable.waiting(), *reads, say("done"))
    accepted = await breakable.submit(token)
    await breakable.begun(accepted["session_id"])
    await skills.commit({"bolting/SKILL.md": skill("bolting", "turn right")})
    async with breakable.stack.outage("worker", "kill"):
        pass
    await breakable.release(accepted["session_id"])
    ended = await breakable.until(accepted["episode_id"], "completed")

    expect_same(first, _given(ended).commit, what="the version of a run whose worker was killed")
    assert "turn right" not in _results(ended), f"a run keeps its version: {_results(ended)}"
    found = [_told(each) for each in await _reads(breakable, ended)]
    expected = [(BOLTING, first, via) for via in ("file_api", "code")] * 2
    expect_same(expected, found, what="reads before and after the worker was killed")


async def test_int_045_nobody_changes_skills(episodes: Episodes, skills: Skills) -> None:
    """Agents can neither change, remove nor replace their skills, by no path, and none leads out of them.

    The model provider is a stand-in.
    """
    commit = await skills.commit({"bolting/SKILL.md": skill("bolting", "turn left")})
    harm = (
        f"echo x > {BOLTING}; echo x >> {BOLTING}; rm -rf skills; mv skills mine; mkdir skills/new;"
        f" ln -s /etc skills/etc; chmod -R 777 skills; ln -s . here; ln -s skills other; true"
    )
    token = new_token()
    await episodes.rehearse(
        token, use("execute", command=harm), episodes.waiting(), use("fs_read", path=BOLTING)
    )
    accepted = await episodes.submit(token)
    await episodes.begun(accepted["session_id"])
    session = episodes.session(accepted["session_id"])
    for path in (BOLTING, "skills/new.md", f"./{BOLTING}", "skills", "x/../skills/new"):
        expect_refused(await session.post("/fs/write", path=path, content="x"), *OUTSIDE)
    for path in (BOLTING, "skills", "skills/bolting", "./skills/", "here/skills", "x/../skills"):
        expect_refused(await session.post("/fs/delete", path=path), *OUTSIDE)
    edited = await session.post("/fs/edit", path=BOLTING, old="turn left", new="turn right")
    expect_refused(edited, *OUTSIDE)
    for path in ("skills/../../owner.json", "skills/../../../../etc/passwd", "skills/nothing.md"):
        expect_refused(await session.read(path), *OUTSIDE)
    await episodes.release(accepted["session_id"])
    ended = await episodes.until(accepted["episode_id"], "completed")

    assert "turn left" in _results(ended), f"skills stay as they are committed: {_results(ended)}"
    fresh = await episodes.run(new_token(), use("execute", command=f"cat {BOLTING}"))
    expect_same(commit, _given(fresh).commit, what="the version of the next run")
    assert "turn left" in _results(fresh), f"no run changes another's: {_results(fresh)}"


def _given(episode: dict[str, Any]) -> SkillsGiven:
    assert episode["skills"], f"a run says which skills it has: found {episode['skills']}"
    return SkillsGiven.model_validate(episode["skills"])


def _results(episode: dict[str, Any]) -> str:
    """All that tools answered."""
    traces = [each for each in episode["traces"] if each["kind"] == "tool"]
    return "\n".join(str(each["detail"].get("result")) for each in traces)


def _told(read: SkillRead) -> tuple[str, str, str]:
    return read.path, read.commit, read.via.value


async def _reads(episodes: Episodes, episode: dict[str, Any]) -> list[SkillRead]:
    """The reads on record, in their order, when all events of the worker are there."""
    record = await episodes.record(episode["session_id"])
    stored = await episodes.until_events(episode["episode_id"], len(record))
    found = [SkillRead.model_validate(each["payload"]) for each in calls(stored, "skill_read")]
    owners = {each["episode_id"] for each in calls(stored, "skill_read")}
    assert owners <= {episode["episode_id"]}, f"reads name their episode: found {owners}"
    return found


async def _ended(episodes: Episodes, token: str, turns: Sequence[Turn]) -> dict[str, Any]:
    """An episode at its end, whichever that is: one without skills may fail, or go on without."""
    await episodes.rehearse(token, *turns)
    accepted = await episodes.submit(token)
    found: dict[str, Any] = {}

    async def over() -> bool:
        found.update(await episodes.get(accepted["episode_id"]))
        return found["status"] in FINAL

    await eventually(over, seconds=EPISODE_S, expected=f"the end of {accepted['episode_id']}")
    return found


async def _now(controller: HttpClient) -> SkillsKnown:
    answer = await controller.get("/skills")

    assert 200 == answer.status, f"expected the skills that there are, found {answer}"
    return answered(answer, SkillsKnown)
