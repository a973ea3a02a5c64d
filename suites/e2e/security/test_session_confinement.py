"""A session sees its own butler's tools, a model, and nothing else of the machine it runs on."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from harness_core.assertions import new_token
from harness_core.base.bridge import Loop
from harness_core.base.slowness import patience
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.ecosystem.mcp import CannotReach, call_tool
from suites.e2e.ecosystem.subject_file import tables_of
from suites.e2e.security.session import SessionSeen, hold_session

pytestmark = [pytest.mark.covers("E2E-CONFINEMENT"), pytest.mark.capability("session-process")]

#: What a Claude Code process may find in its environment: how to run at all, where the model is,
#: settings of its own. A subject adds patterns of its own in ``[session] environment``.
ALLOWED = (
    *("PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "USER", "LOGNAME", "SHELL", "TERM", "TZ"),
    *("LANG", "LANGUAGE", "LC_*", "TMPDIR", "TMP", "TEMP", "XDG_*", "TRACEPARENT", "TRACESTATE"),
    *("SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "*_PROXY", "*_proxy"),
    *("ANTHROPIC_*", "CLAUDE_*", "CLAUDECODE", "DISABLE_*", "ENABLE_*", "MAX_*", "MCP_*"),
)

ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):(\d{2,5})")


#: A session that is to be cut off, once it has asked the model.
DEADLINE_S = 8.0


@pytest.fixture(scope="module")
def observed() -> list[SessionSeen]:
    """The session that the tests of this file share, once there is one."""
    return []


@pytest.fixture
def held(
    booked: None, butler_ecosystem: Ecosystem, harness_loop: Loop, observed: list[SessionSeen]
) -> SessionSeen:
    """A session of health, observed while its model kept it waiting, and after its end.

    Once, for the first test that needs it.
    """
    token = new_token()

    async def observe() -> SessionSeen:
        text = f"I have a headache, severity 5 ({token})"
        return await hold_session(
            butler_ecosystem, text, butler="health", tool="symptom_log", token=token
        )

    if not observed:
        observed.append(harness_loop.run(observe))
    return observed[0]


def test_its_environment_is_an_allow_list(held: SessionSeen, butler_ecosystem: Ecosystem) -> None:
    """Every variable of every process of a session is one that a session needs."""
    patterns = (*ALLOWED, *tables_of(butler_ecosystem.subject).session.environment)
    surplus = {
        process.text(): sorted(
            name
            for name in process.environment
            if not any(fnmatchcase(name, pattern) for pattern in patterns)
        )
        for process in held.processes
    }

    found = {process: names for process, names in surplus.items() if names}

    assert not found, f"variables that no session needs: {found}"
    assert any("ANTHROPIC_BASE_URL" in process.environment for process in held.processes), (
        "a session is told where its model is"
    )


@pytest.mark.covers("E2E-CONFINEMENT", "E2E-SECRETS")
def test_it_holds_no_secret_but_the_models_key(
    held: SessionSeen, butler_ecosystem: Ecosystem
) -> None:
    """Neither environment nor files of a session hold a database's password or its butler's variables."""
    forbidden = {
        name: value for name, value in butler_ecosystem.secrets.items() if "model" not in name
    }
    found = [
        f"{name} in {variable} of {process.text()}"
        for process in held.processes
        for variable, value in process.environment.items()
        for name, secret in forbidden.items()
        if secret in value
    ]
    found += [
        f"{name} in {path}"
        for path, text in held.files.items()
        for name, secret in forbidden.items()
        if secret in text
    ]

    assert len(forbidden) >= 2, f"only {sorted(forbidden)} are known to be secret"
    assert [] == found, f"secrets of others: {found}"


@pytest.mark.covers("E2E-SECRETS")
def test_no_secret_stands_in_its_arguments(held: SessionSeen, butler_ecosystem: Ecosystem) -> None:
    """Every user of the machine can read command lines: the model's key is not there either."""
    found = [
        f"{name} in argument {number} of {process.text()}"
        for process in held.processes
        for number, argument in enumerate(process.argv)
        for name, secret in butler_ecosystem.secrets.items()
        if secret in argument
    ]

    assert [] == found, f"secrets in arguments: {found}"


