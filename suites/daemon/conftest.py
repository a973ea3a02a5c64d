"""Fixtures of the suite: one daemon per run that all may speak to, and others for those who disturb."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    contextmanager,
    suppress,
)
from typing import cast

import pytest

from harness_core.assurance import gates
from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import open_recorder
from harness_core.front.pytest_plugin import has_failed
from harness_core.front.skips import not_run
from harness_core.process import Run, open_run
from harness_core.system.subject import Subject
from suites.daemon.asked_models import Cast
from suites.daemon.confinement import cannot_confine, confinement
from suites.daemon.daemon import HEALTH_S, Absent, Daemon, Settings, open_daemon
from suites.daemon.hostile import CONNECTIONS, DEPTH, FRAME_CHARACTERS, FRAME_S
from suites.daemon.messages import user_input
from suites.daemon.settings import turned
from suites.daemon.wire import Connection

gates.register(
    gates.Gate(
        name="confinement",
        summary="dangerous commands, where they can do no harm (bubblewrap)",
        probe=cannot_confine,
    )
)

#: The reference system has tests of its own, which session daemon_reference runs.
collect_ignore = ["reference-system"]

#: Fixtures that are daemons which several tests share.
SHARED = ("daemon", "attacked", "confined", "roomy", "skilled")

#: What a daemon for hostile clients is configured to, where its subject file has the knobs.
NARROW = {
    "frame_characters": FRAME_CHARACTERS,
    "depth": DEPTH,
    "frame_s": FRAME_S,
    "connections": CONNECTIONS,
}

#: Opens one more daemon of this test's own: ``async with start(settings) as daemon``.
Start = Callable[..., AbstractAsyncContextManager[Daemon]]

#: Opens a daemon that several tests share: ``with share(name, settings) as daemon``.
Share = Callable[..., AbstractContextManager[Daemon]]


@pytest.fixture(scope="session")
def share(harness_loop: Loop, harness_run: Run, run_evidence: Evidence, subject: Subject) -> Share:
    """Open a daemon in the run's own loop, for a fixture that holds it."""

    @contextmanager
    def opening(name: str = "daemon", settings: Settings | None = None) -> Iterator[Daemon]:
        only_confined(subject)
        starting = open_daemon(
            harness_run, subject, evidence=run_evidence, name=name, settings=settings
        )
        with ExitStack() as stack:
            try:
                daemon = stack.enter_context(harness_loop.hold(starting))
                # What is loaded at the first use counts as its own size, not as growth.
                harness_loop.run(lambda: warm_up(daemon))
            except AssertionError as error:
                yield cast("Daemon", Absent(error))
            else:
                yield daemon

    return opening


def only_confined(subject: Subject) -> None:
    """A product that is started confined or not at all is not started where nothing can be confined."""
    if "confine" in subject.tables and (why := cannot_confine()):
        not_run("gate", why, gate="confinement")


async def warm_up(daemon: Daemon) -> None:
    """Have a conversation, by which a daemon shows that it is there."""
    await daemon.health()


@pytest.fixture(scope="session")
def daemon(share: Share) -> Iterator[Daemon]:
    """The daemon of the run: every test may speak to it, none may take it away."""
    with share() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def attacked(harness_loop: Loop, share: Share, subject: Subject) -> Iterator[Daemon]:
    """A daemon with narrow limits, for hostile clients alone."""
    with share("attacked", Settings(knobs=turned(subject, NARROW))) as daemon:
        if not isinstance(daemon, Absent):
            # A conversation, after which memory grows by what is left alone.
            harness_loop.run(lambda: converse(daemon))
        yield daemon


async def converse(daemon: Daemon) -> None:
    """Ask one thing; what is answered is another test's concern."""
    async with daemon.connect() as connection:
        await connection.send(user_input("ping"))
        with suppress(AssertionError):
            await connection.receive("an answer", seconds=HEALTH_S)


@pytest.fixture(scope="session")
def confined(share: Share, subject: Subject) -> Iterator[Daemon]:
    """A daemon to which dangerous commands may be sent."""
    skills = "files" in subject.table("skills")
    with share("confined", Settings(confinement=confinement(), skills=skills)) as daemon:
        yield daemon


@pytest.fixture(scope="session")
def skilled(share: Share, subject: Subject) -> Iterator[Daemon]:
    """A daemon whose skills directory holds good, broken and needy skills besides its own."""
    if "files" not in subject.table("skills"):
        not_run("subject", f"{subject.path.name} does not say how a skill is written")
    with share("skilled", Settings(skills=True)) as daemon:
        yield daemon


@pytest.fixture(autouse=True)
def same_daemon(
    request: pytest.FixtureRequest, capable: None, harness_loop: Loop
) -> Iterator[None]:
    """A daemon that tests share is the same process after a test as before it.

    One that died is started again, so that the tests after this one speak for themselves.
    """
    named = [request.getfixturevalue(name) for name in SHARED if name in request.fixturenames]
    shared: list[Daemon] = [daemon for daemon in named if not isinstance(daemon, Absent)]
    before = [daemon.vitals().identity for daemon in shared]
    yield
    after = [identity_of(daemon) for daemon in shared]
    for daemon, was, now in zip(shared, before, after, strict=True):
        if was != now:
            harness_loop.run(daemon.restart)

    # A test that has failed reports that itself, with the bytes exchanged.
    assert before == after or has_failed(request.node), (
        "the daemon died of this test, and was started again"
    )


def identity_of(daemon: Daemon) -> tuple[int, int] | None:
    """Pid and start time of a daemon, if it still lives."""
    try:
        return daemon.vitals().identity
    except AssertionError:
        return None


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[Connection]:
    """A connection to the daemon of the run whose handshake has been read."""
    async with daemon.connect() as connection:
        yield connection


@pytest.fixture
async def run(evidence: Evidence) -> AsyncIterator[Run]:
    """A run of this test's own, in its own loop."""
    async with open_run(evidence=evidence) as run:
        yield run


@pytest.fixture
def start(run: Run, subject: Subject, evidence: Evidence) -> Start:
    """Open a daemon of this test's own, which it may stop, kill and flood."""

    def opening(
        settings: Settings | None = None, *, name: str = "own"
    ) -> AbstractAsyncContextManager[Daemon]:
        only_confined(subject)
        return open_daemon(run, subject, evidence=evidence, name=name, settings=settings)

    return opening


@pytest.fixture(name="cast")
async def three_models(evidence: Evidence) -> AsyncIterator[Cast]:
    """The providers: one alone, two at one address on paths of their own."""
    models = Cast()
    one = open_recorder("one", evidence=evidence, rules=models.rules(alpha="/v1/messages"))
    paths = {"beta": "/v1/chat/completions", "gamma": "/third/v1/messages"}
    two = open_recorder("two", evidence=evidence, rules=models.rules(**paths))
    async with one as first, two as second:
        models.recorders = (first, second)
        yield models
