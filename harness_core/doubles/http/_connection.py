"""One connection of a recorder: requests in, each recorded, answers out, until one side ends it.

Nothing a client does may disturb the recorder: what is malformed, too large or cut off is recorded
as such, answered where an answer can be given, and the connection closed.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import h11
import trio

from harness_core.doubles.http._encoding import BadRequest, decoded
from harness_core.doubles.http._recorded import Recorded, header_texts, utc_now
from harness_core.doubles.http._rules import Answer, Drop
from harness_core.doubles.http._state import State

_READ_BYTES: Final = 65_536
#: Request line and headers; a trace context and a few cookies fit many times.
_HEAD_BYTES: Final = 65_536
_TOO_LARGE: Final = 413
#: Statuses whose answers have no body.
_BODILESS: Final = frozenset({204, 304})


async def serve_connection(stream: trio.SocketStream, state: State) -> None:
    """Serve until the client or an answer ends the connection."""
    connection = h11.Connection(our_role=h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
    async with stream:
        try:
            while await _one_request(stream, connection, state):
                connection.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # what it asked is recorded; that it did not wait is its own affair


async def _one_request(stream: trio.SocketStream, connection: h11.Connection, state: State) -> bool:
    """Read, record and answer one request; whether another may follow on this connection."""
    request: Recorded | None = None
    try:
        head = await _next_event(stream, connection)
        if not isinstance(head, h11.Request):
            return False  # the client closed between two requests
        request = _begun(state, head)
        _check_host(state, head)
        body = await _read_body(stream, connection, limit_bytes=state.body_bytes)
        encoding = request.header("content-encoding")
        body = decoded(body, encoding, limit_bytes=state.body_bytes)
    except BadRequest as bad:
        return await _refuse(stream, connection, state, request=request, bad=bad)
    except h11.RemoteProtocolError as error:
        malformed = BadRequest(f"malformed: {error}", status=error.error_status_hint)
        return await _refuse(stream, connection, state, request=request, bad=malformed)
    except trio.BrokenResourceError:
        if request is not None:
            state.record(dataclasses.replace(request, problem="the client went away in its body"))
        raise
    whole = dataclasses.replace(request, body=body)
    answer, rule = state.decide(whole)
    status = answer.status if answer.drop in {"", Drop.CUT} else 0
    state.record(dataclasses.replace(whole, status=status, rule=rule))
    await _send(stream, connection, answer, method=whole.method)
    return answer.drop == "" and connection.our_state is h11.DONE


def _check_host(state: State, head: h11.Request) -> None:
    """Before its body is read, and before a rule is asked.

    Raises:
        BadRequest: the request is for another host.
    """
    hosts = [value for name, value in head.headers if name == b"host"]
    if refusal := state.own.refuse(target=head.target, hosts=hosts):
        raise BadRequest(refusal.problem, status=refusal.status)


def _begun(state: State, head: h11.Request | None) -> Recorded:
    return Recorded(
        sequence=state.begin(),
        arrived_at=utc_now(),
        method=head.method.decode("ascii") if head else "",
        target=head.target.decode("latin-1") if head else "",
        headers=header_texts(head.headers) if head else (),
    )


async def _read_body(
    stream: trio.SocketStream, connection: h11.Connection, *, limit_bytes: int
) -> bytes:
    """The body as sent, at most ``limit_bytes`` of it.

    Raises:
        BadRequest: it is larger, or the client went away before its end.
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
                raise BadRequest(problem, status=0, body=bytes(body)) from error
            raise
        if isinstance(event, h11.Data):
            body += event.data
            if len(body) > limit_bytes:
                problem = f"the body is larger than {limit_bytes} bytes"
                raise BadRequest(problem, status=_TOO_LARGE, body=bytes(body[:limit_bytes]))
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
    state: State,
    *,
    request: Recorded | None,
    bad: BadRequest,
) -> bool:
    """Record what could not be read, answer where the protocol allows it, and end."""
    request = request or _begun(state, None)
    can_answer = bad.status != 0 and connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}
    state.record(
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
