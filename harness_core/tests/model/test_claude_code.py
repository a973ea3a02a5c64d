"""The real Claude Code CLI against the gateway: what it asks, and how it takes refusals."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness_core.base.evidence import open_evidence
from harness_core.base.wait import deadline
from harness_core.doubles.model import Fault, Gateway, open_gateway
from harness_core.doubles.turns import Rehearsal, say
from harness_core.process import open_run

pytestmark = [pytest.mark.real, pytest.mark.requires("claude-code")]

UNDERSTOOD = Rehearsal(message="{words}", turns=(say("Understood: {words}"),))


@asynccontextmanager
async def gateway(tmp_path, **options) -> AsyncIterator[Gateway]:
    """A gateway of a run of its own."""
    evidence = open_evidence(tmp_path / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_gateway(run, evidence=evidence.child("gateway"), **options) as opened,
    ):
        yield opened


@pytest.fixture(autouse=True)
def temporary(monkeypatch) -> Iterator[str]:
    """A place with a name short enough for a Unix socket: else the CLI leaves one in /tmp."""
    with tempfile.TemporaryDirectory(prefix="cc-") as name:
        monkeypatch.setenv("TMPDIR", name)
        yield name


async def session(prompt: str, opened: Gateway, home) -> tuple[str, list[Any]]:
    """One session of the CLI: its result or its error, and the messages before it."""
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        ClaudeSDKError,
        ResultMessage,
        query,
    )

    options = ClaudeAgentOptions(
        tools=[],
        setting_sources=[],
        strict_mcp_config=True,
        system_prompt="Answer briefly.",
        model="claude-haiku-4-5-20251001",
        max_turns=2,
        cwd=home,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": os.environ["TMPDIR"],
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "ANTHROPIC_BASE_URL": opened.url,
            "ANTHROPIC_API_KEY": opened.api_key,
            "ANTHROPIC_CUSTOM_HEADERS": "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7-01",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1024",
            "MAX_THINKING_TOKENS": "0",
        },
    )
    messages: list[Any] = []
    with deadline("run Claude Code", seconds=60):
        try:
            async for message in query(prompt=prompt, options=options):
                messages.append(message)  # noqa: PERF401 - what came before an error counts
        except ClaudeSDKError as error:
            return str(error), messages
    last = messages[-1]
    assert isinstance(last, ResultMessage)
    return str(last.result), messages


async def test_a_session_is_one_call_in_the_ledger(tmp_path) -> None:
    """With its noise switched off the CLI makes one call a turn, with session and trace."""
    async with gateway(tmp_path) as opened:
        await opened.client.rehearse(UNDERSTOOD)
        result, messages = await session("hello zx9f3k21", opened, tmp_path)
        (entry,) = await opened.client.ledger()

    assert "Understood: hello zx9f3k21" == result
    assert messages[-1].session_id == entry.session
    assert "00-0af7651916cd43dd8448eb211c80319c-b7-01" == entry.traceparent
    assert "hello zx9f3k21" == entry.prompt
    assert entry.stream


async def test_an_exceeded_budget_ends_a_session_at_once(tmp_path) -> None:
    """The CLI shows the sums and does not try again."""
    paid = {"mode": "live", "upstream": "http://127.0.0.1:1", "upstream_key": "sk-of-a-provider"}
    async with gateway(tmp_path, budget_usd=0.001, **paid) as opened:
        result, _ = await session("hello", opened, tmp_path)
        entries = await opened.client.ledger()
        totals = await opened.client.totals()

    assert "402" in result
    assert "budget exceeded" in result
    assert [402] == [entry.status for entry in entries]
    assert totals.budget_exceeded


async def test_a_call_without_turns_ends_a_session_at_once(tmp_path) -> None:
    """It is answered, in words that say what to do, within seconds."""
    async with gateway(tmp_path) as opened:
        result, _ = await session("hello", opened, tmp_path)
        entries = await opened.client.ledger()

    assert "Nothing was rehearsed for this" in result
    assert [200] == [entry.status for entry in entries]
    assert "hello" in entries[0].unrehearsed


async def test_a_short_outage_is_ridden_out(tmp_path) -> None:
    """An overloaded provider is asked again; both attempts are in the ledger."""
    async with gateway(tmp_path) as opened:
        await opened.client.rehearse(UNDERSTOOD)
        await opened.client.add_fault(Fault(kind="status", status=529, retry_after_s=0))
        result, _ = await session("hello", opened, tmp_path)
        entries = await opened.client.ledger()

    assert "Understood: hello" == result
    assert [529, 200] == [entry.status for entry in entries]
