"""What can be sent to a system that a person holds, and how its way is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from harness_core.base.evidence import Told

__all__ = ["Messages", "Offer", "Way"]


class Offer(Struct, frozen=True, kw_only=True):
    """Something that can be sent.

    Attributes:
        id: unique among those of its system.
        title: what it is, in a few words.
        text: what is sent, with placeholders where something is filled in.
        group: offers of one group stand together.
    """

    id: str
    title: str
    text: str
    group: str = ""


class Way(Struct, frozen=True, kw_only=True):
    """How far a message has come.

    Attributes:
        story: as a test would tell it: the message with its names, links, moments.
        ended: nothing more comes of it.
    """

    story: tuple[Told, ...]
    ended: bool


class Messages(Protocol):
    """What a suite can send to its system; ``messages`` of its ``suite.toml`` makes it."""

    #: Whether any text may be sent, since something answers that understands it.
    free_text: bool

    def offers(self) -> Sequence[Offer]:
        """What can be sent."""

    async def send(self, offer: str, text: str) -> str:
        """Send one of the offers or, where ``offer`` is empty, a text; the id of what was sent.

        Raises:
            AssertionError: the system did not take it.
            HarnessError: it cannot be reached.
        """

    async def way(self, message: str) -> Way:
        """Look once how far it has come.

        Args:
            message: an id that :meth:`send` has answered.
        """
