"""Whatever a service answers, in whatever order: what was said, what arrived and the books agree.

Telegram is a stand-in, a recorder on loopback, which answers each message by a script of its own.
Run: nox -s explore -- e2e
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from harness_core.assertions import new_token
from harness_core.assertions.exploring import Explore, Machine
from harness_core.doubles.http import Answer, Recorded, Rule
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.journey import Row
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.deliveries import DELIVERY_S

pytestmark = [
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
    pytest.mark.explore,
    pytest.mark.disturbs,
]

#: Nothing was taken, and trying again cannot deliver twice.
_PASSING: Final = (429, 500, 502, 503)

#: The message is refused for ever, or may have arrived: it must not be sent again.
_LASTING: Final = (400, 403)
_UNKNOWN: Final = 0

_SCRIPTS: Final = st.one_of(
    st.just(()),
    st.lists(st.sampled_from(_PASSING), min_size=1, max_size=2).map(tuple),
    st.sampled_from(_PASSING).map(lambda status: (status,) * 20),
    st.builds(
        lambda before, end: (*before, end),
        st.lists(st.sampled_from(_PASSING), max_size=1),
        st.sampled_from((*_LASTING, _UNKNOWN)),
    ),
)

_WORDS: Final = st.sampled_from(["tea", "tea", "Ünï 茶 'q' \"d\" \\ %s $1", "long " * 700, "a\nb"])

_FROM: Final = st.sampled_from(["health", "relationship", "switchboard", "messenger"])

#: Nobody, for the owner; and several who are not.
_TO: Final = st.sampled_from([None, "4711", "4712", "-100200"])


class DeliveryMachine(Machine):
    """Notifications beside what arrived and what is booked.

    Args:
        connected: the ecosystem with a messenger, and the service around it.
    """

    def __init__(self, connected: Connected) -> None:
        super().__init__()
        self._connected = connected
        self._token = new_token()
        self._numbers = itertools.count(1)
        self._scripts: dict[str, list[int]] = {}
        self._planned: dict[str, tuple[int, ...]] = {}
        self._answers: dict[str, ToolResult] = {}
        self._wanted: dict[str, tuple[str, str]] = {}
        self._mark = connected.telegram.mark()
        self._restarted = False
        self._rule = Rule(path="/bot*/sendMessage", answer=self._answer)
        connected.telegram.add_rule(self._rule)

    @rule(origin=_FROM, to=_TO, words=_WORDS, script=_SCRIPTS)
    def notify(self, origin: str, to: str | None, words: str, script: tuple[int, ...]) -> None:
        """A butler notifies somebody; the service answers as the script says."""
        self.wait_for(self._notify_all, [(origin, to, words, script)])

    @rule(calls=st.lists(st.tuples(_FROM, _TO, _WORDS, _SCRIPTS), min_size=2, max_size=4))
    def notify_at_once(self, calls: list[Any]) -> None:
        """Several do, at the same moment."""
        self.wait_for(self._notify_all, calls)

    @precondition(lambda self: self._answers and not self._restarted)
    @rule()
    def restart(self) -> None:
        """A messenger that is restarted sends nothing of what is over."""
        self._restarted = True
        self.wait_for(self._connected.butlers["messenger"].restart)

    @invariant()
    def the_books_are_what_happened(self) -> None:
        """Answers, requests, attempts, receipts and what arrived tell the same of each message."""
        booked = self.wait_for(self._booked)
        asked = self._asked()

        assert booked.keys() == self._answers.keys(), (
            f"notified were {sorted(self._answers)}, booked are {sorted(booked)}"
        )
        for word, answer in self._answers.items():
            request, attempts, receipts = booked[word]
            seen = asked.get(word, [])
            arrived = [one for one in seen if one[0] == 200]
            story = (
                f"\nof {word}: answered {answer.text[:200]}; the service was asked {seen} (script "
                f"{self._planned[word][:4]}); booked {dict(request)}, {attempts}, {receipts}"
            )

            assert len(arrived) == (0 if answer.is_error else 1), (
                f"what is answered as sent has arrived once, what is not has not{story}"
            )
            assert {one[1:] for one in seen} <= {self._wanted[word]}, (
                f"each attempt is of this message, for {self._wanted[word][0]}{story}"
            )
            assert request["status"] == ("failed" if answer.is_error else "delivered"), (
                f"its request is booked as it ended{story}"
            )
            assert bool(request["error"]) == answer.is_error, f"a failure has a reason{story}"
            assert len(receipts) == len(arrived), f"a receipt is of what arrived{story}"
            assert [row["success"] for row in attempts] == [one[0] == 200 for one in seen], (
                f"each attempt is on record as it ended{story}"
            )
            self._expect_tries(word, [one[0] for one in seen], story)

    def teardown(self) -> None:
        """The service answers as ever."""
        self._connected.telegram.remove_rule(self._rule)

    def _expect_tries(self, word: str, statuses: Sequence[int], story: str) -> None:
        planned = self._planned[word]
        for number, status in enumerate(statuses[:-1]):
            assert status in _PASSING, (
                f"after {status} it is not sent again, and was at attempt {number + 2}{story}"
            )
        # Trouble that passes at the second attempt is no reason to give up.
        gave_up = len(planned) < len(statuses) + 1 and statuses[-1] in _PASSING

        assert not gave_up, f"it was given up before its trouble had passed{story}"

    async def _notify_all(self, calls: Sequence[Any]) -> None:
        async def notify(word: str, origin: str, to: str | None, message: str) -> None:
            arguments = {"channel": "telegram", "message": message} | (
                {"recipient": to} if to else {}
            )
            self._answers[word] = await self._connected.butlers[origin].try_call(
                "notify", arguments, seconds=DELIVERY_S
            )

        async with trio.open_nursery() as nursery:
            for origin, to, words, script in calls:
                word = f"{self._token}n{next(self._numbers)}n"
                message = f"{words} ({word})"
                self._scripts[word], self._planned[word] = list(script), tuple(script)
                self._wanted[word] = (to or self._connected.owner_chat, message)
                nursery.start_soon(notify, word, origin, to, message)

    def _answer(self, request: Recorded) -> Answer:
        body = request.json()
        script = next(
            (script for word, script in self._scripts.items() if word in str(body.get("text"))), []
        )
        status = script.pop(0) if script else 200
        if status == _UNKNOWN:
            return Answer(drop="unanswered")
        if status != 200:
            headers = {"retry-after": "0"} if status == 429 else {}
            return Answer(
                status=status,
                headers=headers,
                json={"ok": False, "error_code": status, "description": f"planted {status}"},
            )
        sent = {"message_id": request.sequence, "chat": {"id": body["chat_id"]}, "text": "…"}
        return Answer(json={"ok": True, "result": sent})

    def _asked(self) -> dict[str, list[tuple[int, str, str]]]:
        """Word → status, chat and text of each request of the service."""
        found: dict[str, list[tuple[int, str, str]]] = {}
        for request in self._connected.telegram.matching("/bot*/sendMessage", since=self._mark):
            body = request.json()
            word = next((word for word in self._scripts if word in str(body.get("text"))), None)
            if word is not None:
                status = request.status or _UNKNOWN
                found.setdefault(word, []).append((status, str(body["chat_id"]), body["text"]))
        return found

    async def _booked(self) -> dict[str, tuple[Row, list[Row], list[Row]]]:
        database = self._connected.butlers["messenger"].database
        found: dict[str, tuple[Row, list[Row], list[Row]]] = {}
        requests = await database.rows(
            "SELECT * FROM delivery_requests WHERE message LIKE %s", (f"%{self._token}%",)
        )
        for request in requests:
            words = [word for word in self._scripts if word in request["message"]]

            assert len(words) == 1, f"a request is of one message: {dict(request)}"
            assert words[0] not in found, f"one message has two requests: {dict(request)}"
            attempts, receipts = [
                await database.rows(
                    f"SELECT * FROM {table} WHERE delivery_id = %s", (request["id"],)
                )
                for table in ("delivery_attempts", "delivery_receipts")
            ]
            found[words[0]] = (request, sorted(attempts, key=_begun), list(receipts))
        return found


def _begun(attempt: Row) -> Any:
    return next(attempt[key] for key in ("attempt_number", "started_at", "id") if key in attempt)


async def test_deliveries_keep_their_history(explore: Explore, connected: Connected) -> None:
    """Of many notifications, alone and at once, with every kind of trouble, all accounts agree."""
    await explore(lambda: DeliveryMachine(connected), steps=8)
