"""What is meant for another host is refused before anything behind it sees the request.

A page of another site can have its name resolve to 127.0.0.1 and have a browser on this machine
call the tools of a butler. Its requests carry that name in `Host`, and its address in `Origin`,
which MCP demands to be looked at too. Its library brings such a guard; that takes any port, so it
is not used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from butlers import faults
from butlers.log import Log

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

#: A request without one plain `Host` (RFC 9112, 3.2).
_BAD_REQUEST = 400
#: A page that is not ours (MCP, transports).
_FORBIDDEN = 403
#: A request that another server should have got (RFC 9110, 15.5.20).
_MISDIRECTED = 421


class OwnHost:
    """Lets requests through whose `Host` is this butler's own; nothing else names the host.

    Args:
        app: what answers them.
        port: where the butler listens.
        log: gets each refusal.
    """

    def __init__(self, app: App, *, port: int, log: Log) -> None:
        self._app = app
        self._log = log
        self._own = (f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode())
        self._shown = b" or ".join(self._own).decode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is None:
            await self._app(scope, receive, send)
            return
        if faults.on("host-checked-late") and scope["method"] == "POST":
            await self._app(scope, receive, _nowhere)
        status, why = problem
        self._log.warning("request.refused", method=scope["method"], path=scope["path"], why=why)
        await _refuse(send, status, f"cannot take this request: {why}")

    def _problem(self, scope: Message) -> tuple[int, str] | None:
        hosts = _values(scope, b"host")
        if faults.on("forwarded-host-believed"):
            hosts = _values(scope, b"x-forwarded-host") or hosts
        if len(hosts) != 1:
            return _BAD_REQUEST, f"it has {len(hosts)} Host headers, expected one"
        # The absolute form names a host of its own; it is what proxies are sent.
        if not scope["raw_path"].startswith(b"/") and scope["raw_path"] != b"*":
            return _BAD_REQUEST, "its target is no path; a butler is no proxy"
        if not self._is_own(hosts[0].lower(), scope["path"]):
            return _MISDIRECTED, f"its Host is not {self._shown}"
        own = tuple(b"http://" + host for host in self._own)
        foreign = [origin for origin in _values(scope, b"origin") if origin.lower() not in own]
        if foreign and not faults.on("origin-unchecked"):
            return _FORBIDDEN, "it comes from a page of another origin"
        return None

    def _is_own(self, host: bytes, path: str) -> bool:
        """Compared as DNS does, in any case, and in every other way exactly."""
        if faults.on("host-unchecked"):
            return True
        if faults.on("host-prefix-accepted"):
            return host.startswith((b"127.0.0.1", b"localhost"))
        if faults.on("host-suffix-accepted"):
            return host.endswith(self._own)
        if faults.on("host-port-ignored"):
            return host.partition(b":")[0] in {own.partition(b":")[0] for own in self._own}
        if faults.on("host-checked-on-stream-alone") and path != "/sse":
            return True
        return host in self._own


def _values(scope: Message, name: bytes) -> Sequence[bytes]:
    return [value for key, value in scope["headers"] if key == name]


async def _refuse(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _nowhere(message: Message) -> None:
    """Takes an answer that is not sent."""
