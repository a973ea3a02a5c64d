"""A running butler ecosystem: its handles, what is sent in, and what is put right between tests.

``boot.py`` starts it. Nothing here imports the system under test: it is a command line in a subject
file.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from harness_core.base import limits
from harness_core.base.errors import BadInput, BudgetExceeded, HarnessError
from harness_core.base.evidence import Evidence
from harness_core.doubles.model import Gateway, Totals
from harness_core.doubles.telemetry import Collector
from harness_core.doubles.turns import Rehearsal, Turn
from harness_core.front.skips import not_run
from harness_core.infrastructure.services import PostgresService
from harness_core.system.parts import Parts
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.dialect import Dialect, dialect_of
from suites.e2e.observe.logs import ErrorLine, LogPlace
from suites.e2e.worlds.everyday import turns_for

__all__ = [
    "ACCOUNTS",
    "ALL_BUTLERS",
    "COST",
    "DOMAIN",
    "REGISTERS",
    "REHEARSED",
    "REQUEST_IDS",
    "SESSION_IDS",
    "TOKEN_SUMS",
    "TRACING",
    "Butler",
    "Ecosystem",
    "Sent",
]

#: A message to its final state when the model answers at once. Slowest seen, three butlers on 2
#: loaded cores: 7 s.
_OFFLINE_MESSAGE_S: Final = 40.0

#: What a subject lists whose rows carry the trace ids of the messages that caused them.
TRACING: Final = "tracing"

#: What a subject lists whose rows of ``sessions`` bear the request ids of the messages that caused them.
REQUEST_IDS: Final = "request-ids"

#: What a subject lists whose calls of the model say which session they are of.
SESSION_IDS: Final = "session-ids"

#: What a subject lists whose sessions are on record with the tokens that the provider counted.
TOKEN_SUMS: Final = "token-sums"

#: What a subject lists whose sessions are on record with what they cost.
COST: Final = "cost"

#: What a subject lists whose butlers register with the switchboard as soon as they serve.
REGISTERS: Final = "registers-at-boot"

#: What a subject lists whose butlers have the tools and tables of the contract's roster.
DOMAIN: Final = "domain"

#: All that a message can be followed and accounted by.
ACCOUNTS: Final = frozenset({REQUEST_IDS, SESSION_IDS, TOKEN_SUMS, COST})

#: The mode of the gateway in which rows say what the model does.
REHEARSED: Final = "rehearsed"

#: Of observed times, in minutes: Kathmandu, St. John's, Chatham, Marquesas and others.
_OFFSETS_MIN: Final = (0, 345, -210, 765, -570, 60, -720)

#: Of a refusal, in the reason of a test that is not run.
_SHOWN_CHARS: Final = 300

#: The one process of a subject that serves every butler from it.
ALL_BUTLERS: Final = "ecosystem"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message that the switchboard accepted.

    Attributes:
        request_id: the switchboard's name for it.
        trace_id: ours: 32 hexadecimal digits that only this message carries; empty for a subject
            that does not keep it.
        text: what was sent.
        channel: where it came from.
        answer: the whole answer of ``ingest``.
        since: the database server's clock just before the message was sent.
        mark: sequence number in the gateway's ledger before that.
        rehearsed: the model has turns for it.
        arguments: what ``ingest`` was called with.
        accounts: by which of :data:`ACCOUNTS` the subject is judged.
    """

    request_id: str
    trace_id: str
    text: str
    channel: str
    answer: Mapping[str, Any]
    since: Any
    mark: int
    rehearsed: bool = False
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    accounts: frozenset[str] = ACCOUNTS


