"""Which butlers there are: every folder of the roster with a ``butler.toml``, and nothing else.

Read as any outsider may read it (E2E-PROVISIONING); the harness keeps no list of butlers.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import check_shape, read_toml

__all__ = ["ButlerConfig", "read_roster"]

_NAME: Final = r"[a-z][a-z0-9_-]*"
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
    content = read_toml(path)
    butler = content.table("butler")
    name = butler.text("name", pattern=_NAME)
    port = butler.number("port")
    if not 0 < port <= _HIGHEST_PORT:
        raise butler.bad("port", port, expected=f"a port from 1 to {_HIGHEST_PORT}")
    database = butler.inner("db")
    modules = content.optional("modules")
    check_shape(modules, {"*": {"*": object}}, where=path, prefix="modules.")
    schedules = butler.tables("schedule", default=())
    found = ButlerConfig(
        directory=path.parent,
        name=name,
        port=port,
        database=database.text("name", default=f"butler_{name}"),
        description=butler.text("description", default=""),
        capabilities=butler.texts("capabilities", default=()),
        modules=tuple(sorted(modules)),
        schedules=tuple(row.text("name", default="") for row in schedules),
    )
    # The file is the product's, and has keys that only the product knows.
    for table in (content, butler, database, *schedules):
        table.done_but_for_others()
    return found
