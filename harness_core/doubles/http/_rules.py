"""What a recorder answers: rules that pick requests, and the answers they give."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from harness_core.base.errors import BadInput
from harness_core.doubles.http._recorded import Recorded


class Drop(StrEnum):
    """How an answer fails to arrive."""

    #: The connection is closed without an answer.
    UNANSWERED = "unanswered"
    #: The head promises the whole body; half of it is sent.
    CUT = "cut"
    #: No answer is sent and the connection stays open for as long as the client keeps it.
    SILENT = "silent"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        status: HTTP status.
        headers: beside ``Content-Length`` and, for ``json``, ``Content-Type``.
        body: bytes, or text that is sent as UTF-8.
        json: sent as the body instead, unless ``None``.
        latency_s: seconds that pass before the first byte.
        drop: how it fails to arrive: ``"unanswered"``, ``"cut"``, ``"silent"``; empty: it does not.
    """

    status: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | str = b""
    json: Any = None
    latency_s: float = 0.0
    drop: str = ""

    def __post_init__(self) -> None:
        """Refuse what could not be sent, where it is written and not when it is asked for."""
        if not 200 <= self.status <= 599:  # noqa: PLR2004 - final statuses of HTTP
            raise BadInput("answer", key="status", found=self.status, expected="200 to 599")
        if self.latency_s < 0:
            raise BadInput("answer", key="latency_s", found=self.latency_s, expected="0 or more")
        if self.drop and self.drop not in set(Drop):
            raise BadInput(
                "answer", key="drop", found=self.drop, expected=f"one of {', '.join(Drop)}"
            )
        if self.json is not None and self.body:
            raise BadInput("answer", key="json", found="a body too", expected="one of the two")

    def payload(self) -> tuple[list[tuple[str, str]], bytes]:
        """Headers and body as they are sent."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.json is not None:
            body = json.dumps(self.json).encode()
            headers.setdefault("content-type", "application/json")
        else:
            body = self.body.encode() if isinstance(self.body, str) else self.body
        headers["content-length"] = str(len(body))
        return list(headers.items()), body


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which requests get which answer.

    Attributes:
        path: shell pattern of the path, e.g. ``/bot*/sendMessage``; matches case and all.
        method: in capitals; empty for any.
        answer: the answer, or what makes it of the request. A function that raises ends the
            recorder, and with it the block it is open for.
        times: requests it answers before it is spent; ``None`` for ever.
        name: what the record calls it; its method and path otherwise.
    """

    path: str = "*"
    method: str = ""
    answer: Answer | Callable[[Recorded], Answer] = Answer()
    times: int | None = None
    name: str = ""

    def matches(self, request: Recorded) -> bool:
        """Whether it is for this request."""
        return self.method in {"", request.method} and fnmatchcase(request.path, self.path)

    def answer_to(self, request: Recorded) -> Answer:
        """Its answer to this request."""
        return self.answer if isinstance(self.answer, Answer) else self.answer(request)

    @property
    def label(self) -> str:
        """Its name in the record."""
        return self.name or f"{self.method or 'any'} {self.path}"
