"""A pytest plugin: the tenth test that is called says so in a file, and never ends."""

import os
import signal
from pathlib import Path

import pytest

_HELD = 10
_called = 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    global _called
    _called += 1
    if _called == _HELD:
        Path(os.environ["STRANGERS_HOLD"]).write_text(item.nodeid)
        signal.pause()
