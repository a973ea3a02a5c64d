"""A session on the worker, used as an agent's tools use it: over HTTP, with key and session id."""

from __future__ import annotations

import secrets
from typing import Any, Final

from workbench_contract.events import EventPage

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from suites.integration.messages import OPERATIONS, answered, sent

__all__ = ["Session", "new_session"]


#: Beyond the time that a command may take.
_ANSWER_S: Final = 20.0


class Session:
    """One session; nothing is there before its first request.

    Attributes:
        id: its name.
        client: asks the worker on its behalf.
    """

    def __init__(self, worker: HttpClient, session_id: str) -> None:
        self.id = session_id
        self.client = worker.having(x_session_id=session_id)

    async def post(
        self, operation: str, /, *, seconds: float | None = None, **fields: Any
    ) -> Response:
        """One operation, whatever comes of it; what is sent and answered is of the contract's form.

        Args:
            operation: its path.
            seconds: how long its answer may take.
            fields: of the body.

        Raises:
            AssertionError: what it did is not told as the contract has it.
        """
        takes, answers = OPERATIONS.get(operation, (None, None))
        body = sent(takes(**fields)) if takes else fields
        answer = await self._sent(operation, body, seconds)
        if answers and answer.status == 200:
            answered(answer, answers)
        return answer

    async def malformed(
        self, operation: str, /, *, seconds: float | None = None, **body: Any
    ) -> Response:
        """One operation whose body is not of the contract's form; the answer, whatever it is."""
        return await self._sent(operation, body, seconds)

    async def _sent(self, operation: str, body: dict[str, Any], seconds: float | None) -> Response:
        options = {} if seconds is None else {"seconds": seconds}
        return await self.client.post(operation, body, **options)

    async def write(self, path: str, content: str) -> None:
        """Write a file, which must succeed."""
        answer = await self.post("/fs/write", path=path, content=content)

        assert answer.status == 200, f"expected {path} to be written, found {answer}"

    async def read(self, path: str) -> Response:
        """Read a file."""
        return await self.post("/fs/read", path=path)

    async def files(self, path: str = ".") -> set[str]:
        """The names of all files and folders below ``path``, which must be there."""
        answer = await self.post("/fs/ls", path=path, recursive=True)

        assert answer.status == 200, f"expected a list of files, found {answer}"
        return {entry["path"] for entry in answer.json()["entries"]}

    async def execute(self, command: str, *, timeout_s: float = 20.0) -> dict[str, Any]:
        """Run a shell command to its end; its exit code may be any."""
        answer = await self.post(
            "/runtime/execute",
            command=command,
            timeout_s=timeout_s,
            seconds=timeout_s + patience(_ANSWER_S),
        )

        assert answer.status == 200, f"expected {command!r} to be run, found {answer}"
        executed: dict[str, Any] = answer.json()
        return executed

    async def events(self, *, after: int = 0) -> list[dict[str, Any]]:
        """Every event of the session so far that follows a number, in the worker's order."""
        found: list[dict[str, Any]] = []
        while True:
            last = found[-1]["seq"] if found else after
            answer = await self.client.get("/events", params={"after": last})

            assert answer.status == 200, f"expected events, found {answer}"
            answered(answer, EventPage)
            page = answer.json()
            assert not page["events"] or page["events"][0]["seq"] == last + 1, (
                f"expected the events that follow {last}, found {answer}"
            )
            found.extend(page["events"])
            if not page["events"] or found[-1]["seq"] >= page["last_seq"]:
                return found


def new_session(worker: HttpClient) -> Session:
    """A session of its own."""
    return Session(worker, f"session-{secrets.token_hex(8)}")
