"""Percentiles of every sample there is, by nearest rank: each one was really measured.

No averages of averages, no buckets, no interpolation: with few samples the 99th percentile is the
slowest one, and saying so is the point of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Timings", "percentile", "timings_table"]

_SHARES: Final = (50.0, 90.0, 95.0, 99.0, 100.0)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` percent of all samples do not exceed.

    Args:
        samples: in any order, at least one.
        share: above 0, up to 100.

    Raises:
        ValueError: no samples, a share out of range, or a sample that is no number.
    """
    if not samples or any(math.isnan(sample) for sample in samples):
        raise ValueError(f"cannot rank {len(samples)} samples: expected one or more numbers")
    if not 0 < share <= 100:
        raise ValueError(f"cannot take percentile {share}: expected above 0, up to 100")
    # In whole numbers where it can be: 95 * 20 / 100 is 19 and must not become 20.
    rank = math.ceil(round(share * len(samples) / 100, 9))
    return sorted(samples)[rank - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long one kind of thing took, each time.

    Attributes:
        samples_ms: every measurement in milliseconds.
    """

    samples_ms: tuple[float, ...]

    def at(self, share: float) -> float:
        """The percentile ``share`` in milliseconds."""
        return percentile(self.samples_ms, share)

    def as_json(self) -> dict[str, float | int]:
        """Count, percentiles and maximum, for a report; without samples the count alone."""
        if not self.samples_ms:
            return {"count": 0}
        return {
            "count": len(self.samples_ms),
            **{f"p{share:g}_ms": round(self.at(share), 1) for share in _SHARES[:-1]},
            "max_ms": round(self.at(100), 1),
        }


def timings_table(timings: Mapping[str, Timings]) -> str:
    """The same for people: one line per kind."""
    width = max((len(name) for name in timings), default=0)
    heads = [f"p{share:g}" for share in _SHARES[:-1]] + ["max"]
    lines = [" ".join([" " * width, "  count", *(f"{head + ' ms':>9}" for head in heads)])]
    for name, of in timings.items():
        values = [f"{of.at(share):9.0f}" for share in _SHARES] if of.samples_ms else ["  none"]
        lines.append(" ".join([f"{name:{width}}", f"{len(of.samples_ms):7}", *values]))
    return "\n".join(lines)
