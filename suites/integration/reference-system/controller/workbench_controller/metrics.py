"""Metrics of episodes, computed from rows and events when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.episodes import EpisodeStatus, TraceKind
from workbench_contract.events import EventKind
from workbench_contract.metrics import Interval, Metric, MetricName, Metrics, Rate, Transfer
from workbench_contract.simulation import Outcome
from workbench_controller.parts import Refused
from workbench_foundation import faults

_ENDS = [status.value for status in EpisodeStatus if status.final]

#: Two-sided, 95 %.
_Z = 1.959963984540054

Rows = Sequence[Mapping[str, Any]]


async def metrics_of(pool: asyncpg.Pool, batch_id: str | None) -> Metrics:
    """All metrics over the episodes that have ended, of a batch or of all.

    Raises:
        Refused: there is no such batch.
    """
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        if batch_id is not None:
            await _known(connection, batch_id)
        wanted = "($2::text IS NULL OR batch_id = $2) AND status = ANY($1)"
        if faults.on("metrics-of-all"):
            wanted = "($2::text IS NULL OR true) AND status = ANY($1)"
        if faults.on("metrics-without-batches"):
            wanted = "batch_id IS NOT DISTINCT FROM $2::text AND status = ANY($1)"
        episodes = await connection.fetch(
            f"SELECT * FROM episodes WHERE {wanted}", _ENDS, batch_id
        )
        ids = [row["episode_id"] for row in episodes]
        traces = await connection.fetch("SELECT * FROM traces WHERE episode_id = ANY($1)", ids)
        events = await connection.fetch(
            "SELECT * FROM events WHERE session_id = ANY($1) ORDER BY session_id, source, seq",
            [row["session_id"] for row in episodes],
        )
        steps = await connection.fetch(
            "SELECT * FROM episode_transitions WHERE episode_id = ANY($1)", ids
        )
        decisions = await connection.fetch(
            "SELECT * FROM decisions WHERE episode_id = ANY($1)", ids
        )
    found = [
        _success(episodes),
        *_turns(episodes, traces),
        _tool_errors(traces),
        _goals(events),
        _first_handovers(events),
        _share(
            MetricName.APPROVAL_RATE,
            [_approves(row) for row in decisions],
            missing="no decision of a reviewer",
        ),
        _share(
            MetricName.CATALOGUE_HIT_RATE,
            [row["payload"]["no_match"] is None for row in _of_kind(events, EventKind.COTS_SEARCH)],
            missing=f"no event {EventKind.COTS_SEARCH.value}",
        ),
        _seconds(steps),
    ]
    return Metrics(batch_id=batch_id, episodes=len(episodes), metrics=found)


def _approves(row: Mapping[str, Any]) -> bool:
    approves = row["decision"] == ReviewDecision.APPROVED.value
    if faults.on("approval-of-refused-plans"):
        approves = row["decision"] != ReviewDecision.REJECTED.value
    return not approves if faults.on("approvals-turned-round") else approves


async def transfer_of(pool: asyncpg.Pool, batch_id: str, baseline_id: str) -> Transfer:
    """What a batch succeeds in more often than its baseline.

    Raises:
        Refused: one of them is not there.
    """
    sides: list[Mapping[int, list[bool]]] = []
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        for each in (batch_id, baseline_id):
            await _known(connection, each)
            rows = await connection.fetch(
                "SELECT seed, status FROM episodes WHERE batch_id = $1 AND status = ANY($2)",
                *(each, list(EpisodeStatus) if faults.on("transfer-counts-running") else _ENDS),
            )
            by_seed: dict[int, list[bool]] = {}
            for row in rows:
                if faults.on("transfer-without-seed-zero") and not row["seed"]:
                    continue
                done = row["status"] == EpisodeStatus.COMPLETED.value
                if faults.on("transfer-one-run-a-seed"):
                    by_seed.pop(row["seed"], None)
                by_seed.setdefault(row["seed"], []).append(done)
            sides.append(by_seed)
    both = set(sides[0]) & set(sides[1])
    if faults.on("transfer-over-all-seeds"):
        both = set(sides[0]) | set(sides[1])
    rate, baseline = (rate_of([d for seed in both for d in side.get(seed, [])]) for side in sides)
    uplift, interval = None, None
    if rate.value is not None and baseline.value is not None:
        uplift = rate.value - baseline.value
        interval = newcombe(rate, baseline)
        if faults.on("transfer-turned-round"):
            uplift = -uplift
    return Transfer(
        batch_id=batch_id,
        baseline_id=baseline_id,
        seeds=sorted(both),
        unpaired=sorted((set(sides[0]) ^ set(sides[1])) - both),
        rate=rate,
        baseline=baseline,
        uplift=uplift,
        interval=interval,
        improves=(interval is not None and interval.low > 0)
        or (faults.on("transfer-by-chance") and (uplift or 0) > 0),
        missing="" if uplift is not None else "no seed of which both have an episode that has ended",
    )


async def _known(connection: asyncpg.Connection, batch_id: str) -> None:
    if not await connection.fetchval("SELECT 1 FROM batches WHERE batch_id = $1", batch_id):
        raise Refused(404, f"cannot find batch {batch_id}: there is none. Check the id")


def rate_of(done: Sequence[bool]) -> Rate:
    """The share of what is done; of nothing there is none."""
    value = sum(done) / len(done) if done else None
    return Rate(succeeded=sum(done), ended=len(done), value=value)


def newcombe(rate: Rate, baseline: Rate) -> Interval:
    """The interval of a difference of two shares: Newcombe (1998), method 10, without correction."""
    (low, high), (low_b, high_b) = _wilson(rate), _wilson(baseline)
    assert rate.value is not None and baseline.value is not None, "both are shares of something"
    difference = rate.value - baseline.value
    return Interval(
        low=difference - math.hypot(rate.value - low, high_b - baseline.value),
        high=difference + math.hypot(high - rate.value, baseline.value - low_b),
    )


def _wilson(rate: Rate) -> tuple[float, float]:
    n, p = rate.ended, rate.succeeded / rate.ended
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _share(name: MetricName, hits: Sequence[bool], *, missing: str) -> Metric:
    return _mean(name, [float(hit) for hit in hits], missing=missing)


def _mean(name: MetricName, values: Sequence[float], *, missing: str) -> Metric:
    if not values:
        value = 0.0 if faults.on("metrics-missing-as-zero") else None
        return Metric(name=name, value=value, over=0, missing="" if value == 0 else missing)
    return Metric(name=name, value=sum(values) / len(values), over=len(values), missing="")


def _success(episodes: Rows) -> Metric:
    done = [row["status"] == EpisodeStatus.COMPLETED.value for row in episodes]
    return _share(MetricName.SUCCESS_RATE, done, missing="no episode that has ended")


def _turns(episodes: Rows, traces: Rows) -> list[Metric]:
    """Turns and tokens; an answer that says nothing of its tokens leaves no number of them."""
    by_episode: dict[str, list[Mapping[str, Any]]] = {row["episode_id"]: [] for row in episodes}
    for row in traces:
        if row["kind"] == TraceKind.MODEL.value:
            by_episode[row["episode_id"]].append(row)
    counts = [float(len(turns)) for turns in by_episode.values()]
    none = "no episode that has ended"
    turns = _mean(MetricName.TURNS_PER_EPISODE, counts, missing=none)
    uses = [
        [row["detail"].get("usage") or {} for row in turns if row["ok"]]
        for turns in by_episode.values()
    ]
    if faults.on("tokens-unsaid-are-none"):
        uses = [[{"input_tokens": 0, "output_tokens": 0, **use} for use in each] for each in uses]
    if any("input_tokens" not in use or "output_tokens" not in use for each in uses for use in each):
        lacking = Metric(
            name=MetricName.TOKENS_PER_EPISODE, value=None, over=0, missing="usage of a model turn"
        )
        return [turns, lacking]
    tokens = [float(sum(u["input_tokens"] + u["output_tokens"] for u in each)) for each in uses]
    return [turns, _mean(MetricName.TOKENS_PER_EPISODE, tokens, missing=none)]


def _tool_errors(traces: Rows) -> Metric:
    errors = [not row["ok"] for row in traces if row["kind"] == TraceKind.TOOL.value]
    return _share(MetricName.TOOL_ERROR_RATE, errors, missing="no tool call on record")


def _goals(events: Rows) -> Metric:
    results = _of_kind(events, EventKind.SIMULATION_RESULT)
    runs = [run for row in results for run in row["payload"].get("outcomes", [])]
    hits = [run["outcome"] == Outcome.GOAL_HIT.value for run in runs]
    if faults.on("goal-rate-of-any-hit"):
        hits = [run["outcome"].endswith("_hit") for run in runs]
    missing = f"no outcome in an event {EventKind.SIMULATION_RESULT.value}"
    return _share(MetricName.GOAL_RATE, hits, missing=missing)


def _first_handovers(events: Rows) -> Metric:
    first: dict[str, bool] = {}
    for row in _of_kind(events, EventKind.PLAN_SUBMISSION):
        first.setdefault(row["session_id"], bool(row["payload"]["accepted"]))
    if faults.on("metrics-last-handover"):
        for row in _of_kind(events, EventKind.PLAN_SUBMISSION):
            first[row["session_id"]] = bool(row["payload"]["accepted"])
    missing = f"no event {EventKind.PLAN_SUBMISSION.value}"
    return _share(MetricName.FIRST_HANDOVER_RATE, list(first.values()), missing=missing)


def _seconds(steps: Rows) -> Metric:
    begun, ended = {}, {}
    for row in steps:
        status = EpisodeStatus(row["to_status"])
        if status is EpisodeStatus.RUNNING:
            begun[row["episode_id"]] = row["at"]
        elif status.final:
            ended[row["episode_id"]] = row["at"]
    lasted = [(ended[each] - at).total_seconds() for each, at in begun.items() if each in ended]
    missing = "no episode that has run and ended"
    return _mean(MetricName.SECONDS_PER_EPISODE, lasted, missing=missing)


def _of_kind(events: Rows, kind: EventKind) -> list[Mapping[str, Any]]:
    return [row for row in events if row["kind"] == kind.value]
