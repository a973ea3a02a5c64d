"""A bottle's manifest: Markdown with YAML front matter, merged with what it extends."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bot_bottle import faults
from bot_bottle.errors import ManifestError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Key → type. `egress.routes` and `git` are checked and handed on; no backend here acts on them.
_KEYS: Mapping[str, type] = {
    "env": dict,
    "image": str,
    "agent_provider": str,
    "git": dict,
    "egress": dict,
    "extends": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest with its parents merged in; `env` holds entries as written, none resolved."""

    name: str
    path: Path
    image: str
    env: Mapping[str, str] = field(repr=False)
    agent_provider: str = ""
    git: Mapping[str, Any] = field(default_factory=dict)
    routes: tuple[str, ...] = ()


def load_bottle(home: Path, name: str) -> Manifest:
    """Read a manifest and everything it extends.

    Raises:
        ManifestError: one of them is missing or malformed, or they extend each other.
    """
    folder = home / ".bot-bottle" / "bottles"
    chain: list[dict[str, Any]] = []
    names: list[str] = []
    wanted, asked_by = name, ""
    while wanted or not names:
        path = folder / f"{wanted}.md"
        where = folder / f"{asked_by}.md" if asked_by else path
        key = "extends" if asked_by else ""
        if not NAME.fullmatch(wanted):
            raise ManifestError(where, key, f"{wanted!r} is no name of a bottle")
        if wanted in names:
            circle = " → ".join([*names[names.index(wanted) :], wanted])
            raise ManifestError(where, key, f"bottles extend each other: {circle}")
        try:
            is_there = path.is_file()
        except OSError as error:
            if faults.on("long-name-is-a-traceback"):
                raise
            problem = f"there is no bottle {wanted!r} in {folder}: {error.strerror}"
            raise ManifestError(where, key, problem) from error
        if not is_there:
            raise ManifestError(where, key, f"there is no bottle {wanted!r} in {folder}")
        content = _front_matter(path)
        chain.append(content)
        names.append(wanted)
        wanted, asked_by = content.get("extends", ""), wanted
    return _merge(name, folder / f"{name}.md", chain)


def _merge(name: str, path: Path, chain: list[dict[str, Any]]) -> Manifest:
    merged: dict[str, Any] = {}
    env: dict[str, str] = {}
    for content in reversed(chain):
        env.update(content.get("env", {}))
        merged.update(content)
    return Manifest(
        name=name,
        path=path,
        image=merged.get("image", "node:22-slim"),
        env=env,
        agent_provider=merged.get("agent_provider", ""),
        git=merged.get("git", {}),
        routes=tuple(merged.get("egress", {}).get("routes", ())),
    )


class _GivenTwiceError(yaml.constructor.ConstructorError):
    """A key is given twice."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, which YAML would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is a list, or a mapping", key_node.start_mark
                )
            if key in seen:
                raise _GivenTwiceError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _front_matter(path: Path) -> dict[str, Any]:
    text, problem = "", ""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        problem = f"it is no UTF-8 ({error.reason})"
    except OSError as error:
        problem = f"{error.strerror}"
    if problem:
        # Out here it has no context: that error holds all that was read.
        raise ManifestError(path, "", problem)
    lines = text.split("\n")
    if lines[0].rstrip() != "---" or "---" not in [line.rstrip() for line in lines[1:]]:
        raise ManifestError(path, "", "found no front matter between two lines of ---")
    end = [line.rstrip() for line in lines].index("---", 1)
    content = None
    try:
        content = yaml.load("\n".join(lines[1:end]), Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        problem = _problem_of(error)
    except ValueError:
        problem = "a number, or a date, is none (quote what is to be text)"
    except RecursionError:
        problem = "it is nested too deeply"
    if problem:
        # Out here it has no context: that error may quote a value.
        raise ManifestError(path, "", problem)
    return _validated(path, {} if content is None else content)


def _problem_of(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = f"line {mark.line + 2}: " if mark is not None else ""
    problem = getattr(error, "problem", None) or "not YAML"
    if not isinstance(error, _GivenTwiceError):
        # What is quoted in it may be a value.
        problem = re.split("['\"]", problem)[0].rstrip(" ,")
    return f"{line}{problem}"


def _validated(path: Path, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ManifestError(path, "", f"the front matter is a {_kind(content)}, expected a mapping")
    for key, value in content.items():
        if key not in _KEYS:
            if faults.on("manifest-unknown-key-ignored"):
                continue
            known = ", ".join(_KEYS)
            raise ManifestError(path, str(key), f"unknown key, expected one of {known}")
        if not isinstance(value, _KEYS[key]):
            expected = "a mapping" if _KEYS[key] is dict else "a string"
            raise ManifestError(path, key, f"found a {_kind(value)}, expected {expected}")
    for name, value in content.get("env", {}).items():
        key = f"env.{name}"
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise ManifestError(path, key, "no name of a variable: letters, digits and _")
        if not isinstance(value, str):
            raise ManifestError(path, key, f"found a {_kind(value)}, expected a string (quote it)")
        if "\0" in value:
            raise ManifestError(path, key, "a value cannot hold a NUL character")
    egress = content.get("egress", {})
    for key in egress:
        if key != "routes":
            raise ManifestError(path, f"egress.{key}", "unknown key, expected routes")
    routes = egress.get("routes", [])
    if not isinstance(routes, list) or not all(isinstance(route, str) for route in routes):
        raise ManifestError(path, "egress.routes", "expected a list of strings")
    return content


def _kind(value: object) -> str:
    return {dict: "mapping", list: "list", str: "string", bool: "boolean"}.get(
        type(value), "number" if isinstance(value, int | float) else type(value).__name__
    )
