"""A run with a real provider: what is shown of scripted runs is so of one whose words nobody knows before.

Asks for money: `ANTHROPIC_API_KEY=… nox -s integration_live`, within `budget_usd` of suite.toml.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import pytest

from harness_core.front.skips import not_run
from harness_core.system.compose import Stack
from suites.integration.comparing import expect_same, utc
from suites.integration.document import live_document
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.following import Records, ids_of
from suites.integration.observed import Langfuse, linked
from suites.integration.patience import EPISODE_S
from suites.integration.spans import Spans

#: What nobody can understand in two ways; its effects are judged, and no word of the model.
TASK: Final = (
    "With the tool fs_write, write the file assets/word.txt. Its content is this one word: {token} . "
    "Then run the command `cat assets/word.txt` with the tool execute. "
    "Do nothing else: hand over nothing, and change no other file."
)
FILE: Final = "word.txt"

#: A provider thinks, and is asked a few times.
_LIVE_S: Final = 3 * EPISODE_S


@pytest.mark.aside("what P1 shows with a scripted model, once more with a provider's")
@pytest.mark.requires("live-llm")
async def test_a_run_with_a_provider(
    episodes: Episodes, langfuse: Langfuse, spans: Spans, pytestconfig: pytest.Config
) -> None:
    """It completes and has done what it was asked for; it is one trace, and is found from any of its ids.

    Langfuse is a stand-in.
    """
    mode = pytestconfig.getoption("--llm")
    if mode not in {"live", "record"}:
        not_run("options", f"--llm {mode}: no provider is asked")
    token = new_token()
    accepted = await episodes.submit(token, task=TASK.format(token=token))
    await episodes.until(accepted["episode_id"], "completed", seconds=_LIVE_S)
    episode = await linked(episodes, accepted["episode_id"])

    await _has_done_it(episodes, episode, token)
    _went_its_way(episode)
    at_langfuse = {trace["langfuse_trace_id"] for trace in episode["traces"]}
    expect_same({episode["trace_id"]}, at_langfuse, what="its trace at Langfuse")
    ids = ids_of(episode, [])
    records = Records(episodes, langfuse, await live_document(episodes.controller), ids)
    for start in sorted(ids):
        lost = sorted(map(str, ids - (await records.found_from(start)).keys()))
        assert [] == lost, f"from {start} all of its episode is found: expected {lost} too"
    await spans.expect_whole(episode)
    await _was_paid(episodes.stack)


async def _has_done_it(episodes: Episodes, episode: dict[str, Any], token: str) -> None:
    """The word stands in the asset's object, and the calls that the model was to make are on record."""
    [row] = [each for each in episode["assets"] if each["path"] == FILE]
    stored = await episodes.stored(row)
    expect_same(token, stored.body.decode().strip(), what="the word that was to be written")
    events = await episodes.until_events(episode["episode_id"], 1)
    tools = {event["payload"]["tool"] for event in calls(events, "tool_call")}
    missing = {"execute", "fs_write"} - tools
    assert not missing, f"expected calls of {missing} on record too, found those of {tools}"


def _went_its_way(episode: dict[str, Any]) -> None:
    steps = [step["to_status"] for step in episode["transitions"]]
    expect_same(["queued", "running", "completed"], steps, what="steps of the episode")
    turns = [each for each in episode["traces"] if each["kind"] == "model"]
    assert len(turns) >= 2, f"a model that calls tools is asked again: found {len(turns)} turns"
    times = [utc(each["started_at"], what="a trace") for each in episode["traces"]]
    assert all(a <= b for a, b in pairwise(times)), f"traces are in their order: found {times}"


async def _was_paid(stack: Stack) -> None:
    """The provider was asked, and the run has kept to its budget."""
    totals = await stack.gateway.client.totals()

    assert totals.overall.calls >= 2, f"expected the provider to be asked, found {totals}"
    assert 0 < totals.spent_usd <= totals.budget_usd, f"a run keeps to its budget: {totals}"
    assert not totals.budget_exceeded, f"the budget was enough for one run: found {totals}"
