"""The life of an episode for a report: what it passed through, what was recorded and stored of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from harness_core.base.evidence import Link, Message, Moment, Told

__all__ = ["life_of"]

#: Statuses after which an episode did not come to what it was for.
_BAD: Final = frozenset({"failed", "interrupted"})


def life_of(episode: Mapping[str, Any]) -> Iterator[Told]:
    """Rows of a story.

    Args:
        episode: as it was answered last, with its ``events`` where somebody asked for them.
    """
    identity = str(episode["episode_id"])
    names = [
        episode.get(key)
        for key in ("episode_id", "session_id", "workflow_id", "run_id", "trace_id")
    ]
    yield Message(
        id=identity,
        text=str(episode.get("task") or identity),
        at=_s(episode.get("created_at")),
        names=tuple(str(name) for name in names if name),
    )
    transitions = list(episode.get("transitions") or ())
    before = "submitted"
    for row in transitions:
        status = str(row.get("to_status"))
        state = "broken" if status in _BAD else "held"
        said = str(row.get("reason") or "")
        yield Link(message=identity, source=before, target=status, label="", state=state, said=said)
        yield _moment(
            row, row.get("at"), "episode", "event", f"{row.get('from_status')} → {status}"
        )
        before = status
    if not transitions:
        said = f"status {episode.get('status')}"
        yield Link(
            message=identity, source=before, target="no transition", state="missing", said=said
        )
    for row in episode.get("assets") or ():
        text = f"{row.get('kind', 'asset')} {row.get('path', '')} {row.get('status', '')}"
        yield _moment(row, row.get("created_at"), "objects", "object", text)
    for row in episode.get("traces") or ():
        end, begin = _s(row.get("finished_at")), _s(row.get("started_at"))
        text = f"{row.get('kind')} {row.get('name')} ok={row.get('ok')}"
        took_s = max(0.0, end - begin) if end and begin else 0.0
        yield Moment(at=begin, took_s=took_s, lane="traces", what="row", text=text, data=dict(row))
    for row in episode.get("events") or ():
        yield _moment(row, row.get("time"), str(row.get("source")), "event", str(row.get("kind")))


def _moment(row: Mapping[str, Any], at: Any, lane: str, what: str, text: str) -> Moment:
    return Moment(at=_s(at), lane=lane, what=what, text=text, data=dict(row))


def _s(at: Any) -> float:
    try:
        return datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return 0.0
