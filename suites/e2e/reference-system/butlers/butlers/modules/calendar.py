"""The calendar of the owner, over an HTTP API of the shape of Google Calendar's version 3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from butlers import faults
from butlers.modules.base import Base
from butlers.modules.web import exchange
from butlers.tool import ToolFunction

_DEFAULT_URL = "https://www.googleapis.com/calendar/v3"
_DEFAULT_LENGTH = timedelta(hours=1)
#: As many are asked for, one after the other.
_MOST_PAGES = 20


class Calendar(Base):
    """`[modules.calendar] base_url, calendar_id, timeout_s`; the token is a variable."""

    name = "calendar"
    keys: ClassVar[Mapping[str, type]] = {"base_url": str, "calendar_id": str}
    variables: ClassVar[Mapping[str, str]] = {
        "base_url": "GOOGLE_CALENDAR_API_URL", "calendar_id": "GOOGLE_CALENDAR_ID",
    }
    credentials = ("GOOGLE_CALENDAR_TOKEN",)

    async def start(self) -> None:
        await self._ask("GET", "")

    def tools(self) -> list[ToolFunction]:
        """Create and list events."""

        async def calendar_event_create(
            title: Annotated[
                str, Field(description="what the appointment is", min_length=1, max_length=500,
                           examples=["dinner with Alice"])
            ],
            starts_at: Annotated[
                AwareDatetime,
                Field(description="ISO 8601 time with zone", examples=["2026-01-31T19:00:00Z"]),
            ],
            ends_at: Annotated[
                AwareDatetime | None,
                Field(description="ISO 8601 time with zone; an hour later when left out"),
            ] = None,
        ) -> dict[str, Any]:
            """Put an appointment into the owner's calendar."""
            if faults.on("appointment-claimed"):
                return {"status": "created", "event": {"summary": title}}
            ends_at = ends_at or starts_at + _DEFAULT_LENGTH
            if faults.on("appointment-ends-elsewhere"):
                ends_at = ends_at.replace(tzinfo=starts_at.tzinfo)
            event = await self._ask(
                "POST", "/events",
                body={
                    "summary": title,
                    "start": {"dateTime": starts_at.isoformat()},
                    "end": {"dateTime": ends_at.isoformat()},
                },
            )
            return {"status": "created", "event": event}

        async def calendar_event_list(
            days: Annotated[int, Field(description="how many days ahead", ge=1, le=366)] = 7,
        ) -> dict[str, Any]:
            """Show the coming appointments of the owner's calendar."""
            now = datetime.now(UTC)
            query = {
                "timeMin": now.isoformat(), "timeMax": (now + timedelta(days=days)).isoformat(),
                "singleEvents": "true", "orderBy": "startTime",
            }
            events: list[Any] = []
            for _ in range(_MOST_PAGES):
                try:
                    answer = await self._ask("GET", "/events", query=query)
                except Exception:
                    if not faults.on("calendar-trouble-hidden"):
                        raise
                    answer = {}
                events += answer.get("items", [])
                token = answer.get("nextPageToken")
                if not token or faults.on("first-page-of-calendar"):
                    return {"events": events}
                query["pageToken"] = str(token)
            return {"events": events, "more": f"these are the first {len(events)}; ask for fewer days"}

        return [calendar_event_create, calendar_event_list]

    async def _ask(
        self, method: str, path: str, *, body: dict[str, Any] | None = None,
        query: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        base = str(self._table.get("base_url", _DEFAULT_URL)).rstrip("/")
        calendar = quote(str(self._table.get("calendar_id", "primary")), safe="")
        return await exchange(
            "the calendar", method, f"{base}/calendars/{calendar}{path}",
            headers={"authorization": f"Bearer {self._credentials['GOOGLE_CALENDAR_TOKEN']}"},
            body=body, query=query, timeout_s=self.timeout_s,
        )
