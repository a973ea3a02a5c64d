"""INT-002: a session's commands run on the worker, within limits, and leave nothing that runs."""

from __future__ import annotations

import secrets
from typing import Any, Final

import pytest
import trio

from harness_core.doubles.http import Response
from harness_core.system.compose import Stack
from suites.integration.comparing import expect_same
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

#: Ways to outlive a command: in the background, out of its process group, its session, its terminal
#: and its streams, as a grandchild of nobody, and deaf to every signal that can be heard.
_OUTLIVING: Final = (
    "sleep 6{n} & (trap '' TERM HUP INT QUIT; exec sleep 6{n}) & nohup sleep 6{n} >/dev/null 2>&1 & "
    "setsid sleep 6{n} </dev/null >/dev/null 2>&1 & (setsid sh -c 'sleep 6{n} & sleep 6{n}' &) ; "
    'python3 -c "import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n'
    "os.closerange(0, 64)\nos.execvp('sleep', ['sleep', '6{n}'])\" ; touch begun"
)

#: Lengths of output around what is read, kept or sent at once.
_LENGTHS: Final = (0, 1, 4096, 65_535, 65_536, 65_537, 150_001, 1_048_577)

_FAILURES: Final = 40


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
@pytest.mark.parametrize("end", ["by itself", "by its time", "by cancellation"])
async def test_int_002_nothing_outlives_its_command(end, stack, worker):
    """However a command ends, no process that it started is left on the worker."""
    session = new_session(worker)
    mark = f"{secrets.randbelow(10**7):07}{secrets.randbelow(10**7):07}"
    command = _OUTLIVING.format(n=mark)
    if end == "by itself":
        done = await session.execute(command)
        assert 0 == done["exit_code"], f"expected the command to end by itself, found {done}"
    elif end == "by its time":
        done = await session.execute(f"{command}; sleep 6{mark}", timeout_s=1.5)
        assert done["timed_out"], f"expected the command to be timed out, found {done}"
        assert 0 != done["exit_code"], f"a command that was killed claims success: {done}"
    else:
        await _is_cancelled(session, stack, f"{command}; sleep 6{mark}", mark)
    await eventually(
        lambda: _none_runs(stack, mark), seconds=SOON_S, expected=f"no sleep 6{mark} at the worker"
    )


async def _is_cancelled(session: Session, stack: Stack, command: str, mark: str) -> None:
    """Run a command until it is cancelled."""
    answers: list[Response] = []
    body = {"command": command, "timeout_s": COMMAND_S, "job_id": "outliving"}

    async def run() -> None:
        answers.append(await session.post("/runtime/execute", **body, seconds=COMMAND_S))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)

        async def begun() -> bool:
            return "begun" in await session.files() and not await _none_runs(stack, mark)

        await eventually(begun, seconds=SOON_S, expected="the command to run")
        stranger = new_session(session.client)
        expect_refused(await stranger.post("/jobs/outliving/cancel"), 404)
        expect_refused(await session.post("/jobs/outlivin/cancel"), 404)
        twin = await session.post("/runtime/execute", command="true", job_id="outliving")
        expect_refused(twin, 409)
        assert not await _none_runs(stack, mark), (
            "a cancellation that was refused ended the command"
        )
        cancelled = await session.post("/jobs/outliving/cancel")
        assert 200 == cancelled.status, f"expected a cancellation, found {cancelled}"
        # It is an answer, so it is so: nothing is waited for.
        assert await _none_runs(stack, mark), "the cancelled command has processes"
        again = await session.post("/jobs/outliving/cancel")
        assert again.status in {200, 404, 409}, f"a second cancellation: {again}"
        if again.status == 200:
            assert not again.json()["was_running"], f"what was cancelled ran again: {again}"
    assert cancelled.json()["was_running"], f"what was cancelled had run: {cancelled}"
    assert [200] == [answer.status for answer in answers], f"a cancelled command: {answers}"
    found = answers[0].json()
    assert found["cancelled"], f"a cancelled command does not say so: {found}"
    assert not found["timed_out"], f"a cancelled command says that it was timed out: {found}"
    assert 0 != found["exit_code"], f"a cancelled command claims success: {found}"


