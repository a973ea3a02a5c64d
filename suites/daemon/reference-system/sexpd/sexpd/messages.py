"""The messages that the daemon sends, as property lists ready to be written."""

from __future__ import annotations

from typing import Any

from sexpd import VERSION, faults
from sexpd.sexpr import Keyword, as_plist, plist
from sexpd.shell.actuator import Outcome

CAPABILITIES = (
    "FRAMED-SEXP", "HEALTH-CHECK", "USER-INPUT", "HEARTBEAT", "SHELL", "SKILLS", "GATEWAYS",
    "MESSAGING", "FLIGHT-PLAN",
)


def handshake(*, shutdown: bool) -> list[Any]:
    """What the server says first."""
    known = [*CAPABILITIES, "SHUTDOWN"] if shutdown else list(CAPABILITIES)
    version = {} if faults.on("handshake-no-version") else {"version": VERSION}
    capabilities = [Keyword(name) for name in known]
    payload = plist(action=Keyword("HANDSHAKE"), **version, capabilities=capabilities)
    return plist(type=Keyword("EVENT"), payload=payload)


def log(level: str, text: str, *, meta: Any = None) -> list[Any]:
    """A line for whoever reads the other end.

    Args:
        level: "ERROR", "WARN" or "INFO".
        text: one sentence.
        meta: the META of the request that this answers.
    """
    payload = plist(level=Keyword(level), text=text)
    return _with_meta(plist(type=Keyword("LOG"), payload=payload), meta)


def answer(text: str, explanation: str, *, meta: Any) -> list[Any]:
    """The reply to user input: META first, its source as it came."""
    known = as_plist(meta) or {}
    whole = meta if "SOURCE" in known else [*plist(source=Keyword("UNKNOWN")), *(meta or [])]
    payload = plist(action=Keyword("MESSAGE"), text=text, explanation=explanation)
    return _with_meta(plist(type=Keyword("REQUEST"), payload=payload), whole)


def event(sensor: str, *, meta: Any = None, **values: Any) -> list[Any]:
    """An event: what a request brought about."""
    payload = plist(sensor=Keyword(sensor), **values)
    return _with_meta(plist(type=Keyword("EVENT"), payload=payload), meta)


def shell_response(outcome: Outcome, *, meta: Any) -> list[Any]:
    """What a shell command did."""
    more = {"timed_out": True} if outcome.timed_out else {}
    more |= {"truncated": True} if outcome.truncated else {}
    return event(
        "SHELL-RESPONSE",
        meta=meta,
        cmd=outcome.command,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        exit_code=outcome.exit_code,
        **more,
    )


def _with_meta(message: list[Any], meta: Any) -> list[Any]:
    if not meta or faults.on("meta-dropped"):
        return message
    return [*plist(meta=meta), *message]
