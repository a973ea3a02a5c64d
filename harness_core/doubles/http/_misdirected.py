"""Requests meant for another host: the space of them that a server on loopback must refuse.

What a filter gets wrong is rarely the plain foreign name: it is the name that begins or ends like
its own, the other port, the second header, the header that claims to know better. So the space is
built from those parts, and filled up with small changes to a name of its own, drawn anew per seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_NAMES: Final = ("127.0.0.1", "localhost")

#: Names that browsers would send for a page of another site.
_FOREIGN: Final = ("evil.example", "EVIL.example.", "a.b.evil.example", "xn--e1awd7f.example")

#: Other ways to write an address of this machine, none of them the one that it is served at.
_ADDRESSES: Final = (
    *("0.0.0.0", "127.0.0.2", "127.0.0.10", "127.0.0.1.", "127.1", "127.000.000.001"),  # noqa: S104
    *("2130706433", "0x7f000001", "0177.0.0.1", "[::]", "[::ffff:127.0.0.1]", "127.0.0.1%00"),
)

#: What something in between may add; nothing is in between here.
_CLAIMS: Final = (
    *("x-forwarded-host", "x-forwarded-server", "x-host", "x-original-host"),
    *("x-http-host-override", "forwarded"),
)

_LETTERS: Final = "abcxyz0123456789.-_:@[]%/\\#?, \x80\xa0\xff"
#: How many are drawn.
_MUTANTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """How a request names the host it is for.

    Attributes:
        what: a description of it.
        hosts: the value of each ``Host`` header, as sent in Latin-1.
        origin: put before the path of its target: the absolute form.
        headers: further ones.
        version: of HTTP.
    """

    what: str
    hosts: tuple[str, ...]
    origin: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    version: str = "1.1"

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes = b""
    ) -> bytes:
        """The whole request; ``headers`` are sent besides its own."""
        lines = [f"{method} {self.origin}{target} HTTP/{self.version}"]
        lines += [f"host: {host}" for host in self.hosts]
        lines += [f"{name}: {value}" for name, value in (*headers.items(), *self.headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def directed(port: int) -> tuple[Addressed, ...]:
    """Requests for a server on a port of 127.0.0.1, with and without claims to the contrary."""
    own = [f"{name}:{port}" for name in _NAMES]
    claims = tuple((name, _claim(name, "evil.example")) for name in _CLAIMS)
    return (
        *(Addressed(what=f"Host {host}", hosts=(host,)) for host in own),
        Addressed(what=f"Host {own[0]} and claims", hosts=(own[0],), headers=claims),
    )


def misdirected(port: int, *, seed: int, any_port: bool = False) -> tuple[Addressed, ...]:
    """Requests that a server on a port of 127.0.0.1 must refuse, each one once.

    Args:
        port: where it listens, or where it is published.
        seed: of the part that is drawn.
        any_port: the server cannot know under which port it is published, so its own names with
            another port are left out.
    """
    own = tuple(f"{name}:{port}" for name in _NAMES)
    found: dict[str, Addressed] = {}
    for host in (*_hosts(port), *_mutants(own, seed=seed)):
        if not _is_own(host, port=port, any_port=any_port):
            found.setdefault(host, Addressed(what=f"Host {host!r}", hosts=(host,)))
    return (*found.values(), *_shapes(own, port))


def _hosts(port: int) -> Iterator[str]:
    """Values of one ``Host`` header, a few of them its own."""
    ports = ["", ":", ":80", ":0", f":{port}", f":{port}0", f":{str(port)[:-1]}", f":{port}x"]
    ports += [f":{port + 1}", f":-{port}", f":+{port}", f":{port}:{port}", ":65536", ":port", ":*"]
    names = [*_FOREIGN, *_ADDRESSES]
    for name in _NAMES:
        names += [name, f"{name}.evil.example", f"evil.{name}", f"evil{name}", f"evil-{name}"]
        names += [
            f"{name}x",
            f"{name}-evil.example",
            f"{name},evil.example",
            f"{name} evil.example",
        ]
    for name in names:
        for each in ports:
            yield f"{name}{each}"
    for name in _NAMES:
        own = f"{name}:{port}"
        yield from (f"{own}.evil.example", f"{own}/", f"{own}/evil", f"{own}?", f"{own}#")
        yield from (
            f"{own}@evil.example",
            f"{own}@evil.example:{port}",
            f"{name}@evil.example:{port}",
        )
        yield from (f"evil@{own}", f"evil.example@{own}", f"evil.example:{port}@{own}", f"@{own}")
        yield from (f"evil.example#{own}", f"evil.example/{own}", f"evil.example,{own}")
        yield from (f"{own}, evil.example", f"{own},{own}", f"http://{own}", f"//{own}", f"[{own}]")
        yield from (f"{own}\xa0", f"\xa0{own}", f'"{own}"', f"{own};", f"*.{own}", f".{own}")
    yield ""
    yield "*"
    yield "null"


def _mutants(own: tuple[str, ...], *, seed: int) -> Iterator[str]:
    """A letter more, less or other than a name of its own."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(_MUTANTS):
        host = draw.choice(own)
        at, letter = draw.randrange(len(host)), draw.choice(_LETTERS)
        tail = draw.choice((host[at:], host[at + 1 :], letter + host[at:], letter + host[at + 1 :]))
        yield host[:at] + tail


def _is_own(host: str, *, port: int, any_port: bool) -> bool:
    """Whether a server may take it for its own name; spaces around it are no part of it."""
    found = re.fullmatch(r"[ \t]*(127\.0\.0\.1|localhost)(?::0*(\d*))?[ \t]*", host)
    return found is not None and (any_port or found[2] == str(port))


def _shapes(own: tuple[str, ...], port: int) -> Iterator[Addressed]:
    """What more than one value of one header is needed for."""
    evil = f"evil.example:{port}"
    yield Addressed(what="no Host", hosts=())
    yield Addressed(what="no Host, HTTP/1.0", hosts=(), version="1.0")
    yield Addressed(what=f"Host {evil}, HTTP/1.0", hosts=(evil,), version="1.0")
    for host in own:
        yield Addressed(what=f"Host {host}, then Host {evil}", hosts=(host, evil))
        yield Addressed(what=f"Host {evil}, then Host {host}", hosts=(evil, host))
        yield Addressed(
            what=f"a target at http://{evil}, Host {host}", hosts=(host,), origin=f"http://{evil}"
        )
        yield Addressed(
            what=f"a target at http://{host}, Host {evil}", hosts=(evil,), origin=f"http://{host}"
        )
        for name in _CLAIMS:
            yield Addressed(
                what=f"Host {evil}, {name} {host}",
                hosts=(evil,),
                headers=((name, _claim(name, host)),),
            )


def _claim(name: str, host: str) -> str:
    return f'host="{host}";proto=http' if name == "forwarded" else host
