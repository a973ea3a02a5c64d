"""How the services of somebody's compose file may be run without containers, as far as the file shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["EXTRAS", "guess_recipes", "requirements_of"]

#: Image, without registry and tag → the server of the harness in its place.
_SERVERS: Final[Mapping[str, str]] = {
    "postgres": "postgres",
    "minio": "s3",
    "temporal": "temporal",
    "auto-setup": "temporal",
    "redis": "valkey",
    "valkey": "valkey",
    "nats": "nats",
}

#: Those of the servers that an extra of the same name brings; ``stack`` brings the others.
EXTRAS: Final = frozenset({"nats", "s3", "temporal", "valkey"})

_PORT: Final = re.compile(r"(?::|^)(\d+)(?:/tcp)?$")


def guess_recipes(services: Mapping[str, Any], *, folder: Path) -> dict[str, dict[str, Any] | None]:
    """A recipe for each service that has none.

    Args:
        services: as the compose file has them.
        folder: that the file lies in.

    Returns:
        Service → what stands in the file of recipes; ``None`` where nothing can be known.
    """
    return {
        name: _guess(body, folder=folder, names=services.keys() - {name})
        for name, body in services.items()
        if isinstance(body, Mapping) and "x-harness" not in body
    }


def requirements_of(services: Mapping[str, Any], *, folder: Path) -> list[str]:
    """What the ``requirements.txt`` of the services that are built ask for, in plain lines.

    Args:
        services: as the compose file has them.
        folder: that the file lies in.
    """
    found: dict[str, None] = {}
    for body in services.values():
        context = _context(body) if isinstance(body, Mapping) else None
        file = folder / (context or ".") / "requirements.txt"
        if context is None or not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            requirement = line.partition(" #")[0].strip()
            # Options, and files of other requirements, cannot stand in a dependency group.
            if requirement and requirement[0] not in "#-":
                found[requirement] = None
    return list(found)


def _guess(
    body: Mapping[str, Any], *, folder: Path, names: Collection[str]
) -> dict[str, Any] | None:
    image = str(body.get("image", "")).rpartition("/")[2].partition(":")[0]
    if "build" not in body and image in _SERVERS:
        return {"service": _SERVERS[image]}
    context = _context(body)
    words = _words(body.get("entrypoint")) + _words(body.get("command"))
    if not words and context is not None:
        words = _of_dockerfile(folder / context)
    if not words:
        return None
    port = _port(body)
    recipe: dict[str, Any] = {"command": [_without_container(word, port) for word in words]}
    if context is not None:
        recipe["cwd"] = context
    if variables := _variables(body, names):
        recipe["environment"] = variables
    return recipe


def _variables(body: Mapping[str, Any], names: Collection[str]) -> dict[str, str]:
    """Variables that name another service's host, and the ports that belong to them."""
    given = body.get("environment") or {}
    if isinstance(given, list):
        given = dict(str(row).partition("=")[::2] for row in given)
    found = {}
    for variable, value in given.items():
        if value in names and "HOST" in variable:
            found[variable] = f"{{{value}.host}}"
            found[variable.replace("HOST", "PORT")] = f"{{{value}.port}}"
    return found


def _context(body: Mapping[str, Any]) -> str | None:
    """The folder that its image is built from."""
    build = body.get("build")
    if isinstance(build, Mapping):
        build = build.get("context", ".")
    return str(build) if build is not None else None


def _words(command: Any) -> list[str]:
    if isinstance(command, str):
        return shlex.split(command)
    return [str(word) for word in command] if isinstance(command, list) else []


def _of_dockerfile(context: Path) -> list[str]:
    """The last ENTRYPOINT and CMD of a Dockerfile."""
    found: dict[str, list[str]] = {}
    file = context / "Dockerfile"
    if not file.is_file():
        return []
    for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        verb, _, rest = line.strip().partition(" ")
        if verb.upper() in {"CMD", "ENTRYPOINT"}:
            found[verb.upper()] = _words(_json(rest) or rest)
    return found.get("ENTRYPOINT", []) + found.get("CMD", [])


def _json(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _port(body: Mapping[str, Any]) -> str:
    """The first port inside its container, or none."""
    for row in [*(body.get("ports") or []), *(body.get("expose") or [])]:
        written = row.get("target") if isinstance(row, Mapping) else row
        if match := _PORT.search(str(written)):
            return match[1]
    return ""


def _without_container(word: str, port: str) -> str:
    word = re.sub(r"\b0\.0\.0\.0\b", "{host}", word)
    return re.sub(rf"(?<!\d){port}(?!\d)", "{port}", word) if port else word
