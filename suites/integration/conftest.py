"""Fixtures of the suite: a stack for each worker, its clients, and outages that are given back.

Every worker of pytest-xdist boots its own, when its first test asks. A test leaves every service as it
found it; one that takes services away asks for ``breakable_stack``, after which all is put right.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Final

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import HttpClient
from harness_core.doubles.model import refused_keys
from harness_core.front.pytest_plugin import add_summary, explain_failures
from harness_core.front.skips import not_run
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.episodes import Episodes
from suites.integration.observed import Langfuse
from suites.integration.skilling import Skills, repository
from suites.integration.spans import Spans
from suites.integration.stack import layout_of

#: The reference system has tests of its own, which session integration_reference runs.
collect_ignore = ["reference-system"]


def pytest_configure(config: pytest.Config) -> None:
    """A test that fails while the gateway refuses the stack's key shows that."""
    config.addinivalue_line(
        "markers", "not_in_containers(reason): needs a worker that is a process of this machine"
    )
    config.addinivalue_line(
        "markers",
        "copies_the_store: takes as long as the stack's store has objects, so it comes first",
    )
    explain_failures(config, _refused_keys)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what copies the whole store, while there is little in it; the rest in its random order."""
    items.sort(key=lambda item: item.get_closest_marker("copies_the_store") is None)


@pytest.fixture(autouse=True)
def may_be_contained(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> None:
    """Leave a test out, by its own reason, that cannot do with services in containers."""
    mark = request.node.get_closest_marker("not_in_containers")
    if mark and pytestconfig.getoption("--services") == "container":
        not_run("options", f"--services container: the test {mark.args[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Show first, where a test failed, what its prompts lacked.

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
            with suppress(HarnessError):
                trio.run(each.tell_histories)
        raise


def _refused_keys(item: pytest.Item, began: dt.datetime) -> str:
    """What the gateways of a test's stacks refused for its key while it ran."""
    given = getattr(item, "funcargs", {}).values()
    refused = []
    for stack in {each for each in given if isinstance(each, Stack)}:
        try:
            gateway = stack.gateway
        except HarnessError:
            continue
        seen = [stack[name] for name in stack.names if stack[name].kind != "gateway"]
        names = {
            name
            for each in seen
            for name, value in each.environment.items()
            if value == gateway.api_key
        }
        refused.append(
            refused_keys(
                trio.run(gateway.client.ledger),
                test=item.nodeid,
                since=began,
                held_in=sorted(names),
            )
        )
    return "\n".join(filter(None, refused))


@pytest.fixture(scope="session")
def whole_stack(environment: Stack, pytestconfig: pytest.Config) -> Stack:
    """The stack of this worker, as it was booted."""
    ready = f"ready in {environment.boot_s:.1f} s; logs: {environment.evidence}"
    add_summary(pytestconfig, "the stack", ready)
    return environment


@pytest.fixture
def stack(
    whole_stack: Stack, harness_loop: Loop, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    """The running stack: a test leaves every service of it running.

    Raises:
        AssertionError: a service died, by itself, during the test or before it.
    """
    yield whole_stack
    states = harness_loop.run(whole_stack.states)
    dead = {name: str(state) for name, state in states.items() if state in _DEAD}

    assert not dead, f"services that no longer run after {request.node.nodeid}: {dead}"


_DEAD: Final = frozenset({"ended", "paused", "stopped"})


@pytest.fixture
def breakable_stack(
    whole_stack: Stack, harness_loop: Loop, pytestconfig: pytest.Config
) -> Iterator[Stack]:
    """The same, for tests that take services away; everything is put right afterwards.

    Raises:
        HarnessError: the test left it broken.
    """
    if pytestconfig.getoption("--services") == "external":
        not_run("options", "--services external: servers that others use are not taken away")
    try:
        yield whole_stack
    finally:
        left = harness_loop.run(whole_stack.mend)
        if left:
            harness_loop.run(whole_stack.healthy)
    if left:
        raise HarnessError(
            "go on with the stack as it was",
            observed=f"the test left it broken: {'; '.join(left)}",
            next_step="It was put right. Take services away by `async with stack.outage(…)`",
        )


@pytest.fixture
def api_key(subject: Subject, whole_stack: Stack) -> str:
    """The key that callers of the stack present."""
    return key_of(whole_stack, subject)


def key_of(stack: Stack, subject: Subject) -> str:
    """The key that callers of a stack present, from the environment of its controller."""
    name = layout_of(subject).api_key
    value = stack["controller"].environment.get(name, "")
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
    """The controller of the stack, called with the right key."""
    return client_of(stack, "controller")


@pytest.fixture
def worker(stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> HttpClient:
    """The worker of the stack, called with the right key and no session."""
    return client_of(stack, "worker")


@pytest.fixture
def episodes(stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> Episodes:
    """Episodes of the stack, and their sessions."""
    return Episodes(stack, client_of)


@pytest.fixture
def langfuse_service(subject: Subject) -> str:
    """The service that stands in for Langfuse."""
    service = layout_of(subject).recorder
    if not service:
        not_run("subject", f"{subject.path.name} names no recorder in its [stack]")
    return service


@pytest.fixture
def langfuse(stack: Stack, langfuse_service: str) -> Langfuse:
    """What stands in for Langfuse beside the stack."""
    return Langfuse(stack.recorder(langfuse_service))


@pytest.fixture
def spans(whole_stack: Stack, subject: Subject) -> Spans:
    """What the stack tells of its work, from now on."""
    service = layout_of(subject).telemetry
    if not service:
        not_run("subject", f"{subject.path.name} names no telemetry in its [stack]")
    return Spans(whole_stack.recorder(service))


@pytest.fixture
def skills(whole_stack: Stack, subject: Subject) -> Iterator[Skills]:
    """The repository of the stack's skills, not there yet, and gone again after the test."""
    with repository(whole_stack, subject) as found:
        yield found


@pytest.fixture
def breakable(breakable_stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> Episodes:
    """Episodes of the stack that this test may break."""
    return Episodes(breakable_stack, client_of)
