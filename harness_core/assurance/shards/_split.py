"""Which names belong to a shard: each to exactly one, and all shards take about equally long."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from harness_core.base.errors import BadInput


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a run.

    Attributes:
        number: from 1 to ``count``.
        count: how many there are.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``2/3``.

        Raises:
            BadInput: it is no such pair.
        """
        matched = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
        number, count = map(int, matched.groups()) if matched else (0, 0)
        if not 1 <= number <= count:
            raise BadInput("--shard", found=text, expected="I/N with 1 <= I <= N, e.g. 2/3")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def names_of(shard: Shard, names: Iterable[str], *, seconds: Mapping[str, float]) -> frozenset[str]:
    """The names that belong to a shard.

    The longest first, each goes to the shard that has least to do so far; a name without a duration
    counts as the mean of the others. Who is equal comes in the order of their hashes, so the
    division depends on the set of names and their durations alone: not on their order, on the
    machine, or on Python's own hash.

    Args:
        shard: which part.
        names: all of them, the same in every shard.
        seconds: how long each took; the same in every shard.
    """
    every = set(names)
    known = {name: seconds[name] for name in every if name in seconds}
    usual = fmean(known.values()) if known else 1.0
    ordered = sorted(every, key=lambda name: (-known.get(name, usual), _hash(name)))
    loads = [(0.0, 0, number) for number in range(1, shard.count + 1)]
    chosen = set()
    for name in ordered:
        # Of shards that are equally busy, the one with fewer names.
        load, held, number = min(loads)
        loads[number - 1] = (load + known.get(name, usual), held + 1, number)
        if number == shard.number:
            chosen.add(name)
    return frozenset(chosen)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
