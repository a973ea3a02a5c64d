"""INT-053: whatever a model's provider answers, an episode comes to an end that is on record."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token, steps_of_episode
from suites.integration.temporal_view import closed_workflow

#: Retries of a refused turn have an end.
_MOST_ASKED: Final = 12


#: Answers of a provider, each JSON and none a message.
_SHAPES: Final[dict[str, Any]] = {
    "no object": [],
    "no content": {"type": "message", "stop_reason": "end_turn"},
    "content that is null": {"content": None, "stop_reason": "end_turn"},
    "content that is a text": {"content": "I am done.", "stop_reason": "end_turn"},
    "texts as blocks": {"content": ["I am done."], "stop_reason": "end_turn"},
    "a text that is null": {"content": [{"type": "text", "text": None}], "stop_reason": "end_turn"},
    "a call without id": {
        "content": [{"type": "tool_use", "name": "fs_ls", "input": {}}],
        "stop_reason": "tool_use",
    },
    "a call without name": {
        "content": [{"type": "tool_use", "id": "toolu_1", "input": {}}],
        "stop_reason": "tool_use",
    },
    "arguments that are a text": {
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "fs_ls", "input": "{}"}],
        "stop_reason": "tool_use",
    },
}


#: What a provider may say in a refusal; each begins with a word of its own.
_SAID: Final = {
    "zero": "word-zer a\0b, and after it",
    "escapes": "word-esc \x1b[31mred\x07 \\u0000 \x85\u2028",
    "others": "word-oth 日本 😀 ' \" {curly} %s $1",
    "much": "word-muc " + "ä\n" * 50_000,
}


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_an_answer_of_another_shape_is_an_end(episodes: Episodes) -> None:
    """A model that answers with 200 and no message is asked a bounded number of times, then it ends.

    The episode is failed and says why, at Temporal as well; one that makes sense of the answer may
    complete. The model provider is a stand-in: the gateway answers so.
    """
    gateway = episodes.stack.gateway.client
    tokens = {name: new_token() for name in _SHAPES}
    for token in tokens.values():
        await episodes.rehearse(token, use("fs_ls"))
    async with AsyncExitStack() as stack:
        faults = {}
        for name, body in _SHAPES.items():
            fault = Fault(kind="malformed", body=json.dumps(body), times=999, contains=tokens[name])
            faults[name] = await stack.enter_async_context(gateway.fault(fault))
        accepted = {name: await episodes.submit(token) for name, token in tokens.items()}
        for name, each in accepted.items():
            episode = await episodes.until(each["episode_id"], "failed", "completed")
            asked = await gateway.fault_met(faults[name])
            expect_same(
                ["queued", "running", episode["status"]],
                steps_of_episode(episode),
                what=f"steps of one whose model answers with {name}",
            )
            assert episode["reason"], f"{name}: an end without a reason: {episode['transitions']}"
            assert 1 <= asked <= _MOST_ASKED, f"{name}: the model is asked {asked} times"
            seen = await closed_workflow(episodes.stack, episode["workflow_id"])
            assert episode["status"] == seen.status, f"{name}: Temporal has {seen}: {episode}"


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_whatever_a_provider_says_is_an_end(episodes: Episodes) -> None:
    """An episode fails with its provider's reason, whatever characters and however many that has.

    The model provider is a stand-in: the gateway refuses in such words.
    """
    gateway = episodes.stack.gateway.client
    tokens = {name: new_token() for name in _SAID}
    async with AsyncExitStack() as stack:
        accepted = {}
        for name, token in tokens.items():
            await episodes.rehearse(token, use("fs_ls"))
            fault = Fault(kind="status", status=400, text=_SAID[name], times=999, contains=token)
            await stack.enter_async_context(gateway.fault(fault))
            accepted[name] = await episodes.submit(token)
        for name, each in accepted.items():
            episode = await episodes.until(each["episode_id"], "failed")
            says = episode["reason"]
            assert "word-" + name[:3] in says, f"expected the words of {name!r}, found {says!r}"
            last = episode["transitions"][-1]
            assert says == last["reason"], f"the last step has another reason: {last}"
