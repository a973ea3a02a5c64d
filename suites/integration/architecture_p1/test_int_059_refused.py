"""What Langfuse refuses keeps nothing else from it."""

from __future__ import annotations

import pytest

from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.observed import all_but, linked, refusing

pytestmark = [pytest.mark.covers("INT-059"), pytest.mark.integration_p1]


async def test_int_059_what_is_refused_blocks_nothing_behind_it(
    breakable: Episodes, langfuse_service: str
) -> None:
    """Langfuse refuses one tool call of a run, whenever it is sent: all else is told, before it and behind it.

    The trace of that call names nothing at Langfuse for as long as that has not taken it, also after the
    controller was killed; once it takes it, it does. The model provider and Langfuse are stand-ins.
    """
    word, tokens = f"refused-{new_token()}", [new_token() for _ in range(3)]
    with refusing(breakable.stack, langfuse_service, word):
        first = await breakable.run(
            tokens[0], use("execute", command="true"), use("execute", command=f"echo {word}")
        )
        second = await breakable.run(tokens[1], use("execute", command="true"))
        await linked(breakable, second["episode_id"])
        await all_but(breakable, first["episode_id"], word)
        async with breakable.stack.outage("controller", "kill"):
            pass
        third = await breakable.run(tokens[2], use("execute", command="true"))
        await linked(breakable, third["episode_id"])
        await all_but(breakable, first["episode_id"], word)
    found = await linked(breakable, first["episode_id"])
    ids = {trace["langfuse_trace_id"] for trace in found["traces"]}
    expect_same(1, len(ids), what="traces at Langfuse of a run that it has taken in the end")
