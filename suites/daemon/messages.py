"""The messages of the contract, as a client builds them and as a test reads them."""

from __future__ import annotations

from typing import Final

from harness_core.base.vain import Wait
from harness_core.system.subject import Subject
from suites.daemon.waits import DUE
from suites.daemon.wire import (
    NIL,
    Connection,
    Form,
    Keyword,
    Message,
    RemoteProtocolError,
    T,
    Violation,
    plist,
)

__all__ = [
    "ANSWER_S",
    "HEALTH_CHECK",
    "HEARTBEAT",
    "STATUSES",
    "ask",
    "due",
    "due_end",
    "expect_health",
    "expect_message",
    "expect_refusal",
    "request",
    "say",
    "shell",
    "sources_of",
    "user_input",
]

#: What an answer may take that runs a command, or depends on no other server: milliseconds when
#: nothing else loads the machine.
ANSWER_S: Final = 10.0

HEALTH_CHECK: Final = plist(type=Keyword("HEALTH-CHECK"))
HEARTBEAT: Final = plist(type=Keyword("EVENT"), payload=plist(sensor=Keyword("HEARTBEAT")))

STATUSES: Final = tuple(Keyword(name) for name in ("HEALTHY", "DEGRADED", "UNHEALTHY", "UNKNOWN"))


#: What a client says it is, besides a terminal → the capability of those who know it.
SOURCES: Final = {"CLI": "cli-source", "EMACS": "emacs"}


def sources_of(subject: Subject) -> list[str]:
    """The sources that a daemon claims to know; everyone knows a terminal."""
    known = [source for source, name in SOURCES.items() if name in subject.capabilities]
    return ["TUI", *known]


def user_input(text: str, *, source: str | None = "TUI", **meta: Form) -> Form:
    """User input; without ``source`` it has no META."""
    payload = plist(sensor=Keyword("USER-INPUT"), text=text)
    if source is None:
        return plist(type=Keyword("EVENT"), payload=payload)
    return plist(type=Keyword("EVENT"), meta=plist(source=Keyword(source), **meta), payload=payload)


def request(target: str, action: str, **properties: Form) -> Form:
    """A request to one of the daemon's targets."""
    payload = plist(action=Keyword(action), **properties)
    return plist(type=Keyword("REQUEST"), target=Keyword(target), payload=payload)


def shell(command: str, **properties: Form) -> Form:
    """A shell request as it stands in the contract."""
    return request("SHELL", "EXECUTE", cmd=command, **properties)


async def ask(connection: Connection, form: Form, *, seconds: float = ANSWER_S) -> Message:
    """Send a form and return the next message.

    Of a product that leaves much without an answer, the next are waited for less, and say so.
    """
    await connection.send(form)
    return await due(connection, "an answer", seconds=seconds)


async def due(connection: Connection, what: str, *, seconds: float) -> Message:
    """The next message, which a right product sends: to wait for it in vain is a failure.

    Args:
        connection: on which it is due.
        what: for the error.
        seconds: how long it may take on a machine with nothing else to do.

    Raises:
        RemoteProtocolError: it did not come, or is no message.
    """
    with DUE.waiting(seconds=seconds) as wait:
        try:
            message = await connection.receive(what, seconds=wait.seconds)
        except RemoteProtocolError as error:
            wait.came = _told(error, wait)
            raise
        wait.came = True
    return message


async def due_end(connection: Connection, *, seconds: float) -> tuple[Message, ...]:
    """All that comes before the end of a connection, which is due likewise.

    Raises:
        RemoteProtocolError: it stays open, or what came is no message.
    """
    with DUE.waiting(seconds=seconds) as wait:
        try:
            messages = await connection.receive_until_closed(seconds=wait.seconds)
        except RemoteProtocolError as error:
            wait.came = _told(error, wait)
            raise
        wait.came = True
    return messages


def _told(error: RemoteProtocolError, wait: Wait) -> bool:
    """Whether something came; of a silence, say why it was not waited out."""
    silent = error.violation is Violation.SILENT
    if silent:
        error.observed += wait.note
    return not silent


async def say(
    connection: Connection, text: str, *, seconds: float = ANSWER_S, source: str | None = "TUI"
) -> str:
    """Send user input and return the text of what answers it."""
    answer = await ask(connection, user_input(text, source=source), seconds=seconds)
    return expect_message(answer, connection)


def expect_message(message: Message, connection: Connection) -> str:
    """The text of an answer to user input, which must be one."""
    expected = (Keyword("REQUEST"), Keyword("MESSAGE"))
    actual = (message.get("TYPE"), message.get("PAYLOAD", "ACTION"))

    assert expected == actual, (
        f"no answer to user input: {message.payload}\n{connection.transcript}"
    )
    text = message.get("PAYLOAD", "TEXT")

    assert isinstance(text, str), f"an answer without :TEXT: {message.payload}"
    return text


def expect_refusal(message: Message, connection: Connection, *words: str) -> str:
    """The text of an error LOG, which must hold one of ``words`` in any case."""
    expected = (Keyword("LOG"), Keyword("ERROR"))
    actual = (message.get("TYPE"), message.get("PAYLOAD", "LEVEL"))

    assert expected == actual, (
        f"expected an error LOG frame, got {message.payload}\nbytes exchanged:\n"
        f"{connection.transcript}"
    )
    text = message.get("PAYLOAD", "TEXT")

    assert isinstance(text, str), f"a LOG without :TEXT: {message.payload}"
    assert text.strip(), "the LOG frame has an empty :TEXT"
    if words:
        assert any(word in text.lower() for word in words), (
            f"the LOG says {text!r}, expected one of {words}"
        )
    return text


def expect_health(message: Message) -> Keyword:
    """The status of a health answer, which must be whole."""
    assert message.get("TYPE") == Keyword("HEALTH-RESPONSE"), f"no health: {message.payload}"
    status, checked = message.get("STATUS"), message.get("CHECKED-P")

    assert status in STATUSES, f"health is {status!r}, expected one of {STATUSES}"
    assert checked in {T, NIL}, f":CHECKED-P is {checked!r}, expected T or NIL"
    assert isinstance(status, Keyword)
    return status
