"""What a session is offered, and what becomes of a model that asks for more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.base.evidence import Evidence
from harness_core.doubles.http import Answer, Rule, open_recorder
from harness_core.doubles.model import Fault
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import bare_tool
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.covers("E2E-CONFINEMENT")


@pytest.mark.slow
async def test_a_session_is_offered_its_butlers_tools_alone(
    ecosystem: Ecosystem, token: str
) -> None:
    """Every tool on offer is one that the session's butler serves: no shell, no files, no other butler's."""
    sent = await ecosystem.send(
        f"I have a headache, severity 4 ({token}). Also remind me to call Bob about {token}"
    )
    journey = await follow(ecosystem, sent)
    served = {name: set(await butler.tools()) for name, butler in ecosystem.butlers.items()}
    offers = {
        call.session: {bare_tool(tool) for tool in call.tools}
        for call in journey.calls
        if call.tools
    }

    assert {"health", "relationship"} == set(journey.targets()), (
        f"it goes to the two butlers it is for\n{journey.text()}"
    )
    assert 2 == len(offers), f"sessions with tools: {offers}\n{journey.text()}"
    for call in journey.calls:
        built_in = [tool for tool in call.tools if not tool.startswith("mcp__")]

        assert [] == built_in, f"tools of no MCP server are on offer\n{journey.text()}"
    owners = {
        session: {name for name in ("health", "relationship") if tools <= served[name]}
        for session, tools in offers.items()
    }

    assert {"health", "relationship"} == set().union(*owners.values()), (
        f"a session is offered what its butler does not serve: {offers}"
    )
    assert [1, 1] == [len(names) for names in owners.values()], (
        f"a session is offered what its butler does not serve, or core tools alone: {offers}"
    )
    servers = {
        tool.removeprefix("mcp__").rpartition("__")[0]
        for call in journey.calls
        for tool in call.tools
    }

    assert 2 == len(servers), f"tools come from the servers {sorted(servers)}"


async def misbehave(
    ecosystem: Ecosystem, token: str, *, tool: str, arguments: Mapping[str, Any]
) -> None:
    """Let the model of one session of health ask for a tool that is not on offer."""
    asks = Fault(
        kind="answer", tool=tool, input=arguments, contains=token, also="symptom_log", times=1
    )
    async with ecosystem.gateway.client.fault(asks) as number:
        sent = await ecosystem.send(f"I have a headache, severity 6 ({token})")
        journey = await follow(ecosystem, sent)
        met = await ecosystem.gateway.client.fault_met(number)

    assert 1 == met, f"the model was never asked\n{journey.text()}"
    assert not journey.unfinished, f"the message has no final state\n{journey.text()}"
    assert 1 == len(journey.of_message("health")), (
        f"one segment is one session of health\n{journey.text()}"
    )
    elsewhere = [
        name for name in journey.sessions if name not in {"switchboard", "health"}
        and journey.of_message(name)
    ]  # fmt: skip

    assert [] == elsewhere, f"no other butler runs a session; found {elsewhere}\n{journey.text()}"


@pytest.mark.parametrize("tool", ["Bash", "Write"])
async def test_a_model_that_wants_the_machine_does_not_get_it(
    ecosystem: Ecosystem, token: str, tmp_path: Path, tool: str
) -> None:
    """A shell command or a file that the model asks for is neither run nor written."""
    target = tmp_path / "made-by-the-model"
    asked = {
        "Bash": {"command": f"echo {token} > {target}", "description": "note it"},
        "Write": {"file_path": str(target), "content": token},
    }
    # Any session's user could write there; what stops it must be the session.
    tmp_path.chmod(0o777)
    await misbehave(ecosystem, token, tool=tool, arguments=asked[tool])

    assert not target.exists(), f"the model of a session made {target}"


async def test_a_model_that_wants_the_web_does_not_get_it(
    ecosystem: Ecosystem, token: str, evidence: Evidence
) -> None:
    """An address that the model asks to fetch is not fetched."""
    page = Rule(answer=Answer(body="hello"))
    async with open_recorder("web", evidence=evidence, rules=[page]) as recorder:
        url = f"{recorder.url}/{token}"
        await misbehave(
            ecosystem, token, tool="WebFetch", arguments={"url": url, "prompt": "what is there?"}
        )

        assert [] == [f"{r.method} {r.target}" for r in recorder.requests], (
            "the web is not asked for anything"
        )


@pytest.mark.slow
async def test_a_model_cannot_call_the_tools_of_another_butler(
    ecosystem: Ecosystem, token: str
) -> None:
    """A tool of relationship, asked for in a session of health, leaves no row there."""
    email = f"{token}@example.net"
    await misbehave(
        ecosystem,
        token,
        tool="mcp__relationship__contact_create",
        arguments={"name": f"Mallory {token}", "email": email},
    )

    await ecosystem["relationship"].database.expect_count(
        "contacts", where={"email": email}, count=0
    )
