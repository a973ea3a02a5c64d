"""Where a run writes its evidence, and the fixtures for what outlives a test.

``harness_loop`` (a trio loop in a thread), ``harness_run`` (warden, ledger, directories),
``run_evidence``, ``evidence`` (one directory for each test), ``progress``, ``token``.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assertions import new_token
from harness_core.base.bridge import Loop, Mutex, open_loop
from harness_core.base.errors import Unavailable
from harness_core.base.evidence import (
    Evidence,
    Redactor,
    forget_story,
    open_evidence,
    writing_evidence,
)
from harness_core.base.vain import share_waits
from harness_core.front.hooks._end import HARNESS_ERROR_EXIT, is_worker
from harness_core.front.hooks._outcomes import EVIDENCE, has_failed
from harness_core.front.hooks._screen import note_on_screen
from harness_core.front.outcomes import folder_of_test, keep_during, keep_story
from harness_core.process import Run, open_run

_ROOT_EVIDENCE: Final = pytest.StashKey[Evidence]()
_RUN_EVIDENCE: Final = pytest.StashKey[Evidence]()

#: Where the controller of an xdist run tells its workers to write.
_XDIST_EVIDENCE: Final = "harness_evidence"

#: In which its workers tell each other what they have waited for in vain.
_WAITS: Final = ".waits"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where this run writes its evidence; end the run where it cannot."""
    try:
        node.workerinput[_XDIST_EVIDENCE] = str(root_evidence(node.config).path)
    except Unavailable as error:
        pytest.exit(str(error), returncode=HARNESS_ERROR_EXIT)


def share_with_workers(config: pytest.Config) -> None:
    """What one worker of a run waits for in vain, the others know of."""
    if is_worker(config):
        share_waits(root_evidence(config).path / _WAITS)


@pytest.fixture(scope="session")
def run_evidence(pytestconfig: pytest.Config) -> Evidence:
    """The evidence directory of the whole run (logs of servers and children), emptied first."""
    root = root_evidence(pytestconfig)
    # Not by the variable of xdist, which a pytest inherits that a test starts.
    worker = getattr(pytestconfig, "workerinput", {}).get("workerid", "")
    found = open_evidence(root.path / f"_run{worker}", redactor=root.redactor, wipe=True)
    pytestconfig.stash[_RUN_EVIDENCE] = found
    return found


@pytest.fixture(scope="session")
def progress(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Print at once, past pytest's capture, what a long step is doing; from any thread."""
    reporter: Any = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    capture: Any = pytestconfig.pluginmanager.get_plugin("capturemanager")
    began = time.monotonic()
    one_at_a_time = Mutex()

    def say(text: str) -> None:
        if note_on_screen(pytestconfig, text) or reporter is None:
            return  # an xdist worker has no terminal of its own
        with one_at_a_time, capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.write_line(f"[{time.monotonic() - began:5.2f} s] {text}")
            reporter.flush()

    return say


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """This test's own evidence directory, emptied before it starts."""
    item: pytest.Item = request.node
    root = root_evidence(request.config)
    path = root.path / folder_of_test(item.location)
    item.stash[EVIDENCE] = open_evidence(path, redactor=root.redactor, wipe=True)
    return item.stash[EVIDENCE]


@pytest.fixture(scope="session")
def harness_loop() -> Iterator[Loop]:
    """A trio loop in a thread: holds the resources of the whole run."""
    with open_loop() as loop:
        yield loop


@pytest.fixture(scope="session")
def harness_run(harness_loop: Loop, run_evidence: Evidence) -> Iterator[Run]:
    """The run: its warden, its ledger, its directories; leaves nothing behind."""
    with harness_loop.hold(open_run(evidence=run_evidence)) as run:
        yield run


@pytest.fixture
def token() -> str:
    """An unguessable word: an effect that carries it was caused by this very test."""
    return new_token()


def evidence_folders(item: pytest.Item) -> list[Path]:
    """Where processes of a test write: the evidence of the run, and its own; as far as they are open."""
    stashes = (item.config.stash.get(_RUN_EVIDENCE, None), item.stash.get(EVIDENCE, None))
    return [evidence.path for evidence in stashes if evidence is not None]


def keep_of_failure(item: pytest.Item, paths: Sequence[Path], sizes: Mapping[Path, int]) -> None:
    """What processes of the run wrote while a test failed, among the evidence of the test."""
    run = item.config.stash.get(_RUN_EVIDENCE, None)
    if run is not None:
        keep_during(_evidence_of(item), run.path, paths, sizes)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What the test before has told is over."""
    forget_story()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Keep what a failed test told; with a report to be made, one that passed too.

    Not before: a test may have a file system of its own (pyfakefs), and has none any more.
    """
    if item.config.getoption("harness_report") or has_failed(item):
        keep_story(partial(_evidence_of, item))


def _evidence_of(item: pytest.Item) -> Evidence:
    """The folder of a test, also of one that asked for none."""
    root = root_evidence(item.config)
    return open_evidence(root.path / folder_of_test(item.location), redactor=root.redactor)


def folder_on_disk(config: pytest.Config, location: tuple[str, int | None, str]) -> Path | None:
    """The folder with the evidence of a test; ``None`` where the run has opened none yet."""
    root = config.stash.get(_ROOT_EVIDENCE, None)
    return root.path / folder_of_test(location) if root is not None else None


def redactor_of(config: pytest.Config) -> Redactor:
    """That of the evidence of a run; one that knows shapes alone where there is none."""
    root = config.stash.get(_ROOT_EVIDENCE, None)
    return root.redactor if root is not None else Redactor()


def root_evidence(config: pytest.Config) -> Evidence:
    """The folder with all evidence of this run."""
    if _ROOT_EVIDENCE not in config.stash:
        workerinput = getattr(config, "workerinput", None)
        if workerinput is not None:
            path = Path(workerinput[_XDIST_EVIDENCE])
        else:
            given = config.getoption("--evidence")
            path = _own_directory(
                Path(given).absolute() if given else config.rootpath / ".evidence", config
            )
        config.stash[_ROOT_EVIDENCE] = open_evidence(path, redactor=Redactor())
    return config.stash[_ROOT_EVIDENCE]


def _own_directory(path: Path, config: pytest.Config) -> Path:
    """``path``, or a directory in it while another run is at work there: no run wipes another's."""
    candidate, number = path, 2
    while True:
        with writing_evidence(candidate):
            candidate.mkdir(parents=True, exist_ok=True)
            lock = (candidate / ".lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            candidate, number = path / f"concurrent-{number}", number + 1
        else:
            (candidate / _WAITS).unlink(missing_ok=True)
            config.add_cleanup(lock.close)
            return candidate
