r"""From text to a form, never evaluating anything.

The subset: symbols (upper-cased unless escaped by ``|…|`` or ``\``), keywords, strings, integers,
ratios, floats, lists, dotted lists, quote, ``;`` comments. Everything that begins with ``#`` is
refused, for ``#.`` evaluates and no message needs the others. Nesting is kept on a list of our own,
so depth is bounded by ``max_depth`` and never by the interpreter's stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from suites.daemon.wire._forms import NIL, Dotted, Form, Keyword, Quoted, Symbol
from suites.daemon.wire._tokens import TERMINATING, WHITESPACE, as_number, is_plain, upcase
from suites.daemon.wire._violation import RemoteProtocolError, Violation

__all__ = ["FORM_DEPTH", "read_form"]

#: Deepest nesting that is followed; messages of a daemon nest four deep.
FORM_DEPTH: Final = 128

_SHOWN_CHARACTERS: Final = 24


def read_form(text: str, *, max_depth: int = FORM_DEPTH) -> Form:
    """Read exactly one form.

    Raises:
        RemoteProtocolError: the text is not one form of the subset, or nests too deep; says at
            which character.
    """
    return _Reader(text, max_depth=max_depth).read()


@dataclass(slots=True)
class _Open:
    """A list or quote that is not finished."""

    kind: str
    at: int
    items: list[Form] = field(default_factory=list)
    tail: Form | None = None
    dotted: bool = False


class _Reader:
    def __init__(self, text: str, *, max_depth: int) -> None:
        self._text = text
        self._at = 0
        self._max_depth = max_depth
        self._open: list[_Open] = []
        self._done: Form | None = None

    def read(self) -> Form:
        while self._skip():
            if self._done is not None:
                raise self._error("found text after the form, expected its end")
            self._step()
        if self._open:
            unfinished = self._open[-1]
            self._at = len(self._text)
            what = "list" if unfinished.kind == "(" else "quote"
            raise self._error(f"the text ends inside the {what} begun at character {unfinished.at}")
        if self._done is None:
            raise self._error("found nothing, expected a form")
        return self._done

    def _skip(self) -> bool:
        """Move to the next character that means something; whether there is one."""
        text = self._text
        while self._at < len(text):
            if text[self._at] == ";":
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end + 1
            elif text[self._at] in WHITESPACE:
                self._at += 1
            else:
                return True
        return False

    def _step(self) -> None:
        character = self._text[self._at]
        match character:
            case "(" | "'":
                if len(self._open) >= self._max_depth:
                    raise self._error(
                        f"nested deeper than {self._max_depth}", violation=Violation.DEPTH
                    )
                self._open.append(_Open(character, self._at))
                self._at += 1
            case ")":
                self._close()
            case '"':
                self._give(self._string())
            case "`" | ",":
                raise self._error(f"found {character!r}, which no message needs")
            case "#":
                raise self._error(
                    f"found the reader macro {self._text[self._at : self._at + 2]!r}",
                    violation=Violation.READER_MACRO,
                )
            case _:
                self._token()

    def _close(self) -> None:
        if not self._open or self._open[-1].kind != "(":
            raise self._error("found ')' that closes nothing")
        unfinished = self._open[-1]
        if unfinished.dotted and unfinished.tail is None:
            raise self._error("found ')' after a dot, expected a form")
        self._at += 1
        self._open.pop()
        self._give(_finish(unfinished))

    def _give(self, form: Form) -> None:
        """Put a finished form where it belongs."""
        while self._open and self._open[-1].kind == "'":
            self._open.pop()
            form = Quoted(form)
        if not self._open:
            self._done = form
            return
        parent = self._open[-1]
        if not parent.dotted:
            parent.items.append(form)
        elif parent.tail is None:
            parent.tail = form
        else:
            raise self._error("found two forms after a dot, expected one")

    def _string(self) -> str:
        began = self._at
        pieces: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == '"':
                return "".join(pieces)
            if character == "\\":
                if self._at == len(self._text):
                    break
                character = self._text[self._at]
                self._at += 1
            pieces.append(character)
        raise self._error(f"the text ends inside the string begun at character {began}")

    def _token(self) -> None:
        began = self._at
        name, escaped = self._name()
        if escaped:
            raw = self._text[began : self._at]
            self._give(Keyword(name[1:]) if raw.startswith(":") else Symbol(name))
        elif name == ".":
            self._dot()
        else:
            self._give(self._plain(name, began))

    def _name(self) -> tuple[str, bool]:
        """A token's name, upper-cased where it is not escaped, and whether any of it is."""
        began, escaped, barred = self._at, False, False
        pieces: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "|":
                escaped, barred = True, not barred
            elif character == "\\":
                escaped = True
                self._at += 1
                if self._at == len(self._text):
                    raise self._error("the text ends after a backslash")
                pieces.append(self._text[self._at])
            elif barred:
                pieces.append(character)
            elif character in TERMINATING:
                break
            else:
                pieces.append(upcase(character))
            self._at += 1
        if barred:
            raise self._error(f"the text ends inside the symbol begun at character {began}")
        return "".join(pieces), escaped

    def _dot(self) -> None:
        if not self._open or self._open[-1].kind != "(" or not self._open[-1].items:
            raise self._error("found a dot with nothing before it in a list")
        if self._open[-1].dotted:
            raise self._error("found a second dot in a list")
        self._open[-1].dotted = True

    def _plain(self, name: str, began: int) -> Form:
        try:
            number = as_number(name)
        except (ValueError, OverflowError) as error:
            self._at = began
            raise self._error(str(error)) from error
        if number is not None:
            return number
        if name == "NIL":
            return NIL
        keyword = name.startswith(":")
        if not name.strip(".") or not is_plain(name[1:] if keyword else name):
            self._at = began
            raise self._error(f"found {name[:_SHOWN_CHARACTERS]!r}, which names no symbol")
        if keyword and ":" in name[1:]:
            self._at = began
            raise self._error(f"found {name[:_SHOWN_CHARACTERS]!r}, which names no keyword")
        return Keyword(name[1:]) if keyword else Symbol(name)

    def _error(
        self, observed: str, *, violation: Violation = Violation.SYNTAX
    ) -> RemoteProtocolError:
        near = self._text[max(0, self._at - _SHOWN_CHARACTERS) : self._at + _SHOWN_CHARACTERS]
        return RemoteProtocolError(
            violation,
            observed=f"{observed} (character {self._at} of {len(self._text)}, near {near!r})",
        )


def _finish(unfinished: _Open) -> Form:
    """The list that an opened one became; ``(A . (B))`` is ``(A B)``."""
    items, tail = tuple(unfinished.items), unfinished.tail
    if tail is None or isinstance(tail, tuple):
        return (*items, *(tail or ()))
    if isinstance(tail, Dotted):
        return Dotted((*items, *tail.items), tail.tail)
    return Dotted(items, tail)
