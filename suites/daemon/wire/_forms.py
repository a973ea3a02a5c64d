"""What s-expressions are made of.

A string is ``str``, numbers are ``int``, ``float`` and ``Fraction``, a list is a ``tuple``, ``NIL``
and the empty list are both ``()``. The rest has a class here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from suites.daemon.wire._violation import LocalProtocolError, RemoteProtocolError, Violation

__all__ = ["NIL", "Dotted", "Form", "Keyword", "Quoted", "Symbol", "T", "lookup", "plist"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol; the name is as the Lisp reader keeps it, upper case unless escaped."""

    name: str


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword, without its colon: ``:TYPE`` is ``Keyword("TYPE")``."""

    name: str

    def __str__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True)
class Dotted:
    """A list that does not end in ``NIL``: ``(A B . C)``.

    Attributes:
        items: what stands before the dot, at least one.
        tail: what stands after it; never a list, for ``(A . (B))`` is ``(A B)``.
    """

    items: tuple[Form, ...]
    tail: Form


@dataclass(frozen=True, slots=True)
class Quoted:
    """``'FORM``, which a Lisp reader takes for ``(QUOTE FORM)``."""

    form: Form


Form: TypeAlias = (
    int | float | Fraction | str | Symbol | Keyword | Dotted | Quoted | tuple["Form", ...]
)

NIL: Final[tuple[Form, ...]] = ()
T: Final = Symbol("T")


def plist(**properties: Form) -> tuple[Form, ...]:
    """A property list: ``plist(exit_code=0)`` is ``(:EXIT-CODE 0)``, in the order given."""
    flat: list[Form] = []
    for name, value in properties.items():
        if isinstance(value, bool):
            raise LocalProtocolError(
                f"property {name} is {value!r}", next_step="Say T or NIL, a boolean is neither"
            )
        flat += [Keyword(name.upper().replace("_", "-")), value]
    return tuple(flat)


def lookup(form: Form, *path: str) -> Form | None:
    """Follow keywords into nested property lists; ``None`` when one is not there.

    As in Lisp, the first of several equal keys counts.

    Args:
        form: a property list.
        path: names of keywords, e.g. ``"PAYLOAD", "ACTION"``.

    Raises:
        RemoteProtocolError: something on the way is no property list.
    """
    for name in path:
        if (
            not isinstance(form, tuple)
            or len(form) % 2
            or not all(isinstance(key, Keyword) for key in form[::2])
        ):
            raise RemoteProtocolError(
                Violation.SHAPE,
                observed=f"looked for :{name} (of {'/'.join(path)}) in {form!r}, which is no "
                "property list",
            )
        for key, value in zip(form[::2], form[1::2], strict=True):
            if key == Keyword(name):
                form = value
                break
        else:
            return None
    return form
