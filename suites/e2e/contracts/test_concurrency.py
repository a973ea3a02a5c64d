"""Many at once: sessions of one butler in order and one at a time, refusals in the open, none lost.

Order and overlap are read from the rows a product keeps itself (``started_at``, ``completed_at``);
that a session was under way when a later trigger came is the gateway's word, which holds its call:
a stand-in for the model provider, whose answers come when they come.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio

from harness_core.assertions import new_token
from harness_core.base.groups import lone_error
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import ask_in_turn
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.expect_journey import (
    expect_accounted,
    expect_inbox,
    expect_routing,
    expect_sessions,
    expect_trace,
    words_of,
)
from suites.e2e.observe.journey import Row, as_data, follow
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.chaos import expect_soon

pytestmark = pytest.mark.covers("E2E-CONCURRENCY")

#: A refusal needs no work; longer than the slowest one seen on 2 loaded cores.
REFUSED_S: Final = 20.0

#: All sessions of one test, one after the other, on a slow machine.
ALL_S: Final = 150.0

#: More than any queue that is there to protect a butler from its callers.
FLOOD: Final = 40

#: One message each for a butler, and how many rows with its token it must leave.
KINDS: Final = (
    ("health", "I have a headache, severity 3 ({token})", "symptoms"),
    ("relationship", "Add a contact: Vera {token}, email {token}@example.org", "contacts"),
    ("general", 'Put "rice {token}" on the shopping list', "entities"),
    ("health", "My weight is 70 kg ({token})", "measurements"),
    ("relationship", "Remind me to call Olga about {token}", "reminders"),
)


@pytest.mark.slow
async def test_triggers_queue_in_order_without_overlap(ecosystem: Ecosystem, token: str) -> None:
    """Triggers that come while a session runs are run in the order they came, one at a time."""
    health = ecosystem["health"]
    tokens = [f"{token}{number:02}" for number in range(4)]
    answers: list[ToolResult] = []

    async def trigger(
        word: str, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        arguments = {"prompt": f"I have a headache, severity 2 ({word})"}
        answers.append(
            await ask_in_turn(health, "trigger", arguments, seconds=ALL_S, task_status=task_status)
        )

    async with trio.open_nursery() as nursery, _holding(ecosystem, tokens[0]) as running:
        await nursery.start(trigger, tokens[0])
        await running()
        for word in tokens[1:]:
            await nursery.start(trigger, word)
        before = await _sessions(health, tokens)
    rows = await _sessions(health, tokens)
    story = _listed(rows, tokens)

    assert [False] * len(tokens) == [answer.is_error for answer in answers], (
        f"triggers that wait are answered, none refused\n{answers}"
    )
    assert len(tokens) == len(rows), f"{len(rows)} sessions for {len(tokens)} triggers\n{story}"
    assert tokens == [_word(row, tokens) for row in rows], f"run out of order\n{story}"
    for earlier, later in itertools.pairwise(rows):
        assert earlier["completed_at"] <= later["started_at"], f"two at a time\n{story}"
    assert [True] * len(rows) == [row["success"] for row in rows], (
        f"each session of the queue succeeds\n{story}"
    )
    assert tokens[:1] == [_word(row, tokens) for row in before], (
        f"a second session began while the first was held\n{_listed(before, tokens)}"
    )


@pytest.mark.corpus
@pytest.mark.disturbs
async def test_a_full_queue_refuses_in_the_open(ecosystem: Ecosystem, token: str) -> None:
    """Of a flood the queue takes what it holds; each of the rest is refused as ``overload_rejected``.

    With the depth that the product came with; ``resilience/test_bounds.py`` has a queue of one.
    """
    general = ecosystem["general"]
    words = [f"{token}{number:02}" for number in range(FLOOD)]
    first = f"{token}first"
    salt = new_token()
    before = await general.call("sessions_summary")
    answers: dict[str, ToolResult] = {}

    async def trigger(word: str, *, says: str = "Say hello to") -> None:
        answers[word] = await general.try_call(
            "trigger", {"prompt": f"{says} {word}"}, seconds=ALL_S
        )

    # Sessions that waited are refused by the model, so that they end as soon as they begin.
    brief = Fault(kind="status", status=403, contains=f"Say hello to {token}", times=10 * FLOOD)
    async with (
        lone_error(),
        ecosystem.gateway.client.fault(brief),
        trio.open_nursery() as nursery,
        _holding(ecosystem, first) as running,
    ):
        nursery.start_soon(lambda: trigger(first, says="Hold on for"))
        await running()
        during = await general.call("sessions_summary")
        counts = {"sessions": 1, "succeeded": 0, "failed": 0, "running": 1}
        shown = {key: during[key] - before[key] for key in counts if key in during}
        expect_same(
            "the summary counts a session that runs as running, and neither as failed nor as done",
            expected={key: counts[key] for key in shown},
            found=shown,
        )
        for word in words:
            nursery.start_soon(trigger, word)
        # While the first session is held: a queue without an end would refuse none before its end.
        await expect_soon(
            f"one of {FLOOD} triggers at once is refused",
            lambda: _any_refused(answers),
            seconds=REFUSED_S,
        )
        message = await ecosystem.send(f'Put "salt {salt}" on the shopping list')
        journey = await follow(ecosystem, message)
    refused = [word for word in words if _is_overload(answers[word])]
    taken = [word for word in words if word not in refused]
    rows = await _sessions(general, words)
    story = f"{len(refused)} of {FLOOD} refused, {len(rows)} sessions\n{journey.text()}"

    assert taken, f"nothing was taken at all\n{story}"
    assert Counter(taken) == Counter(_word(row, words) for row in rows), (
        f"what was taken is not what was run\n{story}"
    )
    assert [] == [row for row in rows if row["completed_at"] is None], f"left open\n{story}"
    for earlier, later in itertools.pairwise(rows):
        assert earlier["completed_at"] <= later["started_at"], f"two at a time\n{story}"
    # The message that met the full queue says so, in every record of its hop.
    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert [False] == [row["success"] for row in journey.routing], (
        f"the message that met a full queue has one failed hop\n{story}"
    )
    outcomes = set(words_of(as_data(journey.inbox[0]["dispatch_outcomes"])))

    assert "overload_rejected" in outcomes, f"recorded as {outcomes}\n{story}"
    assert () == journey.of_message("general"), f"refused, and run all the same\n{story}"


@pytest.mark.capability("ingest.v1")
@pytest.mark.corpus
@pytest.mark.parametrize("count", [6, 32])
async def test_many_messages_are_all_accounted_for(ecosystem: Ecosystem, count: int) -> None:
    """Of many messages at once none is lost, none runs twice, and each reaches its own butler."""
    kinds = list(itertools.islice(itertools.cycle(KINDS), count))
    words = [new_token() for _ in kinds]
    sent: dict[str, Sent] = {}

    async def send(word: str, text: str) -> None:
        sent[word] = await ecosystem.send(text.format(token=word))

    async with trio.open_nursery() as nursery:
        for word, (_, text, _) in zip(words, kinds, strict=True):
            nursery.start_soon(send, word, text)

    assert count == len({message.request_id for message in sent.values()}), (
        f"messages are told apart: {count} were sent"
    )
    for word, (butler, _, table) in zip(words, kinds, strict=True):
        journey = await follow(ecosystem, sent[word], seconds=ecosystem.patience_s + count)
        expect_inbox(journey, [butler])
        expect_routing(journey, [butler])
        expect_sessions(journey, [butler])
        expect_trace(journey)
        expect_accounted(journey)
        left = await ecosystem[butler].database.rows(
            f"SELECT * FROM {table} t WHERE to_jsonb(t)::text LIKE %s",
            (f"%{word}%",),
        )

        assert 1 == len(left), f"{len(left)} rows in {table} instead of one\n{journey.text()}"
    for name in {butler for butler, _, _ in KINDS}:
        rows = await _sessions(ecosystem[name], words)
        wanted = Counter(w for w, (b, _, _) in zip(words, kinds, strict=True) if b == name)

        assert wanted == Counter(_word(row, words) for row in rows), (
            f"each message runs one session on its butler, expected {wanted}\n{_listed(rows, words)}"
        )
        for earlier, later in itertools.pairwise(rows):
            assert earlier["completed_at"] <= later["started_at"], (
                f"two sessions at a time on {name}\n{_listed(rows, words)}"
            )


@asynccontextmanager
async def _holding(ecosystem: Ecosystem, word: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Sessions whose prompt holds the word stand still during the block, once they asked the model.

    Yields a wait for the moment when one does.
    """
    client = ecosystem.gateway.client
    async with client.fault(Fault(kind="hold", contains=word, times=FLOOD)) as number:

        async def running() -> None:
            async def met() -> bool:
                return bool(await client.fault_met(number))

            with deadline("see the model asked by the session to hold", seconds=ALL_S):
                await until(met)

        yield running


