"""One connection of a recorder: requests in, each recorded, answers out, until one side ends it.

Nothing a client does may disturb the recorder: what is malformed, too large or cut off is recorded
as such, answered where an answer can be given, and the connection closed.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Final, Protocol

import h11
import trio

from harness_core.doubles.http._encoding import BadBody, decoded
from harness_core.doubles.http._own_host import OwnHosts
from harness_core.doubles.http._recorded import Recorded
from harness_core.doubles.http._rules import Answer, Drop

_READ_BYTES: Final = 65_536
#: Request line and headers; a trace context and a few cookies fit many times.
_HEAD_BYTES: Final = 65_536
_TOO_LARGE: Final = 413
#: Statuses whose answers have no body.
_BODILESS: Final = frozenset({204, 304})


class Desk(Protocol):
    """Where a connection takes its requests."""

    body_bytes: int
    own: OwnHosts

    def begin(self) -> int:
        """Number the next request."""

    def decide(self, request: Recorded) -> tuple[Answer, str]:
        """The answer to a good request, and the name of the rule that gave it."""

    def record(self, request: Recorded) -> None:
        """Keep a request that was read as far as it came, before it is answered."""


@dataclasses.dataclass(slots=True, kw_only=True)
class _Bad(Exception):  # noqa: N818 - ends the reading of a request
    problem: str
    status: int
    body: bytes = b""


async def serve_connection(stream: trio.SocketStream, desk: Desk) -> None:
    """Serve until the client or an answer ends the connection."""
    connection = h11.Connection(our_role=h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
    async with stream:
        try:
            while await _one_request(stream, connection, desk):
                connection.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # what it asked is recorded; that it did not wait is its own affair


async def _one_request(stream: trio.SocketStream, connection: h11.Connection, desk: Desk) -> bool:
    """Read, record and answer one request; whether another may follow on this connection."""
    request: Recorded | None = None
    try:
        head = await _next_event(stream, connection)
        if not isinstance(head, h11.Request):
            return False  # the client closed between two requests
        request = _begun(desk, head)
        _check_host(desk, head)
        body = await _read_body(stream, connection, limit_bytes=desk.body_bytes)
        encoding = request.header("content-encoding")
        whole = dataclasses.replace(request, body=body)
        try:
            whole = dataclasses.replace(
                whole, body=decoded(body, encoding, limit_bytes=desk.body_bytes)
            )
        except BadBody as bad:
            raise _Bad(problem=str(bad), status=bad.status, body=body) from bad
    except _Bad as bad:
        request = request or _begun(desk, None)
        return await _refuse(stream, connection, desk, request=request, bad=bad)
    except h11.RemoteProtocolError as error:
        malformed = _Bad(problem=f"malformed: {error}", status=error.error_status_hint)
        request = request or _begun(desk, None)
        return await _refuse(stream, connection, desk, request=request, bad=malformed)
    except trio.BrokenResourceError:
        if request is not None:
            desk.record(dataclasses.replace(request, problem="the client went away in its body"))
        raise
    answer, rule = desk.decide(whole)
    said = answer.status if answer.drop in {"", Drop.CUT} else 0
    desk.record(dataclasses.replace(whole, status=said, rule=rule))
    await _send(stream, connection, answer, method=whole.method)
    return answer.drop == "" and connection.our_state is h11.DONE


def _check_host(desk: Desk, head: h11.Request) -> None:
    """Before its body is read, and before a rule is asked.

    Raises:
        _Bad: the request is for another host.
    """
    hosts = [value for name, value in head.headers if name == b"host"]
    if astray := desk.own.refuse(target=head.target, hosts=hosts):
        raise _Bad(problem=astray.problem, status=astray.status)


def _begun(desk: Desk, head: h11.Request | None) -> Recorded:
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    return Recorded(
        sequence=desk.begin(),
        arrived_at=stamp,
        method=head.method.decode("ascii") if head else "",
        target=head.target.decode("latin-1") if head else "",
        headers=tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in (head.headers if head else ())
        ),
    )


async def _read_body(
    stream: trio.SocketStream, connection: h11.Connection, *, limit_bytes: int
) -> bytes:
    """The body as sent, at most ``limit_bytes`` of it.

    Raises:
        _Bad: it is larger, or the client went away before its end.
    """
    body = bytearray()
    while True:
        if connection.they_are_waiting_for_100_continue:
            go_on = connection.send(h11.InformationalResponse(status_code=100, headers=[]))
            await stream.send_all(go_on or b"")
        try:
            event = await _next_event(stream, connection)
        except h11.RemoteProtocolError as error:
            if connection.trailing_data[1]:
                problem = f"the client went away after {len(body)} bytes of its body"
                raise _Bad(problem=problem, status=0, body=bytes(body)) from error
            raise
        if isinstance(event, h11.Data):
            body += event.data
            if len(body) > limit_bytes:
                raise _Bad(
                    problem=f"the body is larger than {limit_bytes} bytes",
                    status=_TOO_LARGE,
                    body=bytes(body[:limit_bytes]),
                )
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)


async def _next_event(stream: trio.SocketStream, connection: h11.Connection) -> object:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await stream.receive_some(_READ_BYTES))


async def _refuse(
    stream: trio.SocketStream,
    connection: h11.Connection,
    desk: Desk,
    *,
    request: Recorded,
    bad: _Bad,
) -> bool:
    """Record what could not be read, say so where the protocol allows it, and end."""
    can_answer = bad.status != 0 and connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}
    desk.record(
        dataclasses.replace(
            request,
            body=bad.body,
            problem=bad.problem,
            status=bad.status if can_answer else 0,
        )
    )
    if can_answer:
        text = f"cannot take the request: {bad.problem}\n"
        closing = {"connection": "close", "content-type": "text/plain"}
        refusal = Answer(status=bad.status, body=text, headers=closing)
        await _send(stream, connection, refusal, method=request.method)
        await _discard(stream)
    return False


async def _discard(stream: trio.SocketStream) -> None:
    """Read on for a moment: closing on unread data resets the connection and loses the answer."""
    await stream.send_eof()
    with trio.move_on_after(1):
        while await stream.receive_some(_READ_BYTES):
            pass


async def _send(
    stream: trio.SocketStream, connection: h11.Connection, answer: Answer, *, method: str
) -> None:
    if answer.drop == Drop.SILENT:
        await _until_closed(stream)
        return
    with trio.move_on_after(answer.latency_s):
        await trio.sleep_forever()  # the time of an answer is a fault to be had, not a wait
    if answer.drop == Drop.UNANSWERED:
        return
    headers, body = answer.payload()
    data = connection.send(h11.Response(status_code=answer.status, headers=headers)) or b""
    if method == "HEAD" or answer.status in _BODILESS:
        body = b""
    if answer.drop == Drop.CUT:
        await stream.send_all(data + body[: len(body) // 2])
        return
    if body:
        data += connection.send(h11.Data(data=body)) or b""
    await stream.send_all(data + (connection.send(h11.EndOfMessage()) or b""))


async def _until_closed(stream: trio.SocketStream) -> None:
    """Until the client closes; what it sends meanwhile is thrown away."""
    while await stream.receive_some(_READ_BYTES):
        pass
