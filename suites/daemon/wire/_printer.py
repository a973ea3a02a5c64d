"""From a form to the text that a reader turns into the same form again."""

from __future__ import annotations

import math
from fractions import Fraction

from suites.daemon.wire._forms import Dotted, Form, Keyword, Quoted, Symbol
from suites.daemon.wire._tokens import TERMINATING, as_number, is_plain, upcase
from suites.daemon.wire._violation import LocalProtocolError

__all__ = ["print_form"]


def print_form(form: Form) -> str:
    """The canonical text of a form: one line, upper case, single spaces.

    Raises:
        LocalProtocolError: the form holds something no reader would read back, e.g. ``nan``.
    """
    pieces: list[str] = []
    _print(form, pieces)
    return "".join(pieces)


def _print(form: Form, pieces: list[str]) -> None:
    match form:
        case bool():
            raise LocalProtocolError(f"{form!r} is no form", next_step="Say T or NIL")
        case tuple() | Dotted():
            _print_list(form, pieces)
        case Quoted():
            pieces.append("'")
            _print(form.form, pieces)
        case _:
            pieces.append(_atom(form))


def _print_list(form: tuple[Form, ...] | Dotted, pieces: list[str]) -> None:
    if form == ():
        pieces.append("NIL")
        return
    items = form.items if isinstance(form, Dotted) else form
    if isinstance(form, Dotted) and (not items or isinstance(form.tail, tuple | Dotted)):
        raise LocalProtocolError(
            f"{form!r} has no item before its dot, or a list after it",
            next_step="Write the list it stands for",
        )
    pieces.append("(")
    for index, item in enumerate(items):
        if index:
            pieces.append(" ")
        _print(item, pieces)
    if isinstance(form, Dotted):
        pieces.append(" . ")
        _print(form.tail, pieces)
    pieces.append(")")


def _atom(form: Form) -> str:
    match form:
        case str():
            return '"' + form.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Keyword():
            return ":" + _name(form.name, keyword=True)
        case Symbol():
            return _name(form.name, keyword=False)
        case int() | Fraction():
            return str(form)
        case float() if math.isfinite(form):
            return repr(form)
        case _:
            raise LocalProtocolError(f"{form!r} ({type(form).__name__}) is no form")


def _name(name: str, *, keyword: bool) -> str:
    plain = (
        name
        and upcase(name) == name
        and not any(character in TERMINATING or character in "\\|#" for character in name)
        and (":" not in name if keyword else is_plain(name))
        and name.strip(".")
    )
    if plain and (keyword or (name != "NIL" and not _reads_as_number(name))):
        return name
    return "|" + name.replace("\\", "\\\\").replace("|", "\\|") + "|"


def _reads_as_number(name: str) -> bool:
    """Whether a bare name would be taken for a number, also one that has no value."""
    try:
        return as_number(name) is not None
    except (ValueError, OverflowError):
        return True
