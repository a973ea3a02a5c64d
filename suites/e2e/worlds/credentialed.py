"""A second, small ecosystem whose modules have credentials: what goes out of the house is seen.

Telegram and the calendar are recorders of HTTP, the mail server is a mailbox; all three stand on
loopback, answer as their services do, and say so when a test wants trouble. The subject file says
how the product is given addresses and credentials (``[modules.<name>] env``), how the clock of its
heartbeat is set, and where its heartbeat keeps its log (``[heartbeat]``).
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from harness_core.base.evidence import Evidence
from harness_core.doubles.http import Answer, Recorded, Recorder, Rule, open_recorder
from harness_core.doubles.mail import Mailbox, open_mailbox
from harness_core.process import Run
from harness_core.system.subject import Subject, Variables
from suites.e2e.ecosystem.boot import Say, link_butlers, open_ecosystem
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.subject_file import Module, filled, tables_of

__all__ = [
    "BEAT_S",
    "MODULES",
    "Connected",
    "Services",
    "credentials_of",
    "open_connected",
    "open_services",
    "variables_of",
]

#: Modules that are given credentials here and nowhere else.
MODULES: Final = ("telegram", "email", "calendar")

#: The butlers that take part: enough for a message over two domains, a delivery and a beat.
BUTLERS: Final = ("switchboard", "messenger", "heartbeat", "health", "relationship")

#: One of several calendars; in an address its name is quoted.
_CALENDAR: Final = "family/Haus halt@example.test"

#: What the clock of the heartbeat is set to, in seconds.
BEAT_S: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The ecosystem and the world around it.

    Attributes:
        butlers: the ecosystem; its heartbeat is stopped until a test needs it.
        telegram: stands for the Telegram Bot API.
        calendar: stands for a calendar of the shape of Google's.
        mail: stands for the mail server.
        telegram_token: the bot's token.
        calendar_token: the bearer token of the calendar.
        calendar_id: which of the account's calendars is the owner's; empty where it cannot be said.
        owner_chat: the chat that messages without a recipient go to.
        owner_address: the address that mails without a recipient go to.
    """

    butlers: Ecosystem
    telegram: Recorder
    calendar: Recorder
    mail: Mailbox
    telegram_token: str
    calendar_token: str
    calendar_id: str
    owner_chat: str
    owner_address: str

    def telegrams(self, *, since: int = 0) -> list[dict[str, Any]]:
        """The messages that were asked to be sent, as the service received them."""
        path = f"/bot{self.telegram_token}/sendMessage"
        return [request.json() for request in self.telegram.matching(path, since=since)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What modules speak to.

    Attributes:
        telegram: stands for the Telegram Bot API.
        calendar: stands for a calendar of the shape of Google's.
        mail: stands for the mail server.
        fields: of ``[modules.NAME.env]``: addresses and credentials.
    """

    telegram: Recorder
    calendar: Recorder
    mail: Mailbox
    fields: Mapping[str, str]


@asynccontextmanager
async def open_services(run: Run, *, evidence: Evidence) -> AsyncIterator[Services]:
    """Serve them, with credentials of their own.

    Args:
        run: the run they belong to.
        evidence: keeps what they received.
    """
    telegram_token = f"{secrets.randbelow(10**9)}:{secrets.token_urlsafe(24)}"
    calendar_token = "cal-" + secrets.token_urlsafe(24)
    evidence.redactor.add(telegram_token, calendar_token)
    async with (
        open_recorder("telegram", evidence=evidence, rules=telegram_rules(telegram_token)) as bots,
        open_recorder("calendar", evidence=evidence, rules=calendar_rules(calendar_token)) as days,
        open_mailbox(run, evidence=evidence) as mail,
    ):
        fields = {
            "telegram_url": bots.url,
            "telegram_token": telegram_token,
            "telegram_chat": "10000001",
            "calendar_url": days.url,
            "calendar_token": calendar_token,
            "calendar_id": _CALENDAR,
            "mail_host": mail.host,
            "mail_port": str(mail.port),
            "mail_account": mail.account,
            "mail_password": mail.password,
            "mail_recipient": "owner@example.test",
        }
        yield Services(telegram=bots, calendar=days, mail=mail, fields=fields)


@asynccontextmanager
async def open_connected(
    run: Run, subject: Subject, *, evidence: Evidence, roster: Path, say: Say
) -> AsyncIterator[Connected]:
    """Boot the small ecosystem and the services around it.

    Args:
        run: the run it belongs to.
        subject: how to start one butler, and how to give it credentials.
        evidence: keeps the logs, and what the services received.
        roster: an empty directory, for a roster of some butlers.
        say: gets a line for each step of the boot.

    Raises:
        BadInput: the subject file says it wrongly.
    """
    link_butlers(subject, roster, BUTLERS)
    async with open_services(run, evidence=evidence) as services:
        heartbeat = tables_of(subject).heartbeat.env
        beat = {**services.fields, "interval_s": f"{BEAT_S:g}"}
        environment = filled(subject, "heartbeat.env", heartbeat, beat)
        for module in MODULES:
            environment |= credentials_of(subject, module, services)
        async with open_ecosystem(
            run,
            subject,
            evidence=evidence,
            roster=roster,
            environment=environment,
            say=say,
        ) as butlers:
            await butlers["heartbeat"].stop()
            yield Connected(
                butlers=butlers,
                telegram=services.telegram,
                calendar=services.calendar,
                mail=services.mail,
                telegram_token=services.fields["telegram_token"],
                calendar_token=services.fields["calendar_token"],
                calendar_id=_CALENDAR if _is_chosen(subject) else "",
                owner_chat=services.fields["telegram_chat"],
                owner_address=services.fields["mail_recipient"],
            )


def _is_chosen(subject: Subject) -> bool:
    return any("{calendar_id}" in text for text in variables_of(subject, "calendar").values())


def variables_of(subject: Subject, module: str) -> Variables:
    """The environment by which a module is given its credentials; empty when the file has none."""
    found: Module = getattr(tables_of(subject).modules, module)
    return found.env


def credentials_of(subject: Subject, module: str, services: Services) -> dict[str, str]:
    """The same, with addresses and credentials filled in.

    Raises:
        BadInput: the subject file has another field.
    """
    variables = variables_of(subject, module)
    return filled(subject, f"modules.{module}.env", variables, services.fields)


def telegram_rules(token: str) -> list[Rule]:
    """The Bot API, as far as a bot that sends needs it; another token is an unknown path (404)."""
    numbers = itertools.count(5001)

    def sent(request: Recorded) -> Answer:
        message = request.json()
        return Answer(
            json={
                "ok": True,
                "result": {
                    "message_id": next(numbers),
                    "chat": {"id": message.get("chat_id"), "type": "private"},
                    "text": message.get("text"),
                },
            }
        )

    bot = {"id": int(token.partition(":")[0]), "is_bot": True, "username": "butler_bot"}
    unknown = Answer(status=404, json={"ok": False, "error_code": 404, "description": "Not Found"})
    return [
        Rule(path=f"/bot{token}/getMe", answer=Answer(json={"ok": True, "result": bot})),
        Rule(path=f"/bot{token}/sendMessage", method="POST", answer=sent, name="sendMessage"),
        Rule(path="/bot*", answer=unknown),
    ]


def calendar_rules(token: str) -> list[Rule]:
    """A calendar with no events but those that are made; another token is refused (401)."""
    made: list[dict[str, Any]] = []

    def answer(request: Recorded) -> Answer:
        if dict(request.headers).get("authorization") != f"Bearer {token}":
            return Answer(status=401, json={"error": "invalid credentials"})
        if request.path.endswith("/events") and request.method == "POST":
            event = {"id": f"event-{len(made) + 1}", "status": "confirmed", **request.json()}
            made.append(event)
            return Answer(json=event)
        if request.path.endswith("/events"):
            return Answer(json={"kind": "calendar#events", "items": made})
        return Answer(json={"kind": "calendar#calendar", "id": request.path.rpartition("/")[2]})

    return [Rule(path="/calendars/*", answer=answer)]
