"""INT-002: what an agent writes is executed on the worker, and by nothing of the controller."""

from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest
import trio
from workbench_contract.execution import ExecuteRequest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from harness_core.system.compose import Stack
from suites.integration.document import live_document
from suites.integration.episodes import FINAL, Episodes, calls, new_token
from suites.integration.messages import sent
from suites.integration.patience import COMMAND_S, EPISODE_S, SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

#: Where nothing of an agent may run.
CONTROLLER = ("controller", "controller-worker")

#: Waits for the test; its own command line holds the token, as its file does.
_WAIT = (
    "touch begun-{token}; until [ -e go-on ]; do sleep 0.05; done; env > environment.txt; : {token}"
)

#: When a worker goes; its session is open by then, or is not.
_AT_FIRST = "before the episode begins"
_LATER = "while its model thinks"

#: Listings that were shorter than the one before; one that trips does so within a few of them.
_REMOVALS = 40
_AT_ONCE = 4


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
async def test_int_002_agents_run_on_the_worker_only(episodes):
    """An agent's code is a process below the worker, and the controller executes nothing.

    The model provider is a stand-in: the gateway does the agent's turns, in which it writes and
    executes.
    """
    await nothing_executes_on_the_controller(episodes)
    await runs_on_the_worker(episodes)


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
@pytest.mark.slow
@pytest.mark.parametrize("goes", [_AT_FIRST, _LATER])
async def test_int_002_without_a_worker_code_runs_nowhere(breakable, goes):
    """With the worker away an episode that executes fails and says why; nothing was executed.

    The model provider is a stand-in: the gateway does the agent's turn.
    """
    episodes = breakable
    token = new_token()
    gate = f"touch ran-{token}; until [ -e go-on ]; do sleep 0.05; done & sleep 1; : {token}"
    await episodes.rehearse(token, use("execute", command=gate, timeout_s=5))
    gateway = episodes.stack.gateway.client
    async with AsyncExitStack() as thinking, AsyncExitStack() as away:
        held = await thinking.enter_async_context(
            gateway.fault(Fault(kind="hold", contains=token, times=9))
        )
        if goes == _AT_FIRST:
            await away.enter_async_context(episodes.stack.outage("worker", "kill"))
        accepted = await episodes.submit(token)
        identity = accepted["episode_id"]
        if goes == _LATER:

            async def thinks() -> bool:
                return await gateway.fault_met(held) > 0

            await eventually(thinks, seconds=SOON_S, expected="the model to be asked")
            await away.enter_async_context(episodes.stack.outage("worker", "kill"))
        await thinking.aclose()

        async def final() -> dict[str, object] | None:
            for service in CONTROLLER:
                runs = await is_running(episodes.stack, service, token)
                assert not runs, f"{service} runs agents' code when the worker is away"
            found = await episodes.get(identity)
            return found if found["status"] in FINAL else None

        ended = await eventually(final, seconds=EPISODE_S, expected=f"episode {identity} to end")
        assert "failed" == ended["status"], f"expected it to fail without a worker, found {ended}"
        assert ended["reason"], f"it fails and does not say why: {ended}"
    files = await episodes.session(accepted["session_id"]).files()
    assert f"ran-{token}" not in files, "the code ran after its episode had failed"
    events = await episodes.events(identity)
    # Looking at the files just now was a call as well.
    recorded = [event for event in calls(events, "tool_call") if token in str(event["payload"])]
    assert not recorded, f"a call that was not carried out is recorded: {recorded}"


@pytest.mark.covers("INT-002")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_002_files_are_listed_while_code_removes_some(worker):
    """The files of code that runs can be listed; what comes and goes meanwhile is no error."""
    session = new_session(worker)
    await session.write("kept.txt", "kept")
    churn = 'set -- $(seq 100 160); touch begun; until [ -e go-on ]; do touch "$@"; rm "$@"; done'
    ended = trio.Event()

    async def run() -> None:
        await session.execute(churn, timeout_s=EPISODE_S)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)

        async def begun() -> bool:
            return "begun" in await session.files()

        await eventually(begun, seconds=SOON_S, expected="the session's code to run")
        async with trio.open_nursery() as listing:
            for _ in range(_AT_ONCE):
                listing.start_soon(lists_while_some_go, session, ended)
        await session.write("go-on", "")


async def lists_while_some_go(session: Session, ended: trio.Event) -> None:
    """List until enough listings were shorter than the one before, or the code has ended."""
    before: set[str] = set()
    removals = 0
    while removals < _REMOVALS and not ended.is_set():
        found = await session.files()

        assert "kept.txt" in found, f"a file that stays is not listed: {sorted(found)}"
        removals += len(found) < len(before)
        before = found

    assert removals, "expected the session's files to come and go, found none that went"


async def runs_on_the_worker(episodes: Episodes) -> None:
    """While the code runs, the worker has its process; its files and events are the session's."""
    token = new_token()
    await episodes.rehearse(
        token, use("execute", command=_WAIT.format(token=token), timeout_s=COMMAND_S)
    )
    accepted = await episodes.submit(token)
    identity, session = accepted["episode_id"], accepted["session_id"]
    await eventually(
        lambda: is_running(episodes.stack, "worker", token),
        seconds=SOON_S,
        expected=f"a process of the worker with {token}",
    )
    for service in CONTROLLER:
        assert not await is_running(episodes.stack, service, token), f"{service} runs agents' code"
    files = await episodes.session(session).files()
    assert f"begun-{token}" in files, f"the code left nothing in its session: {files}"

    await episodes.release(session)
    await episodes.until(identity, "completed")
    await no_secret_was_there(episodes, session)
    events = await episodes.events(identity)
    recorded = [each for each in calls(events, "tool_call") if token in str(each["payload"])]
    assert ["worker"] == [each["source"] for each in recorded], f"sources of the call: {recorded}"


async def is_running(stack: Stack, service: str, token: str) -> bool:
    """Whether a process of the service has the token in its command line."""
    return any(token in line for line in await stack.processes(service))


async def no_secret_was_there(episodes: Episodes, session: str) -> None:
    """What the controller works with was not in the environment of the code."""
    answer = await episodes.session(session).read("environment.txt")
    assert answer.status == 200, f"the environment of the code: {answer}"
    environment = answer.json()["content"]
    assert "PATH=" in environment, f"that is no environment: {environment!r}"
    known = episodes.stack["controller"].environment
    names = [name for name in known if name in environment]
    assert not names, f"the code has variables of the controller: {names}"
    secrets = {
        value
        for name, value in known.items()
        if any(word in name for word in ("KEY", "SECRET", "PASSWORD", "DATABASE_URL"))
    } | {urlsplit(episodes.stack.access.database_url).netloc}
    leaked = [value for value in secrets if len(value) > 8 and value in environment]
    assert not leaked, f"the code has {len(leaked)} secrets of the controller"


async def nothing_executes_on_the_controller(episodes: Episodes) -> None:
    """It offers no operation that takes code, also not by the worker's paths."""
    theirs = await live_document(episodes.worker)
    execute = "/runtime/execute"
    assert execute in {each.path for each in theirs.operations}, "the worker executes nothing"
    body = sent(ExecuteRequest(command="true"))
    for path in (execute, "/fs/write", "/execute", "/benchmark/simulate"):
        answer = await episodes.controller.having(x_session_id="any-session").post(path, body)
        expect_refused(answer, 404, 405)
