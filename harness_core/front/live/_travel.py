"""Messages that were sent from the page, followed until nothing more comes of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.base.errors import HarnessError
from harness_core.front.live._asking import Holder
from harness_core.front.live._feed import Feed

__all__ = ["Travels"]

#: Messages that are kept; an earlier one is forgotten, here alone.
_KEPT: Final = 30

#: A message is looked after for so long, and for a moment beyond its end: spans come late.
_FOLLOWED_S: Final = 300.0
_AFTER_S: Final = 6.0

#: Between two looks, which a product may log: the longer it takes, the more seldom.
_OFTEN_S: Final = 0.4
_SLOWEST_S: Final = 2.0

#: Numbers of events that are shown of one message, the first ones.
_EVENTS: Final = 2000

#: To send is to be accepted, which may take a session of a product on a busy machine.
_SEND_S: Final = 60.0


@dataclass(slots=True)
class _Sent:
    """A message under way, or at its end."""

    id: str
    title: str
    text: str
    at: float
    story: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False
    ended_at: float = 0.0
    trouble: str = ""
    due: float = 0.0
    events: list[int] = field(default_factory=list)

    @property
    def followed(self) -> bool:
        """Whether more may come of it."""
        now = time.time()
        if self.ended:
            return now - self.ended_at < _AFTER_S
        return now - self.at < _FOLLOWED_S

    def names(self) -> Iterator[str]:
        """What events of it carry."""
        yield self.id
        for row in self.story:
            if row.get("tells") == "message":
                yield from row.get("names", ())


class Travels:
    """The messages that were sent, the latest first.

    Args:
        holder: of what they were sent to.
        feed: where their events are found.
    """

    def __init__(self, holder: Holder, feed: Feed) -> None:
        self._holder = holder
        self._feed = feed
        self._sent: list[_Sent] = []

    async def send(self, offer: str, text: str, *, title: str) -> str:
        """Send something; the id of the message.

        Raises:
            HarnessError: it was not taken.
        """
        at = time.time()
        made = await self._holder.ask("send", seconds=_SEND_S, offer=offer, text=text)
        self._sent.insert(0, _Sent(id=str(made), title=title, text=text, at=at))
        del self._sent[_KEPT:]
        return str(made)

    async def look(self) -> None:
        """Look how far those have come that are under way."""
        now = time.time()
        for sent in [each for each in self._sent if each.followed]:
            if sent.ended:  # its last lines and spans
                sent.events = self._feed.holding(sent.names())[:_EVENTS]
                continue
            if now < sent.due:
                continue
            sent.due = now + min(_SLOWEST_S, _OFTEN_S + (now - sent.at) / 10)
            try:
                way = await self._holder.ask("way", message=sent.id)
            except HarnessError as error:
                sent.trouble = str(error).partition("\n")[0]
                continue
            sent.trouble = ""
            sent.story = list(way["story"])
            if way["ended"] and not sent.ended:
                sent.ended, sent.ended_at = True, time.time()
            sent.events = self._feed.holding(sent.names())[:_EVENTS]

    def rows(self) -> list[dict[str, Any]]:
        """All of them, as clients get them."""
        return [
            {
                "id": sent.id,
                "title": sent.title,
                "text": next(
                    (row["text"] for row in sent.story if row.get("tells") == "message"), sent.text
                ),
                "at": sent.at,
                "ended": sent.ended,
                "lost": not sent.ended and not sent.followed,
                "trouble": sent.trouble,
                "links": [row for row in sent.story if row.get("tells") == "link"],
                "moments": [row for row in sent.story if row.get("tells") == "moment"],
                "events": sent.events,
            }
            for sent in self._sent
        ]
