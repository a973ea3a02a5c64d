"""What is configured, from a TOML file and the environment, and is it well formed?

Each setting below is a row: section, key, how its text is read, its default and what it means. The
same rows read `sexpd.toml`, the variables `SEXPD_<SECTION>_<KEY>` (which win), and print
`sexpd config`. Nothing later looks up a default. Every problem is one
:class:`~sexpd.errors.ConfigError`.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sexpd.errors import ConfigError
from sexpd.faults import VARIABLE as FAULT_VARIABLE
from sexpd.frames import LARGEST_CHARS

DEFAULT_PORT = 9105
DEFAULT_MODELS = {"anthropic": "claude-haiku-4-5-20251001", "openai": "gpt-4o-mini"}
DEFAULT_URLS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
SHAPES = ("anthropic", "openai")


class _Wrong(ValueError):
    """A value that its row cannot read; the text says what was expected."""


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
            value = int(value)
        if type(value) is not int or not low <= value <= high:
            raise _Wrong(f"an integer from {low} to {high}")
        return value

    return read


def _seconds(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if isinstance(value, bool) or not low <= number <= high:
            raise _Wrong(f"seconds from {low:g} to {high:g}")
        return number

    return read


def _flag(value: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in known:
        raise _Wrong("true or false")
    return known[value.lower()]


def _choice(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise _Wrong("one of " + ", ".join(words))
        return str(value)

    return read


def _path(value: Any) -> Path | None:
    if value == "":
        return None
    if not isinstance(value, str) or "\0" in value:
        raise _Wrong("a path")
    return Path(value).expanduser().absolute()


def _host(value: Any) -> str:
    try:
        loopback = ipaddress.ip_address(value).is_loopback
    except ValueError:
        loopback = False
    if not isinstance(value, str) or not loopback:
        raise _Wrong("a loopback address such as 127.0.0.1: clients are not authenticated")
    return value


@dataclass(frozen=True, slots=True)
class Row:
    """One setting."""

    section: str
    key: str
    read: Callable[[Any], Any]
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        return f"SEXPD_{self.section}_{self.key}".upper()


ROWS = (
    Row("server", "host", _host, "127.0.0.1", "loopback address to listen on"),
    Row("server", "port", _integer(0, 65535), DEFAULT_PORT, "port; 0 lets the system choose"),
    Row("server", "port_file", _path, None, "file that holds the port while the daemon listens"),
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

_PROVIDER_ROWS = (
    Row("provider", "shape", _choice(*SHAPES), "", "API: anthropic or openai"),
    Row("provider", "base_url", str, "", "where it is; the maker's address when empty"),
    Row("provider", "key", str, "", "API key"),
    Row("provider", "key_env", str, "", "variable that holds the API key"),
    Row("provider", "model", str, "", "model; a small one of the maker when empty"),
    Row("provider", "timeout_s", _seconds(0.05, 600), 20.0, "for one answer"),
    Row("provider", "max_tokens", _integer(1, 100_000), 512, "longest answer"),
    Row("provider", "answer_bytes", _integer(64, 1 << 24), 1 << 20, "largest response read"),
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
    """Everything configured; the attributes of a section are the keys of its rows."""

    sections: Mapping[str, Mapping[str, Any]]
    providers: tuple[Provider, ...]
    file: Path | None

    def __getitem__(self, name: str) -> Any:
        """The value of ``section.key``."""
        section, key = name.split(".")
        return self.sections[section][key]

    @property
    def data(self) -> Path:
        return self["paths.data"]

    @property
    def skills(self) -> Path:
        return self["paths.skills"]

    @property
    def root(self) -> Path:
        return self["shell.root"]


def load(
    *,
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration.

    Args:
        file: the TOML file; `SEXPD_CONFIG`, else `$XDG_CONFIG_HOME/sexpd/sexpd.toml` if it is there.
        overrides: values by `section.key` that win over everything (the command line).
        env: the environment; the process's own when not given.

    Raises:
        ConfigError: anything unreadable, mistyped, out of bounds or unknown.
    """
    env = os.environ if env is None else env
    file = _file(file, env=env)
    raw = _parse(file) if file else {}
    where: object = file or "the configuration"
    known = {row.section for row in ROWS} | {"provider"}
    for key in raw.keys() - known:
        raise ConfigError(where, key=key, found=raw[key], expected=_suggest(key, known))
    sections: dict[str, dict[str, Any]] = {}
    for section in sorted(known - {"provider"}):
        sections[section] = _section(section, raw.get(section, {}), where=where, env=env)
    for name, value in (overrides or {}).items():
        section, key = name.split(".")
        row = next(row for row in ROWS if (row.section, row.key) == (section, key))
        sections[section][key] = _read(row, value, where="the command line", key=f"--{key}")
    _refuse_unknown_variables(env)
    _defaults(sections, env=env)
    providers = _providers(raw.get("provider", []), where=where, env=env)
    return Config(sections=sections, providers=providers, file=file)


