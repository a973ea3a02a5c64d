"""INT-018: nothing is simulated or handed over that was not validated and priced, as it is now."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
import trio
from workbench_contract.design import CONNECTIONS, DesignJudged
from workbench_contract.findings import Stage

from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from suites.integration.bundles import TODO, Bundle, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.environments import is_made
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.planners import Coder, Planner, coder_at_work, expect_found
from suites.integration.refusals import expect_refused
from suites.integration.scenes import scene
from suites.integration.sessions import Session
from suites.integration.shares import shares

pytestmark = [pytest.mark.covers("INT-018"), pytest.mark.integration_p0]

_SIZE: Final = "SIZE = 40\n"


def _plan(number: int, side: int = 40) -> Callable[[Planner], Bundle]:
    """A plan of one block of 30 by 10 mm, cut from a box that is 2 mm larger."""
    stock = (side + 2, 32, 12)
    made = [milled(f"block-{number}", side * 300, stock, units=100)]
    return lambda planner: sound(planner.issued, number=number, made=made, units=100)


def _script(number: int, side: str = "40", before: str = "") -> str:
    return (
        f"from build123d import Box, Pos\n{before}\n"
        f'parts = {{"block-{number}": Pos(30, 0, 5) * Box({side}, 30, 10)}}\n'
    )


async def _both_refused(coder: Coder, what: str, *, says: str, file: str = "model.py") -> None:
    """Simulation and hand-over are refused, and name what is due."""
    expect_refused(await coder.simulate(), 409, 422, says=says)
    found = expect_found(await coder.submit(), Stage.PRICE, {file}, what=what)
    assert all(each.expected for each in found), f"findings that say nothing is due: {found}"


async def _both_taken(coder: Coder, what: str) -> None:
    simulated = await coder.simulate()
    assert 200 == simulated.status, f"expected {what} to be simulated, found {simulated}"
    submitted = await coder.submit()
    assert 200 == submitted.status, f"expected {what} to be handed over, found {submitted}"


async def _passed(coder: Coder, what: str) -> DesignJudged:
    answer = await coder.validated()
    assert 200 == answer.status, f"expected {what} to be judged, found {answer}"
    judged = DesignJudged.model_validate_json(answer.body)
    assert judged.passed, f"expected {what} to pass, found {judged.findings}"
    return judged


async def test_int_018_blocked_until_it_has_passed(episodes: Episodes) -> None:
    """Without a verdict both are blocked, with one both go on; every change asks for another.

    Changed, its import changed, a module that comes to shadow one, what holds it together: each is named.
    As it was, it has passed. The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=181, plan=_plan(181)) as coder:
        session = coder.session
        script = _script(181, "SIZE", "from size import SIZE\n")
        ticked = (await session.read(TODO)).json()["content"]
        for name, files, missing in (
            ("no script", {}, {"model.py"}),
            ("a script of nothing", {"model.py": " \n\t"}, {"model.py"}),
            ("neither script nor list", {TODO: "\n"}, {"model.py", TODO}),
        ):
            for path, text in files.items():
                await session.write(path, text)
            expect_found(await coder.submit(), Stage.PRESENT, missing, what=f"a design of {name}")
        await session.write("model.py", script)
        await session.write(TODO, ticked.replace("- [x]", "- [ ]", 1))
        expect_found(await coder.submit(), Stage.VALID, {TODO}, what="a design beside an open list")
        await session.write(TODO, ticked)
        await session.write("size.py", _SIZE)
        await session.write("model.py", script)
        await _both_refused(coder, "a design without a verdict", says="no record|validate")
        judged = await _passed(coder, "a block as it was planned")
        planned = coder.bundle.estimate["totals"]["unit_cost_usd"]
        assert judged.totals is not None, f"a design that passed has no price: {judged}"
        expect_same(planned, float(judged.totals.unit_cost_usd), what="USD of a block as planned")
        await _both_taken(coder, "a design that has passed")
        for path, content, named in (
            ("model.py", script + "# a word more\n", "model.py"),
            ("size.py", "SIZE = 39\n", "size.py"),
            ("size/__init__.py", _SIZE, "size"),
            (CONNECTIONS, '{"pairs": []}', CONNECTIONS),
        ):
            was = await session.read(path)
            await session.write(path, content)
            what = f"a design whose {path} is another"
            expect_refused(await coder.simulate(), 409, 422, says=named.replace(".", r"\."))
            answer = await coder.submit()
            assert 422 == answer.status, f"expected {what} to be refused, found {answer}"
            files = [each["file"] for each in answer.json()["findings"]]
            assert any(named in each for each in files), f"expected {named} named, found {answer}"
            if was.status == 200:
                await session.write(path, was.json()["content"])
            else:
                await session.post("/fs/delete", path=path.partition("/")[0])
            again = await coder.simulate()
            assert 200 == again.status, f"{path} is as it was when the design passed: {again}"
        for model in ("other.py", "scene.xml"):
            await session.write(model, script if model.endswith("py") else "<mujoco/>")
            refused = await coder.simulate(model)
            expect_refused(refused, 409, 422, says="validate")
        await session.write("model.py", _script(181, "SIZE + 1", "from size import SIZE\n"))
        await _both_refused(coder, "a design that grew", says=r"model\.py")
        grown = await _passed(coder, "the design that grew, in the second round")
        await _both_taken(coder, "the second round")
        await session.write("model.py", script)
        await _both_refused(coder, "the first design again", says=r"model\.py")
        again = await _passed(coder, "the first design, in the third round")
        await session.write("size.py", f"{_SIZE}# a word more\n")
        imported = await _passed(coder, "the first design with another import")
        records = [each.record_sha256 for each in (judged, grown, again, imported)]
        expect_same(records[0], records[2], what="the record of a design that is as it was")
        different = len({*records})
        assert 3 == different, f"expected a record of its own for each design, found {records}"


