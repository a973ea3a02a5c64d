"""Which butlers there are: every folder of the roster with a ``butler.toml``, and nothing else.

Read as any outsider may read it (E2E-PROVISIONING); the harness keeps no list of butlers.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from harness_core.base.errors import BadInput
from harness_core.base.reading import SharedTable, Text, Texts, like, read_toml

__all__ = ["ButlerConfig", "read_roster"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ButlerConfig:
    """What an outsider may know of a butler from its ``butler.toml``.

    Attributes:
        directory: its folder in the roster.
        name: its name, unique in the roster.
        port: the port it asks for; the ecosystem gives it another.
        database: name of its database.
        description: what it is for, as the registry shows it.
        capabilities: what it can do, in words, as the registry shows it.
        modules: names of the modules it configures.
        schedules: names of the schedules its file declares.
    """

    directory: Path
    name: str
    port: int
    database: str
    description: str
    capabilities: tuple[str, ...]
    modules: tuple[str, ...]
    schedules: tuple[str, ...]


def read_roster(directory: Path) -> dict[str, ButlerConfig]:
    """Every butler of a roster, by name, sorted.

    Raises:
        BadInput: no such directory, no butler in it, a malformed ``butler.toml`` (file and line or
            key), or two butlers of one name or port.
    """
    if not directory.is_dir():
        raise BadInput(directory, found="no such directory", expected="a roster of butlers")
    butlers: dict[str, ButlerConfig] = {}
    ports: dict[int, str] = {}
    for path in sorted(directory.glob("*/butler.toml")):
        butler = _read(path)
        if butler.name in butlers:
            raise BadInput(path, key="butler.name", found=butler.name, expected="a unique name")
        if butler.port in ports:
            raise BadInput(
                path,
                key="butler.port",
                found=butler.port,
                expected=f"a port of its own; {ports[butler.port]} has this one",
            )
        butlers[butler.name] = butler
        ports[butler.port] = butler.name
    if not butlers:
        raise BadInput(
            directory, found="no folder with a butler.toml", expected="at least one butler"
        )
    return butlers


class _Named(SharedTable, frozen=True):
    name: Text | None = None


class _Butler(SharedTable, frozen=True):
    """``[butler]``; what else stands there only the product knows."""

    name: Annotated[str, like(r"[a-z][a-z0-9_-]*")]
    port: Annotated[int, Meta(ge=1, le=65_535)]
    description: str = ""
    capabilities: Texts = ()
    db: _Named = _Named()
    schedule: Annotated[tuple[_Named, ...], Meta(description="[[butler.schedule]] tables")] = ()


class _File(SharedTable, frozen=True):
    butler: _Butler
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)


def _read(path: Path) -> ButlerConfig:
    file = read_toml(path, _File)
    butler = file.butler
    return ButlerConfig(
        directory=path.parent,
        name=butler.name,
        port=butler.port,
        database=butler.db.name or f"butler_{butler.name}",
        description=butler.description,
        capabilities=butler.capabilities,
        modules=tuple(sorted(file.modules)),
        schedules=tuple(row.name or "" for row in butler.schedule),
    )
