"""The calendar of the owner; without credentials it fails in that phase and nothing else stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from butlers.errors import ButlerError
from butlers.modules.base import Base


class Calendar(Base):
    """`[modules.calendar] base_url, calendar_id`; the token is `GOOGLE_CALENDAR_TOKEN`."""

    name = "calendar"
    keys: ClassVar[Mapping[str, type]] = {"base_url": str, "calendar_id": str}
    credentials = ("GOOGLE_CALENDAR_TOKEN",)

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        raise ButlerError("cannot send by calendar: a calendar delivers no messages")
