"""What the product's processes did while a failed test ran: what they logged, which of them died.

Every process of a run writes a log among the evidence. What was added to each since the test began
stands below the failure, after what was expected and found.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import pytest

from harness_core.process import Run

#: The attribute of a report that has :class:`Observed`; plain values travel from an xdist worker.
OBSERVED: Final = "harness_observed"

#: Shown of one test: so many logs, those with errors first, and of each so many lines, the last ones.
_LOGS: Final = 6
_LINES: Final = 15
_CHARS: Final = 300

#: More than this of one log is read from its end.
_READ_BYTES: Final = 262_144

#: A line by which a process says that something went wrong.
_ERROR: Final = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|PANIC|panic)\b|^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b"
    r"|\"(?:level|severity)\"\s*:\s*\"(?:error|critical|fatal)\""
)

#: What a line of a log begins with, which is of its moment.
_STAMP: Final = re.compile(r"^[\d\-:.,TZ+\[\]\s]+")

_LOG: Final = ".log"

_SIZES: Final = pytest.StashKey[Mapping[Path, int]]()
_BEGAN_S: Final = pytest.StashKey[float]()


class Observed(TypedDict, total=False):
    """What a report carries to the controller.

    Attributes:
        deaths: processes that ended by themselves, each in a sentence.
        log_error: the last error that a process logged.
    """

    deaths: list[str]
    log_error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What one log gained.

    Attributes:
        path: of the log.
        lines: those that were added, oldest first.
    """

    path: Path
    lines: tuple[str, ...]

    @property
    def error(self) -> str:
        """The last line of an error, without its time; empty for none."""
        found = (line for line in reversed(self.lines) if _ERROR.search(line))
        return _STAMP.sub("", next(found, "")).strip()[:_CHARS]


class IntervalHooks:
    """A pytest plugin, in the process that runs the tests.

    Args:
        folders: where processes of a test write: the run's evidence, and the test's.
        keep: told of a failed test the files that there are now, and their sizes when it began.
    """

    def __init__(
        self,
        folders: Callable[[pytest.Item], Iterable[Path]],
        *,
        keep: Callable[[pytest.Item, Sequence[Path], Mapping[Path, int]], None],
    ) -> None:
        self._folders = folders
        self._keep = keep

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note when the test begins, and how long each log and ledger is then."""
        item.stash[_BEGAN_S] = time.monotonic()
        item.stash[_SIZES] = {path: path.stat().st_size for path in self._written(item)}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A failure carries what processes did meanwhile."""
        report = yield
        if not report.failed or _SIZES not in item.stash:
            return report
        paths, sizes = self._written(item), item.stash[_SIZES]
        added = added_to((path for path in paths if path.suffix == _LOG), sizes)
        self._keep(item, paths, sizes)
        deaths = _deaths(item)
        if deaths:
            report.sections.append(("processes that ended by themselves", "\n".join(deaths)))
        for log in added[:_LOGS]:
            report.sections.append((f"log of {log.path.stem} during this test", _shown(log)))
        errors = [log.error for log in added if log.error]
        observed = Observed(deaths=deaths, log_error=errors[0] if errors else "")
        vars(report)[OBSERVED] = observed
        return report

    def _written(self, item: pytest.Item) -> list[Path]:
        """Logs, and what is written as rows: model turns, spans, requests to doubles."""
        return [
            path
            for folder in self._folders(item)
            for path in sorted(folder.rglob("*.*"))
            if path.suffix in {_LOG, ".jsonl"}
        ]


def added_to(logs: Iterable[Path], sizes: Mapping[Path, int]) -> list[Added]:
    """What logs gained since they had these sizes in bytes; those with an error first.

    Args:
        logs: the logs that there are now.
        sizes: of those that there were.
    """
    found: list[Added] = []
    for path in logs:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            start = max(sizes.get(path, 0), end - _READ_BYTES)
            file.seek(start)
            text = file.read(end - start).decode("utf-8", errors="replace")
        lines = tuple(line.rstrip() for line in text.splitlines() if line.strip())
        if lines:
            found.append(Added(path=path, lines=lines))
    return sorted(found, key=lambda log: not log.error)


def _shown(log: Added) -> str:
    cut = len(log.lines) - _LINES
    lines = [f"… {cut} lines before, in {log.path}"] if cut > 0 else []
    return "\n".join([*lines, *(line[:_CHARS] for line in log.lines[-_LINES:])])


def _deaths(item: pytest.Item) -> list[str]:
    """What ended by itself, and not well, since the test began."""
    runs = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Run)]
    return [death for run in runs for death in run.deaths(since_s=item.stash[_BEGAN_S])]
