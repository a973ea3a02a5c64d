"""How well a text fits each of several descriptions: weighted overlap of stems.

A word counts the more the fewer descriptions hold it (inverse document frequency, scaled so that
a word of one description alone counts 1). A word that only names a kind of what was said
(headache → symptom) counts less than the word itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from harness_core.llm.policy._kinds import kinds_of

__all__ = ["MATCH", "Index", "weigh"]

#: From this score on a description fits: one distinctive word of its prose, or one kind of it.
MATCH: Final = 0.5

#: Share of a word's weight when only a more general word is found.
_KIND_SHARE: Final = 0.65


def weigh(*parts: tuple[Iterable[str], float]) -> dict[str, float]:
    """Stems of a description with the greatest weight each has in any part of it."""
    weights: dict[str, float] = {}
    for words, weight in parts:
        for word in words:
            weights[word] = max(weight, weights.get(word, 0.0))
    return weights


class Index:
    """Descriptions to score texts against.

    Args:
        descriptions: stems and weights of each.
    """

    def __init__(self, descriptions: Sequence[Mapping[str, float]]) -> None:
        self._descriptions = descriptions
        count = len(descriptions)
        held: dict[str, int] = {}
        for description in descriptions:
            for word in description:
                held[word] = held.get(word, 0) + 1
        self._rarity = {
            word: math.log(1 + count / number) / math.log(1 + count)
            for word, number in held.items()
        }

    def scores(self, words: Iterable[str]) -> tuple[float, ...]:
        """The score of a text, given as stems, against each description."""
        said = set(words)
        implied: set[str] = set()
        for word in said:
            implied |= kinds_of(word)
        implied -= said
        return tuple(
            self._sum(said, description) + _KIND_SHARE * self._best(implied, description)
            for description in self._descriptions
        )

    def _sum(self, words: set[str], description: Mapping[str, float]) -> float:
        return sum(description[w] * self._rarity[w] for w in sorted(words) if w in description)

    def _best(self, words: set[str], description: Mapping[str, float]) -> float:
        # The best one only: "symptom", "pain" and "complaint" are one idea said three times.
        found = (description[w] * self._rarity[w] for w in words if w in description)
        return max(found, default=0.0)
