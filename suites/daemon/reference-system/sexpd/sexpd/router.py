"""Which message goes where? By TYPE, then by SENSOR or TARGET.

A message that is well formed and means nothing here is answered with an error LOG; the connection
stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import trio

from sexpd import faults, log, messages
from sexpd.config import Config
from sexpd.gateways import Link, LinkError, Links, registry
from sexpd.health import Health
from sexpd.pipeline import Pipeline, Signal, silent
from sexpd.sexpr import Keyword, as_plist, keyword_name, plist
from sexpd.shell.actuator import Shell
from sexpd.shell.verdict import Refused
from sexpd.skills import Registry

Message = dict[str, Any]


class _Meaningless(Exception):
    """A message that is not understood; the text is the reason."""


class Client(Protocol):
    """Who sent a message, and takes what answers it."""

    number: int

    async def reply(self, message: list[Any]) -> None:
        """Send what answers a request of this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What messages are handed to.

    Attributes:
        status: numbers about this process, for the wire.
        stop: begins to stop the daemon; takes the reason.
    """

    health: Health
    links: Links
    pipeline: Pipeline
    shell: Shell
    skills: Registry
    status: Callable[[], dict[str, Any]]
    stop: Callable[[str], None]


class Router:
    """Hands each message to what answers it."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._last_meta: Any = None  # only for the planted fault `meta-of-the-last-command`
        self._targets: dict[str, Callable[[Client, Message, Message], Awaitable[None]]] = {
            "SHELL": self._shell,
            "SKILL": self._skill,
            "SKILLS": self._skill,
            "GATEWAY": self._gateway,
            "GATEWAYS": self._gateway,
            "FLIGHT-PLAN": self._flight_plan,
            "DAEMON": self._control,
        }

    async def handle(self, client: Client, message: Message) -> None:
        """Answer a message, by an error LOG if it means nothing."""
        meta = message.get("META")
        if keyword_name(message.get("TYPE")) == "HEALTH-CHECK":
            await client.reply(await self._health(meta))
            return
        if _is_heartbeat(message):
            if faults.on("heartbeat-answered"):
                await client.reply(messages.event("HEARTBEAT"))
            return
        try:
            await self._handle(client, message)
        except Refused as refused:
            text = f"blocked by the security dispatcher: {refused}"
            await client.reply(messages.log("ERROR", text, meta=meta))
        except (_Meaningless, LinkError) as error:
            log.warning("message.refused", number=client.number, reason=error)
            await client.reply(messages.log("ERROR", str(error), meta=_plain(meta)))

    async def _handle(self, client: Client, message: Message) -> None:
        kind = keyword_name(message.get("TYPE"))
        meta = message.get("META")
        if as_plist(meta) is None:
            raise _Meaningless("META is no property list")
        payload = as_plist(message.get("PAYLOAD"))
        if payload is None:
            raise _Meaningless("PAYLOAD is no property list")
        if kind == "EVENT":
            sensor = keyword_name(payload.get("SENSOR"))
            if sensor != "USER-INPUT":
                raise _Meaningless(f"there is no sensor {sensor or 'in the payload'}")
            await self._user_input(client, message, payload)
        elif kind == "REQUEST":
            target = keyword_name(message.get("TARGET"))
            if target not in self._targets:
                known = ", ".join(sorted(self._targets))
                raise _Meaningless(f"there is no target {target or 'in the message'}; {known}")
            await self._targets[target](client, message, payload)
        else:
            raise _Meaningless(f"there is no type {kind or 'in the message'}")

    # --- Events ---

    async def _health(self, meta: Any) -> list[Any]:
        report = await self._parts.health.report()
        checks = [
            plist(name=check.name, status=Keyword(check.state), detail=check.detail)
            for check in report.checks
        ]
        answer = plist(
            type=Keyword("HEALTH-RESPONSE"),
            status=Keyword(report.status),
            checked_p=report.checked,
            checks=checks,
        )
        return [*plist(meta=meta), *answer] if meta and _plain(meta) else answer

    async def _user_input(self, client: Client, message: Message, payload: Message) -> None:
        text = payload.get("TEXT")
        if not isinstance(text, str):
            raise _Meaningless("TEXT of user input has to be a string")
        meta = message.get("META")
        known = as_plist(meta) or {}
        source = keyword_name(known.get("SOURCE")) or "UNKNOWN"
        if source == "MESSAGING":
            link = known.get("LINK")
            if not isinstance(link, str):
                raise _Meaningless("META of messaging text names no LINK")
            self._parts.links.get(link)
        if meta is None and faults.on("metaless-unanswered"):
            return
        say = await self._parts.pipeline.process(Signal(text=text, source=source))
        if not silent(say):
            await client.reply(messages.answer(say.text, say.explanation, meta=meta))

    # --- Requests ---

    async def _shell(self, client: Client, message: Message, payload: Message) -> None:
        _action(payload, "EXECUTE")
        command = payload.get("CMD")
        if not isinstance(command, str):
            raise _Meaningless("CMD of a shell request has to be a string")
        try:
            seconds = self._parts.shell.timeout_s(payload.get("TIMEOUT"))
        except ValueError as error:
            raise _Meaningless(str(error)) from error
        meta = self._last_meta = message.get("META")
        outcome = await self._parts.shell.run(command, route="wire", seconds=seconds)
        if faults.on("meta-of-the-last-command"):
            meta = self._last_meta
        if not faults.on("shell-reply-lost"):
            await client.reply(messages.shell_response(outcome, meta=meta))

    async def _skill(self, client: Client, message: Message, payload: Message) -> None:
        _action(payload, "LIST")
        skills = self._parts.skills
        skills.refresh()
        loaded = [
            plist(name=s.name, version=s.version, description=s.description,
                  requires=list(s.requires))
            for s in skills.loaded
        ]
        rejected = [plist(name=r.name, reason=r.reason) for r in skills.rejected]
        await client.reply(
            messages.event(
                "SKILL-LIST", meta=message.get("META"), skills=loaded, rejected=rejected
            )
        )

    async def _gateway(self, client: Client, message: Message, payload: Message) -> None:
        action = _action(payload, "LIST", "LINK", "UNLINK", "SEND")
        links, meta = self._parts.links, message.get("META")
        if action == "LIST":
            gateways = [
                plist(name=g.name, kind=Keyword(g.kind.upper()), source=Keyword(g.source),
                      description=g.description)
                for g in registry()
            ]
            known = [_link(link) for link in links.all()]
            await client.reply(
                messages.event("GATEWAY-LIST", meta=meta, gateways=gateways, links=known)
            )
            return
        name = _string(payload, "NAME")
        if action == "LINK":
            link = links.add(
                name=name,
                platform=_string(payload, "PLATFORM"),
                address=_string(payload, "ADDRESS"),
                webhook=_string(payload, "WEBHOOK", default=""),
            )
            log.info("link.made", name=name, platform=link.platform)
            answer = messages.event("GATEWAY-LINKED", meta=meta, link=_link(link))
        elif action == "UNLINK":
            link = links.remove(name)
            log.info("link.removed", name=name)
            answer = messages.event("GATEWAY-UNLINKED", meta=meta, link=_link(link))
        else:
            from sexpd.outgoing import post

            link = links.get(name)
            if faults.on("send-overtaken"):
                trio.lowlevel.spawn_system_task(_sent_later, client, meta, link, _string(payload, "TEXT"))
                return
            status = await post(link, _string(payload, "TEXT"))
            answer = messages.event("GATEWAY-SENT", meta=meta, link=_link(link), status=status)
        await client.reply(answer)

    async def _flight_plan(self, client: Client, message: Message, payload: Message) -> None:
        from sexpd import flightplan

        _action(payload, "NODE")
        meta = as_plist(message.get("META")) or {}
        try:
            node = flightplan.node(
                _string(payload, "TEXT"),
                source=keyword_name(meta.get("SOURCE")) or "UNKNOWN",
                wanted_id=payload.get("ID"),
            )
        except flightplan.PlanError as error:
            raise _Meaningless(str(error)) from error
        await client.reply(
            messages.event("FLIGHT-PLAN", meta=message.get("META"), node=node)
        )

    async def _control(self, client: Client, message: Message, payload: Message) -> None:
        action = _action(payload, "STATUS", "SHUTDOWN")
        meta = message.get("META")
        if action == "STATUS":
            status = self._parts.status()
            await client.reply(messages.event("DAEMON-STATUS", meta=meta, **status))
        elif not self._config["server.shutdown_command"]:
            raise _Meaningless("this daemon is not stopped over the wire")
        else:
            await client.reply(messages.event("SHUTTING-DOWN", meta=meta))
            self._parts.stop("a client asked for it")


