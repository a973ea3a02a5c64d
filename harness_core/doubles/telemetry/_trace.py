"""The spans of one trace, and how they hang together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness_core.doubles.telemetry._span import Span


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was collected of one trace.

    Attributes:
        trace_id: its id.
        spans: in the order of their starts; a span that was exported twice is in it twice.
    """

    trace_id: str
    spans: tuple[Span, ...]

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def services(self) -> frozenset[str]:
        """The services that took part."""
        return frozenset(span.service for span in self.spans)

    def repeated(self) -> tuple[str, ...]:
        """Ids of spans that were collected more than once."""
        ids = [span.span_id for span in self.spans]
        return tuple(sorted({span_id for span_id in ids if ids.count(span_id) > 1}))

    def loose(self, *, below: str = "") -> tuple[Span, ...]:
        """Spans whose parent was not collected.

        Args:
            below: span id of a caller that is not among the collected, e.g. the harness itself;
                what hangs directly below it is not loose.
        """
        known = {span.span_id for span in self.spans} | {below}
        return tuple(span for span in self.spans if span.parent_id not in known)

    def above(self, span: Span) -> Iterator[Span]:
        """Its ancestors, nearest first; ends at a root, a parent that is unknown, or a circle."""
        left = {each.span_id: each for each in reversed(self.spans)}
        left.pop(span.span_id, None)
        while (parent := left.pop(span.parent_id, None)) is not None:
            yield parent
            span = parent

    def text(self) -> str:
        """The trace as a tree, for failure messages; what has no parent here stands at its end."""
        lines = [f"trace {self.trace_id}: {len(self.spans)} spans"]
        children: dict[str, list[Span]] = {}
        for span in self.spans:
            children.setdefault(span.parent_id, []).append(span)
        shown: set[str] = set()

        def show(span: Span, depth: int) -> None:
            if span.span_id in shown:
                return
            shown.add(span.span_id)
            lines.append(f"{'  ' * depth}{span.text()}")
            for child in children.get(span.span_id, ()):
                show(child, depth + 1)

        for span in self.loose():
            show(span, 1)
        for span in self.spans:
            show(span, 1)
        return "\n".join(lines)
