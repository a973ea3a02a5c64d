"""The ledger: every call, in a file line by line and in memory for the control API."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness_core.llm._reply import Usage

__all__ = ["Ledger", "LedgerEntry", "Sum", "Totals", "add_up"]

#: Characters of the prompt kept in an entry.
PROMPT_CHARS: Final = 200

#: Characters of the answer kept in an entry.
ANSWER_CHARS: Final = 400

#: Entries kept in memory; a run of the whole suite makes a few hundred. The file has them all.
_ENTRIES_KEPT: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One call as it ended.

    Attributes:
        sequence: order of arrival, from 1.
        arrived_at: UTC time of arrival, ISO 8601.
        mode: the gateway's mode.
        kind: ``messages``, ``count_tokens`` or ``chat_completions``.
        test: the scope the call arrived in; empty outside every test.
        session: the client's session id; empty when it sent none.
        traceparent: W3C trace context as received.
        usd: price by the table, as if it had been paid; ``None`` for an unknown model.
        charged: whether the price counts against the budget (a call that reached a provider).
        status: HTTP status; 499 when the client went away before the end.
        error: why it was refused: ``budget_exceeded``, ``unmatched``, ``key_missing``,
            ``wrong_api_key``, ``wrong_bearer``, an API error type, or empty.
        fault: what a planted fault did to it, e.g. ``"status 529"``.
        tools: names of the tools offered.
        called: names of the tools the answer called.
        prompt: the first characters of the last user text, redacted.
        answer: the first characters of what was answered, calls of tools included, redacted.
        missing: what the prompt lacked of what a rehearsed turn needed: the product's fault.
        unrehearsed: why no turn was there for the call, or how the gateway itself failed: the
            harness's fault.
        hit: answered without a provider.
    """

    sequence: int
    arrived_at: str
    mode: str
    kind: str
    model: str
    status: int
    test: str = ""
    session: str = ""
    traceparent: str = ""
    stream: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0
    charged: bool = False
    latency_ms: float = 0.0
    stop_reason: str = ""
    error: str = ""
    fault: str = ""
    tools: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""
    missing: str = ""
    unrehearsed: str = ""
    hit: bool = True

    @property
    def usage(self) -> Usage:
        """Its tokens."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LedgerEntry:
        """Read what :func:`dataclasses.asdict` and JSON made of an entry."""
        known = {f.name for f in dataclasses.fields(cls)}
        values = {key: value for key, value in body.items() if key in known}
        for key in ("tools", "called"):
            values[key] = tuple(values.get(key, ()))
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Calls added up.

    Attributes:
        calls: messages and chat completions; ``count_tokens`` calls are free and not in it.
        input_tokens: with what was read from and written to the cache.
        usd: price of all priced calls, paid or as if paid.
        charged_usd: the part of it that counts against the budget.
        unpriced: calls whose model the price table does not know.
        failed: calls with a status of 400 or above.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    charged_usd: float = 0.0
    unpriced: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The ledger added up, and how the budget stands.

    Attributes:
        budget_exceeded: a call was refused because it did not fit the budget.
    """

    overall: Sum = field(default_factory=Sum)
    by_test: Mapping[str, Sum] = field(default_factory=dict)
    by_session: Mapping[str, Sum] = field(default_factory=dict)
    by_model: Mapping[str, Sum] = field(default_factory=dict)
    mode: str = ""
    budget_usd: float = 0.0
    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    budget_exceeded: bool = False

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Totals:
        """Read what :func:`dataclasses.asdict` and JSON made of totals."""

        def group(key: str) -> dict[str, Sum]:
            return {name: Sum(**value) for name, value in body[key].items()}

        return cls(
            overall=Sum(**body["overall"]),
            by_test=group("by_test"),
            by_session=group("by_session"),
            by_model=group("by_model"),
            mode=body["mode"],
            budget_usd=body["budget_usd"],
            spent_usd=body["spent_usd"],
            reserved_usd=body["reserved_usd"],
            budget_exceeded=body["budget_exceeded"],
        )


def add_up(entries: Iterable[LedgerEntry]) -> Sum:
    """Add entries up."""
    total = Sum()
    for entry in entries:
        total = _plus(total, entry)
    return total


def _plus(total: Sum, entry: LedgerEntry) -> Sum:
    if entry.kind == "count_tokens":
        return total
    tokens = entry.input_tokens + entry.cache_read_tokens + entry.cache_write_tokens
    usd = entry.usd or 0.0
    return Sum(
        calls=total.calls + 1,
        input_tokens=total.input_tokens + tokens,
        output_tokens=total.output_tokens + entry.output_tokens,
        usd=total.usd + usd,
        charged_usd=total.charged_usd + (usd if entry.charged else 0.0),
        unpriced=total.unpriced + (entry.usd is None),
        failed=total.failed + (entry.status >= 400),  # noqa: PLR2004 - HTTP's own bound
    )


class Ledger:
    """Entries of a run.

    Args:
        path: a JSONL file to append to, one line per call, flushed as it ends.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._entries: list[LedgerEntry] = []
        self._sequence = 0
        self._file = path.open("a", encoding="utf-8") if path is not None else None

    def next_sequence(self) -> int:
        """Number a call at its arrival."""
        self._sequence += 1
        return self._sequence

    def add(self, entry: LedgerEntry) -> None:
        """Record a call that ended."""
        if len(self._entries) < _ENTRIES_KEPT:
            self._entries.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(dataclasses.asdict(entry)) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def since(self, sequence: int) -> tuple[LedgerEntry, ...]:
        """Entries with a greater sequence number, in order of arrival."""
        found = (entry for entry in self._entries if entry.sequence > sequence)
        return tuple(sorted(found, key=lambda entry: entry.sequence))

    def totals(self) -> Totals:
        """Everything added up; budget fields are the caller's to fill."""
        by_test: dict[str, Sum] = {}
        by_session: dict[str, Sum] = {}
        by_model: dict[str, Sum] = {}
        for entry in self._entries:
            for group, key in (
                (by_test, entry.test),
                (by_session, entry.session),
                (by_model, entry.model),
            ):
                group[key] = _plus(group.get(key, Sum()), entry)
        return Totals(
            overall=add_up(self._entries),
            by_test=by_test,
            by_session=by_session,
            by_model=by_model,
        )
