"""``x-harness``: how the local driver runs a service of a compose file.

x-harness: { command: ["{bin}/shop", "--port", "{port}"], health: /health }
x-harness: { service: postgres }

A file beside the compose file may say it instead, so that one stays as it is: ``compose.harness.yaml``
beside ``compose.yaml`` has ``service: recipe`` for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from harness_core.base.errors import BadInput
from harness_core.base.reading import YAML_WORDS, Misfit, Table, convert
from harness_core.system.compose._yaml import read_yaml

__all__ = ["KINDS", "RECIPES", "Answer", "Recipe", "recipes_beside"]

#: What the harness itself can provide, and the port it has inside a stack unless the file says so.
KINDS: Final[Mapping[str, int]] = {
    "gateway": 8000,
    "postgres": 5432,
    "recorder": 3000,
    "s3": 9000,
    "temporal": 7233,
    "valkey": 6379,
    "nats": 4222,
}
_Kind = Annotated[
    Literal["gateway", "postgres", "recorder", "s3", "temporal", "valkey", "nats", ""],
    Meta(description=f"one of {', '.join(KINDS)}"),
]

#: Keys that only one kind of service has.
_KEYS_OF: Final[Mapping[str, str]] = {"answers": "recorder", "bucket": "s3", "mode": "gateway"}
_FIELD: Final = re.compile(r"\{(\w+)\}")
_FIELDS: Final = ("bin", "data", "here", "host", "port")
#: Where another service is, for programs that take host and port apart: ``{db.host}``.
_OTHER: Final = re.compile(r"\{([a-z0-9][a-z0-9_-]*)\.(host|port)\}")

#: The keys of a service under which a recipe may stand.
RECIPES: Final = "x-harness"


class Answer(Table, frozen=True):
    """A rule of a recorder: which requests, and what they are answered.

    Attributes:
        path: of the requests, with ``*`` for any text.
        method: of the requests; empty for any.
        status: of the answer.
        json: the body of the answer.
    """

    path: str = "*"
    method: str = ""
    status: int = 200
    json: Any = field(default_factory=dict)


class Recipe(Table, frozen=True):
    """How one service is run.

    Attributes:
        command: its command line. ``{bin}``: the folder of the system's commands; ``{host}``, ``{port}``:
            where it listens; ``{data}``: a directory of the service in this run, kept over its
            restarts; ``{here}``: the folder of the compose file.
        service: what the harness provides in its place: ``postgres``, ``s3``, ``temporal``,
            ``valkey``, ``nats`` (as ``--services`` says), ``gateway`` (the model gateway), ``recorder`` (a third party's HTTP
            API); left out when there is a command.
        health: a path that answers 200 when it serves; left out, listening is enough.
        once: it runs once and is to end with status 0; so is everything that is awaited as
            ``service_completed_successfully``.
        ready_s: seconds for each stage of its start; 60 when left out.
        bucket: of ``s3``: made when it starts, and the one that tests look into.
        mode: of ``gateway``: ``rehearsed``, ``live``, ``record``, ``replay``.
        answers: of ``recorder``: rules, the first match answers; else ``{}``.
        environment: variables that are other ones without containers; the fields of ``command`` may
            stand in them, and ``{db.host}`` and ``{db.port}`` for another service.
        cwd: the folder that it runs in, relative to the compose file; a directory of the service in
            this run when empty.
    """

    command: Annotated[tuple[str, ...], Meta(description="a list of words")] = ()
    service: _Kind = ""
    health: str = ""
    once: bool = False
    ready_s: Annotated[float, Meta(ge=0, description="a number of seconds")] = 0.0
    bucket: str = ""
    mode: str = ""
    answers: Annotated[
        tuple[Answer, ...], Meta(description="a list of { path, method, status, json }")
    ] = ()
    environment: dict[str, str] = field(default_factory=dict)
    cwd: str = ""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.service):
            raise Misfit(expected="either command or service, and not both")
        for key, owner in _KEYS_OF.items():
            if getattr(self, key) and self.service != owner:
                raise Misfit(key, expected=f"a service: {owner}")
        self._check_fields()
        if self.service and (self.health or self.once or self.environment or self.cwd):
            raise Misfit(expected="health, once, environment and cwd with a command alone")
        if self.health and not self.health.startswith("/"):
            raise Misfit("health", expected="a path, e.g. /health")

    def _check_fields(self) -> None:
        known = ", ".join(f"{{{each}}}" for each in _FIELDS)
        places: list[tuple[tuple[str, ...], str]] = [(("command",), word) for word in self.command]
        places += [(("environment", name), value) for name, value in self.environment.items()]
        for place, text in places:
            for name in _FIELD.findall(text):
                if name not in _FIELDS:
                    raise Misfit(*place, found=f"{{{name}}}", expected=f"one of {known}")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are named in its command line."""
        return tuple(name for word in self.command for name in _FIELD.findall(word))

    def argv(self, **fields: str | int) -> tuple[str, ...]:
        """The command line with its fields filled in."""
        return tuple(_filled(word, fields) for word in self.command)

    def variables(self, address: Callable[[str], str], **fields: str | int) -> dict[str, str]:
        """Its own variables with their fields filled in.

        Args:
            address: ``host:port`` of a service.
            fields: as for :meth:`argv`.
        """

        def other(match: re.Match[str]) -> str:
            host, _, port = address(match[1]).rpartition(":")
            return host if match[2] == "host" else port

        return {
            name: _filled(_OTHER.sub(other, value), fields)
            for name, value in self.environment.items()
        }

    @property
    def others(self) -> frozenset[str]:
        """The services whose place its variables name by themselves."""
        return frozenset(
            name for value in self.environment.values() for name, _ in _OTHER.findall(value)
        )


def recipes_beside(path: Path, services: Mapping[str, Any]) -> Mapping[str, Any]:
    """The services of a compose file, each with the recipe that the file beside it has for it.

    Args:
        path: the compose file.
        services: its services as they are written.

    Raises:
        BadInput: a mistake in the file beside it: a service that is not there, or that has a recipe
            already, or a recipe that is none.
    """
    beside = path.with_name(f"{path.stem}.harness{path.suffix}")
    if not beside.is_file():
        return services
    written = read_yaml(beside)
    convert(written, dict[str, Recipe], where=beside, words=YAML_WORDS)
    for name in written:
        if not isinstance(services.get(name), Mapping):
            known = f"a service of {path.name}: {', '.join(services)}"
            raise BadInput(beside, key=name, found=name, expected=known)
        if RECIPES in services[name]:
            expected = f"no recipe of a service that has one in {path.name}"
            raise BadInput(beside, key=name, found=name, expected=expected)
    return {
        name: {**body, RECIPES: written[name]} if name in written else body
        for name, body in services.items()
    }


def _filled(text: str, fields: Mapping[str, str | int]) -> str:
    return _FIELD.sub(lambda match: str(fields[match[1]]), text)
