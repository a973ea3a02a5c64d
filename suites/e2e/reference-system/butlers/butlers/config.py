"""What does `butler.toml` say, with the environment applied, and is it well formed?

The result is typed and complete: nothing later reads TOML or looks up a default. Every problem is
one :class:`~butlers.errors.ConfigError` naming file, key, what was found and what was expected.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from butlers import faults
from butlers.errors import ConfigError, Missing

DEFAULT_MODEL = "claude-haiku-4-5-20251001"
DEFAULT_SWITCHBOARD_URL = "http://127.0.0.1:8100/sse"

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One `[[butler.schedule]]` table."""

    name: str
    cron: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """`[butler.runtime]`: how sessions of this butler run.

    Attributes:
        session_timeout_s: deadline of one session.
        queue_depth: triggers that may wait behind the running one.
        max_turns: model turns in one session.
        core_tools: core tools a session may call besides the butler's domain tools.
    """

    type: str = "claude-code"
    model: str = DEFAULT_MODEL
    session_timeout_s: float = 120.0
    queue_depth: int = 16
    max_turns: int = 12
    core_tools: tuple[str, ...] = ("notify",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switchboard:
    """`[butler.switchboard]`: where the switchboard is, and what it grants.

    Attributes:
        url: its SSE address.
        heartbeat_s: seconds between two registrations.
        lease_s: seconds after which a silent butler counts as stale (read by the switchboard).
        hop_timeout_s: deadline of one `route.execute`, with its wait for a place among the
            dispatches to its target (read by the switchboard).
        connect_timeout_s: deadline until a target speaks MCP.
        max_in_flight: dispatches to one target at a time.
        concurrency: messages classified at a time (read by the switchboard). Each is a Claude
            Code process of some 200 MB that mostly waits for the model.
    """

    url: str = DEFAULT_SWITCHBOARD_URL
    heartbeat_s: float = 5.0
    lease_s: float = 15.0
    hop_timeout_s: float = 150.0
    connect_timeout_s: float = 5.0
    max_in_flight: int = 8
    concurrency: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """`[butler.scheduler]`: when the daemon itself sets its butler to work.

    Attributes:
        interval_s: seconds from one beat to the next; 0 leaves the beats to `cron`.
        cron: five cron fields, UTC; empty for none. Without both nothing beats.
        tick_timeout_s: deadline of one butler's `tick`.
    """

    interval_s: float = 0.0
    cron: str = ""
    tick_timeout_s: float = 150.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ButlerConfig:
    """A butler as configured, environment applied."""

    directory: Path
    name: str
    port: int
    description: str = ""
    capabilities: tuple[str, ...] = ()
    database_name: str = ""
    database_url: str = ""
    connect_timeout_s: float = 10.0
    pool_connections: int = 5
    env_required: tuple[str, ...] = ()
    env_optional: tuple[str, ...] = ()
    shutdown_timeout_s: float = 30.0
    allowed_sources: tuple[str, ...] = ("switchboard",)
    runtime: Runtime = field(default_factory=Runtime)
    switchboard: Switchboard = field(default_factory=Switchboard)
    scheduler: Scheduler = field(default_factory=Scheduler)
    schedules: tuple[Schedule, ...] = ()
    modules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.directory / "butler.toml"

    @property
    def url(self) -> str:
        """Where this butler itself speaks MCP."""
        return f"http://127.0.0.1:{self.port}/sse"

    def text(self, filename: str) -> str:
        """The contents of a file beside `butler.toml`; empty when there is none."""
        path = self.directory / filename
        return path.read_text(encoding="utf-8") if path.is_file() else ""


def discover(roster: Path) -> list[Path]:
    """Every directory of the roster that holds a `butler.toml`, by name.

    Raises:
        ConfigError: the roster is no directory or holds no butler.
    """
    if not roster.is_dir():
        raise ConfigError(roster, found=Missing("no directory"), expected="a roster directory")
    found = sorted(
        path.parent for path in roster.glob("*/butler.toml")
        if not (path.parent.name.startswith((".", "_")) and faults.on("folders-passed-over"))
    )
    if not found:
        raise ConfigError(
            roster, found=Missing("no butler"), expected="directories that hold a butler.toml"
        )
    return found


def load(directory: Path, *, env: Mapping[str, str] | None = None) -> ButlerConfig:
    """Read and check one butler.

    Args:
        directory: the folder that holds `butler.toml`.
        env: the environment; the process's own when not given.

    Raises:
        ConfigError: anything unreadable, missing, mistyped or unknown.
    """
    env = os.environ if env is None else env
    file = directory / "butler.toml"
    raw = _parse(file)
    modules = raw.get("modules")
    raw = _interpolate(
        {**raw, "modules": {}} if faults.on("variables-of-butler-alone") else raw,
        file=file, key="", env=env,
    )
    if modules is not None and faults.on("variables-of-butler-alone"):
        raw["modules"] = modules
    top = _Table(raw, file=file, key="")
    butler = top.table("butler", required=True)
    name = butler.text("name", required=True)
    if not _NAME.fullmatch(name):
        raise ConfigError(
            file, key="butler.name", found=name, expected="a lower-case name such as health"
        )
    _override(raw, name=name, env=env)
    config = _build(top, butler, name=name, env=env, directory=directory)
    top.refuse_unknown()
    return config


def _build(
    top: _Table, butler: _Table, *, name: str, env: Mapping[str, str], directory: Path
) -> ButlerConfig:
    db = butler.table("db")
    runtime = butler.table("runtime")
    environment = butler.table("env")
    shutdown = butler.table("shutdown")
    switchboard = butler.table("switchboard")
    route = butler.table("route")
    scheduler = butler.table("scheduler")
    modules = top.table("modules")
    database_name = db.text("name", default=f"butler_{name}")
    config = ButlerConfig(
        directory=directory,
        name=name,
        port=_port(butler, name=name, env=env),
        description=butler.text("description"),
        capabilities=butler.texts("capabilities"),
        database_name=database_name,
        database_url=database_url(name, database_name, env=env),
        connect_timeout_s=db.seconds("connect_timeout_s", default=10.0),
        pool_connections=db.integer("pool_connections", default=5, low=1, high=100),
        env_required=environment.texts("required"),
        env_optional=environment.texts("optional"),
        shutdown_timeout_s=shutdown.seconds("timeout_s", default=30.0, low=0.0),
        allowed_sources=route.texts("allowed_sources", default=("switchboard",)),
        runtime=_runtime(runtime),
        switchboard=_switchboard(switchboard, env=env),
        scheduler=_scheduler(scheduler),
        schedules=tuple(_schedule(table) for table in butler.tables("schedule")),
        modules={key: modules.table(key).raw for key in modules.raw},
    )
    for table in (db, runtime, environment, shutdown, switchboard, route, scheduler, butler):
        table.refuse_unknown()
    _refuse_twice(config)
    for variable in config.env_required:
        if not env.get(variable):
            raise ConfigError(
                config.file,
                key="butler.env.required",
                found=Missing(f"no variable {variable}"),
                expected=f"{variable} set in the environment",
            )
    return config


def database_url(name: str, database_name: str, *, env: Mapping[str, str]) -> str:
    """The URL of a butler's database; empty when the environment names none."""
    if own := env.get(f"BUTLERS_{_upper(name)}_DATABASE_URL"):
        return own
    if server := env.get("BUTLERS_DATABASE_URL"):
        parts = urlsplit(server)
        return urlunsplit(parts._replace(path="/" + quote(database_name)))
    return ""


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _port(butler: _Table, *, name: str, env: Mapping[str, str]) -> int:
    port = butler.integer("port", required=True, low=1, high=65535)
    variable = f"BUTLERS_{_upper(name)}_PORT"
    if (given := env.get(variable)) is None:
        return port
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise ConfigError(
            "the environment", key=variable, found=given, expected="a port, 1 to 65535"
        )
    return int(given)


def _runtime(table: _Table) -> Runtime:
    kind = table.text("type", default="claude-code")
    if kind != "claude-code":
        raise ConfigError(
            table.file, key="butler.runtime.type", found=kind, expected='"claude-code"'
        )
    return Runtime(
        type=kind,
        model=table.text("model", default=DEFAULT_MODEL),
        session_timeout_s=table.seconds("session_timeout_s", default=120.0),
        queue_depth=table.integer("queue_depth", default=16, low=0, high=10_000),
        max_turns=table.integer("max_turns", default=12, low=1, high=1000),
        core_tools=table.texts("core_tools", default=("notify",)),
    )


def _switchboard(table: _Table, *, env: Mapping[str, str]) -> Switchboard:
    url = env.get("BUTLERS_SWITCHBOARD_URL") or table.text("url", default=DEFAULT_SWITCHBOARD_URL)
    table.text("url")  # known, also when the environment wins
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ConfigError(
            table.file,
            key="butler.switchboard.url",
            found=url,
            expected="an address such as http://127.0.0.1:8100/sse",
        )
    return Switchboard(
        url=url,
        heartbeat_s=table.seconds("heartbeat_s", default=5.0),
        lease_s=table.seconds("lease_s", default=15.0),
        hop_timeout_s=table.seconds("hop_timeout_s", default=150.0),
        connect_timeout_s=table.seconds("connect_timeout_s", default=5.0),
        max_in_flight=table.integer("max_in_flight", default=8, low=1, high=1000),
        concurrency=table.integer("concurrency", default=4, low=1, high=1000),
    )


def _scheduler(table: _Table) -> Scheduler:
    scheduler = Scheduler(
        interval_s=table.seconds("interval_s", default=0.0, low=0.0),
        cron=table.text("cron"),
        tick_timeout_s=table.seconds("tick_timeout_s", default=150.0),
    )
    if scheduler.cron:
        _check_cron(table, scheduler.cron)
        if scheduler.interval_s:
            raise ConfigError(
                table.file, key=f"{table.key}.cron", found=scheduler.cron,
                expected="either interval_s or cron, not both",
            )
    return scheduler


def _schedule(table: _Table) -> Schedule:
    schedule = Schedule(
        name=table.text("name", required=True),
        cron=table.text("cron", required=True),
        prompt=table.text("prompt", required=True),
    )
    _check_cron(table, schedule.cron)
    table.refuse_unknown()
    return schedule


def _check_cron(table: _Table, line: str) -> None:
    from butlers.cron import CronProblem, check

    try:
        check(line)
    except CronProblem as problem:
        raise ConfigError(
            table.file,
            key=f"{table.key}.cron",
            found=line,
            expected=f"five cron fields such as 0 9 * * 1 ({problem})",
        ) from problem


def _refuse_twice(config: ButlerConfig) -> None:
    seen: set[str] = set()
    for schedule in config.schedules:
        if schedule.name in seen:
            raise ConfigError(
                config.file,
                key="butler.schedule.name",
                found=schedule.name,
                expected="a name no other schedule has",
            )
        seen.add(schedule.name)


def _parse(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(file, found=Missing("no file"), expected="a butler.toml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, found=str(error), expected="a readable UTF-8 file") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column \d+\)", str(error))
        where = f"{file}:{at[1]}" if at else str(file)
        raise ConfigError(where, found=Missing(str(error)), expected="well-formed TOML") from error


def _interpolate(value: Any, *, file: Path, key: str, env: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            k: _interpolate(v, file=file, key=f"{key}.{k}" if key else k, env=env)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [
            _interpolate(v, file=file, key=f"{key}[{i}]", env=env) for i, v in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        variable = match[1]
        if variable not in env:
            raise ConfigError(
                file,
                key=key,
                found=match[0],
                expected=f"the variable {variable} to be set in the environment",
            )
        return env[variable]

    return _VARIABLE.sub(replaced, value)


def _override(raw: dict[str, Any], *, name: str, env: Mapping[str, str]) -> None:
    """Apply ``BUTLERS_<NAME>__<SECTION>__<KEY>=value`` (a TOML value, else text) to `[butler]`.

    The section ``MODULES`` means `[modules]`: ``BUTLERS_HEALTH__MODULES__TELEGRAM__BASE_URL``.
    """
    prefix = f"BUTLERS_{_upper(name)}__"
    for variable, text in env.items():
        if not variable.startswith(prefix):
            continue
        *sections, key = variable[len(prefix) :].lower().split("__")
        table = raw if sections[:1] == ["modules"] else raw["butler"]
        for section in sections:
            table = table.setdefault(section, {})
        try:
            table[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            table[key] = text


class _Table:
    """One TOML table that is read key by key and then refuses keys that were not read."""

    def __init__(self, raw: dict[str, Any], *, file: Path, key: str) -> None:
        self.raw = raw
        self.file = file
        self.key = key
        self._known: set[str] = set()

    def table(self, key: str, *, required: bool = False) -> _Table:
        value = self._take(key, dict, "a table", required=required, default={})
        return _Table(value, file=self.file, key=self._at(key))

    def tables(self, key: str) -> list[_Table]:
        value = self._take(key, list, "an array of tables", default=[])
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                self._refuse(f"{key}[{index}]", item, "a table")
        return [
            _Table(item, file=self.file, key=f"{self._at(key)}[{index}]")
            for index, item in enumerate(value)
        ]

    def text(self, key: str, *, required: bool = False, default: str = "") -> str:
        value: str = self._take(key, str, "a string", required=required, default=default)
        if required and not value.strip():
            self._refuse(key, value, "a non-empty string")
        return value

    def texts(self, key: str, *, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._take(key, list, "an array of strings", default=list(default))
        if not all(isinstance(item, str) for item in value):
            self._refuse(key, value, "an array of strings")
        return tuple(value)

    def integer(
        self, key: str, *, low: int, high: int, required: bool = False, default: int = 0
    ) -> int:
        value = self._take(key, int, f"an integer from {low} to {high}", required=required,
                           default=default)
        if isinstance(value, bool) or not low <= value <= high:
            self._refuse(key, value, f"an integer from {low} to {high}")
        return int(value)

    def seconds(self, key: str, *, default: float, low: float = 0.001) -> float:
        value = self._take(key, (int, float), "a number of seconds", default=default)
        if isinstance(value, bool) or not low <= value <= 86_400:
            self._refuse(key, value, f"a number of seconds, {low:g} to 86400")
        return float(value)

    def refuse_unknown(self) -> None:
        for key in self.raw:
            if key not in self._known:
                expected = "one of " + ", ".join(sorted(self._known))
                raise ConfigError(
                    self.file, key=self._at(key), found=Missing("an unknown key"), expected=expected
                )

    def _take(
        self, key: str, kind: type | tuple[type, ...], expected: str, *,
        required: bool = False, default: Any = None,
    ) -> Any:
        self._known.add(key)
        if key not in self.raw:
            if required:
                raise ConfigError(self.file, key=self._at(key), found=Missing(), expected=expected)
            return default
        if not isinstance(self.raw[key], kind):
            self._refuse(key, self.raw[key], expected)
        return self.raw[key]

    def _refuse(self, key: str, found: object, expected: str) -> None:
        raise ConfigError(self.file, key=self._at(key), found=found, expected=expected)

    def _at(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key
