"""The rows of ``profiles.toml``, every mistake in them reported before anything is booted."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from harness_core.base.errors import BadInput
from harness_core.base.reading import SomeTexts, Table, Text, like, read_toml

__all__ = ["Profile", "read_profiles"]


class Profile(Table, frozen=True):
    """How hard, for how long, and with what.

    Everything has a bound: a load test stops by itself, and a slip of a zero is no denial of service.

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

    name: Annotated[str, like("[a-z0-9]+(-[a-z0-9]+)*")]
    summary: Text
    users: Annotated[int, Meta(ge=1, le=200)]
    messages_each: Annotated[int, Meta(ge=1, le=100)]
    pace_s: Annotated[float, Meta(ge=0, le=60)]
    run_s: Annotated[int, Meta(ge=1, le=600)]
    drain_s: Annotated[int, Meta(ge=1, le=1800)]
    resend_every: Annotated[int, Meta(ge=0, le=1000)]
    workers: Annotated[int, Meta(ge=0, le=8)]
    texts: SomeTexts


class _File(Table, frozen=True):
    profile: Annotated[tuple[Profile, ...], Meta(min_length=1, description="at least one row")]


def read_profiles(path: Path, *, scenarios: Collection[str]) -> tuple[Profile, ...]:
    """Read every row.

    Raises:
        BadInput: with file, row and field of the first mistake.
    """
    profiles = read_toml(path, _File).profile
    names = [profile.name for profile in profiles]
    for number, profile in enumerate(profiles):
        if names.count(profile.name) > 1:
            raise BadInput(path, key="name", found=profile.name, expected="each name once")
        if not set(profile.texts) <= set(scenarios):
            key, expected = f"profile[{number}].texts", "ids of rows in scenarios.py, at least one"
            raise BadInput(path, key=key, found=profile.texts, expected=expected)
    return profiles
