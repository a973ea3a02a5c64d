"""The rows people write: what goes in, where it must arrive, what it must leave behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from harness_core import limits

__all__ = ["DbAssertion", "E2EScenario", "Golden"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DbAssertion:
    """What must stand in one table afterwards.

    Attributes:
        butler: whose database.
        table: table name, optionally with its schema.
        where: column → value or matcher; picks the rows. ``{token}`` inside a text stands for
            the run's unguessable token.
        column_checks: column → value or matcher that at least one picked row must also meet.
        count: exactly this many rows must be picked; ``None`` asks for at least one. ``0`` says
            that nothing may have been written.

    Source: seed 000, "Dimension 2".
    """

    butler: str
    table: str
    where: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    column_checks: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    count: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """What stands for "as the snapshot says" in ``expected_output``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class E2EScenario:
    """One message and everything that must follow from it.

    Attributes:
        id: kebab-case, unique in its table; names the test.
        description: one sentence for the reader.
        input_prompt: what the user says. ``{token}`` in it is replaced by an unguessable word, so
            that a row can be traced to this very run.
        expected_butler: where the message must be routed; several for a message of several
            domains. No other butler may run a session for it.
        expected_tool_calls: tools that must have been called, as ``tool`` or ``butler.tool``.
        db_assertions: rows that must (or must not) stand in databases afterwards.
        tags: for selection with ``-m`` and for reports.
        expected_output: text that the message's response summary must contain, compared without
            regard to case; ``None`` makes no claim. ``GOLDEN``: everything the message left is
            compared with a snapshot as well.
        forbidden_tool_calls: tools, by bare name, that no session of the message may even try.
        alternatives: butlers that may be reached instead of or beside the expected ones, for a
            message that people would understand in more than one way. Its words must arrive.
        pass_rate: share of live runs that must pass; judged by a sequential test, since a model
            that is asked twice may answer twice. ``None``: every run must pass.
        timeout_s: seconds from ingest to the final state of the inbox row.

    Source: seed 000, "Dimension 2".
    """

    id: str
    description: str
    input_prompt: str
    expected_butler: str | Sequence[str]
    expected_tool_calls: Sequence[str] = ()
    db_assertions: Sequence[DbAssertion] = ()
    tags: Sequence[str] = ()
    expected_output: str | Golden | None = None
    forbidden_tool_calls: Sequence[str] = ()
    alternatives: Sequence[str] = ()
    pass_rate: float | None = None
    timeout_s: float = limits.SCENARIO_S

    @property
    def expected_butlers(self) -> tuple[str, ...]:
        """The expected butlers, also where the row names one as a plain text."""
        if isinstance(self.expected_butler, str):
            return (self.expected_butler,)
        return tuple(self.expected_butler)