def test_it_knows_no_address_but_its_butlers_and_the_models(
    held: SessionSeen, butler_ecosystem: Ecosystem
) -> None:
    """Of all ports on this machine a session is given two: its own butler's MCP server's, and the model's."""
    texts = {
        f"argument {number} of {process.text()}": argument
        for process in held.processes
        for number, argument in enumerate(process.argv)
    }
    texts |= {
        f"{variable} of {process.text()}": value
        for process in held.processes
        for variable, value in process.environment.items()
        if "proxy" not in variable.lower()
    }
    texts |= {str(path): text for path, text in held.files.items()}
    own = held.butler.port
    model = int(butler_ecosystem.gateway.url.rstrip("/").rpartition(":")[2])
    known = {(place, int(port)) for place, text in texts.items() for port in ADDRESS.findall(text)}
    strangers = sorted((place, port) for place, port in known if port not in {own, model})

    assert [] == strangers, f"addresses that a session has no use for: {strangers}"
    assert {own, model} == {port for _, port in known}, "the session was not given where it may go"


def test_its_directories_are_private(held: SessionSeen) -> None:
    """Home, configuration and working directory are its own: no other home, closed to others."""
    homes = {Path(process.environment["HOME"]) for process in held.processes}
    shared = {Path(held.butler.environment["HOME"]), Path(os.environ.get("HOME", "/root"))}

    assert held.places, "no directory of the session was seen"
    assert set() == homes & shared, "a session lives in a home that is not its own"
    assert homes <= held.places.keys(), (
        f"a session's home is one of its own directories; found {homes}"
    )
    assert dict.fromkeys(held.places, 0) == held.places, "others may read it"


@pytest.mark.covers("E2E-CONFINEMENT", "E2E-DISPOSABLE")
def test_nothing_is_left_of_it(held: SessionSeen) -> None:
    """When a session has ended, its processes and directories are gone, and its row is complete."""
    rows = held.journey.of_message("health")

    assert [True] == [row["success"] for row in rows], (
        f"the session ends well\n{held.journey.text()}"
    )
    expect_nothing_left(held)


@pytest.mark.covers("E2E-CONFINEMENT", "E2E-SESSIONS")
async def test_it_can_do_nothing_after_its_end(held: SessionSeen, token: str) -> None:
    """Whoever calls a tool in the name of a session that has ended is refused."""
    await expect_powerless(held, token)


@pytest.mark.covers("E2E-CONFINEMENT", "E2E-SESSIONS")
@pytest.mark.disturbs
@pytest.mark.knob("session_deadline_s")
async def test_it_can_do_nothing_when_it_was_cut_off(ecosystem: Ecosystem, token: str) -> None:
    """Nor can one that ran into its deadline, whose process may not know of it yet; nothing is left of it."""
    health = ecosystem["health"]
    before = dict(health.environment)
    health.environment.update(
        turned(ecosystem.subject, "health", session_deadline_s=patience(DEADLINE_S))
    )
    try:
        await health.restart()
        seen = await hold_session(
            ecosystem,
            f"I have a headache, severity 5 ({token})",
            butler="health",
            tool="symptom_log",
            token=token,
            for_ever=True,
        )
        rows = seen.journey.of_message("health")

        assert [False] == [row["success"] for row in rows], (
            f"a session whose model never answers fails\n{seen.journey.text()}"
        )
        expect_nothing_left(seen)
        await expect_powerless(seen, token)
    finally:
        health.environment.clear()
        health.environment.update(before)
        await health.restart()


def expect_nothing_left(seen: SessionSeen) -> None:
    """Processes, directories and temporary files of a session went with it."""
    assert () == seen.left_processes, f"processes are left: {seen.left_processes}"
    assert () == seen.left_places, f"directories are left: {[*map(str, seen.left_places)]}"
    assert () == seen.left_files, f"temporary files are left: {seen.left_files}"


async def expect_powerless(seen: SessionSeen, token: str) -> None:
    """In the name of the session, as its own butler would know it, nothing is done any more."""
    own = [channel for channel in seen.channels() if channel.headers or "?" in channel.url]
    if not own:
        not_run("subject", "a session says nothing to its butler by which it could be known")
    words = f"too late {token}"
    for channel in own:
        arguments = {"name": "headache", "severity": 1, "notes": words}
        try:
            answer = await call_tool(channel.url, "symptom_log", arguments, headers=channel.headers)
        except CannotReach:
            continue

        assert answer.is_error, (
            f"an ended session can do nothing: expected a refusal, found {answer.text}"
        )
    rows = await seen.butler.database.rows("SELECT id FROM symptoms WHERE notes = %s", (words,))

    assert not rows, f"an ended session can do nothing: it was refused and left {rows}"
    await seen.butler.status()
