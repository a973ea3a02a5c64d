"""Tests marked ``explore``: they run when they are asked for, and share the time of the run.

The fixture ``explore`` is this test's share, see :class:`harness_core.assertions.exploring.Explore`.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import Any, Final

import pytest

from harness_core.base.errors import BadInput
from harness_core.base.machine import need_extra
from harness_core.front.hooks._end import rows_for_the_end
from harness_core.system.suites import suite_folder

_SHARERS: Final = pytest.StashKey[int]()

#: What bare nox gives a suite, and where it begins: the same in every run.
SECONDS: Final = 30.0
SEED: Final = 1


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--explore-seconds",
        type=float,
        metavar="S",
        help="what the tests marked explore share in this run; each runs one round at least "
        f"(default: {SECONDS:g})",
    )
    group.addoption(
        "--explore-seed",
        type=int,
        metavar="N",
        help=f"seed of the first round of each test marked explore (default: {SEED})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark; refuse a time or a seed that there is not.

    Raises:
        pytest.UsageError: one of them.
    """
    config.addinivalue_line(
        "markers",
        "explore: explores the product by generated steps for its share of --explore-seconds "
        "(nox -s explore)",
    )
    seconds, seed = _given(config)
    if seconds is not None and not 0 < seconds < math.inf:
        raise pytest.UsageError(f"--explore-seconds: found {seconds:g}, expected more than zero")
    if seed is not None and seed < 0:
        raise pytest.UsageError(f"--explore-seed: found {seed}, expected zero or more")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that explore, unless ``-m`` or an option speaks of them."""
    asked = re.search(r"\bexplore\b", config.getoption("markexpr", default="") or "")
    if asked or any(given is not None for given in _given(config)):
        return
    left_out = [item for item in items if item.get_closest_marker("explore") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("explore") is None]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count those who share the time."""
    sharers = [item for item in session.items if item.get_closest_marker("explore") is not None]
    session.config.stash[_SHARERS] = len(sharers)


@pytest.fixture
def explore(request: pytest.FixtureRequest) -> Any:
    """Run state machines against the product for this test's share of ``--explore-seconds``."""
    need_extra("explore", action="explore a product")
    from harness_core.assertions.exploring import Explore

    item: pytest.Item = request.node
    if item.get_closest_marker("explore") is None:
        raise BadInput(
            item.nodeid,
            key="its marks",
            found=[mark.name for mark in item.iter_markers()],
            expected="explore, for it takes a share of the time",
        )
    seconds, seed = _given(item.config)
    total = SECONDS if seconds is None else seconds
    return Explore(
        seconds=total / item.config.stash[_SHARERS],
        seed=SEED if seed is None else seed,
        repeat=lambda failing: _command(item, seconds=total, seed=failing),
        done=lambda line: rows_for_the_end(item.config, "explored").append(
            f"{item.nodeid}: {line}"
        ),
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what was tried: a share that was over after a few examples shows little."""
    if rows := rows_for_the_end(config, "explored"):
        terminalreporter.ensure_newline()
        terminalreporter.section("explored")
        for row in rows:
            terminalreporter.write_line(row)


def _given(config: pytest.Config) -> tuple[float | None, int | None]:
    return config.getoption("--explore-seconds"), config.getoption("--explore-seed")


def _command(item: pytest.Item, *, seconds: float, seed: int) -> str:
    """What runs this test alone from a seed on."""
    folder = suite_folder(item.path)
    if folder is None:
        words = ["pytest", item.nodeid, f"--explore-seed={seed}", f"--explore-seconds={seconds:g}"]
    else:
        words = ["nox", "-s", "explore", "--", folder.name, item.nodeid]
        words += ["--seed", str(seed), "--seconds", f"{seconds:g}"]
    return shlex.join(words)
