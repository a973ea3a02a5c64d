"""What an engine may still be making when its run is swept: it is found, or shown to be absent."""

from __future__ import annotations

import threading
import time

import pytest

from harness_core.base.errors import NotReady
from harness_core.infrastructure.containers import _sweep
from harness_core.infrastructure.containers._client import library

APPEARS_S = 0.2


class Containers:
    """Those of an engine that answers each question late, as of when it was asked.

    Args:
        made_at: when the container is there, in seconds from now.
    """

    def __init__(self, *, made_at: float) -> None:
        self.began = time.monotonic()
        self.made_at = made_at
        self.asked_at: list[float] = []

    def get(self, name: str) -> str:
        """One container."""
        self.asked_at.append(time.monotonic() - self.began)
        threading.Event().wait(0.15)
        if self.asked_at[-1] < self.made_at:
            raise library().errors.NotFound("no such container")
        return name


class Silent:
    """An engine that does not answer."""

    def get(self, name: str) -> str:
        """No answer."""
        raise NotReady(f"find {name}", observed="no answer")


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """An engine finishes what it was asked for within moments."""
    monkeypatch.setattr(_sweep, "_APPEARS_S", APPEARS_S)


def find(containers, *, age_s: float = 0.0):
    """The container of an entry of that age."""
    return _sweep._find(containers, "x", {"at": time.time() - age_s}, action="sweep")


def test_one_that_appears_last_is_found():
    """Between the last question within its time and the end of that."""
    assert "x" == find(Containers(made_at=0.9 * APPEARS_S))


def test_absence_is_seen_when_nothing_can_appear_any_more():
    """Not concluded from the end of a wait: the engine is asked once more after it."""
    containers = Containers(made_at=1000)

    assert find(containers) is None
    assert containers.asked_at[-1] >= APPEARS_S > containers.asked_at[-2]


def test_an_old_one_is_asked_for_once():
    """What was to appear has appeared."""
    containers = Containers(made_at=1000)

    assert find(containers, age_s=60) is None
    assert 1 == len(containers.asked_at)


def test_silence_is_no_absence():
    """Then the entry stays in its ledger."""
    with pytest.raises(NotReady, match="no answer"):
        find(Silent())
