"""What backends did with a scenario, next to each other, for a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_core.base.evidence import Field, Sides
from suites.parity.compare._compare import Allowance, Difference, compare
from suites.parity.compare._observation import ABSENT, fields_of, shown

__all__ = ["sides_of"]


def sides_of(
    scenario: str,
    observations: Mapping[str, Mapping[str, Any]],
    *,
    expected: Mapping[str, Any],
    allowances: Sequence[Allowance] = (),
) -> Sides:
    """Every field of every side, and which of them regressed; see :func:`compare`."""
    blamed = {
        each.field: each for each in compare(observations, expected=expected, allowances=allowances)
    }
    sides = {backend: fields_of(observation) for backend, observation in observations.items()}
    wanted = fields_of(expected)
    names = dict.fromkeys([*wanted, *(name for fields in sides.values() for name in fields)])
    return Sides(
        scenario=scenario,
        fields=tuple(
            Field(
                name=name,
                seen={
                    backend: shown(fields.get(name, ABSENT)) for backend, fields in sides.items()
                },
                expected=_expected(name, wanted, blamed.get(name)),
                wrong=blamed[name].backends if name in blamed else (),
                why=blamed[name].why if name in blamed else "",
            )
            for name in names
        ),
    )


def _expected(name: str, wanted: Mapping[str, Any], blamed: Difference | None) -> str | None:
    """What the scenario says of a field; ``None`` where the sides alone tell."""
    if blamed is not None and blamed.why:
        return shown(blamed.expected)
    return shown(wanted[name]) if name in wanted else None
