"""Which line of a log is an error: by its level, in whatever way a product writes that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["is_error", "plain", "says_level"]

#: Colours, and what else a terminal takes for a command.
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")

#: Level → whether an operator is woken by it.
_LEVELS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("trace", "debug", "info", "notice", "warn", "warning"), False),
    **dict.fromkeys(("error", "err", "critical", "crit", "fatal", "panic", "alert", "emerg"), True),
}

#: Keys under which a line of JSON says its level, in one object or one inside of it.
_KEYS: Final = ("level", "levelname", "severity", "lvl", "log.level", "loglevel")

#: pino's and bunyan's number of an error; higher ones are worse.
_ERROR: Final = 50

#: ``level=error`` anywhere in a line.
_NAMED: Final = re.compile(
    r"\b(?:level|levelname|severity|lvl)\"?\s*[=:]\s*\"?(\w+)", re.IGNORECASE
)

#: Words from the front of a line among which its level stands.
_FRONT: Final = 4


def plain(line: str) -> str:
    """A line without colours."""
    return _ANSI.sub("", line)


def is_error(line: str, pattern: str = "") -> bool:
    """Whether an operator is woken by a line.

    Args:
        line: without colours.
        pattern: what a line of an error has in it, as the subject file says; empty: its level is read.
    """
    if pattern:
        return re.search(pattern, line) is not None
    return _is_bad_line(line) is True


def says_level(line: str) -> bool:
    """Whether a line, without colours, says its level, whichever that is."""
    return _is_bad_line(line) is not None


def _is_bad_line(line: str) -> bool | None:
    """Whether its level is one of an error; ``None`` when it says none."""
    if line.lstrip().startswith("{") and (level := _level_of(line)) is not None:
        return _is_bad(level)
    if (named := _NAMED.search(line)) is not None:
        return _is_bad(named[1])
    return _front_level(line)


def _level_of(line: str) -> object:
    """The level in a line of JSON; ``None`` when it is none, or says none."""
    try:
        value: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, Mapping):
        return None
    inner = (value, *(each for each in value.values() if isinstance(each, Mapping)))
    return next((each[key] for each in inner for key in _KEYS if key in each), None)


def _is_bad(level: object) -> bool:
    if isinstance(level, int | float):
        return level >= _ERROR
    text = str(level).casefold()
    return int(text) >= _ERROR if text.isdecimal() else _LEVELS.get(text, False)


def _front_level(line: str) -> bool | None:
    """A level as a word of its own near the front: capital, marked off, or behind nothing but a time."""
    timed = True
    for word in line.split()[:_FRONT]:
        bare = re.split(r"[:|]", word.lstrip("[<(|*"))[0].rstrip("])>|*,")
        bad = _LEVELS.get(bare.casefold())
        marked = bare != word or bare.isupper()
        if bad is not None and (marked or timed):
            return bad
        timed = timed and any(char.isdigit() for char in word)
    return None
