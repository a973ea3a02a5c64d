"""Fixtures of the suite: one stack per run, a second one for tests that break things, its clients.

Both stacks are held by ``harness_core.hosting`` and booted when the first test asks: under
``pytest -n`` by the controller for all workers, else by this process, for which both are the same
one: it runs one test at a time. A test of the shared stack leaves every service as it found it; a
test that takes services away uses ``breakable_stack``, which it has to itself while it runs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from harness_core.bridge import Loop
from harness_core.budget import llm_budget_usd
from harness_core.errors import HarnessError, Unavailable
from harness_core.evidence import Evidence
from harness_core.hosting import HeldHost, Line, hold_host
from harness_core.http import HttpClient
from harness_core.llm import refused_keys
from harness_core.pytest_plugin import (
    add_summary,
    explain_failures,
    fail_run,
    open_run_evidence,
    progress_of,
)
from harness_core.skips import not_run
from harness_core.stack import Stack, attach_stack, hold_stack, read_compose
from harness_core.subject import Subject, load_subject
from suites.integration.episodes import Episodes
from suites.integration.stack import REFERENCE_SUBJECT, layout_of, open_workbench

#: Tests that the reference system may have of its own need a session with `own_tests`.
collect_ignore = ["reference-system"]

FOLDER: Final = Path(__file__).parent

#: The stacks of a run: the shared one, and the one that may be broken.
STACKS: Final = ("stack", "breakable")
_HOSTS: Final = "integration_hosts"
_HELD: Final = pytest.StashKey[dict[str, HeldHost]]()
_OPEN: Final = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """A test that fails while the gateway refuses the stack's key says so."""
    explain_failures(config, _refused_keys)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the stacks of this run are held."""
    held = _held(node.config, names=STACKS, evidence=lambda: open_run_evidence(node.config))
    node.workerinput[_HOSTS] = {name: str(host.path) for name, host in held.items()}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take down what this process held, when all tests are done."""
    if _OPEN in session.config.stash:
        try:
            session.config.stash[_OPEN].close()
        except HarnessError as error:
            fail_run(session, "the stacks of the run", str(error))


def _held(
    config: pytest.Config, *, names: Sequence[str], evidence: Callable[[], Evidence]
) -> dict[str, HeldHost]:
    """The hosts of this process; each boots its stack when it is first asked for."""
    if _HELD not in config.stash:
        opened = config.stash[_OPEN] = ExitStack()
        config.add_cleanup(opened.close)
        where = evidence()
        config.stash[_HELD] = {
            name: opened.enter_context(_host(config, name, evidence=where.child(name)))
            for name in names
        }
    return config.stash[_HELD]


def _host(config: pytest.Config, name: str, *, evidence: Evidence) -> Any:
    tell = progress_of(config)

    def say(text: str) -> None:
        tell(f"{name}: {text}")

    def opener(run: Any, _loop: Loop) -> Any:
        opening = open_workbench(
            run,
            _read_subject(config),
            evidence=evidence,
            services=config.getoption("--services"),
            llm=config.getoption("--llm"),
            llm_upstream=config.getoption("--llm-upstream"),
            budget_usd=llm_budget_usd(config, FOLDER),
            say=say,
        )
        return hold_stack(opening)

    return hold_host(opener, title=f"integration {name}", evidence=evidence, say=say)


def _read_subject(config: pytest.Config) -> Subject:
    given = config.getoption("--subject")
    return load_subject(Path(given).absolute() if given else REFERENCE_SUBJECT)


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Nothing is run with a mistake in the subject file or in its compose file.

    Raises:
        BadInput: the first one.
    """
    subject = _read_subject(config)
    read_compose(layout_of(subject).compose, variables=subject.environment())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Say first, where a test failed, what its prompts did not tell the model.

    Raises:
        HarnessError: the model was asked what the test has not rehearsed.
    """
    try:
        return (yield)
    except AssertionError as failure:
        given = getattr(item, "funcargs", {}).values()
        for each in (each for each in given if isinstance(each, Episodes)):
            # Without a gateway nothing more is known of it.
            with suppress(Unavailable):
                failure.args = (trio.run(each.explained, str(failure)),)
        raise


def _refused_keys(item: pytest.Item, began: dt.datetime) -> str:
    """What the gateways of a test's stacks refused for its key while it ran."""
    given = getattr(item, "funcargs", {}).values()
    used = {id(each.description): each for each in given if isinstance(each, Stack)}
    said = []
    for stack in used.values():
        if not stack.description.gateway():
            continue
        key = stack.description.gateway_key
        seen = [each for each in stack.description.services.values() if each.kind != "gateway"]
        names = {
            name for each in seen for name in each.environment if each.environment[name] == key
        }
        said.append(
            refused_keys(
                trio.run(stack.gateway().ledger),
                test=item.nodeid,
                since=began,
                held_in=sorted(names),
            )
        )
    return "\n".join(filter(None, said))


@pytest.fixture(scope="session")
def subject(pytestconfig: pytest.Config) -> Subject:
    """What is tested: the reference stack, or the file given with ``--subject``."""
    return _read_subject(pytestconfig)


