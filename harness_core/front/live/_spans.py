"""Spans that a plain recorder is sent, written where those of a collector are, so that they are seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from harness_core.base.evidence import Evidence
from harness_core.base.machine import lack_of
from harness_core.doubles.http import Recorded, watching

__all__ = ["spans_written"]

_TRACES: Final = "/v1/traces"
_FILE: Final = "spans.jsonl"

#: The rule of a collector (``open_collector``), which writes them itself.
_OF_A_COLLECTOR: Final = "spans"


@contextmanager
def spans_written(evidence: Evidence) -> Iterator[None]:
    """Write them, during the block; without the extra that reads them, nothing happens."""
    if lack_of("telemetry"):
        yield
        return
    from harness_core.doubles.telemetry import BadExport, spans_of

    def take(request: Recorded) -> None:
        if request.rule == _OF_A_COLLECTOR or not request.path.endswith(_TRACES):
            return
        try:
            found = spans_of(request)
        except BadExport:  # what it was sent is judged by tests
            return
        for span in found:
            evidence.append_json(_FILE, span)

    with watching(take):
        yield
