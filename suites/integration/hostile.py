"""Words for a search that mean something to somebody else: databases, shells, parsers, terminals.

Made by classes, the same each time, so that a failure can be repeated.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from harness_core.system.compose import Stack

__all__ = ["ALL", "HOSTILE", "expect_nothing_told", "secrets_of"]

#: The shortest value that may be a secret.
_SECRET_CHARS: Final = 8

#: Words of a database or a program that speaks of itself.
_TELLTALES: Final = (
    *("traceback", "syntax error", "asyncpg", "psycopg", "sqlalchemy", "sqlstate", "pg_catalog"),
    *("postgresql://", "catalogue_parts", "relation ", "permission denied"),
)

_TABLES: Final = ("catalogue_parts", "episodes", "pg_authid", "alembic_version")


def _sql() -> list[str]:
    ends = ("'", "''", '"', "')", "'))", "$$", "\\'", "';")
    does = ("or 1=1 --", "union select 1,2,3 --", "; drop table episodes; --", "or 'a'='a")
    return [
        *(f"{end} {what}" for end, what in itertools.product(ends, does)),
        *(f"'; delete from {table} where ''='" for table in _TABLES),
        *("'||(select current_user)||'", "'; select pg_sleep(5); --", "x'; commit; --"),
        *("%s", "%(q)s", "$1", "$1$2", ":q", "?", "\\x27", "E'\\x27'"),
        *(
            "admin'/*",
            "*/",
            "iso/**/zq",
            "--",
            "chr(39)",
            "0x27",
            "U&'\\0027'",
            "$q$ $q$",
            "1;select 1",
        ),
        *("\\copy x to y", "\\! id", "copy (select 1) to program 'id'", "'\0'; --"),
    ]


def _patterns() -> list[str]:
    signs = (
        "%",
        "_",
        "%%",
        "_%",
        "\\",
        "\\%",
        "*",
        "?",
        ".",
        ".*",
        "[a-z]*",
        "(?i)m",
        "^",
        "$",
        "|",
    )
    return [*signs, *(f"{sign}iso{sign}" for sign in signs), "(a+)+$", "(?:", "[", "{1,9999}"]


def _operators() -> list[str]:
    words = ("AND", "OR", "NOT", "&", "!", "<->", ":*", "NEAR", "+iso", "-iso", '"iso', "iso:*")
    return [
        *(f"zq {word} zr" for word in words),
        *words[3:],
        "servo & !motor",
        "name:iso",
        "{}",
        "[]",
    ]


def _elsewhere() -> list[str]:
    return [
        *(
            "$(id)",
            "`id`",
            "; id",
            "| id",
            "&& id",
            "> /tmp/x",
            "../../etc/passwd",
            "%2e%2e%2f",
            "~",
        ),
        *("{{7*7}}", "${7*7}", "<%= 7*7 %>", "#{7*7}", "<script>alert(1)</script>", "<!--", "]]>"),
        *("%0d%0aX-Evil: 1", "\r\nX-Evil: 1", "&limit=999", "&category=servo", "#", ";limit=999"),
        *('{"$gt": ""}', '{"$where": "1"}', "!!python/object:os.system", "=1+1", "@SUM(1)", "NaN"),
    ]


def _unicode() -> list[str]:
    odd = ("\u202e", "\u200b", "\ufeff", "\u2028", "\u0301" * 40, "\U0001f529", "\ufdfd", "\u0130")
    alike = (
        "\uff4d\uff14",
        "\u0406SO",
        "\u1e9e",
        "\u00df",
        "\ufb01",
        "\u212a",
        "\u0131so",
        "i\u017fo",
    )
    quotes = ("\u2019 or 1=1", "\u02bc or 1=1", "\uff07 or 1=1", "\u00bf'", "\u301d")
    ends = ("\ufffd", "\ufffe", "\U0010ffff", "\ue000", "\u0085", "\u00a0", "\u3000")
    return [*odd, *alike, *quotes, *ends]


def _controls() -> list[str]:
    codes = (*range(1, 32, 3), 0x7F, 0x80, 0x9B)
    return [
        *(f"iso{chr(code)}zq" for code in codes),
        "\0",
        "iso\0",
        "\0iso",
        "\x1b[2J",
        "\x1b]0;x\x07",
    ]


def _sizes() -> list[str]:
    return [
        *("x" * size for size in (199, 200, 201, 1_000, 8_000)),
        *(" ".join("a" * 1 for _ in range(count)) for count in (99, 100, 101)),
        *("'" * 200, "%" * 200, "(" * 200, "\U0001f529" * 50, "\U0001f529" * 200, " " * 200),
        "b" * 1_000_000,
        "'" * 1_000_000,
    ]


#: Class → words.
HOSTILE: Final = {
    "sql": _sql(),
    "patterns": _patterns(),
    "operators": _operators(),
    "elsewhere": _elsewhere(),
    "unicode": _unicode(),
    "controls": _controls(),
    "sizes": _sizes(),
}

#: Each of them once; more than 200.
ALL: Final = tuple(dict.fromkeys(itertools.chain.from_iterable(HOSTILE.values())))


def secrets_of(stack: Stack) -> dict[str, str]:
    """What the controller is given that no caller may see, by the name of its variable."""
    words = ("KEY", "PASSWORD", "SECRET", "DATABASE_URL")
    return {
        name: value
        for name, value in stack["controller"].environment.items()
        if len(value) >= _SECRET_CHARS and any(word in name for word in words)
    }


def expect_nothing_told(words: str, told: str, secrets: Mapping[str, str]) -> None:
    """Assert that what came of words tells of no secret, and of no database behind it.

    Args:
        words: that were asked for; what stands in them may be said again.
        told: what was answered.
        secrets: by name.
    """
    shown, text = repr(words[:80]), told.casefold()
    named = [name for name, value in secrets.items() if value.casefold() in text]
    assert not named, f"the answer to {shown} holds what the controller keeps to itself: {named}"
    leaked = [each for each in _TELLTALES if each in text and each not in words.casefold()]
    assert not leaked, f"the answer to {shown} tells of the database: {leaked} in {told[:2000]}"
