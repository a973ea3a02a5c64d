"""The worker as the controller sees it: requests over HTTP, each on behalf of an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from workbench_contract.events import EventPage
from workbench_contract.handover import FileBytes, HandedOver
from workbench_contract.skills import SkillsGiven
from workbench_foundation import faults
from workbench_foundation.keys import HEADER
from workbench_foundation.requests import EPISODE, SESSION, TRACE


class NotHealthy(Exception):
    """The worker answers, and says that it is not well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """On whose behalf the worker is asked."""

    episode_id: str
    session_id: str
    trace_id: str

    def headers(self) -> dict[str, str]:
        """The headers that say so."""
        headers = {SESSION: self.session_id}
        if not faults.on("worker-uncorrelated"):
            headers |= {EPISODE: self.episode_id, TRACE: self.trace_id}
        return headers


class WorkerClient:
    """One worker.

    Args:
        url: where it is.
        key: its API key.
        timeout_s: of requests that do no work of their own.
    """

    def __init__(self, url: str, *, key: str, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers={HEADER: key}, timeout=timeout_s, trust_env=False
        )

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def answers(self, *, timeout_s: float) -> None:
        """Raises httpx.HTTPError when it does not, NotHealthy with its answer when it is not."""
        answer = await self._http.get("/health", timeout=timeout_s)
        if not answer.is_success:
            raise NotHealthy(f"/health answers {answer.status_code} {answer.text}")

    async def events(self, session_id: str, *, after: int) -> EventPage:
        """Events of a session after a number."""
        answer = await self._http.get(
            "/events", params={"after": after}, headers={SESSION: session_id}
        )
        answer.raise_for_status()
        return EventPage.model_validate_json(answer.content)

    async def post(
        self, whose: Whose, path: str, body: dict[str, Any], *, timeout_s: float | None = None
    ) -> httpx.Response:
        """One operation; its answer, whatever the status."""
        timeout = httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s
        return await self._http.post(path, json=body, headers=whose.headers(), timeout=timeout)

    async def handover(self, whose: Whose, handover_id: str) -> list[FileBytes]:
        """The files of a hand-over that the worker's gate has accepted."""
        answer = await self._http.get(f"/handovers/{handover_id}", headers=whose.headers())
        answer.raise_for_status()
        return HandedOver.model_validate_json(answer.content).files

    async def skills(self) -> SkillsGiven:
        """The skills that a session is given which is opened now."""
        answer = await self._http.get("/skills")
        answer.raise_for_status()
        return SkillsGiven.model_validate_json(answer.content)

    async def asset(self, whose: Whose, path: str) -> bytes:
        """The bytes of a session's file."""
        # Any character but `/` and NUL may stand in a file's name.
        answer = await self._http.get(f"/assets/{quote(path)}", headers=whose.headers())
        answer.raise_for_status()
        return answer.content

    async def cancel(self, whose: Whose, job_id: str) -> bool:
        """End a job; false when the worker knows of none."""
        answer = await self.post(whose, f"/jobs/{job_id}/cancel", {})
        if answer.status_code == httpx.codes.NOT_FOUND:
            return False
        answer.raise_for_status()
        return bool(answer.json()["was_running"])
