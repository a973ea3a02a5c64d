"""YAML that means what it looks like: one document of plain mappings, lists, text and numbers.

Duplicate keys, tags, anchors and aliases are refused; ``yes``, ``1:30`` and ``2026-01-01`` are text;
a number with a point is a Decimal, so that a price is exactly what was typed.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml

#: A configuration of a hundred materials has 12 KiB.
LARGEST_BYTES = 256 * 1024
_DEEPEST = 20


class Unreadable(Exception):
    """What stands where, and what has to: ``where``, ``found``, ``expected`` of a finding."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{where}: {found}")
        self.where = where
        self.found = found
        self.expected = expected


def parse(data: bytes) -> Any:
    """Read one document.

    Raises:
        Unreadable: too large, no UTF-8, no YAML, or a construct that is refused.
    """
    if len(data) > LARGEST_BYTES:
        raise Unreadable("", f"{len(data)} bytes", f"at most {LARGEST_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(f"line {line}", "bytes that are no UTF-8", "text in UTF-8") from error
    try:
        loader = _Loader(text)
        _refuse(loader)
        found = _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise Unreadable(f"line {line}", str(error.problem), "one YAML document") from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise Unreadable("", reason, "one YAML document") from error
    return found


def _refuse(loader: Any) -> None:
    """Look at the events before anything is built of them."""
    depth = 0
    while loader.check_event():
        event = loader.get_event()
        where = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise Unreadable(where, "an anchor or alias", "the value itself")
        if getattr(event, "tag", None) is not None:
            raise Unreadable(where, f"the tag {event.tag[:60]}", "a value without a tag")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise Unreadable(where, f"{depth} levels", f"at most {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Loader(yaml.SafeLoader):
    """A safe loader with the resolvers of YAML 1.2's core schema and its keys once each."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            where = f"line {key.start_mark.line + 1}"
            if not isinstance(key, yaml.ScalarNode):
                raise Unreadable(where, "a key of several values", "a key of one word")
            if key.value in seen:
                raise Unreadable(where, f"{key.value[:60]} for the second time", "each key once")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _decimal(loader: _Loader, node: Any) -> Decimal:
    return Decimal(loader.construct_scalar(node))


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), ["t", "f"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,30})$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?$"
    ),
    list("-+.0123456789"),
)
_Loader.add_constructor("tag:yaml.org,2002:float", _decimal)
