"""A probe of the health of a service, over HTTP."""

from __future__ import annotations

from typing import Final

from harness_core.doubles.http import HttpClient, Unanswered

__all__ = ["healthy"]

_PROBE_S: Final = 2.0
_OK: Final = 200


async def healthy(client: HttpClient, path: str) -> str:
    """Probe once: 200 is health, anything else is reported with the service's own answer."""
    try:
        answer = await client.get(path, seconds=_PROBE_S)
    except Unanswered as error:
        return f"GET {path}: {error.how}"
    return (
        "" if answer.status == _OK else f"GET {path} answered {answer.status} {answer.text[:300]}"
    )
