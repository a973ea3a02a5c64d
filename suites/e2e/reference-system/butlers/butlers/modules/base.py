"""What a module is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

_WORDS = {str: "a string", int: "an integer", list: "an array of module names"}


class ModuleProblem(Exception):
    """A key in `[modules.<name>]` is unknown or mistyped."""

    def __init__(self, key: str, *, found: object, expected: str) -> None:
        super().__init__(key)
        self.key = key
        self.found = found
        self.expected = expected


class Module(Protocol):
    """A link to a service; built from its table in `butler.toml` and the environment."""

    depends_on: frozenset[str]
    migrations: Path | None

    def check_config(self) -> None:
        """Raise ModuleProblem for a key that is unknown or mistyped."""

    def missing_credentials(self) -> list[str]:
        """Names of variables the module needs and does not have."""

    def secrets(self) -> list[str]:
        """Values that must not be shown."""

    async def start(self) -> None:
        """Begin work."""

    async def stop(self) -> None:
        """End work."""

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        """Deliver a message; raises ButlerError when it was not delivered."""


class Base:
    """The parts most modules share.

    Args:
        table: `[modules.<name>]`.
        env: where credentials are looked up.
    """

    name: str = ""
    keys: ClassVar[Mapping[str, type]] = {}
    credentials: tuple[str, ...] = ()
    depends_on: frozenset[str] = frozenset()
    migrations: Path | None = None

    def __init__(self, table: Mapping[str, Any], env: Mapping[str, str]) -> None:
        self._table = table
        self._credentials = {name: env.get(name, "") for name in self.credentials}
        if isinstance(extra := table.get("depends_on"), list):
            self.depends_on = self.depends_on | frozenset(str(name) for name in extra)

    def check_config(self) -> None:
        keys = {**self.keys, "depends_on": list}
        for key, value in self._table.items():
            if key not in keys:
                raise ModuleProblem(
                    key, found=value, expected="one of " + ", ".join(sorted(keys))
                )
            if not isinstance(value, keys[key]) or isinstance(value, bool):
                raise ModuleProblem(key, found=value, expected=_WORDS[keys[key]])

    def missing_credentials(self) -> list[str]:
        return [name for name, value in self._credentials.items() if not value]

    def secrets(self) -> list[str]:
        return [value for value in self._credentials.values() if value]

    async def start(self) -> None:
        """Nothing to begin."""

    async def stop(self) -> None:
        """Nothing to end."""
