"""One word of a shell in any of its spellings: an independent small model of quoting.

A word is spelled piece by piece: bare, in quotes of each kind, with backslashes that stay and such
that go. Whatever the dice say, a shell reads the word that was given.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

__all__ = ["ODD", "patterned", "quoted", "spelled"]

#: Names of files that quoting, expansion or an option can get wrong; each is a file in a canary tree.
ODD: Final = (
    "od\\d.txt",
    "tw\\\\o.txt",
    "a\\nb.txt",
    "end\\",
    "a  b.txt",
    " lead",
    "trail ",
    "ta\tb.txt",
    "*.txt",
    "[a].txt",
    "wh?t.txt",
    "{a,b}.txt",
    "$HOME.txt",
    "${x}.txt",
    "$(x).txt",
    "`x`.txt",
    "~",
    "#1.txt",
    "it's.txt",
    'so "so".txt',
    "-n.txt",
    "a;b&c|d.txt",
    "<a>.txt",
    "!x.txt",
    "a=b.txt",
    "%s.txt",
    "é日.txt",
)

#: What stands for itself without quotes, wherever in a word it stands.
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:%+@é日"
)


def _bare(text: str, dice: random.Random) -> str:
    return "".join(
        letter if letter in _PLAIN and dice.randrange(6) else "\\" + letter for letter in text
    )


def _single(text: str, dice: random.Random) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _double(text: str, dice: random.Random) -> str:
    out = []
    for letter, following in zip(text, text[1:] + '"', strict=True):
        if letter in '$`"':
            out.append("\\" + letter)
        elif letter == "\\":
            # Before any other letter it stays, so that one of them is enough.
            needed = following in '$`"\\\n' or dice.randrange(2) == 0
            out.append("\\\\" if needed else "\\")
        else:
            out.append(letter)
        if dice.randrange(12) == 0 and out[-1] != "\\":
            out.append("\\\n")
    return '"' + "".join(out) + '"'


def _translated(text: str, dice: random.Random) -> str:
    return "$" + _double(text, dice)


def _c_quoted(text: str, dice: random.Random) -> str:
    def one(letter: str) -> str:
        code = ord(letter)
        ways = [f"\\u{code:04x}", f"\\U{code:08x}"]
        if code < 128:
            ways += [f"\\x{code:02x}", f"\\{code:03o}"]
        if letter in "\\'\"":
            ways += ["\\" + letter] * 3
        elif letter == "\t":
            ways += ["\\t", "\t"]
        elif letter == "\n":
            ways += ["\\n"] * 3
        else:
            ways += [letter] * 9
        return dice.choice(ways)

    return "$'" + "".join(map(one, text)) + "'"


_WAYS: Final[tuple[Callable[[str, random.Random], str], ...]] = (
    _bare,
    _single,
    _double,
    _double,
    _translated,
    _c_quoted,
)


def spelled(text: str, dice: random.Random) -> str:
    """A spelling of a word.

    Args:
        text: what the shell makes of it; not empty, without a zero or a newline.
        dice: which one.
    """
    pieces = []
    rest = text
    while rest:
        length = dice.randrange(1, len(rest) + 1)
        pieces.append(dice.choice(_WAYS)(rest[:length], dice))
        rest = rest[length:]
        if dice.randrange(5) == 0:
            pieces.append(dice.choice(["''", '""', "$''", "\\\n"]))
    return "".join(pieces)


#: Patterns that a letter of a name matches; ``@`` is the letter.
_PATTERNS: Final = (
    *("?", "*", "[@]", "['@']", '["@"]', "[\\@]", "[!z]", "[^z]", "[@-@]", "[[:alnum:]]", "@*"),
    *("*@", "['@'-'@']", "[@'@']", "['z'@]", '[!"z"]', "{@..@}", '["@"@]', "[$'@']", "[@$x]"),
)


def patterned(path: str, dice: random.Random) -> str:
    """A word that becomes a path because the file is there: one or two letters of it are patterns.

    Args:
        path: of letters, digits and what stands between the parts of a name.
        dice: which letters, and how the rest is spelled.
    """
    places = [at for at, letter in enumerate(path) if letter.isalpha() and at > path.rfind("/")]
    chosen = sorted(dice.sample(places, dice.randrange(1, 3)))
    out, before = "", 0
    for at in chosen:
        between = path[before:at]
        out += spelled(between, dice) if between else ""
        out += dice.choice(_PATTERNS).replace("@", path[at])
        before = at + 1
    return out + (spelled(path[before:], dice) if path[before:] else "")


def quoted(command: str, dice: random.Random, *, plain: bool = False) -> str:
    """A whole command as one word: of an eval or of another shell's -c.

    Args:
        command: what it is.
        dice: how it is quoted.
        plain: as every shell understands it.
    """
    return dice.choice([_single, _double] if plain else [_single, _double, _c_quoted])(
        command, dice
    )
