"""What of an outcome can be pinned: its structure, with a stable name for whatever differs each run.

A golden run compares everything a message left with what it left when a person read it and found it
right. Ids, times and tokens differ each time, so each gets a name that is the same each time. What
is masked is masked field by field and with a reason, so that a mask never grows into a blindfold:
the type stays visible, and a missing value stays missing.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from harness_core.assertions._rows import Golden
from harness_core.base.errors import BadInput

#: ``expected_output=GOLDEN``: the whole outcome is pinned as a snapshot.
GOLDEN: Final = Golden()

_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_TIME: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
)
_DATE: Final = re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d(?![\d-])")

#: A date of a message ("1990-03-14") is content; one of these days is when the test ran.
_NEAR_DAYS: Final = 400


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """A field whose value is left out of a golden outcome.

    Attributes:
        field: its path; ``*`` stands for any one step, e.g. ``sessions.*.*.duration_ms``.
        reason: why its value says nothing about the product.
    """

    field: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse a mask without a field or a reason."""
        if not self.field.strip("*. "):
            raise BadInput("Mask", key="field", found=self.field, expected="a path to a field")
        if not self.reason.strip():
            raise BadInput("Mask", key=f"{self.field}: reason", found="", expected="a sentence")


def golden(
    value: Any,
    *,
    names: Mapping[str, str],
    masks: Sequence[Mask] = (),
    today: dt.date | None = None,
) -> Any:
    """An outcome as mappings, lists, texts and numbers that are the same in each run.

    Args:
        value: mappings, sequences, dataclasses and plain values, as databases and logs give them.
        names: text of this run → its name, e.g. ``{"zxk4…": "token"}``; wherever it occurs.
        masks: fields that are left out. Texts of ids, times and near dates need none: they get
            names (``<id-1>`` by first appearance, ``<time>``, ``<today+1>``).
        today: the day of the run.
    """
    return _Reader(names, masks, today or dt.datetime.now(dt.UTC).date()).read(value, ())


class _Reader:
    def __init__(self, names: Mapping[str, str], masks: Sequence[Mask], today: dt.date) -> None:
        self._known = sorted(names.items(), key=lambda pair: -len(pair[0]))
        self._masks = [tuple(mask.field.split(".")) for mask in masks]
        self._today = today
        self._ids: dict[str, str] = {}

    def read(self, value: Any, path: tuple[str, ...]) -> Any:
        if value is None:
            return None  # also under a mask: what is missing must be seen to be missing
        if any(_matches(mask, path) for mask in self._masks):
            return f"<{_kind(value)}>"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {self._text(str(k)): self.read(v, (*path, str(k))) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.read(item, (*path, str(index))) for index, item in enumerate(value)]
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        if isinstance(value, dt.datetime | dt.time):
            return "<time>"
        if isinstance(value, dt.date | UUID):
            return self._text(str(value))
        return self._text(value) if isinstance(value, str) else f"<{type(value).__name__}>"

    def _text(self, text: str) -> str:
        for known, name in self._known:
            text = text.replace(known, f"<{name}>")
        text = _UUID.sub(lambda match: self._id(match[0]), text)
        text = _TIME.sub("<time>", text)
        return _DATE.sub(lambda match: self._date(match[0]), text)

    def _id(self, text: str) -> str:
        return self._ids.setdefault(text.lower(), f"<id-{len(self._ids) + 1}>")

    def _date(self, text: str) -> str:
        try:
            days = (dt.date.fromisoformat(text) - self._today).days
        except ValueError:
            return text
        if abs(days) > _NEAR_DAYS:
            return text
        return f"<today{days:+d}>" if days else "<today>"


def _matches(mask: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(mask) == len(path) and all(
        want in ("*", step) for want, step in zip(mask, path, strict=True)
    )


def _kind(value: Any) -> str:
    """The kind of a masked value, so that a number that became a text is seen."""
    kinds: Iterator[str] = (
        name
        for types, name in (
            (bool, "flag"),
            (int | float | Decimal, "number"),
            (str, "text"),
            (dt.datetime | dt.date, "time"),
            (Mapping, "object"),
            (list | tuple, "list"),
        )
        if isinstance(value, types)
    )
    return next(kinds, type(value).__name__)
