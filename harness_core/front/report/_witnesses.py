"""Files that say when something happened, read as witnesses of it: logs, spans, model turns, exchanges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_core.front.report._stamps import stamp_of, without_stamp

#: Where what the test itself did stands.
OURS: Final = "test"

#: Where calls of the model stand.
MODEL: Final = "model"

#: More than this of one file is not read: its end is left out.
_READ_BYTES: Final = 64 * 1_048_576

_LINE_CHARS: Final = 600
_PART_CHARS: Final = 200
_ROW_CHARS: Final = 8000

#: Statuses of answers: of a model that refuses, of a product that fails.
_BAD: Final = 400
_WORSE: Final = 500

_ORIGIN: Final = re.compile(r"^https?://[^/]+")

#: Of a log that is rows of JSON: what is said, and what is the time.
_SAID_KEYS: Final = ("level", "event", "msg", "message")
_STAMP_KEYS: Final = frozenset({"time", "ts", "timestamp", "at", "service"})

_ERROR: Final = re.compile(r"\b(?:error|critical|fatal|panic)\b|Traceback", re.IGNORECASE)
_WARNING: Final = re.compile(r"\bwarn(?:ing)?\b", re.IGNORECASE)

#: Doubles that take spans are no part of a story: the spans are.
_SPANS: Final = re.compile(r"/v1/traces|/otel/")


@dataclass(slots=True)
class Witness:
    """Something that happened, and who says so.

    Attributes:
        at: when, in seconds since 1970.
        took_s: how long it went on.
        lane: process, double or record that it belongs to.
        what: ``log``, ``span``, ``turn``, ``call`` or ``request``.
        text: in one line.
        level: ``error``, ``warning`` or empty.
        source: the file.
        raw: the line as it stands there, in which names of messages are looked for.
        data: all of it; ``None`` where the line says all.
    """

    at: float
    took_s: float
    lane: str
    what: str
    text: str
    level: str
    source: Path
    raw: str
    data: Any = None


def witnesses_in(folder: Path, *, since: float = 0.0) -> list[Witness]:
    """All that files of a folder say, in the order of time.

    Args:
        folder: of evidence.
        since: files that were written before, in seconds since 1970, are of another test.
    """
    found: list[Witness] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".log", ".jsonl"} and path.is_file() and path.stat().st_mtime >= since:
            read = log_witnesses if path.suffix == ".log" else row_witnesses
            found += read(_lines(path), path)
    found.sort(key=lambda witness: witness.at)
    return found


def lane_of(path: Path) -> str:
    """The process that writes a log; one that is started again writes another, with a number."""
    return re.sub(r"-\d+$", "", path.stem)


def log_witnesses(lines: Iterable[str], path: Path, *, last: float = 0.0) -> Iterator[Witness]:
    """Lines of a log; one without a time of its own is of the time of the line before.

    Args:
        lines: without their ends.
        path: of the log, which names its process.
        last: the time of the line before; while there is none, lines without a time are left out.
    """
    lane = lane_of(path)
    for line in lines:
        at = stamp_of(line)
        last = at if at is not None else last
        if not last or not line.strip():
            continue
        level = "error" if _ERROR.search(line) else "warning" if _WARNING.search(line) else ""
        text = _text_of(line)
        yield Witness(last, 0.0, lane, "log", text, level, path, line, _whole_line(line, text))


def _text_of(line: str) -> str:
    """A line without its time, which is its place; of a JSON row its values, the event first."""
    if line.startswith("{"):
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return line[:_LINE_CHARS]
        first = [str(row.pop(key)) for key in _SAID_KEYS if key in row]
        rest = [f"{key}={value}" for key, value in row.items() if key not in _STAMP_KEYS]
        return " ".join([*first, *rest])[:_LINE_CHARS]
    return without_stamp(line)[:_LINE_CHARS]


def _whole_line(line: str, text: str) -> Any:
    if line.startswith("{"):
        return _whole(line)
    return line[:_ROW_CHARS] if len(text) == _LINE_CHARS else None


class _Row(msgspec.Struct, frozen=True):
    """What is read of a row of any kind; the rest of it is shown as it stands there."""

    # a span
    span_id: str = ""
    start_ns: int = 0
    end_ns: int | None = None
    service: str = ""
    name: str = ""
    # a turn of the model
    usd: float | msgspec.UnsetType | None = msgspec.UNSET
    model: str = ""
    prompt: str = ""
    called: list[str] = []
    missing: str = ""
    unrehearsed: str = ""
    error: str = ""
    latency_ms: float = 0.0
    # a request to a double, too
    arrived_at: str = ""
    method: str = ""
    target: str = ""
    problem: str = ""
    status: int | str | None = None
    # an exchange of the test's own
    at: str = ""
    url: str = ""
    duration_s: float = 0.0
    # of a turn a text, of an exchange what came back
    answer: msgspec.Raw = msgspec.Raw(b"null")


class _Answer(msgspec.Struct, frozen=True):
    status: int | None = None


_ROW: Final = msgspec.json.Decoder(_Row)
_ANSWER: Final = msgspec.json.Decoder(_Answer | str | None)


def row_witnesses(lines: Iterable[str], path: Path) -> Iterator[Witness]:
    """Rows of JSON, of which each kind has keys of its own; rows of another kind are left out."""
    for line in lines:
        try:
            row = _ROW.decode(line)
            if row.start_ns and row.span_id:
                yield _span(row, path, line)
            elif row.arrived_at and row.usd is not msgspec.UNSET:
                yield from _turn(row, path, line)
            elif row.arrived_at and row.target:
                yield from _request(row, path, line)
            elif row.url and row.at:
                yield from _exchange(row, path, line)
        except (msgspec.DecodeError, UnicodeError):  # rows of another kind
            continue


def _span(row: _Row, path: Path, line: str) -> Witness:
    took_s = max(0, (row.end_ns or row.start_ns) - row.start_ns) / 1e9
    level = "error" if row.status == "error" else ""
    lane = row.service or path.stem
    return Witness(
        row.start_ns / 1e9, took_s, lane, "span", row.name, level, path, line, _whole(line)
    )


def _turn(row: _Row, path: Path, line: str) -> Iterator[Witness]:
    at = stamp_of(row.arrived_at)
    if at is None:
        return
    said = _ANSWER.decode(row.answer)
    answer = (said if isinstance(said, str) else "") or ", ".join(row.called) or row.error
    text = f"{_one_line(row.prompt)} → {_one_line(answer)}"
    bad = bool(row.missing or row.unrehearsed) or (
        isinstance(row.status, int) and row.status >= _BAD
    )
    took_s = row.latency_ms / 1000
    level = "error" if bad else ""
    yield Witness(at, took_s, MODEL, "turn", text[:_LINE_CHARS], level, path, line, _whole(line))


def _request(row: _Row, path: Path, line: str) -> Iterator[Witness]:
    """What a double was asked."""
    at = stamp_of(row.arrived_at)
    if at is None or _SPANS.search(row.target):
        return
    text = f"{row.method} {row.target} → {row.status}"[:_LINE_CHARS]
    level = "error" if row.problem else ""
    yield Witness(at, 0.0, path.stem, "request", text, level, path, line, _whole(line))


def _exchange(row: _Row, path: Path, line: str) -> Iterator[Witness]:
    """What the test asked of the product, by HTTP."""
    at, answer = stamp_of(row.at), _ANSWER.decode(row.answer)
    if at is None:
        return
    status = answer.status if isinstance(answer, _Answer) else None
    url = _ORIGIN.sub("", row.url) or "/"
    process = path.name.removesuffix(".exchanges.jsonl")
    text = f"{row.method} {process}{url} → {status or 'no answer'}"[:_LINE_CHARS]
    level = "error" if status is None or status >= _WORSE else ""
    yield Witness(at, row.duration_s, OURS, "call", text, level, path, line, _whole(line))


def _whole(line: str) -> Any:
    """A row as it stands, or the beginning of a long one as text."""
    if len(line) <= _ROW_CHARS:
        return msgspec.Raw(line.encode())
    return f"{line[:_ROW_CHARS]}… {len(line) - _ROW_CHARS} more characters"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_PART_CHARS]


def _lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        return file.read(_READ_BYTES).decode("utf-8", errors="replace").splitlines()
