"""Which parts of a text are secret, and what stands in their place.

Redaction happens where text is written, never afterwards: a file that held a secret for a moment
has leaked it. Two sources: values registered by whoever made or received them, and shapes that
are secret whoever made them (provider keys, bearer tokens, passwords in URLs).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["REDACTED", "Redactor"]

REDACTED: Final = "[redacted]"

#: Shorter values are too likely to occur in ordinary text ("no", "1234").
_SHORTEST_SECRET: Final = 6

#: (pattern, replacement). Group 1 is what identifies the secret and stays readable.
_SHAPES: Final = (
    (re.compile(r"(sk-(?:ant-|proj-)?)[A-Za-z0-9_\-]{8,}"), rf"\1{REDACTED}"),
    (re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/\-]{8,}=*"), rf"\1{REDACTED}"),
    (re.compile(r"(\b[a-z][a-z0-9+.\-]*://[^\s:/@]+:)[^\s@/]+(?=@)"), rf"\1{REDACTED}"),
    (
        re.compile(
            r"(?i)(\b[\w.-]*(?:api[_-]?key|secret|password|passwd|auth[_-]?token|access[_-]?token)"
            r"[\"']?\s*[=:]\s*[\"']?)(?!\[redacted\])[^\s\"',;&]{6,}"
        ),
        rf"\1{REDACTED}",
    ),
)


class Redactor:
    """Replaces secrets in text; shared by all evidence of a run."""

    def __init__(self) -> None:
        self._values: list[str] = []

    def add(self, *secrets: str) -> None:
        """Register values that must never be written. Empty and very short ones are refused.

        Raises:
            ValueError: a value shorter than six characters, which would redact ordinary text.
        """
        for secret in secrets:
            if len(secret) < _SHORTEST_SECRET:
                message = (
                    f"cannot redact a secret of {len(secret)} characters: expected at least "
                    f"{_SHORTEST_SECRET}"
                )
                raise ValueError(message)
            if secret not in self._values:
                self._values.append(secret)
        # Longest first: a secret that contains another is replaced whole.
        self._values.sort(key=len, reverse=True)

    def redact(self, text: str) -> str:
        """``text`` with every known or secret-shaped value replaced by ``[redacted]``."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        for pattern, replacement in _SHAPES:
            text = pattern.sub(replacement, text)
        return text
