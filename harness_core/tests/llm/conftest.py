"""What the tests of the gateway share: requests, tools and registries as a system would send them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_core.llm._request import MessagesRequest, TextBlock, ToolUseBlock, parse_request
from harness_core.llm.policy import respond

#: A Friday.
NOW = dt.datetime(2026, 11, 20, 10, 0, tzinfo=dt.UTC)

HAIKU = "claude-haiku-4-5-20251001"


class Asking:
    """Asks the offline policy, as Claude Code or a switchboard would."""

    def request(self, **body: Any) -> MessagesRequest:
        """A parsed request; ``model`` and ``max_tokens`` have defaults."""
        return parse_request(json.dumps({"model": HAIKU, "max_tokens": 100, **body}).encode())

    def answer(self, **body: Any) -> str:
        """The text of the answer."""
        blocks, _ = respond(self.request(**body), now=NOW)
        (block,) = blocks
        assert isinstance(block, TextBlock)
        return block.text

    def classify(
        self,
        message: str,
        registry: Sequence[Mapping[str, Any]] | None,
        *,
        instructions: str = (
            "You are the switchboard. Split the message into segments. Answer with nothing but a "
            'JSON array of objects {"butler": "...", "prompt": "...", "segment": "..."}.'
        ),
    ) -> list[dict[str, str]]:
        """Classify a message; without a registry the prompt holds none."""
        listed = f"<registry>{json.dumps(registry)}</registry>\n" if registry is not None else ""
        prompt = f"{listed}<message>{message}</message>"
        answered: list[dict[str, str]] = json.loads(
            self.answer(system=instructions, messages=[{"role": "user", "content": prompt}])
        )
        return answered

    def targets(self, message: str, registry: Sequence[Mapping[str, Any]]) -> list[str]:
        """The butlers a message goes to."""
        return [item["butler"] for item in self.classify(message, registry)]

    def calls(
        self,
        message: str,
        tools: Sequence[Mapping[str, Any]],
        *history: Mapping[str, Any],
        **body: Any,
    ) -> list[tuple[str, dict[str, Any]]]:
        """The tool calls a message leads to, names without their MCP prefix."""
        reminder = "<system-reminder>\nToday's date is 2026-11-20.\n</system-reminder>"
        content = [{"type": "text", "text": reminder}, {"type": "text", "text": message}]
        request = self.request(
            tools=list(tools),
            system="You are a butler. Use your tools.",
            messages=[{"role": "user", "content": content}, *history],
            **body,
        )
        blocks, stop_reason = respond(request, now=NOW)
        made = [b for b in blocks if isinstance(b, ToolUseBlock)]
        assert (stop_reason == "tool_use") == bool(made)
        return [(block.name.split("__")[-1], dict(block.input)) for block in made]

    def converse(
        self,
        message: str,
        tools: Sequence[Mapping[str, Any]],
        results: Mapping[str, Any],
        *,
        rounds: int = 10,
    ) -> tuple[list[tuple[str, dict[str, Any]]], str]:
        """Play a whole session: every call, and the final text.

        Args:
            message: what somebody wrote.
            tools: what is on offer.
            rounds: answers after which the session is taken for endless.
            results: what each tool answers; an exception instance answers as an error.
        """
        turns: list[dict[str, Any]] = [{"role": "user", "content": message}]
        made: list[tuple[str, dict[str, Any]]] = []
        for _ in range(rounds):
            blocks, stop_reason = respond(self.request(tools=list(tools), messages=turns), now=NOW)
            if stop_reason != "tool_use":
                (block,) = blocks
                assert isinstance(block, TextBlock)
                return made, block.text
            asked, answered = [], []
            for block in blocks:
                assert isinstance(block, ToolUseBlock)
                name = block.name.split("__")[-1]
                made.append((name, dict(block.input)))
                result = results[name]
                failed = isinstance(result, Exception)
                text = str(result) if failed else json.dumps({"result": json.dumps(result)})
                asked.append(
                    {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
                )
                answered.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": text,
                        "is_error": failed,
                    }
                )
            turns.append({"role": "assistant", "content": asked})
            turns.append({"role": "user", "content": answered})
        pytest.fail(f"no end after {rounds} rounds: {made}")


@pytest.fixture
def ask() -> Asking:
    """The offline policy, to be asked."""
    return Asking()
