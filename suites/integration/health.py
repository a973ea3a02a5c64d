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


def unwell(body: Mapping[str, Any]) -> set[str]:
    """The dependencies of a 503 whose state is another than most have."""
    states = list(body["dependencies"].values())
    usual = max(states, key=states.count)
    return {name for name, word in body["dependencies"].items() if word != usual}
