"""What is meant for another host is refused before anything behind it sees the request.

A foreign page can have its name resolve to an address of this service and have a browser
that reaches it call what needs no key, or what a proxy adds the key to. Its requests carry that name
in ``Host``.
"""

from __future__ import annotations

import re

from workbench_foundation import faults, log
from workbench_foundation.errors import ConfigError
from workbench_foundation.keys import App, Receive, Scope, Send, refuse
from workbench_foundation.settings import Environment

#: ``HOST:PORT`` of this service as others call it, besides ``127.0.0.1`` and ``localhost``.
VARIABLE = "WORKBENCH_HOSTS"

#: A request without one plain ``Host`` (RFC 9112, 3.2).
_BAD_REQUEST = 400
#: A request that another server should have got (RFC 9110, 15.5.20).
_MISDIRECTED = 421

_NAMES = ("127.0.0.1", "localhost")
_NAME = re.compile(r"[a-z0-9.-]+:\d+")


class OwnHost:
    """Lets requests through whose ``Host`` is the service's own; no other header names the host.

    Args:
        app: what answers them.
        own: what such a ``Host`` looks like, see :func:`own_hosts`.
    """

    def __init__(self, app: App, *, own: re.Pattern[bytes]) -> None:
        self._app = app
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        if faults.on("host-checked-late"):
            await self._app(scope, receive, _nowhere)
        status, why = problem
        log.warning("refused", path=scope["path"], reason=why)
        await refuse(send, status, f"cannot serve this request: {why}. Ask under its own name")

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return _BAD_REQUEST, f"it has {len(hosts)} Host headers, not one"
        # The absolute form names a host of its own; it is what proxies are sent.
        if not scope["raw_path"].startswith(b"/") and scope["raw_path"] != b"*":
            return _BAD_REQUEST, "its target is no path"
        if not self._is_own(hosts[0].lower(), scope["path"]):
            return _MISDIRECTED, "its Host is not one of this service"
        return None

    def _is_own(self, host: bytes, path: str) -> bool:
        """Compared as DNS does, in any case, and in every other way exactly."""
        if faults.on("host-unchecked"):
            return True
        if faults.on("host-prefix-accepted"):
            return host.startswith(tuple(name.encode() for name in _NAMES))
        if faults.on("host-suffix-accepted"):
            return re.search(b"(?:%b)$" % self._own.pattern, host) is not None
        if faults.on("host-checked-on-health-alone") and path != "/health":
            return True
        return self._own.fullmatch(host) is not None


def own_hosts(env: Environment, *, host: str, port: int) -> re.Pattern[bytes]:
    """What the ``Host`` of a request to a service looks like, in lower case.

    One that listens on every address may be published under any port (that of a container is), so
    its names of this machine count with each.

    Raises:
        ConfigError: the variable holds something else than ``HOST:PORT`` and commas.
    """
    found = env.values.get(VARIABLE, "").lower()
    further = [each.strip() for each in found.split(",")] if found else []
    for each in further:
        if not _NAME.fullmatch(each):
            raise ConfigError(VARIABLE, found=each, expected="HOST:PORT, separated by commas")
    anywhere = host in {"0.0.0.0", "::"}
    names = "|".join(map(re.escape, _NAMES if anywhere else (host, *_NAMES)))
    known = [f"(?:{names}):" + (r"\d+" if anywhere else str(port)), *map(re.escape, further)]
    return re.compile("|".join(known).encode())


async def _nowhere(message: Scope) -> None:
    """Takes an answer that is withheld."""
