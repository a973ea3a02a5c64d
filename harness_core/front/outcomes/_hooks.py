"""The pytest hooks: one row when a test begins, one when it is over, as soon as it is."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import pytest

from harness_core.base.evidence import Redactor
from harness_core.front.causes import OBSERVED, said
from harness_core.front.outcomes._rows import (
    Began,
    Cost,
    Ended,
    Finished,
    Row,
    Spent,
    Started,
    Word,
)

#: The attribute of a report with what only the process of the test knows; texts, redacted there.
_TOLD: Final = "harness_told"

#: So many earlier runs of a session are kept: what failed now and then shows in them.
_KEPT_RUNS: Final = 20

#: Of a failure, so much text is kept.
_TEXT_CHARS: Final = 60_000

#: The section of a report that ends with the command; see ``hooks/_outcomes.py``.
_RERUN: Final = "rerun: "


class EndingHooks:
    """In the process that runs the tests: what a failure says, with its secrets out.

    Args:
        redactor: of the evidence of the run.
    """

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._redactor = redactor

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A failure and a skip carry their texts to the controller."""
        report = yield
        if report.failed or report.skipped:
            redact = self._redactor().redact
            places = [text for name, text in report.sections if name == "where to look"]
            lines = [line for text in places for line in text.splitlines()]
            rerun = next((line for line in lines if line.startswith(_RERUN)), "")
            vars(report)[_TOLD] = {
                "said": redact(_said(report))[:_TEXT_CHARS],
                "text": redact(report.longreprtext)[:_TEXT_CHARS] if report.failed else "",
                "rerun": redact(rerun.removeprefix(_RERUN)),
            }
        return report


class OutcomeHooks:
    """On the controller, which sees all reports: writes the file.

    Args:
        path: of the file; an earlier one goes to ``history/`` beside it.
        folder_of: the folder with the evidence of a test, by its location; ``None`` before any is open.
        costs: test → what its model calls cost, at the end.
        arguments: of the command line.
    """

    def __init__(
        self,
        path: Path,
        *,
        folder_of: Callable[[tuple[str, int | None, str]], Path | None],
        costs: Callable[[], Mapping[str, Any]],
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self._folder_of = folder_of
        self._costs = costs
        self._arguments = arguments
        self._file: IO[bytes] | None = None
        self._encoder = msgspec.json.Encoder()
        self._phases: dict[str, list[Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """The earlier file becomes history."""
        try:
            _to_history(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb", buffering=0)
        except OSError:  # no room: the run itself says so
            return
        self._write(
            Began(
                session=self.path.stem,
                at=time.time(),
                machine=socket.gethostname(),
                pid=os.getpid(),
                arguments=self._arguments,
            )
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test is under way."""
        self._write(Started(test=nodeid, at=time.time()))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over; after the last the test is."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            phases = self._phases.pop(report.nodeid)
            self._write(_ended(phases, folder=self._folder(report.location)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be collected says nothing of the product."""
        if report.failed:
            redact = Redactor().redact
            self._write(
                Ended(
                    test=report.nodeid,
                    word=Word.HARNESS,
                    at=time.time(),
                    said=redact(said(report)),
                    text=redact(report.longreprtext),
                )
            )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The run has ended by itself."""
        if spent := self._costs():
            self._write(Spent(by_test=msgspec.convert(spent, dict[str, Cost])))
        self._write(Finished(at=time.time(), status=int(exitstatus)))

    def pytest_unconfigure(self) -> None:
        """Nothing more comes."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _folder(self, location: tuple[str, int | None, str]) -> str:
        """Relative to the folder of all evidence, where reports lie in one."""
        folder, base = self._folder_of(location), self.path.absolute().parent.parent
        if folder is None or not folder.is_dir():
            return ""
        return str(folder.relative_to(base) if base in folder.parents else folder)

    def _write(self, row: Row) -> None:
        if self._file is None:
            return
        try:
            self._file.write(self._encoder.encode(row) + b"\n")
        except OSError:  # no room: the run itself says so, at its end
            self.pytest_unconfigure()


def _said(report: pytest.TestReport) -> str:
    """What a failure says, or why a test was not run."""
    if report.failed:
        return said(report)
    if (reason := getattr(report, "wasxfail", None)) is not None:
        return str(reason).removeprefix("reason: ")
    place = report.longrepr
    text = place[2] if isinstance(place, tuple) else str(place)
    return str(text).removeprefix("Skipped: ")


def _ended(phases: list[Any], *, folder: str) -> Ended:
    """A test by the reports of its phases: what weighs most decides."""
    words = {id(report): _word(report) for report in phases}
    order = list(Word)
    decides = max(phases, key=lambda report: order.index(words[id(report)]))
    told = getattr(decides, _TOLD, {})
    observed = getattr(decides, OBSERVED, {})
    return Ended(
        test=decides.nodeid,
        word=words[id(decides)],
        at=min(report.start for report in phases),
        seconds=round(sum(report.duration for report in phases), 4),
        worker=getattr(decides, "worker_id", "").replace("master", ""),
        evidence=folder,
        said=told.get("said", ""),
        text=told.get("text", ""),
        rerun=told.get("rerun", ""),
        deaths=tuple(observed.get("deaths", ())),
        log_error=observed.get("log_error", ""),
    )


def _word(report: Any) -> Word:
    if report.failed:
        return Word.HARNESS if getattr(report, "harness_error", False) else Word.FAILED
    if report.skipped:
        return Word.KNOWN if hasattr(report, "wasxfail") else Word.NOT_RUN
    return Word.PASSED


def _to_history(path: Path) -> None:
    """Keep what an earlier run left, and of all earlier runs the last ones."""
    if not path.exists():
        return
    history = path.parent / "history"
    history.mkdir(exist_ok=True)
    path.replace(history / f"{path.stem}.{path.stat().st_mtime_ns // 1_000_000}.jsonl")
    earlier = sorted(history.glob(f"{path.stem}.[0-9]*.jsonl"))
    for old in earlier[:-_KEPT_RUNS]:
        old.unlink(missing_ok=True)
