"""Samples of several contenders, and the table they make."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness_core.base.evidence import Curve, Plot

__all__ = ["Table"]

_MS = 1000.0


class Table:
    """Durations by contender, in the order in which contenders are named.

    Args:
        title: what is measured, from when to when.
        ours: the contender the others are compared with.
        contenders: every name that must have samples at the end.
    """

    def __init__(self, title: str, *, ours: str, contenders: tuple[str, ...]) -> None:
        self.title = title
        self.ours = ours
        self.samples_s: dict[str, list[float]] = {name: [] for name in contenders}
        self.reasons: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    @contextmanager
    def measure(self, contender: str) -> Iterator[None]:
        """Time a block; one that raises gives no sample."""
        began = time.perf_counter()
        yield
        self.add(contender, time.perf_counter() - began)

    def add(self, contender: str, seconds: float) -> None:
        """Record one sample."""
        self.samples_s[contender].append(seconds)

    def fail(self, contender: str, reason: str) -> None:
        """Record why a contender could not be measured."""
        self.reasons[contender] = reason

    def leave_out(self, contender: str, reason: str) -> None:
        """Record why a contender is not run here, which is no failure."""
        self.left_out[contender] = reason

    @property
    def failures(self) -> tuple[str, ...]:
        """Contenders that failed once, or were never measured."""
        return tuple(
            name
            for name, samples in self.samples_s.items()
            if name in self.reasons or not (samples or name in self.left_out)
        )

    def plot(self) -> Plot:
        """Medians of all that could be measured, for the page of a run."""
        medians = {name: statistics.median(each) for name, each in self.samples_s.items() if each}
        curves = tuple(
            Curve(name=name, points=((0.0, median * _MS),)) for name, median in medians.items()
        )
        return Plot(title=self.title, x="contender", y="median ms", curves=curves, style="bar")

    def text(self) -> str:
        """The table: medians, range, number of samples, and how it relates to ours."""
        width = max(len(name) for name in self.samples_s)
        lines = [
            self.title,
            f"  {'':{width}}  {'median ms':>10}  {'min':>9}  {'max':>9}  {'runs':>4}  to ours",
        ]
        own = self.samples_s[self.ours]
        for name, samples in self.samples_s.items():
            if name in self.left_out:
                lines.append(f"  {name:{width}}  not run: {self.left_out[name]}")
                continue
            if not samples:
                lines.append(f"  {name:{width}}  not measured: {self.reasons.get(name, 'no run')}")
                continue
            median = statistics.median(samples)
            ratio = f"{median / statistics.median(own):.1f} x" if own else "-"
            lines.append(
                f"  {name:{width}}  {median * _MS:10.3f}  {min(samples) * _MS:9.3f}  "
                f"{max(samples) * _MS:9.3f}  {len(samples):4}  {ratio if name != self.ours else ''}"
            )
            if name in self.reasons:
                lines.append(f"  {'':{width}}  failed once: {self.reasons[name]}")
        return "\n".join(lines)
