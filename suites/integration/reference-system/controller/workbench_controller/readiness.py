"""Whether an episode is ready for a data set: computed from its rows, its events and the object store."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from workbench_contract.episodes import Asset, AssetStatus, Episode, EpisodeStatus, Trace, TraceKind
from workbench_contract.events import Event, EventSource
from workbench_contract.readiness import Mark, Marked, Readiness
from workbench_controller import lost_assets
from workbench_controller.eventstore import events_of
from workbench_controller.storage import Store
from workbench_foundation import faults

_LIFE = [EpisodeStatus.QUEUED, EpisodeStatus.RUNNING, EpisodeStatus.COMPLETED]

#: For the planted fault `readiness-remembered` alone.
_answered: dict[str, Readiness] = {}


async def readiness_of(
    pool: asyncpg.Pool, store: Store, episode: Episode, *, last_seq: int
) -> Readiness:
    """The marks of an episode.

    Args:
        last_seq: number of the last event that the worker has of its session.
    """
    if faults.on("readiness-remembered") and episode.episode_id in _answered:
        return _answered[episode.episode_id]
    events = await events_of(pool, episode.session_id)
    assets = await lost_assets.told(store, episode.assets)
    if faults.on("readiness-by-rows"):
        assets = episode.assets
    steps = [step.to_status for step in episode.transitions]
    marks = [
        _mark(Mark.COMPLETED, steps == _LIFE, ", ".join(step.value for step in steps)),
        *_turns_and_calls(episode.traces),
        _events(events, last_seq),
        _mark(Mark.HANDOVER, bool(episode.handovers), f"{len(episode.handovers)} accepted"),
        _assets(assets),
        _journal(episode),
        _langfuse(episode.traces),
    ]
    missing = [each for each in marks if not each.present]
    if faults.on("readiness-of-journalless"):
        missing = [each for each in missing if each.mark is not Mark.JOURNAL]
    found = Readiness(episode_id=episode.episode_id, ready=not missing, marks=marks)
    if faults.on("readiness-remembered"):
        _answered[episode.episode_id] = found
    return found


def _mark(mark: Mark, present: bool, found: str) -> Marked:
    return Marked(mark=mark, present=present, found=found or "nothing")


def _turns_and_calls(traces: Sequence[Trace]) -> list[Marked]:
    counts = {kind: len([t for t in traces if t.kind is kind]) for kind in TraceKind}
    kinds = ((Mark.MODEL_TURNS, TraceKind.MODEL), (Mark.TOOL_CALLS, TraceKind.TOOL))
    return [_mark(mark, counts[kind] > 0, f"{counts[kind]} on record") for mark, kind in kinds]


def _events(events: Sequence[Event], last_seq: int) -> Marked:
    numbers = sorted(event.seq for event in events if event.source is EventSource.WORKER)
    whole = numbers == [*range(1, last_seq + 1)] and bool(events)
    return _mark(Mark.EVENTS, whole, f"{len(numbers)} of {last_seq} that the worker has")


def _assets(assets: Sequence[Asset]) -> Marked:
    there = [each for each in assets if each.status is AssetStatus.UPLOADED and each.sha256]
    found = f"{len(there)} of {len(assets)} in the store"
    enough = 1 if faults.on("readiness-of-one-asset") and there else len(assets)
    return _mark(Mark.ASSETS, bool(assets) and len(there) >= enough, found)


def _journal(episode: Episode) -> Marked:
    written = [line for line in episode.journal if line.reflection]
    if faults.on("readiness-by-any-line"):
        written = episode.journal
    return _mark(Mark.JOURNAL, bool(written), f"{len(written)} entries with a reflection")


def _langfuse(traces: Sequence[Trace]) -> Marked:
    told = {trace.langfuse_trace_id for trace in traces}
    untold = len([trace for trace in traces if trace.langfuse_trace_id is None])
    if faults.on("readiness-of-partly-told") and told != {None}:
        told, untold = told - {None}, 0
    return _mark(
        Mark.LANGFUSE,
        bool(traces) and untold == 0 and len(told) == 1,
        f"{len(traces) - untold} of {len(traces)} told, in {len(told - {None})} traces",
    )
