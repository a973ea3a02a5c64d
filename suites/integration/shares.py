"""Long lists in shares: every run of P0 tries one of them, ``nox -s integration_p0_rest`` the others."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["shares"]


def shares(count: int) -> list[Any]:
    """Parameters of a test, each a slice: ``list(rows)[share]`` has every row in one of them, and only there.

    All but the first carry the mark ``corpus``. Neighbours in a list, which are often alike, are in different
    shares.

    Args:
        count: of how many rows each share has one.
    """
    return [
        pytest.param(
            slice(start, None, count),
            id=f"{start + 1} of {count}",
            marks=[pytest.mark.corpus] if start else [],
        )
        for start in range(count)
    ]
