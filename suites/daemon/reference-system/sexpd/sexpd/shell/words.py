"""What is a word of a command before the command runs?

Quoting, backslashes and ANSI-C escapes are undone; what only the running shell knows (variables
that changed, substitutions, patterns) makes a word unknown, in full or after a known beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as written; it may become none or many when the shell expands it.

    Attributes:
        text: the word itself, or None when it is known only in part or not at all.
        head: the beginning that is known.
        spread: whether it may become anything else than one word.
        dotted: whether each word it becomes has a point in it for certain, patterns included.
    """

    text: str | None
    head: str = ""
    spread: bool = False
    dotted: bool = False

    @property
    def no_option(self) -> bool:
        """Whether it cannot be taken for an option, whatever it becomes."""
        return bool(self.head) and self.head[0] not in "-" and not self.spread

    def __str__(self) -> str:
        return self.text if self.text is not None else self.head + "…"


def fixed(text: str) -> Word:
    """A word that is known."""
    return Word(text=text, head=text)


UNKNOWN = Word(text=None)
UNKNOWN_MANY = Word(text=None, spread=True)


@dataclass(slots=True)
class Builder:
    """Puts a word together from its parts."""

    text: str = ""
    known: bool = True
    spread: bool = False
    dotted: bool = False
    quoted: bool = False
    loose: bool = False

    def add(self, text: str) -> None:
        """A part that is known."""
        if self.known:
            self.text += text
        self.dotted = self.dotted or "." in text

    def lose(self, *, spread: bool, loose: bool = True) -> None:
        """A part that is not known; ``spread`` unless quoted, ``loose`` unless only a `*`."""
        self.known = False
        self.loose = self.loose or loose
        self.spread = self.spread or spread

    def word(self) -> Word:
        return Word(
            text=self.text if self.known else None,
            head=self.text,
            spread=self.spread,
            dotted=self.dotted and not self.loose,
        )


def add_bare(builder: Builder, raw: str) -> None:
    """Add unquoted text, backslashes still in it."""
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\" and at + 1 < len(raw):
            builder.add("" if raw[at + 1] == "\n" else raw[at + 1])
            at += 2
            continue
        starts_word = at == 0 and not builder.text and not builder.quoted and builder.known
        if char in "*?[{" or (char == "~" and (starts_word or raw[at - 1 : at] in {"=", ":"})):
            if _becomes_something(raw, at):
                builder.lose(spread=True, loose=char != "*")
        builder.add(char)
        at += 1


def _becomes_something(raw: str, at: int) -> bool:
    """Whether a pattern character at this place can be expanded."""
    if raw[at] == "{":  # find's {} stays what it is
        return raw[at : at + 2] != "{}"
    return True


def undouble(raw: str) -> str:
    """The text of a literal inside double quotes."""
    return re.sub(r"\\([$`\"\\\n])", lambda m: "" if m[1] == "\n" else m[1], raw)


_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.S
)


def ansi_c(raw: str) -> str | None:
    """The text of $'…', or None for an escape that is not followed here."""
    unknown = False

    def one(match: re.Match[str]) -> str:
        nonlocal unknown
        octal, hexa, short, long, other = match.groups()
        if other is not None:
            unknown = unknown or other not in _SIMPLE
            return _SIMPLE.get(other, "")
        code = int(octal, 8) & 0xFF if octal else int(hexa or short or long, 16)
        # A zero ends the string, and bytes beyond ASCII need their neighbours to mean something.
        unknown = unknown or not 0 < code < 128
        return chr(code) if code < 128 else ""

    text = _ESCAPE.sub(one, raw)
    return None if unknown else text
