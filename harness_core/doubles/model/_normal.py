"""What of a request is the same when the same thing is asked again, and what is not.

A request is recognised by what it asks. What differs from run to run although the question is the
same is either dropped, or masked, or given a name; a value with a name that the answer repeats is
put back when the answer is replayed, so that a replayed tool call writes *this* run's token.

Dropped: ``metadata`` (user, device, session), ``stream`` and ``stream_options`` (the same answer
may be asked for either way), ``cache_control`` and ``service_tier`` (what the provider charges). A single block of text is the same as that text.
Masked: see ``_MASKED``. Named: see ``_NAMED``, ids of tool calls, dates within ``_NEAR_DAYS`` of
the day of the call, and whatever the cassette's own ``volatile.json`` lists. Secrets are redacted
before anything else.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from harness_core.base.evidence import Redactor
from harness_core.base.texts import map_texts

_DROPPED: Final = frozenset(
    {"metadata", "stream", "stream_options", "cache_control", "service_tier"}
)

#: Groups around the masked part stay. All of it is what the Claude Code CLI writes to the model about
#: the machine it runs on and about itself.
_MASKED: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^( - (?:Is a git repository|Platform|Shell|OS Version): )[^\n]*()$",
        r"^(x-anthropic-billing-header: )[^\n]*()$",
        r"(<total_tokens>)\d+( tokens left)",
    )
)

#: Kind → what such a value looks like. ``word`` is the token of ``harness_core.assertions``. A
#: ``time`` is counted by occurrence, any other by value: two times that were equal in one run may
#: be a microsecond apart in the next, two ids that are equal name one thing.
_NAMED: Final[Mapping[str, str]] = {
    "uuid": r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    "hex": r"\b[0-9a-f]{32}\b",
    "word": r"\bzx[bcdfghjkmnpqrstvwxz2-9]{8}\b",
    "time": (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?![\d:])"),
    "address": r"\b(?:127\.0\.0\.1|localhost):\d{2,5}\b",
    "path": r"(?<![\w/])/(?:tmp|dev/shm|run|var/folders|var/tmp)/[^\s\"'`<>]*[\w/]",
}

_DATE: Final = r"(?<![\d-])\d{4}-\d\d-\d\d(?![\d-])"
_TODAY: Final = re.compile(rf"Today's date is ({_DATE})")

#: Dates as near as this move with the day of the call ("tomorrow"); others are taken as they are
#: (somebody's birthday).
_NEAR_DAYS: Final = 14

_MASK: Final = "<masked>"

#: Type of a block → its field that is the id of a tool's call.
_CALL_IDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


def named_pattern(volatile: Mapping[str, str]) -> re.Pattern[str]:
    """What is given a name, with further kinds of values that differ from run to run."""
    kinds = {**volatile, **_NAMED, "date": _DATE}
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))


def key_of(request: Mapping[str, Any]) -> str:
    """The digest of a normalised request, the same for the same question."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class Asked:
    """A request reduced to what it asks.

    Args:
        body: the request in the shape of the Messages API.
        now: when it arrived; where the request names the day itself, that day counts.
        redactor: knows the secrets of the run.
        pattern: of :func:`named_pattern`.

    Attributes:
        request: the normalised body.
        key: its digest.
        values: placeholder → what stood there.
    """

    def __init__(
        self,
        body: Mapping[str, Any],
        *,
        now: dt.datetime,
        redactor: Redactor,
        pattern: re.Pattern[str],
    ) -> None:
        self._redactor = redactor
        self._pattern = pattern
        stated = _TODAY.search(json.dumps(body, ensure_ascii=False))
        self._today = dt.date.fromisoformat(stated[1]) if stated else now.date()
        self._names: dict[tuple[str, str], str] = {}
        self.values: dict[str, str] = {}
        self.request: Mapping[str, Any] = self._reduced(body)
        self.key = key_of(self.request)

    def named(self, value: Any) -> Any:
        """An answer with the values of this request, near dates and secrets replaced."""
        longest_first = sorted(self.values.items(), key=lambda pair: -len(pair[1]))

        def replace(text: str) -> str:
            text = self._redactor.redact(text)
            for name, found in longest_first:
                text = text.replace(found, name)
            return re.sub(_DATE, lambda match: self._name("date", match[0]), text)

        return map_texts(value, replace)

    def filled(self, value: Any) -> Any:
        """An answer as :meth:`named` left it, with the values of this request in it."""

        def put(match: re.Match[str]) -> str:
            if match["day"] is not None:
                return str(self._today + dt.timedelta(days=int(match["days"] or 0)))
            return self.values.get(match[0], match[0])

        placeholder = r"<(?:(?P<day>today)(?P<days>[+-]\d+)?|[a-z]+-\d+)>"
        return map_texts(value, lambda text: re.sub(placeholder, put, text))

    def _reduced(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            # A tool call's id is one wherever it stands; it looks like nothing in general.
            call = _CALL_IDS.get(str(value.get("type")))
            return {
                key: self._name("call", str(value[key]))
                if key == call
                else self._reduced(_plain(key, value[key]))
                for key in sorted(value)
                if key not in _DROPPED
            }
        if isinstance(value, list):
            return [self._reduced(item) for item in value]
        if isinstance(value, str):
            text = self._redactor.redact(value)
            for pattern in _MASKED:
                text = pattern.sub(rf"\1{_MASK}\2", text)
            return self._pattern.sub(lambda match: self._name(str(match.lastgroup), match[0]), text)
        return value

    def _name(self, kind: str, value: str) -> str:
        """The placeholder of a value; of a date that is near, its distance from today."""
        if kind == "date":
            try:
                days = (dt.date.fromisoformat(value) - self._today).days
            except ValueError:
                return value
            near = f"<today{days:+d}>" if days else "<today>"
            return near if abs(days) <= _NEAR_DAYS else value
        name = self._names.get((kind, value), "")
        if not name or kind == "time":
            number = 1 + sum(name.startswith(f"<{kind}-") for name in self.values)
            name = self._names[kind, value] = f"<{kind}-{number}>"
            self.values[name] = value
        return name


def _plain(key: str, value: Any) -> Any:
    """One block of text where a text may stand is that text: clients write either."""
    if key in ("content", "system") and isinstance(value, list) and len(value) == 1:
        (part,) = value
        if isinstance(part, Mapping) and part.get("type") == "text" and "text" in part:
            return part["text"]
    return value
