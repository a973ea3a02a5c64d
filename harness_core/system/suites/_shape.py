"""Which keys a table of a file may have, said as a table: for files whose readers lie far apart.

    {"directory!": str, "context": [str], "knobs": {"*": {"*": str}}, "migrations": [{"path!": str}]}

``!`` marks a key that must be there, ``*`` stands for every other key; ``str``, ``int``, ``float``
and ``bool`` are values, ``object`` any value, ``[…]`` lists of such, ``{…}`` tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.system.suites._table import closest

__all__ = ["Shape", "check_shape"]

Shape = Mapping[str, Any]

_ANY: Final = "*"
_MUST: Final = "!"
_WORDS: Final = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
}


def check_shape(content: Mapping[str, Any], shape: Shape, *, where: Path, prefix: str = "") -> None:
    """Check keys and kinds of values, to whatever depth.

    Args:
        content: a table as parsed.
        shape: what it may have.
        where: the file, for messages.
        prefix: how keys of this table begin in messages, e.g. ``"knobs."``.

    Raises:
        BadInput: the first key that is unknown, missing or of another kind.
    """
    known = {key.removesuffix(_MUST): kind for key, kind in shape.items() if key != _ANY}
    for key, value in content.items():
        kind = known.get(key, shape.get(_ANY))
        if kind is None:
            near = closest(key, known.keys() - content.keys())
            raise BadInput(
                where,
                key=f"{prefix}{key}",
                found=value,
                expected=f"one of the keys {', '.join(sorted(known))}",
                next_step=f"Did you mean {near}?" if near else "",
            )
        _check_value(value, kind, where=where, key=f"{prefix}{key}")
    for key in (key.removesuffix(_MUST) for key in shape if key.endswith(_MUST)):
        if key not in content:
            raise BadInput(where, key=f"{prefix}{key}", found=None, expected=_described(known[key]))


def _check_value(value: object, kind: Any, *, where: Path, key: str) -> None:
    if isinstance(kind, Mapping) and isinstance(value, Mapping):
        check_shape(value, kind, where=where, prefix=f"{key}.")
        return
    if isinstance(kind, list) and isinstance(value, list):
        for number, item in enumerate(value):
            _check_value(item, kind[0], where=where, key=f"{key}[{number}]")
        return
    kinds = (int, float) if kind is float else kind
    plain = isinstance(kind, type) and isinstance(value, kinds)
    if not plain or (kind in {int, float} and isinstance(value, bool)):
        raise BadInput(where, key=key, found=value, expected=_described(kind))


def _described(kind: Any) -> str:
    if isinstance(kind, Mapping):
        return "a table"
    if isinstance(kind, list):
        return "a list of tables" if isinstance(kind[0], Mapping) else "a list of texts"
    return _WORDS[kind]