async def _any_refused(answers: Mapping[str, ToolResult]) -> bool:
    return any(_is_overload(answer) for answer in answers.values())


def _is_overload(answer: ToolResult) -> bool:
    """Whether a refusal says why by its word of the contract."""
    status = answer.value.get("status") if isinstance(answer.value, dict) else None
    return status == "overload_rejected" or (answer.is_error and "overload_rejected" in answer.text)


async def _sessions(butler: Butler, words: Sequence[str]) -> list[Row]:
    """The sessions whose prompt holds one of the words, in the order they started."""
    rows = await butler.database.rows(
        "SELECT * FROM sessions WHERE prompt LIKE ANY(%s) ORDER BY started_at",
        ([f"%{word}%" for word in words],),
    )
    return list(rows)


def _word(row: Row, words: Sequence[str]) -> str:
    return next(word for word in words if word in row["prompt"])


def _listed(rows: Sequence[Row], words: Sequence[str]) -> str:
    return "\n".join(
        f"  {words.index(_word(row, words))}: {row['started_at']:%H:%M:%S.%f} to "
        f"{row['completed_at']:%H:%M:%S.%f} success={row['success']} error={row['error']!r}"
        if row["completed_at"]
        else f"  {words.index(_word(row, words))}: {row['started_at']:%H:%M:%S.%f}, open"
        for row in rows
    )
