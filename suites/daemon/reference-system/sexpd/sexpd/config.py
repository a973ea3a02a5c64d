"""What is configured, from the environment and the command line, and is it well formed?

Each setting below is a row: section, key, how its text is read, its default and what it means. Its
variable is `SEXPD_<SECTION>_<KEY>`. Nothing later looks up a default. Every problem is one
:class:`~sexpd.errors.ConfigError`.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sexpd.errors import ConfigError
from sexpd.faults import VARIABLE as FAULT_VARIABLE
from sexpd.frames import LARGEST_CHARS

DEFAULT_PORT = 9105
SHAPES = ("anthropic", "openai")


class _Wrong(ValueError):
    """A value that its row cannot read; the text says what was expected."""


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise _Wrong(f"an integer from {low} to {high}")
        return int(text)

    return read


def _seconds(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or not low <= float(text) <= high:
            raise _Wrong(f"seconds from {low:g} to {high:g}")
        return float(text)

    return read


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise _Wrong("true or false")
    return text == "true"


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise _Wrong("one of " + ", ".join(words))
        return text

    return read


def _path(text: str) -> Path:
    if not Path(text).is_absolute():
        raise _Wrong("an absolute path")
    return Path(text)


def _key(text: str) -> str:
    if not re.fullmatch(r"[!-~]+", text):
        raise _Wrong("printable ASCII characters without a space or a newline")
    return text


def _host(text: str) -> str:
    try:
        loopback = ipaddress.ip_address(text).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise _Wrong("a loopback address such as 127.0.0.1: clients are not authenticated")
    return text


@dataclass(frozen=True, slots=True)
class Row:
    """One setting."""

    section: str
    key: str
    read: Callable[[str], Any]
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        return f"SEXPD_{self.section}_{self.key}".upper()


ROWS = (
    Row("server", "host", _host, "127.0.0.1", "loopback address to listen on"),
    Row("server", "port", _integer(0, 65535), DEFAULT_PORT, "port; 0 lets the system choose"),
    Row("server", "port_file", _path, None, "file of the port while it listens; <data>/sexpd.port when empty"),
    Row("server", "shutdown_command", _flag, True, "whether a client may stop the daemon"),
    Row("paths", "data", _path, None, "data directory; $XDG_DATA_HOME/sexpd when empty"),
    Row("paths", "skills", _path, None, "skills directory; <data>/skills when empty"),
    Row("limits", "frame_chars", _integer(64, LARGEST_CHARS), 1 << 18, "largest payload read"),
    Row("limits", "depth", _integer(1, 10_000), 64, "lists that may be open at once"),
    Row("limits", "connections", _integer(1, 10_000), 128, "connections at once"),
    Row("limits", "waiting", _integer(1, 1000), 16, "requests of one connection that wait"),
    Row("limits", "frame_s", _seconds(0.05, 3600), 10.0, "from first to last byte of a frame"),
    Row("limits", "idle_s", _seconds(0.05, 86400), 600.0, "without a frame before closing"),
    Row("limits", "write_s", _seconds(0.05, 3600), 5.0, "for a client to take one reply"),
    Row("limits", "stop_s", _seconds(0.0, 600), 2.0, "for requests under way when stopping"),
    Row("pipeline", "workers", _integer(1, 256), 8, "signals reasoned about at once"),
    Row("pipeline", "queue", _integer(1, 10_000), 64, "signals waiting for a worker"),
    Row("pipeline", "signal_s", _seconds(0.1, 3600), 90.0, "for one signal, perceive to act"),
    Row("health", "max_age_s", _seconds(0.0, 3600), 0.5, "age at which a result is stale"),
    Row("health", "check_s", _seconds(0.05, 60), 2.0, "for one self-check"),
    Row("shell", "root", _path, None, "working root of commands; <data>/root when empty"),
    Row("shell", "timeout_s", _seconds(0.05, 3600), 10.0, "for a command, unless it asks"),
    Row("shell", "longest_s", _seconds(0.05, 3600), 60.0, "the most that a request may ask for"),
    Row("shell", "output_chars", _integer(1, 1 << 22), 65536, "kept of stdout and of stderr"),
    Row("shell", "command_chars", _integer(1, 1 << 16), 8192, "longest command judged"),
    Row("shell", "at_once", _integer(1, 256), 4, "commands running at once"),
    Row("shell", "confine", _choice("auto", "required", "off"), "auto",
        "Landlock around commands: where there is one, always, never"),
)

@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One language model to ask, in the order of the configuration."""

    name: str
    shape: str
    base_url: str
    key: str
    model: str
    timeout_s: float
    max_tokens: int
    answer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything configured: ``config["section.key"]``."""

    values: Mapping[str, Any]
    providers: tuple[Provider, ...]

    def __getitem__(self, name: str) -> Any:
        """The value of ``section.key``."""
        return self.values[name]

    @property
    def data(self) -> Path:
        return self["paths.data"]

    @property
    def skills(self) -> Path:
        return self["paths.skills"]

    @property
    def root(self) -> Path:
        return self["shell.root"]


def load(*, port: str | None = None) -> Config:
    """Read the configuration.

    Args:
        port: of the command line; wins over its variable.

    Raises:
        ConfigError: anything mistyped, out of bounds or unknown.
    """
    env = os.environ
    values: dict[str, Any] = {}
    for row in ROWS:
        text = env.get(row.variable, "")
        values[f"{row.section}.{row.key}"] = _read(row, text, row.variable) if text else row.default
    if port is not None:
        row = next(row for row in ROWS if (row.section, row.key) == ("server", "port"))
        values["server.port"] = _read(row, port, "--port")
    _refuse_unknown_variables(env)
    _fill_in(values, env=env)
    return Config(values=values, providers=_providers(env))


def _read(row: Row, text: str, key: str) -> Any:
    try:
        return row.read(text)
    except _Wrong as wrong:
        # A key, or one that was put into the variable beside its own.
        found = _hidden(text) if row.section == "provider" else text
        raise ConfigError(key=key, found=found, expected=str(wrong)) from wrong


def _hidden(text: str) -> str:
    return f"a value of {len(text)} characters"


def _refuse_unknown_variables(env: Mapping[str, str]) -> None:
    known = {row.variable for row in ROWS} | {"SEXPD_PROVIDERS", FAULT_VARIABLE}
    for variable in sorted(env):
        if not variable.startswith("SEXPD_") or variable in known:
            continue
        if variable.startswith("SEXPD_PROVIDER_"):
            continue  # _providers knows their names
        close = difflib.get_close_matches(variable, known, n=1)
        expected = f"{close[0]}, perhaps" if close else "a setting of README.md"
        # It may be the misspelled name of a key.
        found = _hidden(env[variable])
        raise ConfigError(key=variable, found=found, expected=expected)


def _fill_in(values: dict[str, Any], *, env: Mapping[str, str]) -> None:
    """What one setting takes from another."""
    base = env.get("XDG_DATA_HOME") or f"{Path.home()}/.local/share"
    values["paths.data"] = values["paths.data"] or Path(base) / "sexpd"
    values["paths.skills"] = values["paths.skills"] or values["paths.data"] / "skills"
    values["server.port_file"] = values["server.port_file"] or values["paths.data"] / "sexpd.port"
    values["shell.root"] = values["shell.root"] or values["paths.data"] / "root"
    if values["shell.root"] == Path("/"):
        raise ConfigError(
            key="SEXPD_SHELL_ROOT", found="/", expected="a directory of its own"
        )


# --- Providers --------------------------------------------------------------------------------------


def _providers(env: Mapping[str, str]) -> tuple[Provider, ...]:
    given = env.get("SEXPD_PROVIDERS", "")
    order = [name.strip() for name in given.split(",")] if given else []
    for name in order:
        if not re.fullmatch(r"[a-z][a-z0-9]*", name) or order.count(name) > 1:
            raise ConfigError(
                key="SEXPD_PROVIDERS", found=_hidden(given),
                expected="names of lower-case letters and digits, each once, with commas between",
            )
    known = {
        f"SEXPD_PROVIDER_{name}_{row.key}".upper() for name in order for row in _PROVIDER_ROWS
    }
    for variable in sorted(env):
        if variable.startswith("SEXPD_PROVIDER_") and variable not in known:
            raise ConfigError(
                key=variable, found="a variable of no provider",
                expected="SEXPD_PROVIDER_<NAME>_<KEY> of a name in SEXPD_PROVIDERS",
            )
    return tuple(_provider(name, env) for name in order)


def _provider(name: str, env: Mapping[str, str]) -> Provider:
    values: dict[str, Any] = {}
    for row in _PROVIDER_ROWS:
        variable = f"SEXPD_PROVIDER_{name}_{row.key}".upper()
        text = env.get(variable, "")
        values[row.key] = _read(row, text, variable) if text else row.default
        if values[row.key] is None:
            raise ConfigError(key=variable, found=None, expected=row.meaning)
    return Provider(name=name, **values)


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise _Wrong("an address such as https://api.anthropic.com")
    return text.rstrip("/")


_PROVIDER_ROWS = (
    Row("provider", "shape", _choice(*SHAPES), None, "API: anthropic or openai"),
    Row("provider", "base_url", _url, None, "where it is, such as https://api.anthropic.com"),
    Row("provider", "key", _key, "", "API key"),
    Row("provider", "model", str, None, "the model to ask for"),
    Row("provider", "timeout_s", _seconds(0.05, 600), 20.0, "for one answer"),
    Row("provider", "max_tokens", _integer(1, 100_000), 512, "longest answer"),
    Row("provider", "answer_bytes", _integer(64, 1 << 24), 1 << 20, "largest response read"),
)
