"""One request as bytes, and its answer, over a connection of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

import h11
import trio

_READ_BYTES: Final = 65_536
_HEAD_BYTES: Final = 262_144
#: Renders and small videos fit; a body without end does not.
_BODY_BYTES: Final = 256 * 1024 * 1024


def request_bytes(
    method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b""
) -> bytes:
    """A request as it is sent.

    Raises:
        h11.LocalProtocolError: it is no HTTP.
    """
    connection = h11.Connection(our_role=h11.CLIENT)
    # As HTTP has always had it; h11 itself takes text of ASCII alone.
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    data = connection.send(h11.Request(method=method, target=target, headers=encoded)) or b""
    if body:
        data += connection.send(h11.Data(data=body)) or b""
    return data + (connection.send(h11.EndOfMessage()) or b"")


async def exchange(
    host: str,
    port: int,
    data: bytes,
    *,
    method: str,
    head_suffices: Callable[[h11.Response], bool] = lambda head: False,  # noqa: ARG005 - reads all
) -> tuple[h11.Response, bytes]:
    """Send a request and read the answer; the caller bounds the time.

    Args:
        host: name or address to connect to.
        port: TCP port.
        data: the request; may be no HTTP.
        method: of the request; how an answer is read depends on it.
        head_suffices: whether an answer with this head is read no further.

    Raises:
        OSError: nobody accepts there.
        trio.BrokenResourceError: the connection was reset.
        h11.RemoteProtocolError: the answer is none, not whole, or larger than what is read.
    """
    connection = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "")]))
    connection.send(h11.EndOfMessage())
    async with await trio.open_tcp_stream(host, port) as stream:
        # It may have answered before it had read everything: an answer of 413, say.
        with contextlib.suppress(trio.BrokenResourceError):
            await stream.send_all(data)
        head: h11.Response | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(_READ_BYTES))
            elif isinstance(event, h11.Response):
                head = event
                if head_suffices(head):
                    return head, b""
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > _BODY_BYTES:
                    raise h11.RemoteProtocolError(f"a body of more than {_BODY_BYTES} bytes")
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head, bytes(body)
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("it closed the connection without an answer")
