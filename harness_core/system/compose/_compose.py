"""``compose.yaml`` as the drivers need it: services, what each waits for, how each is run.

Compose itself reads the file with the docker driver; what is read here is the part of it that both
drivers act on, and it is read strictly: a key nobody knows is a mistake, not a default.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.system.compose._recipe import Recipe, read_recipe
from harness_core.system.compose._variables import substituted
from harness_core.system.compose._yaml import read_yaml
from harness_core.system.parts import Condition, check_order

__all__ = ["Compose", "ComposeService", "read_compose"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_HIGHEST_PORT: Final = 65_535

_TOP_KEYS: Final = frozenset({"name", "networks", "secrets", "services", "version", "volumes"})
#: What compose knows of a service and a stack of this kind may say; the drivers read some of them.
_SERVICE_KEYS: Final = frozenset(
    {
        *(
            "build",
            "cap_add",
            "cap_drop",
            "command",
            "container_name",
            "depends_on",
            "dns",
            "dns_opt",
        ),
        "entrypoint",
        *("env_file", "environment", "expose", "extra_hosts", "healthcheck", "hostname", "image"),
        *("init", "labels", "mem_limit", "networks", "ports", "privileged", "read_only", "restart"),
        *("security_opt", "shm_size", "stop_grace_period", "stop_signal", "tmpfs", "ulimits"),
        *("user", "volumes", "working_dir", "x-harness"),
    }
)
#: Of these, what compose alone reads and takes in one form only: a slip shows with the local driver
#: too, which would pass over it.
_LISTS: Final = ("cap_add", "cap_drop", "security_opt", "volumes")
_MAPPINGS: Final = ("healthcheck", "ulimits")


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

    @property
    def port(self) -> int:
        """Its port; 0 for a service without any."""
        return self.ports[0] if self.ports else 0


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
    content = read_yaml(path)
    given = variables or {}
    for key in content:
        if key not in _TOP_KEYS and not key.startswith("x-"):
            raise _unknown(path, key, known=_TOP_KEYS, prefix="")
    services = content.get("services")
    if not isinstance(services, Mapping) or not services:
        raise BadInput(path, key="services", found=services, expected="a mapping of services")
    raw = {str(name): _mapping(path, f"services.{name}", body) for name, body in services.items()}
    waits = {
        name: _depends_on(path, name, body.get("depends_on", [])) for name, body in raw.items()
    }
    check_order(path, {name: tuple(others) for name, others in waits.items()})
    awaited = {
        other
        for others in waits.values()
        for other, condition in others.items()
        if condition is Condition.COMPLETED
    }
    read = {
        name: _service(
            path, name, body, waits=waits[name], one_shot=name in awaited, variables=given
        )
        for name, body in raw.items()
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


def _service(
    path: Path,
    name: str,
    body: Mapping[str, Any],
    *,
    waits: Mapping[str, Condition],
    one_shot: bool,
    variables: Mapping[str, str],
) -> ComposeService:
    where = f"services.{name}"
    if not _NAME.fullmatch(name):
        raise BadInput(path, key=where, found=name, expected=f"a name like {_NAME.pattern}")
    for key in body:
        if key not in _SERVICE_KEYS:
            raise _unknown(path, key, known=_SERVICE_KEYS, prefix=f"{where}.")
        if key in _LISTS and not isinstance(body[key], list):
            raise BadInput(path, key=f"{where}.{key}", found=body[key], expected="a list")
        if key in _MAPPINGS:
            _mapping(path, f"{where}.{key}", body[key])
    ports = _ports(path, where, body, variables)
    recipe = read_recipe(path, where, body.get("x-harness"), has_port=bool(ports))
    bucket = substituted(recipe.bucket, variables, path=path, key=f"{where}.x-harness.bucket")
    recipe = dataclasses.replace(recipe, bucket=bucket)
    image = body.get("image", "")
    if not isinstance(image, str):
        raise BadInput(path, key=f"{where}.image", found=image, expected="the name of an image")
    return ComposeService(
        name=name,
        ports=ports,
        environment=_environment(path, where, body.get("environment", {}), variables),
        depends_on=waits,
        recipe=recipe,
        one_shot=one_shot or recipe.once,
        image=substituted(image, variables, path=path, key=f"{where}.image"),
        built="build" in body,
        env_file=bool(body.get("env_file")),
    )


def _depends_on(path: Path, name: str, value: object) -> dict[str, Condition]:
    where = f"services.{name}.depends_on"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        if len(set(value)) != len(value):
            raise BadInput(path, key=where, found=value, expected="each service once")
        return dict.fromkeys(value, Condition.STARTED)
    if not isinstance(value, Mapping):
        raise BadInput(path, key=where, found=value, expected="a list or a mapping of services")
    found: dict[str, Condition] = {}
    for other, terms in value.items():
        condition = terms.get("condition") if isinstance(terms, Mapping) else terms
        try:
            found[str(other)] = Condition(str(condition))
        except ValueError as error:
            raise BadInput(
                path,
                key=f"{where}.{other}.condition",
                found=condition,
                expected=f"one of {', '.join(Condition)}",
            ) from error
    return found


def _ports(
    path: Path, where: str, body: Mapping[str, Any], variables: Mapping[str, str]
) -> tuple[int, ...]:
    """The container's side of ``ports`` and ``expose``."""
    found: list[int] = []
    for key in ("ports", "expose"):
        rows = body.get(key, [])
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise BadInput(path, key=f"{where}.{key}", found=rows, expected="a list of ports")
        for number, row in enumerate(rows):
            at = f"{where}.{key}[{number}]"
            port = _port(path, at, row, variables)
            if key == "ports" and port in found:
                raise BadInput(path, key=at, found=row, expected="each port once")
            if port not in found:
                found.append(port)
    return tuple(found)


