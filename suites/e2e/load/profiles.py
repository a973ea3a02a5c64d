"""The rows of ``profiles.toml``, every mistake in them reported before anything is booted."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from harness_core.base.errors import BadInput
from harness_core.base.reading import SomeTexts, Table, Text, like, read_toml

__all__ = ["Profile", "Ramp", "read_profiles", "read_ramps"]


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


class Ramp(Table, frozen=True):
    """An open loop: messages come when they come, whatever became of those before.

    Attributes:
        rates_per_s: one step each.
        step_s: how long each rate is offered.
        drain_s: the last message has reached its end this long after.
        resend_every: each n-th message is sent twice with one event id; 0 for none.
        texts: ids of scenarios whose prompts are sent in turn.
        soak: one rate for a long time, of which a run may set the seconds.
    """

    name: Annotated[str, like("[a-z0-9]+(-[a-z0-9]+)*")]
    summary: Text
    rates_per_s: Annotated[
        tuple[Annotated[float, Meta(gt=0, le=50)], ...],
        Meta(min_length=1, max_length=20, description="one to twenty rates up to 50 per second"),
    ]
    step_s: Annotated[int, Meta(ge=1, le=86_400)]
    drain_s: Annotated[int, Meta(ge=1, le=3600)]
    resend_every: Annotated[int, Meta(ge=0, le=1000)]
    texts: SomeTexts
    soak: bool = False


class _File(Table, frozen=True):
    profile: Annotated[tuple[Profile, ...], Meta(min_length=1, description="at least one row")]
    ramp: tuple[Ramp, ...] = ()


def read_profiles(path: Path, *, scenarios: Collection[str]) -> tuple[Profile, ...]:
    """Read every row of ``[[profile]]``.

    Raises:
        BadInput: with file, row and field of the first mistake.
    """
    return _checked(path, scenarios=scenarios).profile


def read_ramps(path: Path, *, scenarios: Collection[str]) -> tuple[Ramp, ...]:
    """Read every row of ``[[ramp]]``.

    Raises:
        BadInput: with file, row and field of the first mistake.
    """
    return _checked(path, scenarios=scenarios).ramp


def _checked(path: Path, *, scenarios: Collection[str]) -> _File:
    file = read_toml(path, _File)
    rows = [("profile", row) for row in file.profile] + [("ramp", row) for row in file.ramp]
    names = [row.name for _, row in rows]
    for number, (kind, row) in enumerate(rows):
        if names.count(row.name) > 1:
            raise BadInput(path, key="name", found=row.name, expected="each name once")
        if not set(row.texts) <= set(scenarios):
            at = number if kind == "profile" else number - len(file.profile)
            key, expected = f"{kind}[{at}].texts", "ids of rows in scenarios.py, at least one"
            raise BadInput(path, key=key, found=row.texts, expected=expected)
    return file
