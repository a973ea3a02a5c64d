"""The rows people write: what goes in, where it must arrive, what it must leave behind."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from harness_core.assertions._said import Said
from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.base.reading import did_you_mean
from harness_core.doubles.turns import Turn, Use


class _Row:
    """A row whose misspelt and missing fields are reported with its file and line, as in any file."""

    __slots__ = ()

    def __new__(cls, **fields: Any) -> Self:
        """Check the names of the fields."""
        known = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = [name for name in fields if name not in known]
        missing = [
            name
            for name, field in known.items()
            if name not in fields
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        if fields and (unknown or missing):  # a copy is made without any
            caller = sys._getframe(1)  # noqa: SLF001 - where the row is written
            row = f"{cls.__name__} {fields['id']!r}" if "id" in fields else cls.__name__
            free = known.keys() - fields.keys()
            raise BadInput(
                f"{caller.f_code.co_filename}:{caller.f_lineno}",
                key=f"{row}: {(unknown or missing)[0]}",
                found=fields[unknown[0]] if unknown else None,
                expected=f"one of the fields {', '.join(known)}" if unknown else "a value",
                next_step=did_you_mean(unknown[0], free) if unknown else "",
            )
        return object.__new__(cls)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DbAssertion(_Row):
    """What must stand in one table afterwards.

    Attributes:
        butler: whose database.
        table: table name, optionally with its schema.
        where: column → value or matcher; picks the rows. ``{token}`` inside a text stands for
            the run's unguessable token.
        column_checks: column → value or matcher that at least one picked row must also meet.
        count: exactly this many rows must be picked; ``None`` asks for at least one. ``0`` says
            that nothing may have been written.
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
class E2EScenario(_Row):
    """One message and everything that must follow from it.

    Attributes:
        id: kebab-case, unique in its table; names the test.
        description: one sentence for the reader.
        input_prompt: what the user says. ``{token}`` in it is replaced by an unguessable word, so
            that a row can be traced to this very run.
        model: what the model does for this message when it is rehearsed (docs/how-to/gateway.md). With a
            real model it is a comment.
        expected_butler: where the message must be routed; several for a message of several
            domains. No other butler may run a session for it.
        expected_tool_calls: tools that must have been called, as ``tool`` or ``butler.tool``.
        db_assertions: rows that must (or must not) stand in databases afterwards.
        tags: for selection with ``-m`` and for reports.
        expected_output: text that the message's response summary must contain, compared without
            regard to case; ``None`` makes no claim. ``GOLDEN``: everything the message left is
            compared with a snapshot as well.
        says: what the response summary must say, judged loosely.
        forbidden_tool_calls: tools, by bare name, that no session of the message may even try.
        alternatives: butlers that may be reached instead of or beside the expected ones, for a
            message that people would understand in more than one way. Its words must arrive.
        pass_rate: share of live runs that must pass; judged by a sequential test, since a model
            that is asked twice may answer twice. ``None``: every run must pass.
        timeout_s: seconds from ingest to the final state of the inbox row.
    """

    id: str
    description: str
    input_prompt: str
    expected_butler: str | Sequence[str]
    model: Sequence[Turn | Sequence[Use]] = ()
    expected_tool_calls: Sequence[str] = ()
    db_assertions: Sequence[DbAssertion] = ()
    tags: Sequence[str] = ()
    expected_output: str | Golden | None = None
    says: Said | None = None
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