def _port(path: Path, at: str, row: object, variables: Mapping[str, str]) -> int:
    target = row.get("target") if isinstance(row, Mapping) else row
    text = substituted(str(target), variables, path=path, key=at)
    number = text.rpartition(":")[2].removesuffix("/tcp")
    if isinstance(target, bool) or not (number.isascii() and number.isdigit()):
        expected = "[[ADDRESS:]HOSTPORT:]PORT, of TCP, or { target: PORT }"
        raise BadInput(path, key=at, found=row, expected=expected)
    if not 0 < int(number) <= _HIGHEST_PORT:
        raise BadInput(path, key=at, found=row, expected=f"a port from 1 to {_HIGHEST_PORT}")
    return int(number)


def _environment(
    path: Path, where: str, value: object, variables: Mapping[str, str]
) -> dict[str, str]:
    key = f"{where}.environment"
    pairs: list[tuple[str, object]] = []
    if isinstance(value, list):
        for row in value:
            name, equals, text = str(row).partition("=")
            pairs.append((name, text if equals else None))
    elif isinstance(value, Mapping):
        pairs = [(str(name), text) for name, text in value.items()]
    else:
        raise BadInput(path, key=key, found=value, expected="a mapping or a list of NAME=VALUE")
    found: dict[str, str] = {}
    for name, given in pairs:
        at = f"{key}.{name}"
        if not name or name in found:
            raise BadInput(path, key=at, found=name, expected="a name, once")
        if given is None:  # passed on from whoever starts the stack, where it is set at all
            if name in variables:
                found[name] = variables[name]
        elif isinstance(given, bool) or not isinstance(given, str | int | float):
            raise BadInput(path, key=at, found=given, expected="a text or a number, in quotes")
        else:
            found[name] = substituted(str(given), variables, path=path, key=at)
    return found


def _mapping(path: Path, key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(path, key=key, found=value, expected="a mapping")
    return value


def _unknown(path: Path, key: str, *, known: frozenset[str], prefix: str) -> BadInput:
    near = difflib.get_close_matches(key, known, n=1)
    return BadInput(
        path,
        key=f"{prefix}{key}",
        found=key,
        expected=f"one of {', '.join(sorted(known))}",
        next_step=f"Did you mean {near[0]}?" if near else "",
    )