async def _none_runs(stack: Stack, mark: str) -> bool:
    return not [line for line in await stack.processes("worker") if f"sleep 6{mark}" in line]


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_002_a_command_is_answered_as_it_ended(worker):
    """Status, both streams and what was cut of them; the next command sees nothing of the last one.

    What is no command is refused.
    """
    session = new_session(worker)
    for code in (0, 1, 2, 126, 127, 255):
        done = await session.execute(f"printf 'out {code}'; printf 'err {code}' >&2; exit {code}")
        told = {
            "exit_code": code,
            "stdout": f"out {code}",
            "stderr": f"err {code}",
            "truncated": False,
            "timed_out": False,
            "cancelled": False,
        }
        expect_same(told, {key: done[key] for key in told}, what=f"a command that ends with {code}")
    killed = await session.execute("kill -9 $$")
    assert killed["exit_code"] not in {0, None}, f"a killed command claims success: {killed}"
    for length in _LENGTHS:
        for stream, redirection in (("stdout", ""), ("stderr", " >&2")):
            other = "stderr" if stream == "stdout" else "stdout"
            done = await session.execute(f"yes 12345678 | head -c {length}{redirection}")
            whole = ("12345678\n" * (length // 9 + 1))[:length]
            assert whole.startswith(done[stream]), f"{stream} of {length} is another: {done}"
            cut = len(done[stream]) < length
            assert cut == done["truncated"], (
                f"of {length} characters of {stream} {len(done[stream])} were kept, and truncated "
                f"is {done['truncated']}"
            )
            assert len(done[stream]) >= min(length, 4096), f"{stream} of {length} is cut: {done}"
            assert "" == done[other], f"{stream} of {length} stands in {other} as well: {done}"
    await session.execute("echo x > kept.txt; export LEFT=1; cd /tmp; umask 0; alias ls=false")
    done = await session.execute("pwd; echo ${LEFT:-none}; umask; cat kept.txt")
    where, left, _, kept = done["stdout"].splitlines()
    assert "/tmp" != where, f"a command begins where the last one went: {done}"
    assert ("none", "x") == (left, kept), f"a command has the variables of the last one: {done}"
    for wrong in (
        {"command": ""},
        {"command": "true", "timeout_s": 0},
        {"command": "true", "timeout_s": -1},
        {"command": "true", "timeout_s": "soon"},
        {"command": "tr\0ue"},
        {"command": "true", "job_id": "../x"},
        {},
    ):
        expect_refused(await session.malformed("/runtime/execute", **wrong), 400, 422)


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_002_what_fails_costs_nothing_afterwards(stack, worker):
    """After many commands that fail, time out or leave something, the worker has no more processes.

    A session's greed ends at its own limits: another one works meanwhile. One success follows.
    """
    session, other = new_session(worker), new_session(worker)
    await other.execute("true")
    before = await _counted(stack)

    async def fail_often(numbers: range) -> None:
        for number in numbers:
            kind = ("exit 3", "kill -9 $$", "sleep 600 & exit 1", "cat /no/such/file")[number % 4]
            done = await session.execute(kind)
            assert 0 != done["exit_code"], f"a command that fails claims success: {done}"

    async with trio.open_nursery() as nursery:
        for first in range(4):
            nursery.start_soon(fail_often, range(first, _FAILURES, 4))
    greedy = {
        "processes": "i=0; while [ $i -lt 2000 ]; do sleep 600 & i=$((i + 1)); done; exit 0",
        "memory": "python3 -c 'x = bytearray(1 << 40)'",
        "a file": "truncate -s 1T huge && stat -c %s huge",
        "a file, when it lifts its own limits": (
            "ulimit -f unlimited 2> no; ulimit -Sf unlimited 2>> no; truncate -s 1T huger"
        ),
    }
    for what, command in greedy.items():
        done: dict[str, Any] = {}

        async def take(command: str, done: dict[str, Any]) -> None:
            done.update(await session.execute(command, timeout_s=3))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, command, done)
            beside = await other.execute("sleep 0.2 & wait; echo works")
        assert "works\n" == beside["stdout"], f"greed for {what} stops others: {beside}"
        assert 0 != done["exit_code"], f"there is no limit to {what}: {done}"

    async def as_before() -> bool:
        return await _counted(stack) <= before

    await eventually(
        as_before, seconds=SOON_S, expected=f"the worker with {before} processes again"
    )
    done = await session.execute("echo works")
    assert "works\n" == done["stdout"], f"a command after many that failed: {done}"


async def _counted(stack: Stack) -> int:
    return len(await stack.processes("worker"))
