"""The rows of ``profiles.toml``, every mistake in them told before anything is booted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import Shape, check_shape, read_toml

__all__ = ["Profile", "read_profiles"]

#: Bounds of a profile: a load test stops by itself, and a slip of a zero is no denial of service.
_MOST: Final[Mapping[str, float]] = {
    "users": 200,
    "messages_each": 100,
    "pace_s": 60,
    "run_s": 600,
    "drain_s": 1800,
    "resend_every": 1000,
    "workers": 8,
}
_LEAST: Final[Mapping[str, float]] = {"pace_s": 0.0, "resend_every": 0, "workers": 0}
_SHAPE: Final[Shape] = {
    "profile!": [
        {
            "name!": str,
            "summary!": str,
            "texts!": [str],
            **{f"{key}!": float if key == "pace_s" else int for key in _MOST},
        }
    ]
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How hard, for how long, and with what.

    Attributes:
        users: connectors at a time.
        messages_each: messages a user sends at most.
        pace_s: seconds from one message of a user to its next, at least.
        run_s: Locust stops after this.
        drain_s: the last message has reached its end this long after.
        resend_every: each n-th message is sent twice with one event id; 0 for none.
        workers: Locust processes besides the master; 0 for one process.
        texts: ids of scenarios whose prompts are sent in turn.
    """

    name: str
    summary: str
    users: int
    messages_each: int
    pace_s: float
    run_s: int
    drain_s: int
    resend_every: int
    workers: int
    texts: tuple[str, ...]


def read_profiles(path: Path, *, scenarios: Collection[str]) -> tuple[Profile, ...]:
    """Read every row.

    Raises:
        BadInput: with file, row and field of the first mistake.
    """
    content = read_toml(path).content()
    check_shape(content, _SHAPE, where=path)
    rows = content["profile"]
    if not rows:
        raise BadInput(path, key="profile", found=rows, expected="at least one row")
    profiles = tuple(_profile(path, number, row, scenarios) for number, row in enumerate(rows))
    names = [profile.name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(path, key="name", found=name, expected="each name once")
    return profiles


def _profile(
    path: Path, number: int, row: Mapping[str, Any], scenarios: Collection[str]
) -> Profile:
    at = f"profile[{number}]"
    for key, most in _MOST.items():
        value, least = row[key], _LEAST.get(key, 1)
        if not least <= value <= most:
            raise BadInput(path, key=f"{at}.{key}", found=value, expected=f"{least} to {most}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["name"]):
        raise BadInput(path, key=f"{at}.name", found=row["name"], expected="kebab-case")
    if not row["summary"].strip():
        raise BadInput(path, key=f"{at}.summary", found=row["summary"], expected="a sentence")
    texts = row["texts"]
    if not texts or not set(texts) <= set(scenarios):
        expected = "ids of rows in scenarios.py, at least one"
        raise BadInput(path, key=f"{at}.texts", found=texts, expected=expected)
    return Profile(**{**row, "texts": tuple(texts)})
