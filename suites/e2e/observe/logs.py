"""Error lines in the butlers' logs: whose test caused them.

An operator is woken by an ERROR; a test that passes while its butler logs one has overlooked
something. So every line of that kind that appears in a butler's log while a test runs fails that
test, unless the test says which it provokes (``@pytest.mark.expects_errors("pattern")``), or breaks
things on purpose (``@pytest.mark.disturbs``: then only an unhandled traceback counts).

A line that names a message belongs to the test that sent it, though it may come late; a line that
names none belongs to the test that is running.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness_core.process import redacted_lines
from suites.e2e.observe.levels import is_error, plain

__all__ = ["ErrorLine", "LogPlace", "blamed", "error_lines", "leaked_lines", "mark_logs"]

_TRACEBACK: Final = re.compile(
    r"^\s*(?:Traceback \(most recent call last\)|Unhandled exception|Uncaught \w|Exception in thread|panic: )"
)
_IDS: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b"
)

#: Lines shown with a traceback.
_LINES_AFTER: Final = 15

#: Log → bytes that were there already.
LogPlace = Mapping[Path, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLine:
    """One line that should not be there.

    Attributes:
        log: name of the log it stands in.
        text: the line, with what follows a traceback's first line.
        traceback: it is the first line of one.
        leak: it held a secret.
        ids: request and trace ids that it names.
    """

    log: str
    text: str
    traceback: bool
    ids: frozenset[str]
    leak: bool = False


def mark_logs(logs: Iterable[Path]) -> LogPlace:
    """How far each log goes now."""
    return {log: log.stat().st_size for log in logs if log.exists()}


def error_lines(
    logs: Iterable[Path], since: LogPlace, *, until: LogPlace | None = None, pattern: str = ""
) -> tuple[ErrorLine, ...]:
    """The error lines between two marks, the second being now; of a log that is new, all of them.

    Args:
        logs: where to look.
        since: the first mark.
        until: the second.
        pattern: what an error's line has in it (``[log]`` of the subject file); empty: its level is read.
    """
    found: list[ErrorLine] = []
    for log in logs:
        if not log.exists():
            continue
        with log.open("rb") as file:
            start = since.get(log, 0)
            file.seek(start)
            length = -1 if until is None else max(0, until.get(log, 0) - start)
            lines = plain(file.read(length).decode("utf-8", errors="replace")).splitlines()
        found.extend(_in_lines(log.stem, lines, pattern))
    return tuple(found)


def leaked_lines(
    logs: Iterable[Path], since: LogPlace, *, until: LogPlace | None = None
) -> tuple[ErrorLine, ...]:
    """Lines between two marks that held a secret before the harness redacted them."""
    return tuple(
        ErrorLine(
            log=log.stem,
            text=f"a secret was logged: {line.text}",
            traceback=False,
            ids=frozenset(_IDS.findall(line.text)),
            leak=True,
        )
        for log in logs
        for line in redacted_lines(log)
        if line.known
        and line.offset >= since.get(log, 0)
        and (until is None or line.offset < until.get(log, 0))
    )


def _in_lines(log: str, lines: Sequence[str], pattern: str) -> Iterable[ErrorLine]:
    for number, line in enumerate(lines):
        traceback = _TRACEBACK.match(line) is not None
        if traceback or is_error(line, pattern):
            shown = lines[number : number + _LINES_AFTER] if traceback else [line]
            text = "\n".join(shown)
            ids = frozenset(_IDS.findall(text))
            yield ErrorLine(log=log, text=text, traceback=traceback, ids=ids)


def blamed(
    lines: Iterable[ErrorLine],
    *,
    own: frozenset[str],
    others: frozenset[str],
    expected: Sequence[str],
    disturbs: bool,
) -> tuple[ErrorLine, ...]:
    """The lines that a test must answer for.

    Args:
        lines: what came while it ran.
        own: request and trace ids of the messages it sent.
        others: those of earlier tests of this run.
        expected: patterns of lines it provokes.
        disturbs: it breaks things on purpose.
    """
    return tuple(
        line
        for line in lines
        if _is_own(line, own=own, others=others)
        and not (disturbs and not line.traceback and not line.leak)
        and not any(re.search(pattern, line.text) for pattern in expected)
    )


def _is_own(line: ErrorLine, *, own: frozenset[str], others: frozenset[str]) -> bool:
    return bool(line.ids & own) or not line.ids & others
