"""What a module is, and how it says that something was not delivered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from butlers.errors import ButlerError
from butlers.tool import ToolFunction

_WORDS = {
    str: "a string", int: "an integer", float: "a positive number", list: "an array of module names"
}


class ModuleProblem(Exception):
    """A key in `[modules.<name>]`, or the variable in its place, is unknown or mistyped."""

    def __init__(self, key: str, *, found: object, expected: str) -> None:
        super().__init__(key)
        self.key = key
        self.found = found
        self.expected = expected


class Unauthorized(ButlerError):
    """The service does not accept the credentials."""


class NotSent(ButlerError):
    """A message did not reach its service, or it is unknown whether it did.

    Args:
        error_class: `validation_error` (the service refuses this message, for ever),
            `target_unavailable` and `overload_rejected` (nothing was sent, try again), or
            `timeout` (it may have been sent: trying again could deliver it twice).
        retry_after_s: how long the service asks to be left alone.
    """

    def __init__(
        self, message: str, *, error_class: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.retry_after_s = retry_after_s

    @property
    def again(self) -> bool:
        """Whether another attempt cannot deliver the message twice, and may help."""
        return self.error_class in {"target_unavailable", "overload_rejected"}


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

    def tools(self) -> list[ToolFunction]:
        """Domain tools the butler has while the module works."""

    async def start(self) -> None:
        """Begin work; raises Unauthorized when the service does not accept the credentials."""

    async def stop(self) -> None:
        """End work."""

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        """Deliver a message; answers with `recipient`, `message_id` and what else is known.

        Raises:
            NotSent: it was not delivered, or that is unknown.
        """


class Base:
    """The parts most modules share.

    Args:
        table: `[modules.<name>]`.
        env: where credentials, and settings the table leaves out, are looked up.
    """

    name: str = ""
    keys: ClassVar[Mapping[str, type]] = {}
    #: key → the variable that is read when the table has no such key.
    variables: ClassVar[Mapping[str, str]] = {}
    credentials: tuple[str, ...] = ()
    depends_on: frozenset[str] = frozenset()
    migrations: Path | None = None

    def __init__(self, table: Mapping[str, Any], env: Mapping[str, str]) -> None:
        self._table = dict(table)
        self._from: dict[str, str] = {}
        for key, variable in self.variables.items():
            if key not in self._table and env.get(variable):
                self._from[key] = variable
                self._table[key] = env[variable]
        self._credentials = {name: env.get(name, "") for name in self.credentials}
        if isinstance(extra := table.get("depends_on"), list):
            self.depends_on = self.depends_on | frozenset(str(name) for name in extra)

    def check_config(self) -> None:
        keys = {**self.keys, "depends_on": list, "timeout_s": float}
        for key, value in self._table.items():
            if key not in keys:
                raise ModuleProblem(
                    key, found=value, expected="one of " + ", ".join(sorted(keys))
                )
            kind = keys[key]
            if key in self._from:
                if kind is int and not (value.isdecimal() and int(value) < 65536):
                    raise ModuleProblem(self._from[key], found=value, expected=_WORDS[int])
                self._table[key] = kind(value)
            elif not isinstance(value, (int, float) if kind is float else kind) or isinstance(
                value, bool
            ):
                raise ModuleProblem(key, found=value, expected=_WORDS[kind])
        self._check_values()

    def _check_values(self) -> None:
        if self.timeout_s <= 0:
            raise ModuleProblem("timeout_s", found=self.timeout_s, expected=_WORDS[float])
        url = self._table.get("base_url")
        if url is not None and (
            urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc
        ):
            raise ModuleProblem(
                self._from.get("base_url", "base_url"), found=url, expected="an http address"
            )

    @property
    def timeout_s(self) -> float:
        """How long one exchange with the service may take."""
        return float(self._table.get("timeout_s", 10.0))

    def missing_credentials(self) -> list[str]:
        return [name for name, value in self._credentials.items() if not value]

    def secrets(self) -> list[str]:
        return [value for value in self._credentials.values() if value]

    def tools(self) -> list[ToolFunction]:
        """None."""
        return []

    async def start(self) -> None:
        """Nothing to begin."""

    async def stop(self) -> None:
        """Nothing to end."""

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        """Nothing is sent by a module that carries no messages."""
        raise NotSent(
            f"cannot send by {self.name}: it delivers no messages", error_class="validation_error"
        )
