"""Which butlers there are: every folder of the roster with a ``butler.toml``, and nothing else.

Read as any outsider may read it (seed 000, "Dimension 1"); the harness keeps no list of butlers.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from harness_core.errors import BadInput

__all__ = ["ButlerConfig", "read_roster"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_HIGHEST_PORT: Final = 65_535


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


def _read(path: Path) -> ButlerConfig:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(path, found=str(error), expected="valid TOML") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, found=str(error), expected="a readable TOML file") from error
    butler = _table(path, content, "butler")
    name = butler.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(path, key="butler.name", found=name, expected="a lower-case name")
    port = butler.get("port")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= _HIGHEST_PORT:
        raise BadInput(path, key="butler.port", found=port, expected="a port from 1 to 65535")
    database = _table(path, butler, "db", where="butler.").get("name", f"butler_{name}")
    if not isinstance(database, str) or not database:
        raise BadInput(path, key="butler.db.name", found=database, expected="a database name")
    capabilities = butler.get("capabilities", [])
    if not isinstance(capabilities, list) or not all(isinstance(c, str) for c in capabilities):
        raise BadInput(
            path, key="butler.capabilities", found=capabilities, expected="a list of texts"
        )
    return ButlerConfig(
        directory=path.parent,
        name=name,
        port=port,
        database=database,
        description=str(butler.get("description", "")),
        capabilities=tuple(capabilities),
        modules=tuple(sorted(_table(path, content, "modules"))),
        schedules=tuple(row.get("name", "") for row in butler.get("schedule", [])),
    )


def _table(path: Path, content: dict[str, Any], key: str, *, where: str = "") -> dict[str, Any]:
    value = content.get(key, {} if key != "butler" else None)
    if not isinstance(value, dict):
        raise BadInput(path, key=f"{where}{key}", found=value, expected=f"a [{where}{key}] table")
    return value
