"""What ``/health`` answers, whatever a system's word for a dependency that answers is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_core.doubles.http import Response

__all__ = ["payload", "unwell"]


def payload(answer: Response) -> dict[str, Any]:
    """The two parts of a health answer."""
    body = answer.json()

    assert {"status", "dependencies"} <= set(body), f"no health payload: {answer}"
    assert isinstance(body["dependencies"], dict), f"dependencies are no mapping: {answer}"
    return body


def unwell(body: Mapping[str, Any], *, well: str = "") -> set[str]:
    """The dependencies whose state is another than one that answers has.

    Args:
        body: a health answer.
        well: that state, as a healthy answer told it; else the one that most have.
    """
    states = list(body["dependencies"].values())
    usual = well or max(states, key=states.count)
    return {name for name, word in body["dependencies"].items() if word != usual}