#: A design that imports in every way; what each file holds is part of its size, which is 40.
_IMPORTED: Final = {
    "kit/__init__.py": "from kit.seven import SEVEN\n",
    "kit/one.py": "ONE = 3\n",
    "kit/two.py": "from . import six\nfrom .deep.eight import EIGHT as MORE\nTWO = 4 + six.SIX + MORE\n",
    "kit/three.py": "THREE = 5\n",
    "kit/four.py": "FOUR = 6\n",
    "kit/five.py": "FIVE = 7\n",
    "kit/six.py": "SIX = 2\n",
    "kit/seven.py": "SEVEN = 1\n",
    "kit/deep/__init__.py": "",
    "kit/deep/eight.py": "EIGHT = 9\n",
    "nine.py": "NINE = 3\n",
}
_IMPORTS: Final = """
import kit
import kit.one as one
import kit.five
from kit import two, three as third
from nine import *

def inner():
    from kit import four
    return four.FOUR

SIZE = one.ONE + two.TWO + third.THREE + inner() + kit.five.FIVE + kit.SEVEN + NINE
"""


@pytest.mark.parametrize("share", shares(3))
async def test_int_018_every_way_of_importing(episodes: Episodes, share: slice) -> None:
    """However a script imports a file of the session, the verdict is about that file too.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=187, plan=_plan(187)) as coder:
        session = coder.session
        for path, content in _IMPORTED.items():
            await session.write(path, content)
        await session.write("model.py", _script(187, "SIZE", _IMPORTS))
        judged = await _passed(coder, "a design that imports in every way")
        planned = coder.bundle.estimate["totals"]["unit_cost_usd"]
        assert judged.totals is not None, f"a design that passed has no price: {judged}"
        expect_same(planned, float(judged.totals.unit_cost_usd), what="USD of a block as planned")
        for path, content in [*_IMPORTED.items()][share]:
            await session.write(path, content.replace(" = ", " = 1 + ") + "# changed\n")
            await _both_refused(
                coder, f"a design whose {path} is another", says=re.escape(path), file=path
            )
            await session.write(path, content)
        await _both_taken(coder, "the design as it was when it passed")


async def test_int_018_what_a_verdict_is_about_is_what_is_built(episodes: Episodes) -> None:
    """Bytecode that says something else than its source is not run; what a script finds at run time counts.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=182, plan=_plan(182)) as coder:
        session = coder.session
        await session.write("size.py", _SIZE)
        await session.write("model.py", _script(182, "SIZE", "from size import SIZE\n"))
        poison = (
            "import os, py_compile; s = os.stat('size.py'); "
            "open('size.py', 'w').write('SIZE = 99\\n'); "
            "os.utime('size.py', ns=(s.st_atime_ns, s.st_mtime_ns)); py_compile.compile('size.py'); "
            "open('size.py', 'w').write('SIZE = 40\\n'); "
            "os.utime('size.py', ns=(s.st_atime_ns, s.st_mtime_ns))"
        )
        made = await session.execute(f'python3 -c "{poison}"; ls __pycache__')
        assert "size" in made["stdout"], f"expected bytecode to be made, found {made}"
        judged = await _passed(coder, "a block whose import has been compiled from something else")
        weight = coder.bundle.estimate["totals"]["weight_g"]
        assert judged.totals is not None, f"a design that passed has no weight: {judged}"
        expect_same(weight, judged.totals.weight_g, what="grams of what the source says")
        found = "from build123d import Box, Pos\nSIZE = int(open('size.txt').read())\n"
        await session.write("size.txt", "40")
        await session.write("model.py", found + _script(182, "SIZE"))
        await _passed(coder, "a block whose size is in a file")
        await session.write("size.txt", "80")
        expect_refused(await coder.simulate(), 409, 422, says=r"size\.txt")
        await session.execute("echo 40 > /tmp/size.txt")
        await session.write(
            "model.py", found.replace("size.txt", "/tmp/size.txt") + _script(182, "SIZE")
        )
        answer = await coder.validated()
        expect_refused(answer, 409, 422, says="size")
        await session.write("model.py", _script(182, "SIZE", "from sized import SIZE\n"))
        for size in (40, 41):
            compiling = (
                f"open('s.py', 'w').write('SIZE = {size}\\n'); "
                "import py_compile; py_compile.compile('s.py', 'sized.pyc')"
            )
            made = await session.execute(f'python3 -c "{compiling}"; rm s.py; ls')
            assert "sized.pyc" in made["stdout"], f"expected bytecode alone, found {made}"
            if size == 40:
                await _passed(coder, "a block whose size is in bytecode without a source")
        refused = await coder.simulate()
        expect_refused(refused, 409, 422, says=r"sized\.pyc|changed")


