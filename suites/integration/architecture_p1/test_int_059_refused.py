"""What Langfuse refuses keeps nothing else from it."""

from __future__ import annotations

import pytest

from harness_core.doubles.http import Answer, Recorded, Rule
from harness_core.doubles.telemetry import spans_of
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.observed import linked
from suites.integration.patience import SOON_S, eventually

pytestmark = [pytest.mark.covers("INT-059"), pytest.mark.integration_p1]


async def test_int_059_what_is_refused_blocks_nothing_behind_it(
    breakable: Episodes, langfuse_service: str
) -> None:
    """Langfuse refuses one tool call of a run, whenever it is sent: all else is told, before it and behind it.

    The trace of that call names nothing at Langfuse for as long as that has not taken it, also after the
    controller was killed; once it takes it, it does. The model provider and Langfuse are stand-ins.
    """
    word, tokens = f"refused-{new_token()}", [new_token() for _ in range(3)]
    recorder = breakable.stack.recorder(langfuse_service)

    def answer(request: Recorded) -> Answer:
        told = request.path.endswith("/ingestion") and word.encode() in request.body
        if request.path.endswith("/traces"):
            told = any(word in str(dict(span.attributes)) for span in spans_of(request))
        return Answer(status=400) if told else Answer(json={})

    refusing = Rule(method="POST", answer=answer)
    recorder.add_rule(refusing)
    try:
        first = await breakable.run(
            tokens[0], use("execute", command="true"), use("execute", command=f"echo {word}")
        )
        second = await breakable.run(tokens[1], use("execute", command="true"))
        await linked(breakable, second["episode_id"])
        await _all_but_one(breakable, first["episode_id"], word)
        async with breakable.stack.outage("controller", "kill"):
            pass
        third = await breakable.run(tokens[2], use("execute", command="true"))
        await linked(breakable, third["episode_id"])
        await _all_but_one(breakable, first["episode_id"], word)
    finally:
        recorder.remove_rule(refusing)
    found = await linked(breakable, first["episode_id"])
    ids = {trace["langfuse_trace_id"] for trace in found["traces"]}
    expect_same(1, len(ids), what="traces at Langfuse of a run that it has taken in the end")


async def _all_but_one(episodes: Episodes, episode_id: str, word: str) -> None:
    """All traces of an episode name one at Langfuse but those that say a word."""
    last: list[tuple[bool, bool]] = []

    async def there() -> bool:
        episode = await episodes.get(episode_id)
        last[:] = [
            (word in str(trace["detail"]), trace["langfuse_trace_id"] is not None)
            for trace in episode["traces"]
        ]
        claimed = [told for says, told in last if says and told]
        assert not claimed, f"no row claims what Langfuse has refused: found {episode['traces']}"
        return all(told for says, told in last if not says)

    await eventually(
        there,
        seconds=SOON_S,
        expected=f"all of {episode_id} at Langfuse but what it refuses",
        seen=lambda: last,
    )