def _file(file: Path | None, *, env: Mapping[str, str]) -> Path | None:
    if file is None and env.get("SEXPD_CONFIG"):
        file = Path(env["SEXPD_CONFIG"])
    if file is not None:
        return file.absolute()
    default = _xdg("XDG_CONFIG_HOME", ".config", env=env) / "sexpd" / "sexpd.toml"
    return default if default.is_file() else None


def _xdg(variable: str, fallback: str, *, env: Mapping[str, str]) -> Path:
    given = env.get(variable, "")
    if given and Path(given).is_absolute():  # the XDG specification: relative ones are ignored
        return Path(given)
    return Path(env.get("HOME") or "~").expanduser() / fallback


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(file, key="the file", found=reason, expected="readable UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            file, key="the file", found=str(error), expected="well-formed TOML"
        ) from error


def _section(
    name: str, table: Any, *, where: object, env: Mapping[str, str]
) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(where, key=name, found=table, expected=f"a table [{name}]")
    rows = {row.key: row for row in ROWS if row.section == name}
    for key in table.keys() - rows.keys():
        expected = _suggest(key, rows)
        raise ConfigError(where, key=f"{name}.{key}", found=table[key], expected=expected)
    values: dict[str, Any] = {}
    for key, row in rows.items():
        values[key] = row.default
        if key in table:
            values[key] = _read(row, table[key], where=where, key=f"{name}.{key}")
        if (given := env.get(row.variable)) is not None:
            values[key] = _read(row, given, where="the environment", key=row.variable)
    return values


def _read(row: Row, value: Any, *, where: object, key: str) -> Any:
    if row.read is str and not isinstance(value, str):
        raise ConfigError(where, key=key, found=value, expected="text")
    try:
        return row.read(value)
    except _Wrong as wrong:
        raise ConfigError(where, key=key, found=value, expected=str(wrong)) from wrong


def _suggest(key: str, known: Any) -> str:
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"{close[0]}, perhaps" if close else "one of " + ", ".join(sorted(known))


def _refuse_unknown_variables(env: Mapping[str, str]) -> None:
    known = {row.variable for row in ROWS}
    known |= {"SEXPD_CONFIG", "SEXPD_PROVIDERS", FAULT_VARIABLE}
    for variable in sorted(env):
        if not variable.startswith("SEXPD_") or variable in known:
            continue
        if variable.startswith("SEXPD_PROVIDER_"):
            continue  # _providers knows their names
        expected = _suggest(variable, known)
        raise ConfigError(
            "the environment", key=variable, found=env[variable], expected=expected
        )


def _defaults(sections: dict[str, dict[str, Any]], *, env: Mapping[str, str]) -> None:
    """Fill in what one setting takes from another."""
    paths, shell = sections["paths"], sections["shell"]
    paths["data"] = paths["data"] or _xdg("XDG_DATA_HOME", ".local/share", env=env) / "sexpd"
    paths["skills"] = paths["skills"] or paths["data"] / "skills"
    shell["root"] = shell["root"] or paths["data"] / "root"
    if shell["root"] == Path("/"):
        raise ConfigError(
            "the configuration", key="shell.root", found="/", expected="a directory of its own"
        )


