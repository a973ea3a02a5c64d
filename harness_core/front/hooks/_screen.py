"""A run on a terminal: at its foot what boots, what runs, and how it stands; above it what stays.

Failures stay, as where there is no terminal; what passed is counted. Nothing of it is there for ``-q``,
``-v``, ``-s``, ``--pdb``, ``--plain``, and where there is no terminal: then lines are what they were.
Source: decision 0173.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness_core.base.screen import Foot, bar, line
from harness_core.front.hooks._end import is_worker

if TYPE_CHECKING:
    from harness_core.base.screen import Line

#: Cells of the bar.
_BAR: Final = 24

#: Of tests that run now, so many are named, those first that have run longest.
_NAMED: Final = 2

#: Of workers that boot, so many are shown.
_SHOWN_NOTES: Final = 4

#: One note: a line of a terminal.
_NOTE_CHARS: Final = 200
_NOTE_BYTES: Final = 1024

#: A test that takes no longer is not named: nobody could read it.
_SOON_S: Final = 0.5

#: pytest's word for how a test ended → ours, with its colour.
_WORDS: Final = {
    "passed": ("passed", "green"),
    "failed": ("failed", "bold red"),
    "error": ("harness could not run", "bold yellow"),
    "xfailed": ("known", "magenta"),
    "skipped": ("not run", "bright_black"),
}

#: Of what a controller tells its workers: the name of the socket where it reads their notes. It is in
#: the kernel's table alone, so that a run that is killed leaves nothing.
_NOTES: Final = "harness_notes"

_SCREEN: Final = pytest.StashKey["Screen | WorkerNote"]()


class _Above:
    """The file that pytest's terminal writer has meanwhile: what it writes goes above the foot."""

    def __init__(self, file: Any, foot: Foot) -> None:
        self._file = file
        self._foot = foot

    def write(self, text: str) -> int:
        self._foot.write(text)
        return len(text)

    def flush(self) -> None:
        """Lines are written when they are whole."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class WorkerNote:
    """What a long step of a worker is doing, for its controller to show."""

    def __init__(self, name: str, *, worker: str) -> None:
        self._name = name
        self._worker = worker
        self._said = False

    def note(self, text: str) -> bool:
        """Tell the controller."""
        self._said = bool(text)
        with (
            suppress(OSError),  # it is gone, or does not look
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.settimeout(0)
            sender.sendto(f"{self._worker}\n{text}"[:_NOTE_CHARS].encode(), self._name)
        return True

    def pytest_runtest_logfinish(self) -> None:
        """A test has ended: what its fixtures did is done."""
        if self._said:
            self.note("")


class Screen:
    """The foot of a run; on the controller alone."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._foot: Foot | None = None
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._running: dict[str, float] = {}
        self._done = 0
        self._of = 0
        self._note = ""
        self._notes: dict[str, str] = {}
        self._socket_name = f"\0harness-notes-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        config.add_cleanup(self._socket.close)

    def note(self, text: str) -> bool:
        """Show what a long step is doing, until the next test; whether it is seen."""
        self._note = text
        return self._foot is not None

    # --- what pytest tells ------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Where there is a terminal, it is not captured now."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        writer = getattr(reporter, "_tw", None)
        if writer is None or not writer._file.isatty():  # noqa: SLF001
            return
        self._foot = Foot(writer._file.fileno(), self._lines)  # noqa: SLF001
        writer._file = _Above(writer._file, self._foot)  # noqa: SLF001
        reporter.showfspath = False
        self._socket.bind(self._socket_name)
        self._foot.start()
        self._config.add_cleanup(self.stop)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """So many tests there are; with workers they are told by these."""
        self._of = max(self._of, len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker is about to begin."""
        node.workerinput[_NOTES] = self._socket_name

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Every worker has collected the same."""
        self._of = max(self._of, len(ids))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """One begins."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """One has ended."""
        self._running.pop(nodeid, None)
        self._done += 1
        self._note = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """What is counted at the foot needs no dot; failures have a line of their own."""
        found = yield
        if found is None or self._foot is None:
            return found
        category, *_ = found
        return category, "", ""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over."""
        if self._foot is None:
            return
        found = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        if found and found[0]:
            self._counts[str(found[0])] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The summary is written as ever."""
        self.stop()

    def stop(self) -> None:
        """Take the foot away."""
        foot, self._foot = self._foot, None
        if foot is None:
            return
        foot.stop()
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter._tw._file = reporter._tw._file._file  # noqa: SLF001

    # --- what is shown ----------------------------------------------------------------------------

    def _lines(self) -> list[Line]:
        now = time.monotonic()
        minutes, seconds = divmod(int(now - self._began), 60)
        parts = [(f" {self._done} of {self._of}" if self._of else " collecting", "bold")]
        for category, (word, style) in _WORDS.items():
            if count := self._counts[category]:
                parts.append((f"  {count} {word}", style))
        parts.append((f"  {minutes}:{seconds:02}", "bright_black"))
        first = bar(self._done, self._of, width=_BAR)
        lines = [first + line(*parts)]
        running = sorted(self._running.items(), key=lambda each: each[1])
        named = [(test, now - began) for test, began in running if now - began > _SOON_S]
        lines += [
            line((f"  {took_s:4.0f} s  ", "bright_black"), (test, ""))
            for test, took_s in named[:_NAMED]
        ]
        notes = [self._note] if self._note else []
        self._hear()
        notes += [f"{worker}: {text}" for worker, text in sorted(self._notes.items()) if text]
        return lines + [line(("  ", ""), (note, "cyan")) for note in notes[:_SHOWN_NOTES]]

    def _hear(self) -> None:
        """Read what workers say they do."""
        with suppress(OSError):  # nothing more is there
            while True:
                said = self._socket.recv(_NOTE_BYTES).decode("utf-8", "replace")
                worker, _, text = said.partition("\n")
                self._notes[worker] = text


def show_screen(config: pytest.Config) -> None:
    """Have a foot, where somebody may see it and nothing else is asked for."""
    option = config.option
    if is_worker(config):
        given = config.workerinput  # type: ignore[attr-defined] # xdist's
        if name := given.get(_NOTES):
            config.stash[_SCREEN] = WorkerNote(name, worker=given["workerid"])
            config.pluginmanager.register(config.stash[_SCREEN])
        return
    if (
        config.getoption("harness_plain")
        or option.collectonly
        or option.verbose != 0
        or option.capture == "no"
        or option.usepdb
        or os.environ.get("TERM", "dumb") == "dumb"
        or "CI" in os.environ
    ):
        return
    config.stash[_SCREEN] = Screen(config)
    config.pluginmanager.register(config.stash[_SCREEN])


def note_on_screen(config: pytest.Config, text: str) -> bool:
    """Show what a long step is doing; whether there is a screen for it."""
    screen = config.stash.get(_SCREEN, None)
    return screen is not None and screen.note(text)
