"""The client: whose fault a broken conversation is, and how far it got."""

from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from suites.daemon.wire import (
    Keyword,
    RemoteProtocolError,
    Violation,
    encode_frame,
    open_connection,
    plist,
)

pytestmark = pytest.mark.aside("the driver of the suite")


@asynccontextmanager
async def serving(handler):
    """A server on loopback that runs ``handler`` for each connection; yields its port."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, handler, 0, host="127.0.0.1", handler_nursery=nursery)
        )
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def echo(stream):
    """Answer with what came."""
    async for data in stream:
        await stream.send_all(data)


async def test_what_is_sent_comes_back():
    """Two messages in one go arrive as two messages."""
    async with serving(echo) as port, open_connection(port) as connection:
        await connection.send(plist(type=Keyword("A"), text="é(\n"))
        await connection.send(plist(type=Keyword("B")))

        first = await connection.receive(seconds=5)
        second = await connection.receive(seconds=5)

    assert (Keyword("A"), "é(\n") == (first.get("TYPE"), first.get("TEXT"))
    assert Keyword("B") == second.get("TYPE")


@pytest.mark.parametrize(
    ("sent", "violation", "shown"),
    [
        (b"", Violation.CLOSED, "the connection ended where a handshake was due"),
        (b"000", Violation.TRUNCATED, "read 3 of 6 prefix digits"),
        (b"000009(:A", Violation.TRUNCATED, "read 3 of 9 payload characters"),
        (b"HTTP/1.1", Violation.PREFIX, "found b'HTTP/1.1'"),
        (encode_frame("(:A"), Violation.SYNTAX, "ends inside the list"),
        (b"FFFFFF", Violation.SIZE, "at most 100"),
    ],
)
async def test_a_broken_answer_is_the_products_failure(sent, violation, shown):
    """Each way of breaking the protocol is an assertion that shows the bytes exchanged."""

    async def handler(stream):
        await stream.send_all(sent)
        await stream.aclose()

    async with serving(handler) as port, open_connection(port, max_characters=100) as connection:
        with pytest.raises(AssertionError) as caught:
            await connection.receive("a handshake", seconds=5)

    assert violation is caught.value.violation
    assert shown in str(caught.value)
    assert sent[:6].decode() in caught.value.transcript


async def test_silence_says_how_far_it_got(autojump_clock):
    """A peer that stops in the middle of a frame is reported otherwise than one that sends nothing."""

    async def handler(stream):
        await stream.send_all(b"00000A(:A")
        await trio.sleep_forever()

    async with serving(handler) as port, open_connection(port) as connection:
        # The bytes come through a real socket, which the clock does not wait for.
        autojump_clock.autojump_threshold = 0.2
        with pytest.raises(
            RemoteProtocolError, match=r"5 s passed without a reply.*, read 3 of 10"
        ):
            await connection.receive("a reply", seconds=5)


async def test_the_end_is_waited_for_and_what_came_before_it_is_told():
    """Messages before the end are handed out; a connection that stays open is a failure."""

    async def handler(stream):
        await stream.send_all(encode_frame("(:A 1)") + encode_frame("(:A 2)"))
        if await stream.receive_some(1) == b"c":
            await stream.aclose()
        else:
            await trio.sleep_forever()

    async with serving(handler) as port:
        async with open_connection(port) as connection:
            await connection.send_bytes(b"c")
            messages = await connection.receive_until_closed(seconds=5)

        assert [1, 2] == [message.get("A") for message in messages]

        async with open_connection(port) as connection:
            await connection.send_bytes(b"o")
            with pytest.raises(RemoteProtocolError, match="still open after"):
                await connection.receive_until_closed(seconds=0.05)


async def test_a_port_nobody_listens_on_is_the_products_failure():
    """A refused connection is reported with its port."""
    async with serving(echo) as port:
        pass

    with pytest.raises(RemoteProtocolError, match=f"port {port} refuses"):
        async with open_connection(port):
            pass


async def test_a_long_conversation_keeps_its_end():
    """The transcript is bounded, and says what it leaves out."""
    async with serving(echo) as port, open_connection(port) as connection:
        for number in range(50):
            await connection.send(plist(number=number, text="x" * 3000))
            await connection.receive(seconds=5)

    text = str(connection.transcript)

    assert "earlier pieces" in text
    assert "(:NUMBER 49" in text
    assert "… and 26" in text
    assert len(text) < 64 * 500
