"""Which servers the tests of the core run on: ``--services``, as in every suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """What tests start can be interrupted, also in a run that a shell started in the background.

    Such a run ignores SIGINT, and so would every program that it starts.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def provider(pytestconfig: pytest.Config) -> str:
    """Where servers come from; a test that uses it is one of those that ``--services`` is for."""
    name: str = pytestconfig.getoption("--services")
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on the chosen servers, so that it can be selected: ``-m services``."""
    for item in items:
        if "provider" in getattr(item, "fixturenames", ()):
            item.add_marker("services")
