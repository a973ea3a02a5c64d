"""``--otlp``: spans of the product are sent on to a collector of the user's, and no verdict rests on that."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from harness_core.base.errors import HarnessError
from harness_core.front.hooks._end import is_worker, rows_for_the_end

_SENDING: Final = pytest.StashKey[ExitStack]()

#: Of what a run leaves for its end.
_KIND: Final = "otlp"


def send_spans_on(config: pytest.Config) -> None:
    """Begin, where it is asked for: in each process that may hold a system.

    Raises:
        pytest.UsageError: what was given is no address.
    """
    endpoint = config.getoption("--otlp")
    if not endpoint or config.option.collectonly:
        return
    from harness_core.doubles.http import check_endpoint, sending_on

    rows = rows_for_the_end(config, _KIND)
    try:
        sending = sending_on(check_endpoint(endpoint), say=rows.append)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_SENDING] = ExitStack()
    config.stash[_SENDING].enter_context(sending)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """The last spans have a moment to go: every system is down by now."""
    if _SENDING in session.config.stash:
        session.config.stash[_SENDING].close()
    yield


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say once that they did not arrive, however many processes saw that."""
    rows = rows_for_the_end(config, _KIND)
    if rows and not is_worker(config):
        terminalreporter.ensure_newline()
        terminalreporter.write_line(f"otlp: {rows[0]}", yellow=True)
