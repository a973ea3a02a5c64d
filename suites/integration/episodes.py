"""Episodes as a user of the stack has them: submitted, followed and read over HTTP.

What the model does is rehearsed with the gateway: each episode's task holds a token of its own, by
which the gateway, and whoever reads its ledger, distinguishes the episode from those of other tests.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import trio
from workbench_contract.batches import BatchRequest
from workbench_contract.episodes import (
    Episode,
    EpisodeAccepted,
    EpisodeEvents,
    EpisodeRequest,
)

from harness_core.base.evidence import tell
from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.model import LedgerEntry
from harness_core.doubles.turns import Rehearsal, Turn, Use, use
from harness_core.infrastructure.services import S3Object, S3RefusedError
from harness_core.system.compose import Stack
from suites.integration.life import life_of
from suites.integration.messages import answered, sent
from suites.integration.patience import COMMAND_S, EPISODE_S, SOON_S, eventually
from suites.integration.prompts import lacked, lost
from suites.integration.sessions import Session
from suites.integration.temporal_view import history_of

__all__ = [
    "AFTERWARDS",
    "FINAL",
    "SHORT_CALLS",
    "SHORT_S",
    "Episodes",
    "calls",
    "new_token",
    "short_calls",
    "steps_of_episode",
]

FINAL: Final = frozenset({"cancelled", "completed", "failed", "interrupted"})

#: Of a failed test, so many histories are asked for.
_TOLD: Final = 5

#: What they may take together, on a machine with nothing else to do.
_HISTORIES_S: Final = 5.0

#: How many :func:`short_calls` are, what an agent that was not ended writes after them, and how long they
#: last: what a busy machine adds is not known before.
SHORT_CALLS: Final = 150
SHORT_S: Final = (0, 0.05, 0.2)
AFTERWARDS: Final = use("fs_write", path="afterwards.txt", content="x")

#: Where a session's code waits for the test, and what lets it go on.
_GATE: Final = "go-on"


def new_token() -> str:
    """A text that only this test uses; it may be part of a session id."""
    return f"t{secrets.token_hex(8)}"


def short_calls(lasting_s: float) -> tuple[Use, ...]:
    """A turn of many short calls; each begins with a file, ``0.txt`` and so on.

    They are more than can be carried out before an interruption takes effect. One that lasts no time is
    over before anybody can cancel it; one that lasts a moment may end while its cancellation is on the way.
    """
    if not lasting_s:
        return tuple(use("fs_write", path=f"{n}.txt", content="x") for n in range(SHORT_CALLS))
    return tuple(
        use("execute", command=f"touch {n}.txt; sleep {lasting_s}", timeout_s=COMMAND_S)
        for n in range(SHORT_CALLS)
    )


def _task(token: str) -> str:
    return f"Make the part {token}."


def _request(token: str, request: Mapping[str, Any]) -> EpisodeRequest:
    return EpisodeRequest(**{"task": _task(token), "role": "coder", **request})


def _line(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise AssertionError(f"a line of events.jsonl is no JSON: {line[:400]!r}") from error

    assert isinstance(found, dict), f"a line of events.jsonl is no object: {line[:400]!r}"
    return found


def calls(events: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of one kind, in the order given."""
    return [event for event in events if event["kind"] == kind]


def steps_of_episode(episode: Mapping[str, Any]) -> list[str]:
    """The statuses that an episode went through, in order."""
    return [step["to_status"] for step in episode["transitions"]]


