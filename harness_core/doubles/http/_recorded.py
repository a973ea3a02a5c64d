"""One request as a recorder saw it, and what of it may be written down."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import REDACTED, Redactor

#: Characters of a body kept in the evidence; whole bodies are in memory while the recorder is open.
_BODY_CHARS: Final = 20_000

#: A header whose name holds one of these is a secret whatever its value looks like.
_SECRET_HEADERS: Final = ("auth", "cookie", "key", "password", "secret", "token")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request; secrets are readable here, and redacted where it is written.

    Attributes:
        sequence: order in which the requests began, from 1.
        arrived_at: UTC time at which its head was read, ISO 8601.
        method: in capitals; empty when the request line could not be read.
        target: path and query as sent.
        headers: names in lower case, in the order sent, repeated ones repeated.
        body: with its content encoding undone; what came of it when ``problem`` is set.
        problem: why it is not whole or no request to it at all (client gone, malformed, for another
            host, too large); empty for a good one.
        status: what it was answered; 0 for no answer.
        rule: the rule that answered, as its author called it; empty for none.
    """

    sequence: int
    arrived_at: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = dataclasses.field(default=b"", repr=False)
    problem: str = ""
    status: int = 0
    rule: str = ""

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", errors="replace")

    def header(self, name: str) -> str:
        """The values of a header, joined by commas; empty without one."""
        return ", ".join(value for key, value in self.headers if key == name.lower())

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            HarnessError: it is none; whether that is a failure is for the test to decide.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            action = f"read the body of {self.method} {self.path} as JSON"
            raise HarnessError(action, observed=f"{error}: {self.text[:200]!r}") from error


def utc_now() -> str:
    """The time in UTC, ISO 8601 with milliseconds: ``2026-03-02T10:11:12.345Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header_texts(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Headers as texts, names in lower case."""
    return tuple((n.decode("latin-1").lower(), value.decode("latin-1")) for n, value in headers)


def written(request: Recorded, redactor: Redactor) -> dict[str, Any]:
    """What the evidence keeps of a request: secret headers by name, everything else by value."""
    return {
        "sequence": request.sequence,
        "arrived_at": request.arrived_at,
        "method": request.method,
        "target": redactor.redact(request.target),
        "headers": shown_headers(request.headers, redactor),
        "body": shown_body(request.body, redactor),
        "problem": request.problem,
        "status": request.status,
        "rule": request.rule,
    }


def _secret(name: str) -> bool:
    return any(word in name for word in _SECRET_HEADERS)


def shown_headers(headers: Sequence[tuple[str, str]], redactor: Redactor) -> list[list[str]]:
    """Headers as evidence: those that are secrets by name, everything else by value."""
    return [
        [name, REDACTED if _secret(name.lower()) else redactor.redact(value)]
        for name, value in headers
    ]


def shown_body(body: bytes, redactor: Redactor) -> object:
    """A body as evidence: JSON as JSON, text as text, anything else by its size."""
    if not body:
        return ""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(body)} B that are no text)"
    if "\0" in text:
        return f"({len(body)} B that are no text)"
    # Redacted before it is cut: the front of a secret is a secret too.
    text = redactor.redact(text)
    if len(text) > _BODY_CHARS:
        return f"{text[:_BODY_CHARS]}… ({len(text) - _BODY_CHARS} characters more)"
    try:
        return json.loads(text)
    except ValueError:
        return text