async def test_int_018_a_link_is_what_it_leads_to(episodes: Episodes) -> None:
    """A module behind a link counts as it is now: led elsewhere, or another there, it asks for a verdict.

    A judge that takes no links says so, with words about the module. The model provider is a stand-in: the
    gateway holds the models.
    """
    async with coder_at_work(episodes, number=186, plan=_plan(186)) as coder:
        session = coder.session
        await session.write("one.py", _SIZE)
        await session.write("two.py", "SIZE = 39\n")
        await session.write("model.py", _script(186, "SIZE", "from size import SIZE\n"))
        await session.execute("ln -s one.py size.py")
        answer = await coder.validated()
        if answer.status != 200 or not DesignJudged.model_validate_json(answer.body).passed:
            assert "size" in answer.text, (
                f"a module behind a link is not taken, nor named: {answer}"
            )
            return
        await _both_taken(coder, "a design with a module behind a link")
        await session.execute("ln -sfn two.py size.py")
        await _both_refused(coder, "a module that is led elsewhere", says="size", file="size.py")
        await session.execute("ln -sfn one.py size.py")
        await _both_taken(coder, "the module that was led back")
        await session.write("one.py", "SIZE = 38\n")
        refused = await coder.simulate()
        expect_refused(refused, 409, 422, says="size|one")


async def test_int_018_by_the_agents_own_tools(episodes: Episodes) -> None:
    """An agent that simulates or submits first is refused, then validates, simulates and hands over.

    The model provider is a stand-in: the gateway does the turns.
    """
    turns = [
        use("fs_write", path="model.py", content=_script(183)),
        use("simulate", duration_s=0.1),
        use("submit"),
        use("validate_and_price"),
        use("simulate", duration_s=0.1),
        use("submit"),
    ]
    async with coder_at_work(episodes, *turns, number=183, plan=_plan(183)) as coder:
        pass
    episode = await episodes.get(coder.episode_id)
    tools = [trace for trace in episode["traces"] if trace["kind"] == "tool"]
    expect_same(
        [True, False, False, True, True, True],
        [trace["ok"] for trace in tools],
        what="whether each of the agent's calls was carried out",
    )
    assert 1 == len(episode["handovers"]), f"expected one hand-over, found {episode['handovers']}"
    kept = (await episodes.controller.get(f"/handovers/{episode['handovers'][0]}")).json()
    paths = {each["path"] for each in kept["files"] if not is_made(each["path"])}
    wanted = {*coder.bundle.files(), "model.py"}
    expect_same(wanted, paths, what="files of a design that was handed over")
    events = await episodes.events(coder.episode_id)
    asked = calls(events, "simulation_request")
    assert 1 == len(asked), f"a simulation that was blocked is on record as asked for: {asked}"


