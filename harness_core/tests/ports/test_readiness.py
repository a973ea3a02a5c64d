"""The stages on the way to ready, and which one is named when the way ends early."""

import sys

import pytest
import trio

from harness_core.base.errors import ChildExited, NotReady, PortTaken
from harness_core.ports import (
    Stage,
    await_completion,
    await_ready,
    lease_port,
    listener_stages,
    listening_socket,
)

PYTHON = (sys.executable, "-Sc")


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing else to do: deadlines are what they say."""
    monkeypatch.setattr("harness_core.ports._readiness.slowness", lambda: 1.0)


def reached(looks: list[str], name: str, *, after: int = 0):
    """A stage that is reached after some looks."""
    left = after

    async def probe() -> str:
        nonlocal left
        looks.append(name)
        left -= 1
        return "" if left < 0 else f"{left + 1} looks to go"

    return Stage(name=name, probe=probe, seconds=5)


async def test_stages_are_waited_for_in_order(run):
    """Each stage is looked at until it is reached, and only then the next."""
    looks: list[str] = []
    stages = [reached(looks, "port", after=2), reached(looks, "protocol"), reached(looks, "domain")]
    async with run.child(["sleep", "3600"], name="server") as child:
        await await_ready(child, stages)

    assert ["port", "port", "port", "protocol", "domain"] == looks


async def test_first_stage_that_fails_is_named(run):
    """The error has the stage, the last observation, the time, the tail and the log."""
    looks: list[str] = []
    late = reached(looks, "protocol", after=10_000)
    stage = Stage(name=late.name, probe=late.probe, seconds=0.1)
    async with run.child(["sh", "-c", "echo booting; sleep 3600"], name="server") as child:

        async def has_booted() -> str:
            return "" if child.tail() else "silent"

        booted = Stage(name="port", probe=has_booted, seconds=5)
        with pytest.raises(NotReady) as late_error:
            await await_ready(child, [booted, stage, reached(looks, "domain")])

    error = late_error.value
    assert "protocol" == error.stage
    assert 0.1 == error.waited_s
    assert ("booting",) == error.tail
    assert child.log == error.log
    assert "domain" not in looks
    assert error.observed.startswith("0.1 s passed, last seen: ")
    assert error.observed.endswith(" looks to go")
    assert "cannot reach stage 'protocol' of server: " in str(error)


async def test_probe_that_hangs_is_bounded_by_its_stage(run):
    """A probe that never answers cannot outlast its stage."""

    async def hang() -> str:
        await trio.sleep_forever()
        return ""

    async with run.child(["sleep", "3600"], name="server") as child:
        with trio.fail_after(5), pytest.raises(NotReady) as late:
            await await_ready(child, [Stage(name="port", probe=hang, seconds=0.05)])

    assert "nothing was seen yet" in late.value.observed


async def test_death_of_the_child_ends_the_wait_at_once(run):
    """A child that dies on the way is reported with status and tail, long before the deadline."""

    async def never() -> str:
        return "not yet"

    async with run.child(["sh", "-c", "echo no database; exit 4"], name="server") as child:
        with trio.fail_after(10), pytest.raises(ChildExited) as exited:
            await await_ready(child, [Stage(name="port", probe=never, seconds=3600)])

    assert 4 == exited.value.returncode
    assert ("no database",) == exited.value.tail
    assert "cannot start server: server exited with 4." in str(exited.value)


async def test_child_that_is_dead_already_is_not_ready(run):
    """A dead child is not ready, even when another server passes every stage."""
    looks: list[str] = []
    async with run.child(["false"], name="server") as child:
        await child.wait()
        with pytest.raises(ChildExited):
            await await_ready(child, [reached(looks, "port")])
        with pytest.raises(ChildExited):
            await await_ready(child, [])

    assert [] == looks


async def test_squatter_between_hand_over_and_bind_is_detected(run, listener_argv):
    """Who binds the port before the child does is named, whether the child then dies or not."""
    outcomes = []
    for give_up in (False, True):
        with lease_port() as lease, listening_socket(port=lease.hand_over()):
            argv = listener_argv(lease.port) if give_up else ["sleep", "3600"]
            async with run.child(argv, name="server") as child:
                with pytest.raises((PortTaken, ChildExited)) as failed:
                    await await_ready(child, listener_stages(child, lease.port, seconds=5))
                outcomes.append(failed.value)

    first, second = outcomes
    assert isinstance(first, PortTaken)
    assert "pid " in first.owner
    assert isinstance(second, PortTaken) or "Address already in use" in str(second)


async def test_squatter_is_reported_over_the_death_it_causes(run):
    """When stage and child fail in one moment, the squatter is the news: it is the cause."""
    async with run.child(["sh", "-c", "sleep 3600"], name="server") as child:

        async def taken() -> str:
            child.kill()
            with trio.CancelScope(shield=True):
                await child.wait()
                for _ in range(5):
                    await trio.lowlevel.checkpoint()
            raise PortTaken(1234, owner="pid 1 (other)")

        with pytest.raises(PortTaken) as failed:
            await await_ready(child, [Stage(name="owner", probe=taken, seconds=5)])

    assert 1234 == failed.value.port
    assert isinstance(failed.value.__cause__, ChildExited)


async def test_listener_stages_of_a_real_server(run, listener_argv):
    """A server that binds its leased port passes both stages."""
    with lease_port() as lease:
        port = lease.hand_over()
        async with run.child(listener_argv(port), name="server") as child:
            stages = listener_stages(child, port, seconds=10)
            await await_ready(child, stages)

            assert ["port", "owner"] == [stage.name for stage in stages]


async def test_listener_that_is_gone_again_is_waited_for(run):
    """Between accepting and the proof a server may restart its listener; that is not a squatter."""
    with lease_port() as lease:
        async with run.child(["sleep", "3600"], name="server") as child:
            _, owner = listener_stages(child, lease.port, seconds=5)

            assert f"port {lease.port} has no listener any more" == await owner.probe()


async def test_caller_that_gives_up_is_cancelled(run):
    """Cancellation from outside is cancellation, not a stage that failed."""

    async def never() -> str:
        return "not yet"

    async with run.child(["sleep", "3600"], name="server") as child:
        with trio.move_on_after(0.05) as scope:
            await await_ready(child, [Stage(name="port", probe=never, seconds=3600)])

        assert scope.cancelled_caught
        assert child.returncode is None


async def test_completion_of_a_one_shot(run):
    """A one-shot that exits with 0 is complete; another status and a late end are errors."""
    async with run.child(["true"], name="migrate") as child:
        await await_completion(child, seconds=5)
    async with run.child(["sh", "-c", "echo broken; exit 2"], name="seed") as child:
        with pytest.raises(ChildExited) as exited:
            await await_completion(child, seconds=5)
    assert (2, "complete seed", ("broken",)) == (
        exited.value.returncode,
        exited.value.action,
        exited.value.tail,
    )
    async with run.child(["sleep", "3600"], name="slow") as child:
        with pytest.raises(NotReady) as late:
            await await_completion(child, seconds=0.05)

    assert "exit" == late.value.stage
    assert "it still runs, 0.05 s passed" == late.value.observed
