"""Batches whose episodes do what a test has rehearsed for each, followed to the end of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench_contract.batches import BatchAccepted

from harness_core.doubles.turns import Turn
from suites.integration.episodes import FINAL, Episodes, new_token
from suites.integration.messages import answered
from suites.integration.patience import EPISODE_S, eventually

__all__ = ["ended_batch", "submitted_batch"]


async def submitted_batch(
    episodes: Episodes, members: Sequence[tuple[Mapping[str, Any], Sequence[Turn]]]
) -> tuple[BatchAccepted, list[str]]:
    """A batch that was accepted, and the token of each of its episodes.

    Args:
        episodes: of the stack.
        members: what is special to the request of each episode, and what its model does.
    """
    tokens = [new_token() for _ in members]
    for token, (_, turns) in zip(tokens, members, strict=True):
        await episodes.rehearse(token, *turns)
    wanted = {token: request for token, (request, _) in zip(tokens, members, strict=True)}
    answer = await episodes.ask_batch(wanted)

    assert 202 == answer.status, f"expected the batch to be accepted with 202, found {answer}"
    return answered(answer, BatchAccepted), tokens


async def ended_batch(
    episodes: Episodes, members: Sequence[tuple[Mapping[str, Any], Sequence[Turn]]]
) -> tuple[str, list[dict[str, Any]], list[str]]:
    """A batch all of whose episodes have ended: its id, these, and their tokens."""
    accepted, tokens = await submitted_batch(episodes, members)
    found: list[dict[str, Any]] = []

    async def over() -> bool:
        found[:] = [await episodes.get(each.episode_id) for each in accepted.episodes]
        return all(each["status"] in FINAL for each in found)

    await eventually(
        over,
        seconds=EPISODE_S * (1 + len(members) / 4),
        expected=f"all of batch {accepted.batch_id} at their end",
        seen=lambda: [(each["status"], each["reason"]) for each in found],
    )
    return accepted.batch_id, found, tokens
