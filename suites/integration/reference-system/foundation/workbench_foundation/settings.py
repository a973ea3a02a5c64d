"""Settings from the environment, typed, each problem reported by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from workbench_foundation.errors import ConfigError


@dataclass(frozen=True)
class Environment:
    """The environment, read once, with errors that say what was wrong."""

    values: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def text(self, name: str, default: str | None = None) -> str:
        """A text; required when there is no default."""
        value = self.values.get(name) or default
        if value is None:
            raise ConfigError(name, found=self.values.get(name), expected="a text")
        return value

    def seconds(self, name: str, default: float) -> float:
        """A time above zero."""
        return self._above_zero(name, default, unit="seconds")

    def millimetres(self, name: str, default: float) -> float:
        """A length above zero."""
        return self._above_zero(name, default, unit="millimetres")

    def _above_zero(self, name: str, default: float, *, unit: str) -> float:
        found = self.values.get(name)
        if not found:
            return default
        try:
            value = float(found)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise ConfigError(name, found=found, expected=f"{unit} above zero")
        return value

    def timeout(self, name: str, default: float) -> float:
        """A time after which something counts as failed, as long as this machine makes it.

        ``WORKBENCH_TIMEOUT_FACTOR`` multiplies all of them, for machines that are busy.
        """
        return self.seconds(name, default) * self.seconds("WORKBENCH_TIMEOUT_FACTOR", 1.0)

    def share(self, name: str, default: str) -> Decimal:
        """A share above 0 and below 1, as it is written."""
        found = self.values.get(name) or default
        try:
            value = Decimal(found)
        except InvalidOperation:
            value = Decimal(0)
        if not (value.is_finite() and 0 < value < 1):
            raise ConfigError(name, found=found, expected="a share above 0 and below 1")
        return value

    def count(self, name: str, default: int, *, least: int = 1) -> int:
        """A whole number."""
        found = self.values.get(name)
        if not found:
            return default
        if not found.isdecimal() or int(found) < least:
            raise ConfigError(name, found=found, expected=f"a whole number from {least} on")
        return int(found)

    def url(self, name: str) -> str:
        """An http URL without a slash at its end."""
        value = self.text(name)
        if not value.startswith(("http://", "https://")):
            raise ConfigError(name, found=value, expected="an http or https URL")
        return value.rstrip("/")