class Episodes:
    """The episodes of one stack.

    Args:
        stack: the stack.
        client_of: makes clients of its services, with the key.
    """

    def __init__(self, stack: Stack, client_of: Callable[[Stack, str], HttpClient]) -> None:
        self.stack = stack
        self.controller = client_of(stack, "controller")
        self.worker = client_of(stack, "worker")
        self._tokens: dict[str, str] = {}
        self._rehearsed: set[str] = set()
        self._mark = 0
        self._seen: dict[str, dict[str, Any]] = {}

    async def rehearse(self, token: str, *turns: Turn, task: str = "") -> None:
        """Rehearse what the model does in the episode whose task holds the token.

        Args:
            token: what finds the episode's calls in the ledger.
            turns: what it does each time that it is asked; then it ends by itself.
            task: of the episode, when it is another one than :meth:`ask` submits.
        """
        gateway = self.stack.gateway.client
        if not self._rehearsed:
            self._mark = await gateway.mark()
        self._rehearsed.add(token)
        await gateway.rehearse(Rehearsal(message=task or _task(token), turns=turns))

    async def submit(self, token: str, **request: Any) -> dict[str, Any]:
        """Submit an episode with a task that holds the token; what was answered.

        Raises:
            AssertionError: it was not accepted.
        """
        answer = await self.ask(token, **request)

        assert 202 == answer.status, f"expected the episode to be accepted with 202, found {answer}"
        answered(answer, EpisodeAccepted)
        accepted = answer.json()
        assert "queued" == accepted["status"], f"expected an accepted episode queued: {answer}"
        self._tokens[accepted["episode_id"]] = token
        return accepted

    async def ask(self, token: str, **request: Any) -> Response:
        """Submit an episode; the answer, whatever it is."""
        return await self.controller.post("/episodes", sent(_request(token, request)))

    async def ask_batch(self, requests: Mapping[str, Mapping[str, Any]]) -> Response:
        """Submit several at once, each by its token with what is special to it; whatever is answered."""
        wanted = [_request(token, request) for token, request in requests.items()]
        return await self.controller.post("/episodes/batch", sent(BatchRequest(episodes=wanted)))

    async def interrupt(self, episode_id: str) -> Response:
        """Interrupt an episode; the answer, whatever it is."""
        return await self.controller.post(f"/episodes/{episode_id}/interrupt")

    async def get(self, episode_id: str) -> dict[str, Any]:
        """An episode as it is now."""
        answer = await self.controller.get(f"/episodes/{episode_id}")

        assert 200 == answer.status, f"expected the episode that was accepted, found {answer}"
        answered(answer, Episode)
        found = answer.json()
        if episode_id not in self._seen:
            seen = self._seen[episode_id] = {}
            tell(lambda: life_of(seen))
        self._seen[episode_id].update(found)
        return found

    async def events(self, episode_id: str) -> list[dict[str, Any]]:
        """The stored events of an episode, as they are answered."""
        answer = await self.controller.get(f"/episodes/{episode_id}/events")

        assert 200 == answer.status, f"expected the events of the episode, found {answer}"
        answered(answer, EpisodeEvents)
        found = answer.json()["events"]
        self._seen.get(episode_id, {})["events"] = found
        return found

    async def until(
        self, episode_id: str, *statuses: str, seconds: float = EPISODE_S
    ) -> dict[str, Any]:
        """The episode when it has one of these statuses.

        Raises:
            AssertionError: it ends otherwise, does not get there in time, or a prompt lacked what
                the model needed.
            HarnessError: the model was asked what was not rehearsed.
        """
        last: dict[str, Any] = {}
        tokens = {self._tokens[episode_id]} if episode_id in self._tokens else set()
        wanted = f"episode {episode_id} to be {' or '.join(statuses)}"

        async def there() -> dict[str, Any] | None:
            last.update(await self.get(episode_id))
            if last["status"] in FINAL and last["status"] not in statuses:
                failure = f"expected {wanted}, found {last['status']}: {last['reason']}"
                raise AssertionError(await self.explained(failure, tokens=tokens))
            return last if last["status"] in statuses else None

        def seen() -> object:
            return {key: last.get(key) for key in ("status", "reason", "transitions")}

        found = await eventually(there, seconds=seconds, expected=wanted, seen=seen)
        missing = lacked(await self._ledger(), tokens)

        assert not missing, "\n".join([*missing, f"so nothing is proven by {wanted}"])
        return found

    async def explained(self, failure: str, *, tokens: Collection[str] | None = None) -> str:
        """A failure, and before it what the prompts lacked, which may be its cause.

        Args:
            failure: what was found.
            tokens: of the episodes that it is about; all of this test when not given.

        Raises:
            HarnessError: the model was asked what was not rehearsed: no failure of the product.
        """
        ours = self._rehearsed | {*self._tokens.values()} if tokens is None else tokens
        if not ours:
            return failure
        entries = await self._ledger()
        missing = lacked(entries, ours) or lost(entries, ours)
        return "\n".join([*(line for line in missing if line not in failure), failure])

    async def tell_histories(self) -> None:
        """Have told what Temporal has on record of the episodes that were looked at, of the last few.

        A Temporal that hangs costs a failed test one wait, however many they are.
        """
        with trio.move_on_after(patience(_HISTORIES_S)):
            for seen in [*self._seen.values()][-_TOLD:]:
                moments = await history_of(self.stack, str(seen.get("workflow_id")))
                tell(lambda moments=moments: moments)

    async def _ledger(self) -> tuple[LedgerEntry, ...]:
        return await self.stack.gateway.client.ledger(since=self._mark)

    async def asked(self, token: str) -> int:
        """How often the model was asked in the episode whose task holds a token."""
        return len([call for call in await self._ledger() if token in call.prompt])

    async def run(self, token: str, *turns: Turn, **request: Any) -> dict[str, Any]:
        """Rehearse, submit and follow an episode to its completion."""
        await self.rehearse(token, *turns, task=str(request.get("task", "")))
        return await self.run_submitted(token, **request)

    async def run_submitted(self, token: str, **request: Any) -> dict[str, Any]:
        """Submit an episode that is rehearsed already, and follow it to its completion."""
        accepted = await self.submit(token, **request)
        return await self.until(accepted["episode_id"], "completed")

    async def stored(self, row: Mapping[str, Any]) -> S3Object:
        """The object that an asset's row names.

        Raises:
            AssertionError: there is none.
        """
        try:
            return await self.stack.object(row["key"], bucket=row["bucket"])
        except S3RefusedError as refused:
            raise AssertionError(f"no object where the row says: {row}: {refused}") from refused

    async def until_event(
        self, episode_id: str, kind: str, *, seconds: float = SOON_S, before_end: bool = False
    ) -> dict[str, Any]:
        """The first stored event of a kind, when there is one.

        Args:
            episode_id: of the episode.
            kind: of the event.
            seconds: how long it may take.
            before_end: an episode that ends without it has failed its test; else the event may come
                later, as those of the worker do.
        """

        async def there() -> dict[str, Any] | None:
            episode = await self.get(episode_id)
            found = next(iter(calls(await self.events(episode_id), kind)), None)
            ended = before_end and episode["status"] in FINAL

            assert found or not ended, f"expected an event {kind}, found the end: {episode}"
            return found

        return await eventually(there, seconds=seconds, expected=f"an event {kind}")

    async def until_events(self, episode_id: str, count: int) -> list[dict[str, Any]]:
        """The stored events of an episode, when there are so many of the worker."""
        of_worker: list[dict[str, Any]] = []

        async def there() -> list[dict[str, Any]] | None:
            stored = await self.events(episode_id)
            of_worker[:] = [event for event in stored if event["source"] == "worker"]
            return stored if len(of_worker) >= count else None

        stored: list[dict[str, Any]] = await eventually(
            there,
            seconds=SOON_S,
            expected=f"the {count} events of the worker at the controller",
            seen=lambda: len(of_worker),
        )
        return stored

    # --- sessions -------------------------------------------------------------------------------

    def session(self, session_id: str) -> Session:
        """A session on the worker, an episode's or one of its own."""
        return Session(self.worker, session_id)

    async def record(self, session_id: str) -> list[dict[str, Any]]:
        """The lines of a session's ``events.jsonl``, as the worker has it."""
        answer = await self.session(session_id).read("events.jsonl")

        assert 200 == answer.status, f"expected the record of {session_id}, found {answer}"
        content = answer.json()["content"]
        if not content:
            return []
        assert content.endswith("\n"), f"the record ends within a line: {content[-200:]!r}"
        return [_line(line) for line in content.removesuffix("\n").split("\n")]

    def waiting(self) -> Use:
        """The model runs a command that waits until :meth:`release`; files mark its begin and end."""
        command = f"touch begun; until [ -e {_GATE} ]; do sleep 0.05; done; touch whole"
        return use("execute", command=command, timeout_s=COMMAND_S)

    async def begun(self, session_id: str) -> None:
        """Wait until the command of :meth:`waiting` runs."""

        async def there() -> bool:
            return "begun" in await self.session(session_id).files()

        await eventually(there, seconds=SOON_S, expected=f"the command of {session_id} to run")

    async def release(self, session_id: str) -> None:
        """Let the command of :meth:`waiting` end."""
        await self.session(session_id).write(_GATE, "on")

    async def until_still(self, session_id: str, path: str = "beats") -> None:
        """Wait until no process writes to a file any more, as another process of the session sees it.

        Raises:
            AssertionError: it grows on.
        """
        seen: list[str] = []

        async def still() -> bool:
            command = f"wc -c < {path}; sleep 0.3; wc -c < {path}"
            watched = await self.session(session_id).execute(command)
            seen[:] = watched["stdout"].split()
            return len(seen) == 2 and seen[0] == seen[1]

        await eventually(
            still,
            seconds=SOON_S,
            expected=f"the process of {session_id} that writes to {path} to end",
            seen=lambda: f"it still writes: {', '.join(seen)} bytes",
        )

    async def was_whole(self, session_id: str) -> bool:
        """Whether the command of :meth:`waiting` came to its own end."""
        return "whole" in await self.session(session_id).files()
