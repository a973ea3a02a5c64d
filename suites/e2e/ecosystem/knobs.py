"""Settings of a subject that a test may turn: which there are, and how the subject is told.

The contract has deadlines "from config" and leaves their names to the product. A subject file says
them in ``[knobs.NAME]``: environment variables with ``{NAME}`` or ``{name}`` of the butler and the
``{value}``. A knob that a subject lacks skips, by name, the tests that need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from harness_core.base.errors import BadInput
from harness_core.base.reading import Table
from harness_core.system.subject import Subject, Variables

__all__ = ["Knobs", "has_knob", "turned"]


class Knobs(Table, frozen=True):
    """Every knob a test may ask for: the variables that turn it.

    Attributes:
        connect_deadline_s: switchboard: until a target speaks MCP.
        heartbeat_s: butler: between two registrations.
        hop_deadline_s: switchboard: one route.execute.
        lease_s: switchboard: silence after which a butler is stale.
        queue_depth: butler: triggers that may wait behind the running one.
        session_deadline_s: butler: one session.
        shutdown_s: butler: what running sessions get to end at shutdown.
    """

    connect_deadline_s: Variables = field(default_factory=dict)
    heartbeat_s: Variables = field(default_factory=dict)
    hop_deadline_s: Variables = field(default_factory=dict)
    lease_s: Variables = field(default_factory=dict)
    queue_depth: Variables = field(default_factory=dict)
    session_deadline_s: Variables = field(default_factory=dict)
    shutdown_s: Variables = field(default_factory=dict)


def has_knob(subject: Subject, knob: str) -> bool:
    """Whether a subject can be told this setting.

    Raises:
        BadInput: no test knows such a knob, or one that the file declares.
    """
    declared = subject.table("knobs")
    for where, name in (("knob", knob), *((f"{subject.path}: knobs", name) for name in declared)):
        if name not in Knobs.__struct_fields__:
            raise BadInput(
                where, found=name, expected=f"one of {', '.join(Knobs.__struct_fields__)}"
            )
    return knob in declared


def turned(subject: Subject, butler: str, **values: float) -> dict[str, str]:
    """The environment that turns knobs of one butler; those the subject lacks stay as they are.

    Raises:
        BadInput: the subject file's table is malformed, or no test knows such a knob.
    """
    environment: dict[str, str] = {}
    for knob, value in values.items():
        if has_knob(subject, knob):
            fields = {
                "name": butler,
                "NAME": butler.upper().replace("-", "_"),
                "value": f"{value:g}",
            }
            for key, text in _variables(subject, knob).items():
                environment[_filled(subject, knob, key, fields)] = _filled(
                    subject, knob, text, fields
                )
    return environment


def _variables(subject: Subject, knob: str) -> Mapping[str, Any]:
    table = subject.table("knobs")[knob]
    if not isinstance(table, Mapping) or not all(isinstance(v, str) for v in table.values()):
        raise BadInput(
            subject.path,
            key=f"knobs.{knob}",
            found=table,
            expected="a table of environment variables, with {value} where the value goes",
        )
    return table


def _filled(subject: Subject, knob: str, text: str, fields: Mapping[str, str]) -> str:
    try:
        return text.format_map(fields)
    except (KeyError, ValueError, IndexError) as error:
        raise BadInput(
            subject.path,
            key=f"knobs.{knob}",
            found=text,
            expected="no braces but {name}, {NAME} and {value}",
        ) from error
