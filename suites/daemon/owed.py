"""What a hostile conversation is owed, as far as the daemon claims it, and what it got."""

from __future__ import annotations

from suites.daemon.daemon import HEALTH_S, Daemon, health_on
from suites.daemon.hostile import END_S, Hostile, Owed
from suites.daemon.messages import HEALTH_CHECK, due, due_end, expect_health, expect_refusal
from suites.daemon.wire import Connection, Keyword, Message, RemoteProtocolError, Violation

__all__ = ["ERRORS", "ended_as_owed", "expect_end", "expect_error", "expect_owed"]

#: Without it a daemon may end what it cannot read, and pass over what means nothing, without a word.
ERRORS = "error-frames"


async def expect_owed(row: Hostile, connection: Connection, daemon: Daemon) -> None:
    """The rest of a hostile conversation.

    Raises:
        AssertionError: it is not what the contract, or the daemon's own claim, promises.
    """
    owed = row.owed
    if row.reads and "reader-macros" not in daemon.subject.capabilities:
        owed = Owed.EITHER
    if owed is Owed.HEALTH:
        expect_health(await due(connection, "the answer it is owed", seconds=HEALTH_S))
    elif owed is Owed.ERROR:
        await expect_error(connection, daemon, *row.says, what=row.id)
    elif owed is Owed.EITHER:
        await connection.send_eof()
        for message in await due_end(connection, seconds=END_S):
            if message.get("TYPE") != Keyword("LOG"):
                expect_health(message)
    elif owed is Owed.END:
        await due_end(connection, seconds=END_S)
    else:
        await expect_end(connection, daemon, *row.says, what=row.id)


async def expect_end(connection: Connection, daemon: Daemon, *words: str, what: str) -> None:
    """What is malformed is the end of its connection, and where errors are framed, a LOG before it.

    Args:
        connection: what was malformed has been sent on it.
        daemon: whose it is.
        words: the LOG must hold one of them, in any case; none: any text with a number that says
            how far reading got.
        what: was malformed, for the failure.
    """
    messages = await until_closed(connection, what)
    if ERRORS not in daemon.subject.capabilities:
        return

    assert messages, (
        f"contract 3: {what} is owed an error LOG, then the end; the connection ended without a word\n"
        f"bytes exchanged:\n{connection.transcript}"
    )
    text = expect_refusal(messages[-1], connection, *words)

    assert 1 == len(messages), f"more than the LOG was sent: {connection.transcript}"
    assert any(character.isdigit() for character in text), (
        f"contract 3: the LOG does not say how far reading got: {text!r}"
    )


def ended_as_owed(kinds: list[str], daemon: Daemon) -> bool:
    """Whether all that came before the end of a connection is a LOG; or nothing, where it need not be."""
    return kinds == [":LOG"] or (not kinds and ERRORS not in daemon.subject.capabilities)


async def until_closed(connection: Connection, what: str) -> list[Message]:
    """All that comes before the end, of a connection on which something malformed was sent.

    Raises:
        AssertionError: it was answered like a message, or its connection stays open.
    """
    messages: list[Message] = []
    while True:
        try:
            message = await due(connection, "a word or the end", seconds=END_S)
        except RemoteProtocolError as error:
            if error.violation is Violation.CLOSED:
                return messages
            if error.violation is not Violation.SILENT:
                raise
            said = f", and was answered with {messages[-1].payload[:200]}" if messages else ""
            raise AssertionError(
                f"contract 3: {what} is malformed, and its connection is still open after {END_S:g} s"
                f"{said}: {error}"
            ) from error

        assert message.get("TYPE") == Keyword("LOG"), accepted_as(what, message, connection)
        messages.append(message)


async def expect_error(connection: Connection, daemon: Daemon, *words: str, what: str) -> None:
    """What is well-formed and means nothing is an error LOG, and the connection stays.

    Without framed errors it may be passed over, or be the end; it has no other answer.
    """
    if ERRORS in daemon.subject.capabilities:
        refusal = await due(connection, "an error LOG", seconds=HEALTH_S)

        assert refusal.get("TYPE") == Keyword("LOG"), accepted_as(what, refusal, connection)
        expect_refusal(refusal, connection, *words)
        expect_health(await health_on(connection))
        return
    if not await goes_on(connection, what):
        expect_health(await daemon.health())


async def goes_on(connection: Connection, what: str) -> bool:
    """Whether a health check behind what means nothing is answered, by a daemon without framed errors.

    Raises:
        AssertionError: what means nothing was answered, by more than a LOG.
    """
    try:
        await connection.send(HEALTH_CHECK)
        answer = await connection.receive("health", seconds=HEALTH_S)
        if answer.get("TYPE") == Keyword("LOG"):
            answer = await connection.receive("health", seconds=HEALTH_S)
    except RemoteProtocolError as error:
        if error.violation is not Violation.CLOSED:
            raise
        return False

    assert answer.get("TYPE") == Keyword("HEALTH-RESPONSE"), accepted_as(what, answer, connection)
    return True


def accepted_as(what: str, answer: Message, connection: Connection) -> str:
    """The failure of what was taken for a message."""
    return (
        f"contract 3: {what} was accepted: answered with {answer.payload[:300]}\n"
        f"bytes exchanged:\n{connection.transcript}"
    )