# --- Providers --------------------------------------------------------------------------------------


def _providers(tables: Any, *, where: object, env: Mapping[str, str]) -> tuple[Provider, ...]:
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(where, key="provider", found=tables, expected="tables [[provider]]")
    by_name: dict[str, dict[str, Any]] = {}
    for number, table in enumerate(tables):
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*", name):
            raise ConfigError(
                where, key=f"provider[{number}].name", found=name,
                expected="a name of lower-case letters and digits",
            )
        if name in by_name:
            raise ConfigError(
                where, key=f"provider[{number}].name", found=name, expected="each name once"
            )
        by_name[name] = table
    order = list(by_name)
    if "SEXPD_PROVIDERS" in env:
        order = [name.strip() for name in env["SEXPD_PROVIDERS"].split(",") if name.strip()]
    for name in order:
        if not re.fullmatch(r"[a-z][a-z0-9]*", name) or order.count(name) > 1:
            raise ConfigError(
                "the environment", key="SEXPD_PROVIDERS", found=env.get("SEXPD_PROVIDERS"),
                expected="names of lower-case letters and digits, each once, with commas between",
            )
    _refuse_unknown_provider_variables(order, env=env)
    return tuple(_provider(n, by_name.get(n, {}), where=where, env=env) for n in order)


def _refuse_unknown_provider_variables(order: list[str], *, env: Mapping[str, str]) -> None:
    known = {
        f"SEXPD_PROVIDER_{name}_{row.key}".upper() for name in order for row in _PROVIDER_ROWS
    }
    for variable in sorted(env):
        if variable.startswith("SEXPD_PROVIDER_") and variable not in known:
            raise ConfigError(
                "the environment", key=variable, found="a variable of no provider",
                expected="SEXPD_PROVIDER_<NAME>_<KEY> of a name in SEXPD_PROVIDERS",
            )


def _provider(
    name: str, table: Mapping[str, Any], *, where: object, env: Mapping[str, str]
) -> Provider:
    rows = {row.key: row for row in _PROVIDER_ROWS}
    for key in table.keys() - rows.keys() - {"name"}:
        raise ConfigError(
            where, key=f"provider.{name}.{key}", found=table[key], expected=_suggest(key, rows)
        )
    values: dict[str, Any] = {}
    for key, row in rows.items():
        values[key] = row.default
        if key in table:
            values[key] = _read(row, table[key], where=where, key=f"provider.{name}.{key}")
        variable = f"SEXPD_PROVIDER_{name}_{key}".upper()
        if variable in env:
            values[key] = _read(row, env[variable], where="the environment", key=variable)
    shape = values["shape"] or (name if name in SHAPES else "")
    if not shape:
        raise ConfigError(
            where, key=f"provider.{name}.shape", found="", expected="one of " + ", ".join(SHAPES)
        )
    upper = shape.upper()
    key_env = values.pop("key_env") or f"{upper}_API_KEY"
    base_url = values["base_url"] or env.get(f"{upper}_BASE_URL") or DEFAULT_URLS[shape]
    _check_url(base_url, name=name, where=where)
    return Provider(
        name=name,
        shape=shape,
        base_url=base_url.rstrip("/"),
        key=values["key"] or env.get(key_env, ""),
        model=values["model"] or DEFAULT_MODELS[shape],
        timeout_s=values["timeout_s"],
        max_tokens=values["max_tokens"],
        answer_bytes=values["answer_bytes"],
    )


def _check_url(url: str, *, name: str, where: object) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname)
        fine = fine and (parts.port is None or 0 < parts.port < 65536)
    except ValueError:
        fine = False
    if not fine:
        raise ConfigError(
            where, key=f"provider.{name}.base_url", found=url,
            expected="an address such as https://api.anthropic.com",
        )
