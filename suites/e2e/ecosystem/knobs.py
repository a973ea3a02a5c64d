"""Settings of a subject that a test may turn: which it has, and the environment that turns them.

The contract has deadlines "from config" and leaves their names to the product. A subject file gives
them in ``[knobs.NAME]``: environment variables with ``{NAME}`` or ``{name}`` of the butler and the
``{value}``. A knob that a subject lacks skips, by name, the tests that need it.
"""

from __future__ import annotations

from harness_core.system.subject import Subject, Variables
from suites.e2e.ecosystem.subject_file import filled, tables_of

__all__ = ["has_knob", "turned"]


def has_knob(subject: Subject, knob: str) -> bool:
    """Whether a subject has this setting."""
    return bool(_variables(subject, knob))


def turned(subject: Subject, butler: str, **values: float) -> dict[str, str]:
    """The environment that turns knobs of one butler; those the subject lacks stay as they are.

    Raises:
        BadInput: the variables of a knob have another field than the three.
    """
    name = {"name": butler, "NAME": butler.upper().replace("-", "_")}
    environment: dict[str, str] = {}
    for knob, value in values.items():
        fields = {**name, "value": f"{value:g}"}
        environment |= filled(subject, f"knobs.{knob}", _variables(subject, knob), fields)
    return environment


def _variables(subject: Subject, knob: str) -> Variables:
    found: Variables = getattr(tables_of(subject).knobs, knob)
    return found