@pytest.fixture(autouse=True)
def capable(request: pytest.FixtureRequest, subject: Subject) -> None:
    """Skip, by name, what the subject does not claim to do."""
    for marker in request.node.iter_markers("capability"):
        for name in marker.args:
            if name not in subject.capabilities:
                not_run(
                    "subject", f"{subject.name} lists no capability {name!r} in {subject.path.name}"
                )


@pytest.fixture(scope="session")
def host_paths(pytestconfig: pytest.Config, run_evidence: Evidence) -> dict[str, Path]:
    """The sockets of the hosts, by name of stack."""
    told = getattr(pytestconfig, "workerinput", {}).get(_HOSTS)
    if told is not None:
        return {name: Path(path) for name, path in told.items()}
    # One test at a time: each has the one stack to itself, whatever it does to it.
    held = _held(pytestconfig, names=STACKS[:1], evidence=lambda: run_evidence)
    return dict.fromkeys(STACKS, held[STACKS[0]].path)


@pytest.fixture(scope="session")
def shared_stack(
    host_paths: dict[str, Path],
    harness_loop: Loop,
    run_evidence: Evidence,
    pytestconfig: pytest.Config,
) -> Iterator[Stack]:
    """The stack that all tests of the run share, as it was booted."""
    manager = attach_stack(host_paths["stack"], evidence=run_evidence)
    with harness_loop.hold(manager) as stack:
        yield stack
        if getattr(pytestconfig, "workerinput", {}).get("workerid", "gw0") != "gw0":
            return  # each worker uses the same one
        add_summary(
            pytestconfig,
            "the stack",
            f"ready in {stack.description.boot_s:.1f} s; logs: {stack.description.evidence}",
        )


@pytest.fixture(scope="session")
def whole_breakable_stack(
    host_paths: dict[str, Path],
    harness_loop: Loop,
    run_evidence: Evidence,
    pytestconfig: pytest.Config,
) -> Iterator[Stack]:
    """The second stack of the run, as it was booted."""
    if pytestconfig.getoption("--services") == "external":
        not_run("options", "--services external: servers of somebody else are not taken away")
    manager = attach_stack(host_paths["breakable"], evidence=run_evidence)
    with harness_loop.hold(manager) as stack:
        yield stack


@pytest.fixture
def stack(
    shared_stack: Stack, harness_loop: Loop, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    """The shared stack: a test leaves every service of it running.

    Raises:
        AssertionError: a service died, by itself, during the test or before it.
    """
    yield shared_stack
    states = harness_loop.run(shared_stack.states)
    dead = {name: str(state) for name, state in states.items() if state in _DEAD}

    assert not dead, f"services that no longer run after {request.node.nodeid}: {dead}"


_DEAD: Final = frozenset({"ended", "paused", "stopped"})


@pytest.fixture
def breakable_stack(
    whole_breakable_stack: Stack, host_paths: dict[str, Path], harness_loop: Loop
) -> Iterator[Stack]:
    """A stack of its own kind for tests that take services away; this test has it to itself.

    Raises:
        HarnessError: the test before left it broken; it has been put right.
    """
    stack = whole_breakable_stack
    with Line(host_paths["breakable"]) as line:
        line.ask("enter", alone=True)
        try:
            yield stack
        finally:
            left = harness_loop.run(stack.mend)
            if left:
                harness_loop.run(stack.healthy)
    if left:
        raise HarnessError(
            "go on with the stack as it was",
            observed=f"the test left it broken: {'; '.join(left)}",
            next_step="It was put right. Take services away by `async with stack.outage(…)`",
        )


@pytest.fixture
def api_key(subject: Subject, shared_stack: Stack) -> str:
    """The key that callers of the shared stack present."""
    return key_of(shared_stack, subject)


def key_of(stack: Stack, subject: Subject) -> str:
    """The key that callers of a stack present, from the environment of its controller."""
    name = layout_of(subject).api_key
    value = stack.service("controller").environment.get(name, "")
    if not value:
        raise HarnessError(
            "call the controller with a key",
            observed=f"its environment in the compose file has no {name}",
            next_step="Name the variable in the subject file: [stack] api_key",
        )
    return value


@pytest.fixture
def client_of(subject: Subject, evidence: Evidence) -> Callable[[Stack, str], HttpClient]:
    """A client of one service of a stack, with the right key; exchanges go into the evidence."""

    def make(stack: Stack, service: str) -> HttpClient:
        return stack.client(
            service, headers={"x-api-key": key_of(stack, subject)}, evidence=evidence
        )

    return make


@pytest.fixture
def controller(stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> HttpClient:
    """The controller of the shared stack, called with the right key."""
    return client_of(stack, "controller")


@pytest.fixture
def worker(stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> HttpClient:
    """The worker of the shared stack, called with the right key and no session."""
    return client_of(stack, "worker")


@pytest.fixture
def episodes(stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> Episodes:
    """Episodes of the shared stack, and their sessions."""
    return Episodes(stack, client_of)


@pytest.fixture
def breakable(breakable_stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> Episodes:
    """Episodes of the stack that this test may break."""
    return Episodes(breakable_stack, client_of)