def _is_heartbeat(message: Message) -> bool:
    payload = as_plist(message.get("PAYLOAD")) or {}
    return (
        keyword_name(message.get("TYPE")) == "EVENT"
        and keyword_name(payload.get("SENSOR")) == "HEARTBEAT"
    )


def _action(payload: Message, *known: str) -> str:
    action = keyword_name(payload.get("ACTION"))
    if action not in known:
        raise _Meaningless(f"there is no action {action or 'in the payload'}; {', '.join(known)}")
    return action


def _string(payload: Message, key: str, *, default: str | None = None) -> str:
    value = payload.get(key, default)
    if not isinstance(value, str):
        raise _Meaningless(f"{key} has to be a string")
    return value


async def _sent_later(client: Client, meta: Any, link: Link, text: str) -> None:
    """Only for the planted fault `send-overtaken`."""
    from sexpd.outgoing import post

    with contextlib.suppress(Exception):
        status = await post(link, text)
        await client.reply(messages.event("GATEWAY-SENT", meta=meta, link=_link(link), status=status))


def _link(link: Any) -> list[Any]:
    return plist(
        name=link.name, platform=link.platform, address=link.address, webhook=link.origin
    )


def _plain(meta: Any) -> Any:
    return meta if isinstance(meta, list) and as_plist(meta) is not None else None
