"""What is to be reported of jobs, in files, until the controller has it: in order, each at least once."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from workbench_contract.jobs import SIGNATURE, Callback, JobStatus, signature_of
from workbench_foundation import faults, log
from workbench_foundation.errors import describe
from workbench_foundation.keys import HEADER

#: Answers after which a callback is not sent again: it was taken, or never will be.
_SETTLED = frozenset(
    {httpx.codes.OK, httpx.codes.NOT_FOUND, httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY}
)


class Callbacks:
    """The outbox of one worker.

    Args:
        folder: where callbacks wait, a folder for each job.
        url: of the controller.
        key: its API key.
        secret: what callbacks are signed with.
        pause_s: between two looks at what waits.
        timeout_s: of one callback.
    """

    def __init__(
        self, folder: Path, *, url: str, key: str, secret: str, pause_s: float, timeout_s: float
    ) -> None:
        self._folder = folder
        self._secret = secret
        self._pause_s = pause_s
        self._more = asyncio.Event()
        self._http = httpx.AsyncClient(
            base_url=url, headers={HEADER: key}, timeout=timeout_s, trust_env=False
        )
        if faults.on("callbacks-of-this-life"):
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)

    async def aclose(self) -> None:
        """Close connections; what waits is sent by the next worker."""
        await self._http.aclose()

    def report(
        self,
        job_id: str,
        sequence: int,
        status: JobStatus,
        *,
        reason: str,
        result: dict[str, Any] | None = None,
    ) -> None:
        """Write down what is to be reported; it outlives this process. What waits already stays."""
        said = Callback(
            sequence=sequence, status=status, reason=reason, at=datetime.now(UTC), result=result
        )
        if faults.on("callback-without-long-result") and len(said.model_dump_json()) > 32_768:
            said = said.model_copy(update={"result": None})
        place = self._folder / job_id
        place.mkdir(exist_ok=True)
        new = place / f"{sequence:04}.new"
        if new.with_suffix(".json").exists():
            return
        new.write_text(said.model_dump_json(), encoding="utf-8")
        new.replace(new.with_suffix(".json"))
        self._more.set()

    async def send_for_ever(self) -> None:
        """Send what waits, each job's in order, until cancelled."""
        troubled = False
        while True:
            self._more.clear()
            try:
                for place in self._waiting():
                    await self._send(place)
                troubled = False
            except (httpx.HTTPError, OSError) as error:
                if not troubled:
                    log.warning("callbacks_wait", reason=describe(error))
                troubled = True
                if faults.on("callback-tried-once"):
                    self._forget()
            try:
                await asyncio.wait_for(self._more.wait(), self._pause_s if troubled else None)
            except TimeoutError:
                continue

    def _waiting(self) -> Iterator[Path]:
        for place in sorted(self._folder.iterdir()):
            yield from sorted(place.glob("*.json"))

    async def _send(self, path: Path) -> None:
        job_id, body = path.parent.name, path.read_bytes()
        answer = await self._http.post(
            f"/callbacks/{job_id}",
            content=body,
            headers={
                "Content-Type": "application/json",
                SIGNATURE: signature_of(self._secret, job_id, body),
            },
        )
        if answer.status_code not in _SETTLED:
            answer.raise_for_status()
        if answer.status_code != httpx.codes.OK:
            log.warning("callback_refused", job_id=job_id, reason=answer.text[:500])
        path.unlink()

    def _forget(self) -> None:
        for path in self._waiting():
            path.unlink()
