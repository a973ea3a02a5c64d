"""The ledger: every call, in a file line by line and in memory for the control API."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from harness_core.doubles.model._reply import Usage
from harness_core.doubles.model._stream import AnswerReader

#: Characters of the prompt kept in an entry.
PROMPT_CHARS: Final = 200

#: Characters of the answer kept in an entry.
ANSWER_CHARS: Final = 400

_sequence: Final = attrgetter("sequence")

#: Entries kept in memory; a run of the whole suite makes a few hundred. The file has them all.
_ENTRIES_KEPT: Final = 100_000


@dataclass(slots=True, kw_only=True)
class LedgerEntry:
    """One call: filled in while it is answered, and recorded as it ended.

    Attributes:
        sequence: order of arrival, from 1.
        arrived_at: UTC time of arrival, ISO 8601.
        mode: the gateway's mode.
        kind: ``messages``, ``count_tokens``, ``chat_completions``, ``responses`` or ``embeddings``.
        test: the scope the call arrived in; empty outside every test.
        session: the client's session id; empty when it sent none.
        traceparent: W3C trace context as received.
        usd: price by the table, as if it had been paid; ``None`` for an unknown model.
        charged: whether the price counts against the budget (a call that reached a provider).
        status: HTTP status; 499 when the client went away before the end.
        error: why it was refused: ``budget_exceeded``, ``cassette_miss``, ``key_missing``,
            ``wrong_api_key``, ``wrong_bearer``, an API error type, or empty.
        fault: what a planted fault did to it, e.g. ``"status 529"``.
        tools: names of the tools offered.
        called: names of the tools the answer called.
        prompt: the first characters of the last user text, redacted.
        answer: the first characters of what was answered, calls of tools included, redacted.
        missing: what the prompt lacked of what a rehearsed turn needed: the product's fault.
        unrehearsed: why no turn was there for the call, or how the gateway itself failed: the
            harness's fault.
    """

    sequence: int
    arrived_at: str
    mode: str
    kind: str
    model: str = ""
    status: int = 0
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

    @property
    def usage(self) -> Usage:
        """Its tokens."""
        return Usage(**{name: getattr(self, name) for name in Usage.__struct_fields__})

    @usage.setter
    def usage(self, usage: Usage) -> None:
        for name, tokens in structs.asdict(usage).items():
            setattr(self, name, tokens)

    def read(self, answer: AnswerReader) -> None:
        """Take over what was read of an answer so far."""
        self.usage, self.stop_reason = answer.usage, answer.stop_reason
        self.called, self.error = answer.called, answer.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Calls added up.

    Attributes:
        calls: of every kind but ``count_tokens``, which are free.
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

    @staticmethod
    def of(call: LedgerEntry) -> Sum:
        """One call."""
        return Sum(
            calls=1,
            input_tokens=call.input_tokens + call.cache_read_tokens + call.cache_write_tokens,
            output_tokens=call.output_tokens,
            usd=call.usd or 0.0,
            charged_usd=call.usd or 0.0 if call.charged else 0.0,
            unpriced=call.usd is None,
            failed=call.status >= 400,  # noqa: PLR2004 - HTTP's own bound
        )

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            **{
                each.name: getattr(self, each.name) + getattr(other, each.name)
                for each in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The ledger added up, and how the budget stands.

    Attributes:
        budget_exceeded: a call was refused because it did not fit the budget.
    """

    overall: Sum = Sum()
    by_test: dict[str, Sum] = field(default_factory=dict)
    mode: str = ""
    budget_usd: float = 0.0
    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    budget_exceeded: bool = False

    @staticmethod
    def sum(parts: Iterable[Totals]) -> Totals:
        """The totals of gateways that were one run's: each had a share of its budget."""
        parts = list(parts)
        by_test: dict[str, Sum] = {}
        for test, group in (pair for part in parts for pair in part.by_test.items()):
            by_test[test] = by_test.get(test, Sum()) + group
        return Totals(
            overall=sum((part.overall for part in parts), Sum()),
            by_test=by_test,
            mode=" and ".join(sorted({part.mode for part in parts if part.mode})),
            budget_usd=sum(part.budget_usd for part in parts),
            spent_usd=sum(part.spent_usd for part in parts),
            reserved_usd=sum(part.reserved_usd for part in parts),
            budget_exceeded=any(part.budget_exceeded for part in parts),
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
            bisect.insort(self._entries, entry, key=_sequence)
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry).decode() + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def last_sequence(self) -> int:
        """Of the calls that have ended; 0 before the first."""
        return self._entries[-1].sequence if self._entries else 0

    def since(self, sequence: int) -> list[LedgerEntry]:
        """Entries with a greater sequence number, in order of arrival."""
        return self._entries[bisect.bisect_right(self._entries, sequence, key=_sequence) :]

    def totals(self) -> Totals:
        """Every call added up; budget fields are the caller's to fill."""
        by_test: dict[str, Sum] = {}
        for entry in self._entries:
            if entry.kind != "count_tokens":
                by_test[entry.test] = by_test.get(entry.test, Sum()) + Sum.of(entry)
        return Totals(overall=sum(by_test.values(), Sum()), by_test=by_test)
