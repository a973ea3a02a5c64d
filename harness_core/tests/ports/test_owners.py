"""Who listens where, and the proof that it is our child."""

import os

import pytest
import trio

from harness_core.base.errors import PortTaken
from harness_core.base.wait import until
from harness_core.ports import lease_port, listeners, listening_socket, owner_of, prove_listener
from harness_core.ports._owners import NO_PROCESS, _is_loopback


async def listens(child) -> int:
    """The port the child says it listens on."""

    async def said() -> bool:
        return any(line.startswith("listening") for line in child.tail())

    with trio.fail_after(10):
        await until(said)
    return int(child.tail()[0].split()[1])


async def test_listener_of_the_child_is_proven(run, listener_argv):
    """A port that the child alone listens on passes, and is reported with pid and command."""
    async with run.child(listener_argv(0), name="server") as child:
        port = await listens(child)
        prove_listener(port, child)

        (found,) = listeners(port=port)
        assert (port, child.pid, True) == (found.port, found.pid, found.loopback)
        assert f"pid {child.pid} ({found.command})" == owner_of(port)
        assert found in listeners()


async def test_listener_of_a_descendant_is_accepted(run, listener_argv):
    """A worker process that listens for the child, in a session of its own, is the child's."""
    async with run.child(listener_argv(0, "fork"), name="server") as child:
        port = await listens(child)

        async def handed_on() -> bool:
            return [entry.pid for entry in listeners(port=port)] != [child.pid]

        await until(handed_on)
        (found,) = listeners(port=port)
        assert found.pid != child.pid
        prove_listener(port, child)
        child.kill()
        os.kill(found.pid, 9)


async def test_handed_over_socket_counts_as_the_childs(run):
    """A socket that is open here and in the child is the child's."""
    with listening_socket() as sock:
        port = sock.getsockname()[1]
        async with run.child(["sleep", "3600"], name="server", listen=[sock]) as child:
            prove_listener(port, child)

            assert 2 == len(listeners(port=port))
        with pytest.raises(PortTaken):
            prove_listener(port, child)


@pytest.mark.parametrize(
    "host", ["127.0.0.2", pytest.param("::1", marks=pytest.mark.requires("ipv6"))]
)
async def test_squatter_beside_the_child_is_named(run, listener_argv, host):
    """Another process that listens on the child's port, on another loopback address, is named."""
    with lease_port() as lease:
        port = lease.hand_over()
        async with (
            run.child(listener_argv(port), name="server") as child,
            run.child(listener_argv(port, host=host), name="squatter") as squatter,
        ):
            await listens(child)
            await listens(squatter)
            with pytest.raises(PortTaken) as taken:
                prove_listener(port, child)

    assert taken.value.owner.startswith(f"pid {squatter.pid} (")
    assert str(child.pid) not in taken.value.owner
    assert f"(pid {child.pid})" in taken.value.next_step


async def test_squatter_in_place_of_the_child_is_named(run, listener_argv):
    """Another process that listens where the child should is named."""
    async with (
        run.child(listener_argv(0), name="squatter") as squatter,
        run.child(["sleep", "3600"], name="server") as child,
    ):
        port = await listens(squatter)
        with pytest.raises(PortTaken) as taken:
            prove_listener(port, child)

    assert taken.value.owner.startswith(f"pid {squatter.pid} (")


async def test_port_without_a_listener_is_not_proven(run):
    """Without a listener there is nothing to prove; the error says so."""
    with lease_port() as lease:
        async with run.child(["sleep", "3600"], name="server") as child:
            with pytest.raises(PortTaken) as taken:
                prove_listener(lease.port, child)

    assert NO_PROCESS == taken.value.owner
    assert "has not bound it" in taken.value.next_step


async def test_listener_on_all_addresses_is_not_loopback(run, listener_argv):
    """A server that can be reached from outside is told apart."""
    async with run.child(listener_argv(0, host="0.0.0.0"), name="server") as child:
        port = await listens(child)

        assert [False] == [entry.loopback for entry in listeners(port=port)]
        prove_listener(port, child)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("0100007F", True),
        ("0200007F", True),
        ("00000000", False),
        ("7F00000A", False),
        ("00000000000000000000000001000000", True),
        ("0000000000000000FFFF00000100007F", True),
        ("00000000000000000000000000000000", False),
    ],
)
def test_loopback_addresses_as_the_kernel_prints_them(printed, expected):
    """127.x.y.z, ::1 and 127.x.y.z inside IPv6 are loopback; everything else is not."""
    assert expected is _is_loopback(printed)


def test_nobody_owns_a_port_that_is_free():
    """A port without a listener has no owner, even while it is leased."""
    with lease_port() as lease:
        assert NO_PROCESS == owner_of(lease.port)
