"""``x-harness``: how the local driver runs a service of a compose file.

x-harness: { command: ["{bin}/shop", "--port", "{port}"], health: /health }
x-harness: { service: postgres }
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import check_shape

__all__ = ["KINDS", "Recipe", "read_recipe"]

#: What the harness itself can provide, and the port it has inside a stack unless the file says so.
KINDS: Final[Mapping[str, int]] = {
    "gateway": 8000,
    "postgres": 5432,
    "recorder": 3000,
    "s3": 9000,
    "temporal": 7233,
}

_KEYS: Final = frozenset(
    {"answers", "bucket", "command", "health", "mode", "once", "ready_s", "service"}
)
#: Keys that only one kind of service has.
_KEYS_OF: Final[Mapping[str, str]] = {"answers": "recorder", "bucket": "s3", "mode": "gateway"}
#: One of ``answers``.
_ANSWER: Final = {"path": str, "method": str, "status": int, "json": object}
_FIELD: Final = re.compile(r"\{(\w+)\}")
_FIELDS: Final = ("bin", "data", "host", "port")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one service is run.

    Attributes:
        command: its command line, with ``{bin}``, ``{data}``, ``{host}`` and ``{port}`` in it.
        service: what the harness provides in its place; empty when there is a command.
        health: path that answers 200 when it serves; empty when listening says enough.
        once: it runs once and is to end with status 0.
        ready_s: seconds it may take to serve; 0 for the usual.
        bucket: of an S3 server: made when it starts, and the one that tests look into.
        mode: of a model gateway.
        answers: of a recorder: rules, first match wins.
    """

    command: tuple[str, ...] = ()
    service: str = ""
    health: str = ""
    once: bool = False
    ready_s: float = 0.0
    bucket: str = ""
    mode: str = ""
    answers: tuple[Mapping[str, Any], ...] = ()

    def argv(self, **fields: str | int) -> tuple[str, ...]:
        """The command line with its fields filled in."""
        return tuple(_FIELD.sub(lambda match: str(fields[match[1]]), word) for word in self.command)


def read_recipe(path: Path, where: str, value: object, *, has_port: bool) -> Recipe:
    """Read the ``x-harness`` block of one service.

    Args:
        path: the compose file.
        where: the service, as messages call it.
        value: the block.
        has_port: the service has a port, which ``{port}`` and ``health`` need.

    Raises:
        BadInput: there is none, or a key of it is wrong.
    """
    at = f"{where}.x-harness"
    if value is None:
        raise BadInput(
            path,
            key=at,
            found=None,
            expected="how to run it without a container: { command: [...] } or { service: KIND }",
        )
    if not isinstance(value, Mapping):
        raise BadInput(path, key=at, found=value, expected="a mapping")
    for key in value:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            raise BadInput(
                path,
                key=f"{at}.{key}",
                found=key,
                expected=f"one of {', '.join(sorted(_KEYS))}",
                next_step=f"Did you mean {near[0]}?" if near else "",
            )
    if ("command" in value) == ("service" in value):
        raise BadInput(
            path, key=at, found=sorted(value), expected="either command or service, and not both"
        )
    kind = value.get("service", "")
    if "service" in value and (not isinstance(kind, str) or kind not in KINDS):
        known = ", ".join(sorted(KINDS))
        raise BadInput(path, key=f"{at}.service", found=kind, expected=f"one of {known}")
    for key, owner in _KEYS_OF.items():
        if key in value and kind != owner:
            raise BadInput(path, key=f"{at}.{key}", found=key, expected=f"a service: {owner}")
    command = _command(path, f"{at}.command", value, has_port=has_port)
    if kind and ("health" in value or value.get("once")):
        raise BadInput(
            path, key=at, found=sorted(value), expected="health and once with a command alone"
        )
    return Recipe(
        command=command,
        service=kind,
        health=_health(path, f"{at}.health", value.get("health", ""), has_port=has_port),
        once=_flag(path, f"{at}.once", value.get("once", False)),
        ready_s=_seconds(path, f"{at}.ready_s", value.get("ready_s", 0)),
        bucket=_text(path, f"{at}.bucket", value.get("bucket", "")),
        mode=_text(path, f"{at}.mode", value.get("mode", "")),
        answers=_answers(path, f"{at}.answers", value.get("answers", [])),
    )


def _command(path: Path, at: str, value: Mapping[str, Any], *, has_port: bool) -> tuple[str, ...]:
    words = value.get("command", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(path, key=at, found=words, expected="a list of words")
    if "command" in value and not words:
        raise BadInput(path, key=at, found=words, expected="at least a program")
    for word in words:
        for field in _FIELD.findall(word):
            if field not in _FIELDS:
                known = ", ".join(f"{{{name}}}" for name in _FIELDS)
                raise BadInput(path, key=at, found=f"{{{field}}}", expected=f"one of {known}")
            if field == "port" and not has_port:
                expected = "ports or expose in the service, which says what {port} is inside"
                raise BadInput(path, key=at, found="{port}", expected=expected)
    return tuple(words)


def _health(path: Path, at: str, value: object, *, has_port: bool) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadInput(path, key=at, found=value, expected="a path, e.g. /health")
    if not has_port:
        raise BadInput(path, key=at, found=value, expected="ports or expose in the service")
    return value


def _flag(path: Path, at: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(path, key=at, found=value, expected="true or false")
    return value


def _seconds(path: Path, at: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise BadInput(path, key=at, found=value, expected="a number of seconds")
    return float(value)


def _text(path: Path, at: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(path, key=at, found=value, expected="a text")
    return value


def _answers(path: Path, at: str, value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise BadInput(path, key=at, found=value, expected="a list of { path, status, json }")
    check_shape({at: value}, {at: [_ANSWER]}, where=path)
    return tuple(value)
