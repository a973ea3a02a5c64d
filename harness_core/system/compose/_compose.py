"""``compose.yaml`` as the drivers need it: services, what each waits for, how each is run.

Compose itself reads the file with the docker driver; what is read here is the part of it that both
drivers act on, and it is read strictly: an unknown key is a mistake, not a default.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from harness_core.base.errors import BadInput
from harness_core.base.reading import YAML_WORDS, Misfit, Table, convert
from harness_core.system.compose._recipe import Recipe, recipes_beside
from harness_core.system.compose._variables import substituted
from harness_core.system.compose._yaml import read_yaml
from harness_core.system.parts import Condition, check_order

__all__ = ["Compose", "ComposeService", "read_compose", "read_services"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_HIGHEST_PORT: Final = 65_535

#: Where variables are filled in here; the rest is compose's.
_FILLED_IN: Final = re.compile(
    r"\.services\.[^.]+\.(environment\b.*|expose\b.*|image|ports\b.*|x-harness\.bucket)"
)

# --- the file as it is written --------------------------------------------------------------------

_PORT: Final = "[[ADDRESS:]HOSTPORT:]PORT, of TCP, or { target: PORT }"
_A_PORT: Final = Meta(description=_PORT)


class _LongPort(Struct, frozen=True):
    """A port as compose writes it at length; the other keys are for compose."""

    target: Annotated[int | str, _A_PORT]


_Ports = Annotated[
    tuple[Annotated[int | str | _LongPort, _A_PORT], ...], Meta(description="a list of ports")
]


class _Wait(Struct, frozen=True):
    """What is waited for in another service; the other keys are for compose."""

    condition: Annotated[Condition, Meta(description=f"one of {', '.join(Condition)}")]


_Value = Annotated[str | int | float | None, Meta(description="a text or a number, in quotes")]
_Image = Annotated[str, Meta(description="the name of an image")]
_How: Final = "how to run it without a container: { command: [...] } or { service: KIND }"


class _Service(Table, frozen=True, kw_only=True):
    """One service: what the drivers read, and what compose knows and a stack of this kind may say.

    Of the latter, what compose takes in one form only is held to it: a slip shows with the local
    driver too, which would pass over it.
    """

    recipe: Annotated[Recipe, Meta(description=_How)] = field(name="x-harness")
    depends_on: Annotated[
        tuple[str, ...] | dict[str, _Wait], Meta(description="a list or a mapping of services")
    ] = ()
    environment: Annotated[
        tuple[str, ...] | dict[str, _Value], Meta(description="a mapping or a list of NAME=VALUE")
    ] = ()
    expose: _Ports = ()
    image: _Image = ""
    ports: _Ports = ()
    annotations: Any = None
    build: Any = None
    cap_add: list[Any] = field(default_factory=list)
    cap_drop: list[Any] = field(default_factory=list)
    command: Any = None
    configs: Any = None
    container_name: Any = None
    cpus: Any = None
    deploy: Any = None
    develop: Any = None
    dns: Any = None
    dns_opt: Any = None
    dns_search: Any = None
    entrypoint: Any = None
    env_file: Any = None
    extra_hosts: Any = None
    healthcheck: dict[str, Any] = field(default_factory=dict)
    hostname: Any = None
    init: Any = None
    labels: Any = None
    links: Any = None
    logging: Any = None
    mem_limit: Any = None
    mem_reservation: Any = None
    networks: Any = None
    pids_limit: Any = None
    platform: Any = None
    privileged: Any = None
    pull_policy: Any = None
    read_only: Any = None
    restart: Any = None
    secrets: Any = None
    security_opt: list[Any] = field(default_factory=list)
    shm_size: Any = None
    stdin_open: Any = None
    stop_grace_period: Any = None
    stop_signal: Any = None
    sysctls: Any = None
    tmpfs: Any = None
    tty: Any = None
    ulimits: dict[str, Any] = field(default_factory=dict)
    user: Any = None
    volumes: list[Any] = field(default_factory=list)
    working_dir: Any = None

    def __post_init__(self) -> None:
        if len(self.waits) < len(self.depends_on):
            raise Misfit("depends_on", expected="each service once")
        names = [name for name, _ in self._variables()]
        for name in names:
            if not name or names.count(name) > 1:
                raise Misfit("environment", name, found=name, expected="a name, once")
        if not self.inner_ports():
            expected = "ports or expose in the service"
            if self.recipe.health:
                raise Misfit("x-harness", "health", expected=expected)
            if "port" in self.recipe.fields:
                expected += ", which says what {port} is inside"
                raise Misfit("x-harness", "command", found="{port}", expected=expected)

    @property
    def waits(self) -> dict[str, Condition]:
        """Which services it waits for, and for what in each."""
        if isinstance(self.depends_on, tuple):
            return dict.fromkeys(self.depends_on, Condition.STARTED)
        return {name: wait.condition for name, wait in self.depends_on.items()}

    def inner_ports(self) -> tuple[int, ...]:
        """The container's side of ``ports`` and ``expose``.

        Raises:
            Misfit: what is no port, or twice in ``ports``.
        """
        found: list[int] = []
        for key, rows in (("ports", self.ports), ("expose", self.expose)):
            for number, row in enumerate(rows):
                port = _port(row, key, number)
                if key == "ports" and port in found:
                    raise Misfit(key, number, found=row, expected="each port once")
                if port not in found:
                    found.append(port)
        return tuple(found)

    def variables(self, passed_on: Mapping[str, str]) -> dict[str, str]:
        """Its variables; one without a value is passed on, where it is set at all."""
        rows = {name: passed_on.get(name) if v is None else str(v) for name, v in self._variables()}
        return {name: value for name, value in rows.items() if value is not None}

    def _variables(self) -> Iterator[tuple[str, str | int | float | None]]:
        if not isinstance(self.environment, tuple):
            yield from self.environment.items()
            return
        for row in self.environment:
            name, equals, text = row.partition("=")
            yield name, text if equals else None


def _port(row: int | str | _LongPort, *at: str | int) -> int:
    written = row.target if isinstance(row, _LongPort) else row
    number = str(written).rpartition(":")[2].removesuffix("/tcp")
    if not (number.isascii() and number.isdigit()):
        raise Misfit(*at, found=written, expected=_PORT)
    if not 0 < int(number) <= _HIGHEST_PORT:
        raise Misfit(*at, found=written, expected=f"a port from 1 to {_HIGHEST_PORT}")
    return int(number)


class _File(Table, frozen=True, kw_only=True):
    """The whole file, without extension fields: these are there for their anchors."""

    services: Annotated[
        dict[str, _Service], Meta(min_length=1, description="a mapping of services")
    ]
    configs: Any = None
    name: Any = None
    networks: Any = None
    secrets: Any = None
    version: Any = None
    volumes: Any = None

    def __post_init__(self) -> None:
        for name in self.services:
            if not _NAME.fullmatch(name):
                raise Misfit("services", name, found=name, expected=f"a name like {_NAME.pattern}")


# --- what it says -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComposeService:
    """One service.

    Attributes:
        name: its name, which is its host name too.
        ports: the ports it listens on inside, the first one first.
        environment: its variables, with ``${…}`` filled in.
        depends_on: which services it waits for, and for what in each.
        recipe: its ``x-harness`` block.
        one_shot: it is to end, with status 0, before others go on.
        image: what its container runs; empty when it is built.
        built: its image is built from this tree.
        env_file: further variables of it stand in files that are not read here.
        body: the service as it is written, for compose.
    """

    name: str
    ports: tuple[int, ...]
    environment: Mapping[str, str] = dataclasses.field(repr=False)
    depends_on: Mapping[str, Condition]
    recipe: Recipe
    one_shot: bool
    image: str = ""
    built: bool = False
    env_file: bool = False
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def port(self) -> int:
        """Its port; 0 for a service without any."""
        return self.ports[0] if self.ports else 0

    def names(self, other: str) -> bool:
        """Whether ``OTHER:PORT`` or ``{OTHER.port}`` stands in its variables or its command line."""
        named = re.compile(rf"(?<![\w.-]){re.escape(other)}:\d")
        own = self.recipe.environment
        texts = [*{**self.environment, **own}.values(), *self.recipe.command]
        return other in self.recipe.others or any(map(named.search, texts))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compose:
    """A compose file.

    Attributes:
        path: the file.
        services: by name, in the order of the file.
    """

    path: Path
    services: Mapping[str, ComposeService]

    def of_kind(self, kind: str) -> tuple[ComposeService, ...]:
        """The services that the harness provides as ``kind`` (``postgres``, ``s3``, …)."""
        return tuple(each for each in self.services.values() if each.recipe.service == kind)


def read_compose(path: Path, *, variables: Mapping[str, str] | None = None) -> Compose:
    """Read and check a compose file.

    Args:
        path: the file.
        variables: what ``${NAME}`` in it stands for.

    Raises:
        BadInput: the first mistake, with file, service and key.
    """
    content = {key: value for key, value in read_yaml(path).items() if not key.startswith("x-")}
    if isinstance(content.get("services"), Mapping):
        content["services"] = recipes_beside(path, content["services"])
    variables = variables or {}
    filled = _filled_in(content, variables, path=path)
    services = convert(filled, _File, where=path, words=YAML_WORDS).services
    waits = {name: service.waits for name, service in services.items()}
    check_order(path, {name: tuple(others) for name, others in waits.items()})
    awaited = {
        other
        for others in waits.values()
        for other, condition in others.items()
        if condition is Condition.COMPLETED
    }
    read = {
        name: ComposeService(
            name=name,
            ports=service.inner_ports(),
            environment=service.variables(variables),
            depends_on=service.waits,
            recipe=service.recipe,
            one_shot=name in awaited or service.recipe.once,
            image=service.image,
            built="build" in content["services"][name],
            env_file=bool(service.env_file),
            body=content["services"][name],
        )
        for name, service in services.items()
    }
    for name, others in waits.items():
        for other, condition in others.items():
            if condition is not Condition.COMPLETED and read[other].one_shot:
                raise BadInput(
                    path,
                    key=f"services.{name}.depends_on.{other}.condition",
                    found=str(condition),
                    expected=f"{Condition.COMPLETED}: {other} runs once and ends",
                )
    return Compose(path=path, services=read)


def read_services(path: Path) -> Mapping[str, Any]:
    """The services of a compose file as they are written, checked for nothing else.

    Raises:
        BadInput: there is no such file, or it has no services.
    """
    services = read_yaml(path).get("services")
    if not isinstance(services, Mapping) or not services:
        expected = "a mapping of services"
        raise BadInput(path, key="services", found=services, expected=expected)
    return services


def _filled_in(content: Any, variables: Mapping[str, str], *, path: Path, key: str = "") -> Any:
    """The same with its variables, in what is read here; command lines are left as they are."""
    fill = partial(_filled_in, variables=variables, path=path)
    if isinstance(content, Mapping):
        return {each: fill(value, key=f"{key}.{each}") for each, value in content.items()}
    if isinstance(content, list):
        return [fill(value, key=f"{key}[{number}]") for number, value in enumerate(content)]
    if isinstance(content, str) and _FILLED_IN.fullmatch(key):
        return substituted(content, variables, path=path, key=key.removeprefix("."))
    return content
