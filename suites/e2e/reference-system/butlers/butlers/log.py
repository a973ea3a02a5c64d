"""One line per event on stderr: ``time level butler event key=value …``, secrets replaced.

Third-party loggers are brought into the same shape and capped at `warning`: an `error` line means
that this butler failed at something, and an operator is woken by it.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import quote

_LONGEST_VALUE_CHARS = 500
_SHORTEST_SECRET_CHARS = 6


class Log:
    """The log of one butler.

    Args:
        butler: name printed in every line.
    """

    def __init__(self, butler: str) -> None:
        self.butler = butler
        self._spellings: set[str] = set()

    def hide(self, *secrets: str | None) -> None:
        """Replace these values in every later line (passwords, keys, tokens)."""
        for secret in secrets:
            if secret and len(secret) >= _SHORTEST_SECRET_CHARS:
                self._spellings.update(_spelled(secret))

    def redact(self, text: str) -> str:
        """The text with every known secret replaced, also where two of them overlap."""
        parts: list[str] = []
        shown_to = 0
        for begin, end in sorted(self._places(text)):
            if begin >= shown_to:
                parts += [text[shown_to:begin], "***"]
            shown_to = max(shown_to, end)
        return "".join([*parts, text[shown_to:]])

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        for secret in self._spellings:
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = text.find(secret, at + 1)

    def debug(self, event: str, **fields: object) -> None:
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            self._write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # Before a value is cut or quoted: what is left of a secret then looks like none.
        pairs = "".join(f" {key}={_shown(value, self.redact)}" for key, value in fields.items())
        line = self.redact(f"{now} {level} {self.butler} {event}{pairs}")
        # One write call, so that lines of threads do not interleave.
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def adopt_library_loggers(self) -> None:
        """Send the warnings of libraries through this log, one line each, never as errors."""
        root = logging.getLogger()
        root.handlers[:] = [_Forward(self)]
        root.setLevel(logging.WARNING)


class _Forward(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = describe(record.exc_info[1])
        self._log.warning("library", **fields)


def describe(error: BaseException) -> str:
    """The innermost cause of an error in one line; exception groups are unwrapped."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _spelled(secret: str) -> set[str]:
    """A secret as others may have written it into their words: as it is, in JSON, in a URL."""
    quoted = {json.dumps(secret, ensure_ascii=ascii_alone)[1:-1] for ascii_alone in (True, False)}
    return {secret, *quoted, quote(secret, safe="")}


def _shown(value: object, redact: Callable[[str], str]) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:.3f}"
    text = redact(str(value))
    if len(text) > _LONGEST_VALUE_CHARS:
        text = text[:_LONGEST_VALUE_CHARS] + "…"
    if not text or any(c.isspace() or c in '"=' for c in text):
        return json.dumps(text, ensure_ascii=False)
    return text
