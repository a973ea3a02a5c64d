"""Which requests are meant for a server of ours: those whose ``Host`` is one of its own names.

A page of somebody else can have its own name resolve to 127.0.0.1 and then send requests here from
a browser on this machine, past the same-origin policy. Such a request still carries the page's name
in ``Host``, so what is not addressed to us is refused before anything else is looked at.

421 is HTTP's word for a request that is not ours to answer (RFC 9110, 15.5.20); 400 is what a
request without one plain ``Host`` gets (RFC 9112, 3.2). The absolute form of a target names a host
of its own and is what proxies are sent: it is refused as well, whatever it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.base.errors import BadInput

_BAD_REQUEST: Final = 400
_MISDIRECTED: Final = 421


@dataclass(frozen=True, slots=True, kw_only=True)
class Misaddressed:
    """Why a request is refused.

    Attributes:
        status: of the answer.
        problem: what is wrong with it; what it says of itself is not repeated.
    """

    status: int
    problem: str


class OwnHosts:
    """The names of a server on a port of 127.0.0.1.

    Args:
        port: where it listens.
        further: ``HOST:PORT`` of others that pass connections on to it, as their callers write it.

    Raises:
        BadInput: one of ``further`` has no port.
    """

    def __init__(self, port: int, *, further: Iterable[str] = ()) -> None:
        names = [f"127.0.0.1:{port}", f"localhost:{port}", *further]
        for name in names:
            host, _, number = name.rpartition(":")
            if not host or not number.isdecimal():
                raise BadInput("a name of a server", found=name, expected="HOST:PORT")
        self._shown = " or ".join(names)
        self._names = frozenset(name.lower().encode() for name in names)

    def refuse(self, *, target: bytes, hosts: Sequence[bytes]) -> Misaddressed | None:
        """Why a request is not for this server; ``None`` when it is.

        Args:
            target: as it stands in the request line.
            hosts: the value of each ``Host`` header.
        """
        if len(hosts) != 1:
            problem = f"it has {len(hosts)} Host headers, expected one"
            return Misaddressed(status=_BAD_REQUEST, problem=problem)
        if not target.startswith(b"/") and target != b"*":
            problem = "its target is no path; this server is no proxy"
            return Misaddressed(status=_BAD_REQUEST, problem=problem)
        # Names are compared in any case, as DNS does, and in every other way exactly.
        if hosts[0].lower() not in self._names:
            problem = f"its Host is not {self._shown}"
            return Misaddressed(status=_MISDIRECTED, problem=problem)
        return None
