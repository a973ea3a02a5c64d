"""One look at the health of a service, over HTTP."""

from __future__ import annotations

from typing import Final

from harness_core.doubles.http import HttpClient, Unanswered

__all__ = ["healthy"]

_LOOK_S: Final = 2.0
_OK: Final = 200


async def healthy(client: HttpClient, path: str) -> str:
    """One look: 200 is health, anything else is told with what the service says of itself."""
    try:
        answer = await client.get(path, seconds=_LOOK_S)
    except Unanswered as error:
        return f"GET {path}: {error.how}"
    return (
        "" if answer.status == _OK else f"GET {path} answered {answer.status} {answer.text[:300]}"
    )
