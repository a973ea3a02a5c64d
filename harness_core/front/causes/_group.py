"""Failures that have a cause in common, as one; strongest evidence first.

A process that died is the cause of what fails in the same test, whatever its sentence. Else what is
told alike has one cause, and so has what is told otherwise after the same error in the product's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness_core.front.causes._shape import shape_of

#: How much a sentence proves, the most first: a process that died explains what nobody answered.
_STRENGTH: Final = (
    re.compile(r"\b(died|crashed|was killed|killed by signal|ended by itself|exited with)\b"),
    re.compile(r"\b(expected .* found|instead of|wrong)\b", re.DOTALL),
    re.compile(r"\b(refused|cannot reach|closed)\b"),
    re.compile(r"\b(silent|no answer|did not happen|none|nothing|missing|timed out|within)\b"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One test that failed.

    Attributes:
        test: its id.
        sentence: the first line of what it says, as long as it is.
        deaths: processes that ended by themselves while it ran, each in a sentence.
        log_error: the last error in the product's log of that time; empty for none.
    """

    test: str
    sentence: str
    deaths: tuple[str, ...] = ()
    log_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What several tests show, or one.

    Attributes:
        sentence: of the death or the log that they share, else as the first of them told it.
        tests: their ids, in the order in which they failed.
        told: what they say, where that is not the sentence; each once.
    """

    sentence: str
    tests: tuple[str, ...]
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class _Group:
    sentence: str
    failures: list[Failure] = field(default_factory=list)


def causes_of(failures: Iterable[Failure]) -> Sequence[Cause]:
    """Failures by what they share; what proves most, and what most tests show, is first."""
    groups: dict[tuple[str, str], _Group] = {}
    for failure in failures:
        death = failure.deaths[0] if failure.deaths else ""
        key = ("death", shape_of(death)) if death else ("told", _shape(failure))
        groups.setdefault(key, _Group(death or failure.sentence)).failures.append(failure)
    found = [_cause(group) for group in _joined_by_log(list(groups.values()))]
    return sorted(found, key=lambda cause: (_strength(cause.sentence), -len(cause.tests)))


def _joined_by_log(groups: Sequence[_Group]) -> list[_Group]:
    """Groups of which every failure came after the same error in the product's log are one."""
    logged: dict[str, list[_Group]] = {}
    for group in groups:
        shapes = {shape_of(failure.log_error) for failure in group.failures}
        if len(shapes) == 1 and (shape := shapes.pop()):
            logged.setdefault(shape, []).append(group)
    joined: list[_Group] = []
    gone: set[int] = set()
    for alike in logged.values():
        if len(alike) > 1:
            failures = [failure for group in alike for failure in group.failures]
            joined.append(_Group(f"after the log said: {failures[0].log_error}", failures))
            gone |= {id(group) for group in alike}
    return [*joined, *(group for group in groups if id(group) not in gone)]


def _cause(group: _Group) -> Cause:
    one_of_each: dict[str, str] = {}
    for failure in group.failures:
        one_of_each.setdefault(_shape(failure), failure.sentence)
    return Cause(
        sentence=group.sentence,
        tests=tuple(dict.fromkeys(failure.test for failure in group.failures)),
        told=tuple(each for each in one_of_each.values() if each != group.sentence),
    )


def _shape(failure: Failure) -> str:
    """The shape of its sentence, in which the name of its own row is a value too."""
    row = failure.test.partition("[")[2].removesuffix("]")
    return shape_of(failure.sentence, name=row)


def _strength(sentence: str) -> int:
    for rank, pattern in enumerate(_STRENGTH):
        if pattern.search(sentence):
            return rank
    return len(_STRENGTH)
