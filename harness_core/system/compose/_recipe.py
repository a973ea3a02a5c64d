"""``x-harness``: how the local driver runs a service of a compose file.

x-harness: { command: ["{bin}/shop", "--port", "{port}"], health: /health }
x-harness: { service: postgres }
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from harness_core.base.reading import Misfit, Table

__all__ = ["KINDS", "Answer", "Recipe"]

#: What the harness itself can provide, and the port it has inside a stack unless the file says so.
KINDS: Final[Mapping[str, int]] = {
    "gateway": 8000,
    "postgres": 5432,
    "recorder": 3000,
    "s3": 9000,
    "temporal": 7233,
}
_Kind = Annotated[
    Literal["gateway", "postgres", "recorder", "s3", "temporal", ""],
    Meta(description=f"one of {', '.join(KINDS)}"),
]

#: Keys that only one kind of service has.
_KEYS_OF: Final[Mapping[str, str]] = {"answers": "recorder", "bucket": "s3", "mode": "gateway"}
_FIELD: Final = re.compile(r"\{(\w+)\}")
_FIELDS: Final = ("bin", "data", "here", "host", "port")


class Answer(Table, frozen=True):
    """A rule of a recorder: which requests, and what they are answered."""

    path: str = "*"
    method: str = ""
    status: int = 200
    json: Any = field(default_factory=dict)


class Recipe(Table, frozen=True):
    """How one service is run.

    Attributes:
        command: its command line, with ``{bin}``, ``{data}``, ``{here}``, ``{host}`` and ``{port}`` in it.
        service: what the harness provides in its place; empty when there is a command.
        health: path that answers 200 when it serves; empty when listening says enough.
        once: it runs once and is to end with status 0.
        ready_s: seconds it may take to serve; 0 for the usual.
        bucket: of an S3 server: made when it starts, and the one that tests look into.
        mode: of a model gateway.
        answers: of a recorder: rules, first match wins.
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

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.service):
            raise Misfit(expected="either command or service, and not both")
        for key, owner in _KEYS_OF.items():
            if getattr(self, key) and self.service != owner:
                raise Misfit(key, expected=f"a service: {owner}")
        for name in self.fields:
            if name not in _FIELDS:
                known = ", ".join(f"{{{each}}}" for each in _FIELDS)
                raise Misfit("command", found=f"{{{name}}}", expected=f"one of {known}")
        if self.service and (self.health or self.once):
            raise Misfit(expected="health and once with a command alone")
        if self.health and not self.health.startswith("/"):
            raise Misfit("health", expected="a path, e.g. /health")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are named in its command line."""
        return tuple(name for word in self.command for name in _FIELD.findall(word))

    def argv(self, **fields: str | int) -> tuple[str, ...]:
        """The command line with its fields filled in."""
        return tuple(_FIELD.sub(lambda match: str(fields[match[1]]), word) for word in self.command)
