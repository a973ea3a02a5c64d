"""``--shard`` and ``--durations-file`` of pytest: this part of the tests, and how long each took.

The division is made after every other selection (paths, ``-m``, ``-k``) and depends on no order, so
it holds under xdist, where each worker makes it for itself, and under plugins that shuffle.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from harness_core.assurance.shards._durations import (
    Durations,
    part_of,
    read_durations,
    update_durations,
)
from harness_core.assurance.shards._split import Shard, names_of
from harness_core.base.errors import BadInput


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the two options."""
    group.addoption(
        "--shard",
        metavar="I/N",
        help="run the I-th of N parts of the tests; each test is in exactly one",
    )
    group.addoption(
        "--durations-file",
        metavar="FILE",
        help="durations (JSON) that shards are balanced by; a run brings it up to date, a shard"
        " writes what it measured beside it",
    )


def configure(config: pytest.Config) -> None:
    """Register what the options ask for.

    Raises:
        pytest.UsageError: an option or the file is malformed.
    """
    given, file = config.getoption("--shard"), config.getoption("--durations-file")
    path = Path(file).absolute() if file is not None else None
    if path is not None:
        # Workers of xdist are given the option as it stands here.
        config.option.durations_file = str(path)
    try:
        shard = Shard.parse(given) if given is not None else None
        durations = read_durations(path) if path is not None else Durations()
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error
    if shard is not None:
        config.pluginmanager.register(_Selector(shard, durations.seconds, file=path))
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(part_of(path, shard)))


class _Selector:
    """Keeps the tests of one shard."""

    def __init__(self, shard: Shard, seconds: dict[str, float], *, file: Path | None) -> None:
        self._shard = shard
        self._seconds = seconds
        self._file = file

    def pytest_report_header(self) -> str:
        """Say which shard, and what it is balanced by."""
        by = f"by {len(self._seconds)} durations of {self._file}" if self._seconds else "by number"
        return f"shard {self._shard}, balanced {by}"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Deselect the tests of the other shards, once all other plugins have selected."""
        yield
        mine = names_of(self._shard, (item.nodeid for item in items), seconds=self._seconds)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in mine])
        items[:] = [item for item in items if item.nodeid in mine]


class _Recorder:
    """Sums up how long each test took, on the controller, which sees all reports."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = {}
        self._called: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if report.when == "call":
            self._called.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what was measured; a test that was skipped in its setup says nothing."""
        measured = {name: self._seconds[name] for name in self._called}
        if measured:
            workers = session.config.getoption("numprocesses", None) or 1
            update_durations(self._file, measured, workers=workers)
