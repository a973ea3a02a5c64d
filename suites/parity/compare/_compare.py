"""Which backend regressed, in which field, and what each side produced.

Two sides that differ do not say which of them is wrong. So a scenario also says what is *expected*,
worked out from its row and never from a backend. A field it expects is judged against that; a field
that no row determines is judged against the other backends, by majority where there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from harness_core.base.errors import BadInput
from suites.parity.compare._observation import ABSENT, fields_of, shown

__all__ = ["Allowance", "Difference", "ParityError", "check_parity", "compare"]


#: In place of a field that is empty elsewhere and has fields of its own here.
_FILLED: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A documented difference of one backend.

    It is no blanket: the backend must show exactly ``value``. When it shows what is expected of all
    instead, the allowance is stale and fails, so that the list never outlives its reasons.

    Attributes:
        backend: whose difference it is.
        field: a pattern for the names of fields, ``*`` and ``?`` as in a shell.
        value: what the backend shows there.
        reason: why that is right, for the reader of a report.
    """

    backend: str
    field: str
    value: Any
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise BadInput(
                f"Allowance({self.backend}, {self.field})",
                key="reason",
                found=self.reason,
                expected="why this backend may differ",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which a backend is not what it should be.

    Attributes:
        backends: who regressed; several when each of them shows the same wrong thing, or when
            nothing says which of two sides is right.
        field: its name, e.g. ``env.TOKEN``.
        seen: backend → value, of all sides.
        expected: what it should be, ``ABSENT`` when no such field should be there.
        why: how that is known: the scenario says so, a majority, an allowance, or nothing.
    """

    backends: tuple[str, ...]
    field: str
    seen: Mapping[str, Any]
    expected: Any
    why: str

    def __str__(self) -> str:
        # Alike in the test of each backend, so that one cause is told once.
        everybody = len(self.backends) == len(self.seen) > 1 and self.why
        wrong = "every side" if everybody else " and ".join(self.backends)
        culprit = shown(self.seen[self.backends[0]])
        others = [
            f"{name} {shown(value)}"
            for name, value in self.seen.items()
            if name not in self.backends
        ]
        if self.why == "":
            sides = ", ".join(f"{name} {shown(value)}" for name, value in self.seen.items())
            return f"{wrong} differ: {_told(self.field)}: {sides}"
        also = f"; {', '.join(others)}" if others else ""
        return (
            f"{wrong} regressed: {_told(self.field)}: expected {shown(self.expected)}, found "
            f"{culprit} ({self.why}{also})"
        )


class ParityError(AssertionError):
    """Backends are not what they should be; the first line names who regressed, and in what.

    Attributes:
        scenario: its id.
        differences: every one, the most telling first.
    """

    def __init__(self, scenario: str, differences: Sequence[Difference]) -> None:
        super().__init__(scenario, tuple(differences))
        self.scenario = scenario
        self.differences = tuple(differences)

    def __str__(self) -> str:
        first, *rest = map(str, self.differences)
        lines = [f"{first} [{self.scenario}]"]
        lines += [f"also: {line}" for line in rest]
        return "\n".join(lines)


def compare(
    observations: Mapping[str, Mapping[str, Any]],
    *,
    expected: Mapping[str, Any],
    allowances: Sequence[Allowance] = (),
) -> tuple[Difference, ...]:
    """Every difference between what backends did and what they should have done.

    They come in the order of what is expected: a scenario names first what tells most.

    Args:
        observations: backend → what it did; at least one.
        expected: the fields that the scenario itself determines. A mapping in it is whole: a
            field below it that it does not name must be absent.
        allowances: documented differences.
    """
    sides = {backend: fields_of(observation) for backend, observation in observations.items()}
    wanted = fields_of(expected)
    found = dict.fromkeys([*wanted, *(name for fields in sides.values() for name in fields)])
    order = {root: at for at, root in enumerate(dict.fromkeys(map(_root, map(str, expected))))}
    names = sorted(found, key=lambda name: order.get(_root(name), len(order)))
    differences: list[Difference] = []
    for name in names:
        seen = {backend: _field(fields, name) for backend, fields in sides.items()}
        if _FILLED in seen.values():
            continue
        if name in wanted or _root(name) in order:
            judged = _against_expected(name, seen, wanted.get(name, ABSENT), allowances)
        else:
            judged = _against_each_other(name, seen, allowances)
        differences += judged
    return tuple(sorted(differences, key=lambda difference: difference.why == ""))


def check_parity(
    scenario: str,
    observations: Mapping[str, Mapping[str, Any]],
    *,
    expected: Mapping[str, Any],
    allowances: Sequence[Allowance] = (),
    judged: str | None = None,
) -> None:
    """Fail unless every backend did what the scenario expects, and all did the same.

    Args:
        scenario: its id, shown in the first line.
        observations: see :func:`compare`.
        expected: see :func:`compare`.
        allowances: see :func:`compare`.
        judged: fail for this backend's differences alone; for those of all when it is ``None``.

    Raises:
        ParityError: they did not.
        BadInput: there is nothing to compare.
    """
    if not observations or not (expected or len(observations) > 1):
        raise BadInput(
            f"scenario {scenario}",
            found=f"{len(observations)} observation(s) and nothing expected",
            expected="something to compare",
        )
    if not any(map(len, observations.values())):
        raise BadInput(
            f"scenario {scenario}", found="empty observations", expected="at least one field"
        )
    differences = [
        difference
        for difference in compare(observations, expected=expected, allowances=allowances)
        if judged is None or judged in difference.backends
    ]
    if differences:
        raise ParityError(scenario, differences)


def _told(name: str) -> str:
    """A field as a sentence has it: what is one of many is quoted, so that sentences are alike."""
    root, dot, rest = name.partition(".")
    return f"{root} '{rest}'" if dot and "[" not in root else name


def _root(name: str) -> str:
    """The field of an observation that a name is below."""
    return name.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]


def _field(fields: Mapping[str, Any], name: str) -> Any:
    """A field of one side.

    Where others have something empty and this side has fields below it, those tell the difference.
    """
    if name not in fields and any(each.startswith((f"{name}.", f"{name}[")) for each in fields):
        return _FILLED
    return fields.get(name, ABSENT)


def _against_expected(
    name: str, seen: Mapping[str, Any], expected: object, allowances: Sequence[Allowance]
) -> list[Difference]:
    wrong: dict[tuple[str, str], list[str]] = {}
    wants: dict[str, tuple[Any, str]] = {}
    for backend, value in seen.items():
        allowance = _allowance(backend, name, allowances)
        want = expected if allowance is None else allowance.value
        why = "says the scenario" if allowance is None else f"allowed because {allowance.reason}"
        if not _same(value, want):
            wants[backend] = (want, why)
            wrong.setdefault((shown(value), why), []).append(backend)
    return [
        Difference(
            backends=tuple(backends),
            field=name,
            seen=seen,
            expected=wants[backends[0]][0],
            why=wants[backends[0]][1],
        )
        for backends in wrong.values()
    ]


def _against_each_other(
    name: str, seen: Mapping[str, Any], allowances: Sequence[Allowance]
) -> list[Difference]:
    allowed = {
        backend: allowance
        for backend in seen
        if (allowance := _allowance(backend, name, allowances)) is not None
    }
    differences = [
        Difference(
            backends=(backend,),
            field=name,
            seen=seen,
            expected=allowance.value,
            why=f"allowed because {allowance.reason}",
        )
        for backend, allowance in allowed.items()
        if not _same(seen[backend], allowance.value)
    ]
    rest = {backend: value for backend, value in seen.items() if backend not in allowed}
    values = Counter(map(shown, rest.values()))
    if len(values) <= 1 and _all_same(list(rest.values())):
        return differences
    (text, count), *others = values.most_common()
    if not others or count == others[0][1]:
        differences.append(
            Difference(backends=tuple(rest), field=name, seen=seen, expected=ABSENT, why="")
        )
        return differences
    usual = next(value for value in rest.values() if shown(value) == text)
    for odd, _ in others:
        backends = tuple(backend for backend, value in rest.items() if shown(value) == odd)
        differences.append(
            Difference(
                backends=backends,
                field=name,
                seen=seen,
                expected=usual,
                why="the other backends agree",
            )
        )
    return differences


def _allowance(backend: str, name: str, allowances: Sequence[Allowance]) -> Allowance | None:
    for allowance in allowances:
        if allowance.backend == backend and fnmatchcase(name, allowance.field):
            return allowance
    return None


def _same(left: object, right: object) -> bool:
    """Equal and of one type: ``1``, ``True`` and ``1.0`` are three things to an environment."""
    return type(left) is type(right) and left == right


def _all_same(values: Sequence[object]) -> bool:
    return all(_same(values[0], value) for value in values[1:])
