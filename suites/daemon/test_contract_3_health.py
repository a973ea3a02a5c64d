"""Contract 3: each of the four words of health is said when it is so, and not after.

A recorder is a stand-in for a model provider: whether something listens there is all that counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import slowness
from harness_core.doubles.http import open_recorder
from suites.daemon.daemon import Daemon, Provider, Settings, health_on
from suites.daemon.ending import ended
from suites.daemon.health import NOTICED_S, becomes
from suites.daemon.messages import (
    ANSWER_S,
    ask,
    due,
    expect_health,
    expect_message,
    request,
    user_input,
)
from suites.daemon.wire import Connection, Keyword, Message, lookup

pytestmark = [
    pytest.mark.covers("CONTRACT-3-HEALTH"),
    pytest.mark.capability("providers", "self-checks", "shell-text"),
    pytest.mark.knob("check_s"),
    pytest.mark.knob("workers"),
]

NOT_HEALTHY = ("DEGRADED", "UNHEALTHY", "UNKNOWN")

#: What has come already is read in this time.
AT_ONCE_S = 0.2

#: What keeps a worker busy may take so long, where the daemon can be told: longer than health may take
#: to notice something on a machine many times slower than another.
BUSY_S = 80

#: A command starts, asks and prints in a third of a second.
TYPED_S = 30.0

#: What a check of the daemon may take before it is given up.
CHECK_S = 0.3


async def expect_still_busy(connection: Connection) -> None:
    """What keeps the worker busy has not ended: a check that failed is told beside one that cannot end.

    Raises:
        HarnessError: the machine is so busy that the command may have run into its timeout before.
    """
    ended = None
    with trio.move_on_after(AT_ONCE_S):
        ended = await connection.receive("nothing yet", seconds=NOTICED_S)
    if ended is not None and slowness() > 1:
        raise HarnessError(
            "judge health while a worker is busy",
            observed=f"what kept it busy had ended: {ended.payload[:200]}",
            next_step="Run the test again with less beside it",
        )

    assert ended is None, (
        "contract 3: a working root that is gone is :UNHEALTHY, also while a worker is busy; expected "
        f"that before the end of what kept it busy, found it after: {ended.payload[:200]}"
    )


@pytest.fixture
def expect_typed(run) -> Callable[..., Awaitable[None]]:
    """What an operator types to ask for health: it prints the word, and succeeds where that is HEALTHY alone."""
    numbers = itertools.count(1)

    async def typed(daemon: Daemon, word: str) -> None:
        argv = daemon.client("cli", "status")
        name = f"status-{next(numbers)}"
        async with run.child(argv, name=name, env=daemon.environment(), cwd=daemon.home) as child:
            status, printed = await ended(child, argv, seconds=TYPED_S, contract="3")

        assert (word in printed, status == 0) == (True, word == "HEALTHY"), (
            f"contract 3: health is {word}: expected the command line to print it and to "
            f"{'succeed' if word == 'HEALTHY' else 'fail'}, found status {status}:\n{printed}"
        )

    return typed


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(False, id="frames"),
        pytest.param(True, id="typed", marks=pytest.mark.capability("cli")),
    ],
)
async def test_each_word_is_said_when_it_is_so(
    start, subject, evidence, expect_typed, *, typed: bool
) -> None:
    """Healthy, degraded, unhealthy and unknown: each follows what happens, and gives way again."""

    async def says(daemon: Daemon, word: str, *, since: str) -> Message:
        answer = await becomes(daemon, word, since=since)
        if typed:
            await expect_typed(daemon, word)
        return answer

    async with open_recorder("provider", evidence=evidence) as there:
        dead = Provider(name="dead", shape="openai", url="http://127.0.0.1:1", key="k", model="m")
        up = Provider(name="up", shape="anthropic", url=there.url, key="l", model="n")
        port = there.port
        knobs = {"workers": 1, "check_s": CHECK_S}
        if "command_s" in subject.table("knobs"):
            knobs["command_s"] = BUSY_S
        settings = Settings(knobs=knobs, providers=(dead, up))
        opening = start(settings)
        daemon = await opening.__aenter__()
        await becomes(daemon, "HEALTHY", since="after start, one of two providers there")
    try:
        answer = await says(daemon, "DEGRADED", since="no provider there")

        assert "dead" in answer.payload, f"contract 3: health names no provider: {answer.payload}"
        assert "up" in answer.payload, f"contract 3: health names one provider: {answer.payload}"
        async with open_recorder("provider-again", evidence=evidence, port=port):
            await says(daemon, "HEALTHY", since="a provider is back")
            away = daemon.root.with_name("away")
            daemon.root.rename(away)
            await says(daemon, "UNHEALTHY", since="its working root is gone")
            away.rename(daemon.root)
            await says(daemon, "HEALTHY", since="its working root is back")
            async with daemon.connect() as busy:
                waits = "until [ -e go-on ]; do sleep 0.05; done"
                text = daemon.subject.table("texts")["shell"].replace("{command}", waits)
                await busy.send(user_input(text))
                await says(daemon, "UNKNOWN", since="its one worker is busy")
                daemon.root.rename(away)
                await says(
                    daemon, "UNHEALTHY", since="its working root is gone and its worker is busy"
                )
                await expect_still_busy(busy)
                away.rename(daemon.root)
                (daemon.root / "go-on").touch()
                done = await due(busy, "the end of what kept it busy", seconds=ANSWER_S)
                expect_message(done, busy)
            await becomes(daemon, "HEALTHY", since="its worker is free again")
            async with daemon.connect() as connection:
                for _ in range(5):
                    expect_health(await health_on(connection))
    finally:
        await opening.__aexit__(None, None, None)


@contextmanager
def taken(directory: Path) -> Iterator[None]:
    """Nothing can be read from a directory, or written to it: a file has its name."""
    away = directory.with_name(f"{directory.name}-away")
    directory.rename(away)
    directory.touch()
    try:
        yield
    finally:
        directory.unlink()
        away.rename(directory)


def unwell(answer: Message) -> dict[str, str]:
    """Name → status of the checks of a health response."""
    checks = answer.get("CHECKS") or ()

    assert isinstance(checks, tuple), f"contract 3: the checks are a list, found {answer.payload}"
    return {str(lookup(row, "NAME")): str(lookup(row, "STATUS")) for row in checks}


@pytest.mark.capability("links")
async def test_health_says_that_nothing_can_be_linked(start, subject, token: str) -> None:
    """Where no link can be stored health is not HEALTHY, and it is no check of something else that says so."""
    link = {"name": token, "platform": "signal", "address": f"address-{token}"}
    async with start() as daemon, daemon.connect() as connection:
        await ask(connection, request("GATEWAY", "LINK", **link))
        stored = [
            file
            for file in daemon.home.rglob("*")
            if file.is_file() and link["address"].encode() in file.read_bytes()
        ]
        before = unwell(await becomes(daemon, "HEALTHY", since="after start"))
        others: set[str] = set()
        if directory := subject.table("skills").get("directory"):
            with taken(Path(daemon.fill(directory))):
                said = await becomes(daemon, *NOT_HEALTHY, since="its skills are gone")
            others = {name for name, status in unwell(said).items() if before.get(name) != status}
            await becomes(daemon, "HEALTHY", since="its skills are back")
        for where in {file.parent for file in stored} - {daemon.home}:
            with taken(where):
                answer = await ask(connection, request("GATEWAY", "LINK", **link))
                if answer.get("TYPE") != Keyword("LOG"):
                    continue
                said = await becomes(daemon, *NOT_HEALTHY, since="nothing can be linked")
            found = {name for name, status in unwell(said).items() if before.get(name) != status}

            assert found - others, (
                f"contract 3: nothing can be linked since {where} is gone: expected a check of that to "
                f"be unwell, found those alone that are so without skills: {said.payload}"
            )
            await becomes(daemon, "HEALTHY", since="links can be stored again")


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "second", "last"])
async def test_one_provider_of_many_is_enough(start, evidence, place: int) -> None:
    """Whichever of three providers is there, first or last, health is the same."""
    async with open_recorder("there", evidence=evidence) as there:
        order = tuple(
            Provider(
                name=name,
                shape="openai",
                key=f"k-{name}",
                model="m",
                url=there.url if number == place else "http://127.0.0.1:1",
            )
            for number, name in enumerate(("one", "two", "three"))
        )
        settings = Settings(knobs={"check_s": CHECK_S}, providers=order)
        async with start(settings) as daemon:
            said = await becomes(daemon, "HEALTHY", since=f"provider {place + 1} of three is there")

    assert "HEALTHY" == expect_health(said).name, (
        f"contract 3: one of three is enough, found {said}"
    )