async def test_int_018_a_verdict_outlives_the_worker_and_is_one_sessions(
    breakable: Episodes,
) -> None:
    """After the worker was killed what has passed has passed, and what changed since has not.

    What one coder's design passed, another's of the same bytes has not. The model provider is a stand-in:
    the gateway holds the models.
    """
    episodes = breakable
    plans: dict[int, Any] = {184: _plan(184), 185: _plan(185, 50)}
    async with (
        coder_at_work(episodes, number=184, plan=plans[184]) as one,
        coder_at_work(episodes, number=185, plan=plans[185]) as other,
    ):
        for coder, side in ((one, "40"), (other, "50")):
            number = 184 if coder is one else 185
            await coder.session.write("model.py", _script(number, side))
        verdicts: dict[str, DesignJudged] = {}

        async def judge(coder: Coder) -> None:
            verdicts[coder.episode_id] = await _passed(coder, "a design beside another")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(judge, one)
            nursery.start_soon(judge, other)
        for coder in (one, other):
            totals = verdicts[coder.episode_id].totals
            assert totals is not None, f"a design that passed has no price: {verdicts}"
            planned = coder.bundle.estimate["totals"]["weight_g"]
            expect_same(planned, totals.weight_g, what="grams of a design beside another")
        async with episodes.stack.outage("worker", "kill"):
            pass
        await _both_taken(one, "what had passed before the worker was killed")
        await one.session.write("model.py", _script(184, "41"))
        await _both_refused(one, "what changed after that", says=r"model\.py")
        await other.session.write("model.py", _script(184, "40"))
        await _both_refused(other, "what passed in another session", says=r"model\.py")


#: Of a simulation that goes on until it is cancelled.
_ENDLESS_S: Final = 600.0


async def _asked_for(session: Session) -> None:
    """Wait until a session's simulation is asked for: it runs, or has its place in the queue."""

    async def there() -> bool:
        return bool(calls(await session.events(), "simulation_request"))

    await eventually(there, seconds=SOON_S, expected=f"the simulation of {session.id} as an event")


async def test_int_018_what_changes_while_it_waits_is_not_simulated(episodes: Episodes) -> None:
    """A design that becomes another while it waits for its turn is refused at its turn.

    As it was when it passed it is simulated again. The model provider is a stand-in: the gateway holds the
    models.
    """
    holder = episodes.session(new_token())
    await holder.write("scene.xml", scene(boxes=40))
    async with coder_at_work(episodes, number=188, plan=_plan(188)) as coder:
        await coder.session.write("model.py", _script(188))
        await _passed(coder, "a block as it was planned")
        answers: list[Response] = []

        async def hold() -> None:
            body = {"model": "scene.xml", "duration_s": _ENDLESS_S, "job_id": "holds"}
            await holder.post("/benchmark/simulate", **body, seconds=COMMAND_S)

        async def simulate() -> None:
            answers.append(await coder.simulate())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold)
            await _asked_for(holder)
            nursery.start_soon(simulate)
            await _asked_for(coder.session)
            await coder.session.write("model.py", _script(188, "60"))
            cancelled = await holder.post("/jobs/holds/cancel")
            assert 200 == cancelled.status, f"expected the queue to move, found {cancelled}"
        expect_refused(answers[0], 409, 422, says=r"model\.py")
        await coder.session.write("model.py", _script(188))
        await _both_taken(coder, "the design as it was when it passed")


#: A script that tells that it has begun, and once more that it has what it imports; then it goes on for as
#: long as that is there. Where nobody answers it, it goes on by itself.
_GATED: Final = """
import os
import time

def wait(done):
    for _ in range(500):
        if done():
            return
        time.sleep(0.02)

open("begun", "w").close()
wait(lambda: os.path.exists("go-on"))
from size import SIZE

open("imported", "w").close()
wait(lambda: not os.path.exists("imported"))
"""


async def test_int_018_what_was_built_is_what_has_passed(episodes: Episodes) -> None:
    """A design is none that has passed when another one stood in its place while it was built.

    Afterwards all stands as it stood before. The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=189, plan=_plan(189)) as coder:
        session = coder.session
        heavy = "SIZE = 60\n"
        await session.write("size.py", heavy)
        await session.write("model.py", _script(189, "SIZE", _GATED))
        answers: list[Response] = []

        async def judge() -> None:
            answers.append(await coder.validated())

        async def stands(name: str) -> bool:
            async def there() -> bool:
                return bool(answers) or name in await session.files()

            await eventually(there, seconds=SOON_S, expected=f"{name} of a script, or its verdict")
            return not answers

        async with trio.open_nursery() as nursery:
            nursery.start_soon(judge)
            if await stands("begun"):
                await session.write("size.py", _SIZE)
                await session.write("go-on", "")
            if await stands("imported"):
                await session.write("size.py", heavy)
                for left in ("begun", "go-on", "imported"):
                    await session.post("/fs/delete", path=left)
        answer = answers[0]
        if answer.status == 200:
            judged = DesignJudged.model_validate_json(answer.body)
            assert not judged.passed, f"a block of 60 mm passed as one of 40 mm: {judged}"
        refused = await coder.simulate()
        expect_refused(refused, 409, 422)
