"""Which mutants a campaign runs: by id, by file, a sample that a seed decides, a shard."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.shards import Shard, names_of
from harness_core.base.errors import BadInput

#: Of the standard normal distribution: 95 of 100 lie within so many deviations.
_DEVIATIONS: Final = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to run of a product's mutants.

    Attributes:
        only: ids.
        files: patterns of file names, e.g. ``*/router.py``.
        sample: how many of those, chosen by the seed; all when ``None``.
        seed: the same one chooses the same mutants of the same code.
        shard: which part of those; all when ``None``.
    """

    only: Sequence[str] = ()
    files: Sequence[str] = ()
    sample: int | None = None
    seed: str = "0"
    shard: Shard | None = None

    @property
    def words(self) -> str:
        """What decides which mutants, besides the shard."""
        words = [f"--only {id_}" for id_ in self.only] + [f"--file {file}" for file in self.files]
        if self.sample is not None:
            words.append(f"--sample {self.sample} --seed {self.seed}")
        return " ".join(words) or "all"


def choose_mutants(mutants: Sequence[Mutant], choice: Choice, *, where: Path) -> list[Mutant]:
    """The chosen ones, in the order of their files.

    Raises:
        BadInput: an id or a pattern that fits none.
    """
    ids = {mutant.id for mutant in mutants}
    for id_ in choice.only:
        if id_ not in ids:
            raise BadInput(
                where, key="--only", found=id_, expected="the id of a mutant of this code"
            )
    for pattern in choice.files:
        if not any(_fits(mutant, pattern) for mutant in mutants):
            found = sorted({mutant.file for mutant in mutants})
            expected = f"a pattern of {', '.join(found[:10])}{' …' if found[10:] else ''}"
            raise BadInput(where, key="--file", found=pattern, expected=expected)
    chosen = [
        mutant
        for mutant in mutants
        if (not choice.only or mutant.id in choice.only)
        and (not choice.files or any(_fits(mutant, pattern) for pattern in choice.files))
    ]
    if choice.sample is not None:
        drawn = sorted(chosen, key=lambda mutant: _hash(choice.seed, mutant.id))[: choice.sample]
        kept = {mutant.id for mutant in drawn}
        chosen = [mutant for mutant in chosen if mutant.id in kept]
    if choice.shard is not None:
        mine = names_of(choice.shard, [mutant.id for mutant in chosen], seconds={})
        chosen = [mutant for mutant in chosen if mutant.id in mine]
    return chosen


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The interval that holds the share of all with a confidence of 95 %, by a sample's.

    Returns:
        From and to, between 0 and 1; all of that when nothing was drawn.
    """
    if of == 0:
        return 0.0, 1.0
    share, square = hits / of, _DEVIATIONS**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _DEVIATIONS * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    half /= 1 + square / of
    # A whole number of hits must not lie outside by the last bit.
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == of else middle + half)


def _fits(mutant: Mutant, pattern: str) -> bool:
    return fnmatch(mutant.file, pattern) or fnmatch(Path(mutant.file).name, pattern)


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()
