"""Contract 5: a command whose client leaves takes nothing with it, and holds up nobody."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from suites.daemon.daemon import Daemon
from suites.daemon.messages import ANSWER_S, ask, expect_health, expect_message, shell, user_input
from suites.daemon.vitals import running, settled
from suites.daemon.wire import Keyword, RemoteProtocolError

pytestmark = [pytest.mark.covers("CONTRACT-5-SAFE"), pytest.mark.capability("shell-reply")]

#: Clients that leave in each way: more in all than commands run at once by default.
LEAVING = 6

#: Until what was left is gone, on a machine with nothing else to do.
GONE_S = 15.0


@pytest.mark.parametrize("how", ["closes", "resets", "sends junk"])
async def test_who_leaves_leaves_nothing(daemon: Daemon, token: str, how: str) -> None:
    """A client that leaves while its command runs leaves no process or file, and its place is free.

    The command is ended with its client, or by its timeout; the next client's runs.
    """
    # Longer than any deadline of this test: it does not end by itself.
    wait = f"3148.{random.randrange(10**9):09}"
    before = daemon.vitals()

    async def leaves() -> None:
        async with daemon.connect() as connection:
            await connection.send(shell(f"sleep {wait}; sleep {wait}", timeout=1))
            if how == "resets":
                await connection.abort()
            elif how == "sends junk":
                await connection.send_bytes(b"junk!!")

    async with trio.open_nursery() as nursery:
        for _ in range(LEAVING):
            nursery.start_soon(leaves)
    async with daemon.connect() as connection:
        for number in range(3):
            try:
                outcome = await ask(connection, shell(f"echo {number}-{token}"))
            except RemoteProtocolError as error:
                raise AssertionError(
                    f"contract 5: after {LEAVING} clients that left while their commands ran a "
                    f"command runs: expected its outcome, found {error}"
                ) from error

            assert outcome.get("PAYLOAD", "STDOUT") == f"{number}-{token}\n", (
                f"contract 5: after {LEAVING} clients that left while their commands ran a command "
                f"runs: expected {number}-{token}, found {outcome.payload}"
            )
        expect_message(await ask(connection, user_input("ping")), connection)
        expect_health(await daemon.health())

    async def gone() -> bool:
        return not running(wait)

    with trio.move_on_after(patience(GONE_S)):
        await until(gone)
    left = running(wait)

    assert not left, f"contract 5: a client that {how} leaves no process behind, found {left}"
    after = await settled(daemon.pid, descriptors=before.descriptors, seconds=GONE_S)

    assert after.identity == before.identity, "contract 5: the daemon is the same process"


async def test_what_was_ended_leaves_nothing(daemon: Daemon) -> None:
    """Commands that time out, fail, are refused or print without end leave no file and no process open."""
    async with daemon.connect() as connection:
        await ask(connection, shell("echo; true"))
        before = daemon.vitals()
        for command, asked in (
            ("sleep 9", Fraction(1, 5)),
            ("exit 3", 5),
            ("rm -rf /nothing-of-this-name", 5),
            ("yes", Fraction(1, 4)),
            ("kill -9 $$", 5),
            ("echo (", 5),
        ) * 3:
            answer = await ask(connection, shell(command, timeout=asked), seconds=ANSWER_S * 2)

            assert answer.get("TYPE") in {Keyword("EVENT"), Keyword("LOG")}, (
                f"contract 5: {command} is answered by its outcome or a refusal, found "
                f"{answer.payload[:300]}"
            )
        after = await settled(daemon.pid, descriptors=before.descriptors, seconds=GONE_S)

    assert after.children == before.children, (
        f"contract 5: commands that have ended leave no process: expected {before.children}, found "
        f"{after.children}"
    )
