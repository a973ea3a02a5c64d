"""The head of one answer, its body unread: what a readiness probe needs of HTTP."""

from __future__ import annotations

import dataclasses
from typing import Final

import h11
import trio

__all__ = ["Head", "NotHttp", "get_head"]

_READ_BYTES: Final = 4096
_HEADER_BYTES: Final = 65_536


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Status line and headers of an answer.

    Attributes:
        status: HTTP status.
        content_type: its ``Content-Type``; empty without one.
    """

    status: int
    content_type: str


class NotHttp(Exception):  # noqa: N818 - names what was seen
    """What answered does not speak HTTP, or closed before it said anything."""


async def get_head(
    *, host: str, port: int, authority: str, target: str, accept: str = "*/*"
) -> Head:
    """Send one GET and read the head of its answer; the caller bounds the time.

    Args:
        host: name or address to connect to.
        port: TCP port.
        authority: value of the ``Host`` header.
        target: path and query, percent-encoded.
        accept: value of the ``Accept`` header.

    Raises:
        OSError: nobody accepts there.
        trio.BrokenResourceError: the connection was reset.
        NotHttp: the answer is none.
    """
    request = h11.Request(
        method="GET",
        target=target,
        headers=[("Host", authority), ("Accept", accept), ("Connection", "close")],
    )
    async with await trio.open_tcp_stream(host, port) as stream:
        try:
            response = await _exchange(stream, request)
        except h11.RemoteProtocolError as error:
            raise NotHttp(str(error)) from error
    kind = dict(response.headers).get(b"content-type", b"").decode("latin-1")
    return Head(status=response.status_code, content_type=kind)


async def _exchange(stream: trio.SocketStream, request: h11.Request) -> h11.Response:
    connection = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=_HEADER_BYTES)
    head = connection.send(request)
    end = connection.send(h11.EndOfMessage())
    await stream.send_all((head or b"") + (end or b""))
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Response):
            return event
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(_READ_BYTES))
        elif isinstance(event, h11.ConnectionClosed):
            raise NotHttp("connection closed before the response headers")