@dataclasses.dataclass(eq=False, kw_only=True)
class Ecosystem:
    """A running ecosystem; built only by :func:`suites.e2e.ecosystem.boot.open_ecosystem`.

    Attributes:
        butlers: every butler of the roster, by name.
        parts: its processes and servers: ``postgres``, ``gateway``, ``otlp`` and the butlers.
        gateway: the model gateway they all talk to.
        postgres: their database server.
        collector: where they send their spans.
        subject: what was started.
        evidence: directory of the test that uses it now.
        logs: where its processes write.
        boot_s: seconds from nothing to the last registration.
        patience_s: how long a message may take to its final state, in seconds.
        unusable: why nothing can be tested on it any more; empty when it is sound.
        sent_ids: request and trace ids of every message sent through here, oldest first.
        watched: how far the butlers' logs have been searched for errors.
        watched_ids: how many of ``sent_ids`` belong to earlier tests.
        late_errors: errors about messages of earlier tests, which no test answered for.
        misses: how many calls that were not in the cassette have been reported.
        witnessed: its databases keep what rows go through (``observe/witness.py``).
        unregistered: the butlers that the registry did not list in time when all of them served.
        valid: why a valid call was refused, by butler and tool; empty when it was not.
    """

    butlers: Mapping[str, Butler]
    parts: Parts
    gateway: Gateway
    postgres: PostgresService
    collector: Collector
    subject: Subject
    evidence: Evidence
    unusable: str = ""
    sent_ids: list[str] = dataclasses.field(default_factory=list)
    watched: LogPlace = dataclasses.field(default_factory=dict)
    watched_ids: int = 0
    late_errors: list[ErrorLine] = dataclasses.field(default_factory=list)
    misses: int = 0
    witnessed: bool = False
    unregistered: Sequence[str] = ()
    valid: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.logs = self.evidence.path
        self.boot_s = self.parts.boot_s
        real = self.gateway.mode in {"live", "record"}
        self.patience_s = limits.SCENARIO_S if real else _OFFLINE_MESSAGE_S

    def __getitem__(self, name: str) -> Butler:
        if name not in self.butlers:
            raise BadInput("butler", found=name, expected=f"one of {', '.join(self.butlers)}")
        return self.butlers[name]

    @property
    def secrets(self) -> Mapping[str, str]:
        """What must never be found where it does not belong: what it is → its value."""
        known = {
            "the model's key": self.gateway.api_key,
            "the databases' password": urlsplit(self.switchboard.database.url).password or "",
            "the canary in a butler's environment": self.switchboard.environment["HARNESS_CANARY"],
        }
        return {name: value for name, value in known.items() if value}

    def describe(self) -> Mapping[str, Any]:
        """Its parts, for ``harness ps``."""
        return self.parts.describe()

    async def act(self, name: str, verb: str) -> None:
        """Take a part away, or give it back, for the page of ``harness up``."""
        await self.parts.act(name, verb)

    async def spent(self) -> Totals | None:
        """What the gateway has counted so far."""
        return await self.parts.spent()

    def butler_logs(self) -> tuple[Path, ...]:
        """The logs of every life of every butler, of its start included."""
        names = "|".join(re.escape(name) for name in (*self.butlers, ALL_BUTLERS))
        pattern = re.compile(rf"(?:{names})(?:-\d+)?")
        return tuple(log for log in sorted(self.logs.glob("*.log")) if pattern.fullmatch(log.stem))

    @property
    def dialect(self) -> Dialect:
        """What the product says otherwise than the contract."""
        return dialect_of(self.subject)

    async def need_valid(self, butler: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """That a changed call is refused says something only where the valid one is taken.

        Asked once for each tool of each butler; where it is refused, the test is not run.

        Args:
            butler: who is called.
            tool: of the contract.
            arguments: a valid call.
        """
        if (butler, tool) not in self.valid:
            answer = await self[butler].try_call(tool, arguments, seconds=self.patience_s)
            self.valid[butler, tool] = answer.text if answer.is_error else ""
        if refusal := self.valid[butler, tool]:
            not_run(
                "subject", f"its {tool} refuses the valid request too: {refusal[:_SHOWN_CHARS]}"
            )

    @property
    def switchboard(self) -> Butler:
        """The butler that messages come in at."""
        return self["switchboard"]

    def check_usable(self) -> None:
        """What goes wrong on a broken ecosystem says nothing about the product.

        Raises:
            HarnessError: a test left it broken.
        """
        if self.unusable:
            raise HarnessError(
                "test on this ecosystem",
                observed=self.unusable,
                next_step="Run the tests that did not run once that is mended",
            )

    async def begin(self, test: str, *, evidence: Evidence) -> None:
        """A test starts to use it: what happens from now on is booked on that test.

        Args:
            test: its id.
            evidence: its directory.
        """
        self.evidence = evidence
        await self.gateway.client.set_scope(test)

    async def end(self) -> None:
        """The test has ended; what still comes in belongs to none."""
        await self.gateway.client.set_scope("")

    async def mend(self) -> Sequence[str]:
        """Put right what a test left broken; says what that was, nothing when all is well."""
        found = list(await self.parts.mend())
        waiting = await self.gateway.client.waiting_faults()
        found += [f"a fault still waits in the model gateway: {each}" for each in waiting]
        if found:
            await self.gateway.client.clear()
        return found

    async def check_budget(self) -> None:
        """What went wrong for want of money, or of a recording, says nothing about the product.

        Raises:
            BudgetExceeded: the gateway has refused a call because it did not fit the budget.
            HarnessError: in mode ``replay``, a call since the last check was not in the cassette.
        """
        totals = await self.gateway.client.totals()
        if totals.budget_exceeded:
            raise BudgetExceeded(
                budget_usd=totals.budget_usd,
                spent_usd=totals.spent_usd,
                reserved_usd=totals.reserved_usd,
            )
        if self.gateway.mode == "replay":
            missed = await self.gateway.client.unmatched()
            fresh, self.misses = missed[self.misses :], len(missed)
            if fresh:
                raise HarnessError(
                    "replay a model call", observed=fresh[0], next_step="Record it: --llm record"
                )

    async def rehearse(self, text: str, model: Sequence[Turn] | None = None) -> bool:
        """Say what the model does for a message; in another mode than ``rehearsed`` it decides.

        Args:
            text: the message.
            model: its turns; those of :data:`~suites.e2e.worlds.everyday.EVERYDAY` when not given.

        Returns:
            Whether the model has turns for it now.
        """
        if self.gateway.mode != REHEARSED:
            return False
        # As the very text, so that what a product cuts or changes is seen to be this message.
        turns = turns_for(text) if model is None else Rehearsal(message=text, turns=tuple(model))
        if turns is not None:
            await self.gateway.client.rehearse(turns)
        return turns is not None

    async def send(
        self,
        text: str,
        model: Sequence[Turn] | None = None,
        *,
        event_id: str | None = None,
        trace_id: str | None = None,
        **changes: Any,
    ) -> Sent:
        """Send one message in at the switchboard, which must accept it.

        Args:
            text: what the user says.
            model: what the model does for it, as in :meth:`rehearse`.
            event_id: the channel's id of the event; a fresh one otherwise.
            trace_id: 32 hexadecimal digits; fresh otherwise.
            changes: whole sections of the envelope to replace, e.g. ``control={…}``.
        """
        trace_id = trace_id or secrets.token_hex(16)
        rehearsed = await self.rehearse(text, model)
        mark = await self.gateway.client.mark()
        since = (await self.switchboard.database.one("SELECT clock_timestamp() AS now"))["now"]
        message = envelope(text, event_id=event_id, trace_id=trace_id) | changes
        answer = await self.switchboard.call("ingest", **message)

        assert answer.get("status") == "accepted", (
            f"expected ingest to answer {text!r} with the status 'accepted', found {answer}"
        )
        self.sent_ids.extend((str(answer["request_id"]), trace_id))
        return Sent(
            request_id=str(answer["request_id"]),
            trace_id=trace_id if TRACING in self.subject.capabilities else "",
            text=text,
            channel=str(message["source"]["channel"]),
            answer=answer,
            since=since,
            mark=mark,
            rehearsed=rehearsed,
            arguments=message,
            accounts=self.subject.capabilities & {REQUEST_IDS, SESSION_IDS, TOKEN_SUMS, COST},
        )


def envelope(text: str, *, event_id: str | None = None, trace_id: str) -> dict[str, Any]:
    """An ``ingest.v1`` message as a channel connector would send it.

    Two events differ in whatever could be mixed up: in zone, account, sender and raw payload.
    """
    event_id = event_id or f"event-{secrets.token_hex(8)}"
    number = zlib.crc32(event_id.encode())
    zone = dt.timezone(dt.timedelta(minutes=_OFFSETS_MIN[number % len(_OFFSETS_MIN)]))
    return {
        "source": {
            "channel": "api",
            "provider": "staging-harness",
            "endpoint_identity": f"e2e-{number % 3}",
        },
        "event": {
            "external_event_id": event_id,
            "observed_at": dt.datetime.now(zone).isoformat(timespec="milliseconds"),
        },
        "sender": {"identity": f"Person {number % 5} É@Example.test"},
        "payload": {
            "raw": {"text": text, "n": number, "parts": [{"é": None}, number / 7, ""]},
            "normalized_text": text,
        },
        "control": {
            "trace_context": {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"},
        },
    }
