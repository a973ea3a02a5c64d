"""What a test or a run leaves behind: to the garbage collector, or to the machine."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack
from typing import Final

import pytest

from harness_core.assurance.leaks import Audit, open_audit
from harness_core.base.unclosed import Unclosed, unclosed_error, watch_unclosed
from harness_core.front.hooks._end import fail_run, is_worker, rows_for_the_end
from harness_core.front.hooks._outcomes import has_failed

_WATCHES: Final = pytest.StashKey[ExitStack]()
_AUDIT: Final = pytest.StashKey[Audit]()
_UNCLOSED: Final = pytest.StashKey[Unclosed]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Look at what is there before anything runs."""
    watches = config.stash[_WATCHES] = ExitStack()
    config.add_cleanup(watches.close)
    config.stash[_AUDIT] = watches.enter_context(open_audit())


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch what tests leave to the garbage collector; later than pytest's own watch, which it joins."""
    stash = session.config.stash
    stash[_UNCLOSED] = stash[_WATCHES].enter_context(watch_unclosed())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Say what a test left to the garbage collector, in that very test.

    Raises:
        HarnessError: a connection or file was left open, or a coroutine was never awaited.
    """
    yield
    if has_failed(item):
        # What a failed test left is a consequence of the failure, and its traceback holds it.
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
    left = item.config.stash[_UNCLOSED].collect()
    if left and not has_failed(item):
        raise unclosed_error(left, where=item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that left something behind, when everything of it should be gone."""
    leaks = rows_for_the_end(session.config, "leaks")
    leaks.extend(leak.text() for leak in session.config.stash[_AUDIT].close())
    leaks.extend(map(str, session.config.stash[_UNCLOSED].collect(last=True)))
    if leaks and not is_worker(session.config):
        what = f"{len(leaks)} thing(s) outlived the run; they were ended or removed:"
        fail_run(session, "leaks", "\n".join([what, *leaks]))
