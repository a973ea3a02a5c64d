"""Which parts of a text are secret, and what stands in their place.

Redaction happens where text is written, never afterwards: a file that held a secret for a moment
has leaked it. Two sources: values registered by whoever made or received them, and shapes that
are secret whoever made them (provider keys, bearer tokens, passwords in URLs).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final
from urllib.parse import quote, quote_plus

REDACTED: Final = "[redacted]"

#: Shorter values are too likely to occur in ordinary text ("no", "1234").
_SHORTEST_SECRET: Final = 6

#: Words after which, behind ``=`` or ``:``, a secret stands.
_KEY: Final = (
    r"(?:api[_-]?key|password|passwd|passphrase|secret(?:[_-]?access)?(?:[_-]?key)?"
    r"|(?:auth|access|refresh)[_-]?token|(?-i:_TOKEN))"
)

#: One of these, or ``_TOKEN``, occurs wherever ``_KEY`` matches.
_KEY_WORDS: Final = (
    *("apikey", "api_key", "api-key", "passw", "passphrase", "secret"),
    *("auth_token", "auth-token", "authtoken", "access_token", "access-token", "accesstoken"),
    *("refresh_token", "refresh-token", "refreshtoken"),
)
#: ``"password": "…"`` up to the closing quotation mark, in JSON, Python or a header list.
_QUOTED: Final = (
    rf"(?i)({_KEY}[\"']?[^\S\n]{{0,8}}[=:,][^\S\n]{{0,8}}b?([\"']))(?!\[redacted\])"
    r"(?:(?!\2)[^\\\n]|\\.){6,4096}(?=\2)"
)
#: ``PASSWORD=…`` up to white space or punctuation.
_BARE: Final = (
    rf"(?i)({_KEY}\\{{0,3}}[\"']?[^\S\n]{{0,8}}[=:][^\S\n]{{0,8}}\\{{0,3}}[\"']?)"
    r"(?!\[redacted\])[^\s\"',;&\\]{6,4096}"
)

#: (word that must occur in the text in lower case, pattern). Group 1 is what identifies the secret
#: and stays readable. No pattern crosses a line, so lines may be redacted one by one or together;
#: each is bounded and starts at a fixed word, so that no text takes quadratic time.
_SHAPES: Final = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        # A key, not "task-management" nor "sk-learn": no letter before it, a digit or length in it.
        (
            "sk-",
            (
                r"(?<![A-Za-z0-9])(sk-(?:(?:ant|proj)-|(?=[A-Za-z_\-]{0,64}\d|[A-Za-z_\-]{20})))"
                r"[A-Za-z0-9_\-]{8,4096}"
            ),
        ),
        ("akia", r"\b(AKIA)[0-9A-Z]{16}\b"),
        ("gh", r"\b(gh[pousr]_)[A-Za-z0-9]{20,255}"),
        ("github_pat_", r"\b(github_pat_)[A-Za-z0-9_]{20,255}"),
        ("xox", r"\b(xox[abeprs]-)[A-Za-z0-9\-]{8,255}"),
        (
            "eyj",
            r"\b(eyJ)[A-Za-z0-9_\-]{8,2048}\.eyJ[A-Za-z0-9_\-]{8,2048}\.[A-Za-z0-9_\-]{4,1024}",
        ),
        # The URL of a Telegram bot's API has the token in its path.
        ("/bot", r"(/bot\d{6,12}:)[A-Za-z0-9_\-]{20,64}"),
        # "bearer of bad news" is prose; a token has a digit or is long.
        (
            "bearer",
            (
                r"(?i)(\bbearer[^\S\n]{1,8})(?=[a-z._~+/\-]{0,64}\d|[a-z._~+/\-]{24})"
                r"[a-z0-9._~+/\-]{8,4096}={0,2}"
            ),
        ),
        (
            "authorization",
            (
                r"(?i)(authorization[ ,:='\"\\b()\[\]]{1,12}(?:basic|bearer|digest|token) {1,8})"
                r"(?!\[redacted\])[^\s\"']{4,4096}"
            ),
        ),
        # Up to the last @ before the path; a password with an unescaped slash up to the first @.
        (
            "://",
            (
                r"(://[^\s:/@\"'<>]{0,256}:)(?!\d{1,5}(?:[/?#\s]|$))"
                r"(?:[^\s/\"'<>]{1,1024}|[^\s@\"'<>]{1,1024})(?=@)"
            ),
        ),
    )
)
_KEYED: Final = (re.compile(_QUOTED), re.compile(_BARE))
#: A literal is found at the speed of ``str.find``.
_KEY_STARTS: Final = tuple((word, re.compile(re.escape(word)).finditer) for word in _KEY_WORDS)
_TOKEN: Final = re.compile("_TOKEN").finditer


class Redactor:
    """Replaces secrets in text; shared by all evidence of a run."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()

    def add(self, *secrets: str) -> None:
        """Register values that must never be written, also as JSON or a URL would spell them.

        Of a value of several lines each line is a secret too: logs are written line by line.

        Raises:
            ValueError: a value shorter than six characters, which would redact ordinary text.
        """
        values = set(self._values)
        for secret in secrets:
            if len(secret) < _SHORTEST_SECRET:
                message = (
                    f"cannot redact a secret of {len(secret)} characters: expected at least "
                    f"{_SHORTEST_SECRET}"
                )
                raise ValueError(message)
            lines = [line for line in secret.splitlines() if len(line) >= _SHORTEST_SECRET]
            values.update(spelling for text in (secret, *lines) for spelling in _spellings(text))
        # Longest first: a secret that contains another is replaced whole.
        self._values = tuple(sorted(values, key=lambda value: (-len(value), value)))

    def redact(self, text: str) -> str:
        """``text`` with every known or secret-shaped value replaced by ``[redacted]``."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        for pattern in _shapes(text):
            text = pattern.sub(rf"\1{REDACTED}", text)
        for pattern in _KEYED:
            kept, end = [], 0
            for found in _keyed(pattern, text):
                kept += [text[end : found.end(1)], REDACTED]
                end = found.end()
            text = "".join([*kept, text[end:]])
        return text

    def count(self, text: str) -> int:
        """How many known secrets stand in a text, however they are spelled; shapes do not count."""
        found = 0
        for value in self._values:
            parts = text.split(value)
            found += len(parts) - 1
            text = REDACTED.join(parts)
        return found

    def clear_cut(self, text: str, *, keep: int) -> int:
        """Where ``text`` may be cut so that both parts can be redacted for themselves.

        Args:
            text: the front of a text that goes on.
            keep: at least this many characters stay behind the cut, and more when a known secret
                is longer: it may have begun and not ended yet.

        Returns:
            The last such place; it lies inside nothing secret.
        """
        longest = len(self._values[0]) if self._values else 0
        cut = max(0, len(text) - max(keep, longest))
        moved = True
        while moved and cut:
            moved = False
            for start, end in self._secrets(text):
                if start < cut < end:
                    cut, moved = start, True
        return cut

    def _secrets(self, text: str) -> Iterator[tuple[int, int]]:
        for value in self._values:
            start = text.find(value)
            while start >= 0:
                yield start, start + len(value)
                start = text.find(value, start + 1)
        shapes = (pattern.finditer(text) for pattern in _shapes(text))
        keyed = (_keyed(pattern, text) for pattern in _KEYED)
        for found in chain(*shapes, *keyed):
            yield found.span()


def _spellings(secret: str) -> Iterator[str]:
    """The secret as it is, in JSON, and in a URL."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)


def _shapes(text: str) -> Iterator[re.Pattern[str]]:
    """The shapes that may occur: looking for a word costs a hundredth of matching a pattern."""
    lower = text.lower()
    for word, pattern in _SHAPES:
        if word in lower:
            yield pattern


def _keyed(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """What ``pattern.finditer`` finds, without trying the pattern where no key begins."""
    lower = text.lower()
    if len(lower) != len(text):  # a capital that is two small letters: places differ
        yield from pattern.finditer(text)
        return
    words = (finder(lower) for word, finder in _KEY_STARTS if word in lower)
    end = 0
    for start in sorted(each.start() for each in chain(*words, _TOKEN(text))):
        found = pattern.match(text, start) if start >= end else None
        if found:
            yield found
            end = found.end()
