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
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.base.evidence import Redactor
from harness_core.base.texts import map_texts

_DROPPED: Final = frozenset(
    {"metadata", "stream", "stream_options", "cache_control", "service_tier"}
)

#: Groups around the masked part stay. All of it is what the Claude Code CLI tells the model about
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request reduced to what it asks.

    Attributes:
        request: the normalised body.
        values: placeholder → what stood there.
        today: the day of the call.
    """

    request: Mapping[str, Any]
    values: Mapping[str, str]
    today: dt.date
    _redactor: Redactor = field(repr=False)

    @property
    def key(self) -> str:
        """The same for the same question: 64 hexadecimal digits."""
        return key_of(self.request)

    def named(self, value: Any) -> Any:
        """An answer with the values of this request, near dates and secrets replaced."""
        known = sorted(
            ((text, name) for name, text in self.values.items()),
            key=lambda pair: -len(pair[0]),
        )

        def replace(text: str) -> str:
            text = self._redactor.redact(text)
            for found, name in known:
                text = text.replace(found, name)
            return re.sub(_DATE, lambda match: _near(match[0], self.today), text)

        return map_texts(value, replace)

    def filled(self, value: Any) -> Any:
        """An answer as :meth:`named` left it, with the values of this request in it."""

        def put(match: re.Match[str]) -> str:
            if match["days"] is not None or match[0] == "<today>":
                return str(self.today + dt.timedelta(days=int(match["days"] or 0)))
            return self.values.get(match[0], match[0])

        return map_texts(
            value, lambda text: re.sub(r"<(?:today(?P<days>[+-]\d+)?|[a-z]+-\d+)>", put, text)
        )


def key_of(request: Mapping[str, Any]) -> str:
    """The digest of a normalised request."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class Normaliser:
    """Reduces requests.

    Args:
        redactor: knows the secrets of the run.
        volatile: kind → pattern of further values that differ from run to run.
    """

    def __init__(
        self, *, redactor: Redactor | None = None, volatile: Mapping[str, str] | None = None
    ) -> None:
        self.redactor = redactor or Redactor()
        kinds = {**(volatile or {}), **_NAMED}
        self._pattern = re.compile(
            "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items())
            + f"|(?P<date>{_DATE})"
        )

    def asked(self, body: Mapping[str, Any], *, now: dt.datetime) -> Asked:
        """Reduce one request.

        Args:
            body: the request in the shape of the Messages API.
            now: when it arrived; the request's own word on the day goes before.
        """
        told = _TODAY.search(json.dumps(body, ensure_ascii=False))
        today = dt.date.fromisoformat(told[1]) if told else now.date()
        names = _Names(today)

        def walk(value: Any, *, key: str = "") -> Any:
            if isinstance(value, Mapping):
                return {
                    # A tool call's id is one wherever it stands; it looks like nothing in general.
                    inner: walk(_plain(inner, value[inner]), key=_id_key(inner, value))
                    for inner in sorted(value)
                    if inner not in _DROPPED
                }
            if isinstance(value, list | tuple):
                return [walk(item) for item in value]
            if isinstance(value, str):
                return names.of("call", value) if key else self._text(value, names)
            return value

        request = walk(body)
        return Asked(request=request, values=names.values, today=today, _redactor=self.redactor)

    def _text(self, text: str, names: _Names) -> str:
        text = self.redactor.redact(text)
        for pattern in _MASKED:
            text = pattern.sub(rf"\1{_MASK}\2", text)
        return self._pattern.sub(lambda match: names.of(str(match.lastgroup), match[0]), text)


class _Names:
    """Placeholders handed out so far."""

    def __init__(self, today: dt.date) -> None:
        self._today = today
        self._given: dict[tuple[str, str], str] = {}
        self._count: dict[str, int] = {}
        self.values: dict[str, str] = {}

    def of(self, kind: str, value: str) -> str:
        if kind == "date":
            return _near(value, self._today)
        known = self._given.get((kind, value))
        if known is not None and kind != "time":
            return known
        self._count[kind] = self._count.get(kind, 0) + 1
        name = f"<{kind}-{self._count[kind]}>"
        self._given[kind, value] = name
        self.values[name] = value
        return name


def _id_key(key: str, holder: Mapping[str, Any]) -> str:
    kind = holder.get("type")
    is_id = (kind == "tool_use" and key == "id") or (kind == "tool_result" and key == "tool_use_id")
    return key if is_id else ""


def _plain(key: str, value: Any) -> Any:
    """One block of text where a text may stand is that text: clients write either."""
    if key in ("content", "system") and isinstance(value, list) and len(value) == 1:
        (part,) = value
        if isinstance(part, Mapping) and part.get("type") == "text" and "text" in part:
            return part["text"]
    return value


def _near(text: str, today: dt.date) -> str:
    """A date close to the day of the call by its distance; any other as it is."""
    try:
        days = (dt.date.fromisoformat(text) - today).days
    except ValueError:
        return text
    if abs(days) > _NEAR_DAYS:
        return text
    return f"<today{days:+d}>" if days else "<today>"
