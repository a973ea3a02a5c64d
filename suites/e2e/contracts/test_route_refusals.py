"""Who may make a butler work: ``route.execute`` refuses, and a refusal starts nothing."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from suites.e2e.ecosystem import Ecosystem

pytestmark = pytest.mark.capability("route.v1")


def route(**changes: Any) -> dict[str, Any]:
    """A ``route.v1`` request as the switchboard makes it."""
    return {
        "schema_version": "route.v1",
        "request_id": secrets.token_hex(16),
        "source_butler": "switchboard",
        "target_butler": "health",
        "input": {"prompt": "log a headache, severity 1", "segment": "headache"},
        "trace_context": {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"},
    } | changes


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        pytest.param(route(target_butler="relationship"), "relationship", id="another-target"),
        pytest.param(route(source_butler="stranger"), "stranger", id="unknown-source"),
        pytest.param(route(schema_version="route.v9"), "schema_version", id="wrong-version"),
        pytest.param(route(surprise=1), "surprise", id="unknown-field"),
        pytest.param(route(input={"prompt": ""}), "prompt", id="empty-prompt"),
    ],
)
async def test_a_request_that_is_not_for_it_is_refused(
    ecosystem: Ecosystem, request_: dict[str, Any], named: str
) -> None:
    """The refusal names what is wrong, and no session was started."""
    health = ecosystem["health"]
    before = await health.database.one("SELECT count(*) AS n FROM sessions")
    answer = await health.try_call("route.execute", request_)
    refused = answer.is_error or (
        isinstance(answer.value, dict) and answer.value.get("status") == "validation_error"
    )

    assert refused, f"carried out: {answer.value}"
    assert named in answer.text
    assert before == await health.database.one("SELECT count(*) AS n FROM sessions")
    assert "health" == (await health.status())["name"]
