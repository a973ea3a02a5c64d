"""Text that tries to steer whoever reads it, rather than to say or ask something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harness_core.llm.policy._pieces import Piece

__all__ = ["honest", "steers"]

_STEERING: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,30}\b(?:previous|prior|above|earlier|all"
    r"|your|the)\b[^.!?\n]{0,20}\b(?:instructions?|prompts?|rules|guidelines)\b"
    r"|\bsystem prompt\b|\byou are now\b|\bnew instructions?\b"
    r"|^\W*(?:system|assistant|developer)\s*:"
    r"|\b(?:route|dispatch|classify)\s+(?:this|it|that|everything|(?:the|this|my) message)\b",
    re.IGNORECASE,
)


def steers(text: str) -> bool:
    """Whether a text tries to."""
    return _STEERING.search(text) is not None


def honest(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces but for those that steer: these, and the rest of their sentence, are passed over."""
    muted = False
    for piece in pieces:
        muted = steers(piece.text) or (muted and not piece.hard)
        if not muted:
            yield piece
