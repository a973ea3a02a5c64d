"""Through which gateways does text come in, and who is linked to messaging?

The registry lists the gateways. Links say which address on a messaging platform is ours to talk
to; they live in `links.json` of the data directory, so that they outlast the daemon and the command
line can change them while it runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sexpd import faults
from sexpd.errors import SexpdError

PLATFORMS = ("telegram", "signal", "matrix", "slack", "discord", "webhook")
LINKS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class LinkError(SexpdError):
    """A link that cannot be made, found or stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """One way in.

    Attributes:
        kind: how it reaches the daemon: "socket" or "messaging".
        source: what its frames carry as META source.
    """

    name: str
    kind: str
    source: str
    description: str


GATEWAYS = (
    Gateway(name="cli", kind="socket", source="CLI", description="one line of text: sexpd say"),
    Gateway(name="tui", kind="socket", source="TUI", description="the terminal client: sexpd tui"),
    Gateway(name="emacs", kind="socket", source="EMACS", description="sexpd.el"),
    Gateway(name="messaging", kind="messaging", source="MESSAGING",
            description="texts of linked addresses; replies go to their webhook"),
)


def registry() -> tuple[Gateway, ...]:
    """The gateways that are there after start."""
    if faults.on("terminal-unlisted"):
        return tuple(gateway for gateway in GATEWAYS if gateway.name != "tui")
    return () if faults.on("gateway-list-empty") else GATEWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An address that may talk through messaging.

    Attributes:
        name: what we call it.
        platform: one of PLATFORMS.
        address: the platform's own word for it, e.g. a chat id.
        webhook: where texts for it are posted; empty when it only writes to us. Who knows it may
            post there, so it is shown by its origin only.
    """

    name: str
    platform: str
    address: str
    webhook: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        """The webhook without what makes it a secret: scheme, host and port."""
        if not self.webhook:
            return ""
        parts = urlsplit(self.webhook)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class Links:
    """The links of a data directory; every change is on disk before it is answered."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "links.json"
        self._unlinked: set[str] = set()

    def all(self) -> tuple[Link, ...]:
        """The links as they stand on disk, by name.

        Raises:
            LinkError: the file cannot be read.
        """
        return tuple(link for link in self._read() if link.name not in self._unlinked)

    def get(self, name: str) -> Link:
        """One link.

        Raises:
            LinkError: there is none of that name.
        """
        for link in self.all():
            if link.name == name:
                return link
        raise LinkError(f"cannot use link {name}: there is none. Make it: sexpd link")

    def add(self, *, name: str, platform: str, address: str, webhook: str = "") -> Link:
        """Make or replace a link.

        Raises:
            LinkError: a value makes no sense, or the file cannot be written.
        """
        if faults.on("minus-lost"):
            address = address.lstrip("-")
        link = Link(name=name, platform=platform.lower(), address=address, webhook=webhook)
        _check(link)
        with self._locked():
            links = {known.name: known for known in self._read()} | {name: link}
            if len(links) > LINKS:
                raise LinkError(f"cannot link {name}: there are {LINKS} already. Unlink one")
            self._write(links)
            self._unlinked.discard(name)
        return link

    def remove(self, name: str) -> Link:
        """Forget a link.

        Raises:
            LinkError: there is none of that name.
        """
        with self._locked():
            link = self.get(name)
            if faults.on("unlink-not-persisted"):
                self._unlinked.add(name)
            else:
                self._write({
                    known.name: known for known in self._read()
                    if known.name != name
                    and not (faults.on("unlink-takes-namesakes") and known.name.startswith(name))
                })
        return link

    def _read(self) -> list[Link]:
        try:
            rows = json.loads(self.file.read_text(encoding="utf-8"))
            return [Link(**row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise LinkError(f"cannot read {self.file}: {error}. Mend or remove it") from error

    def _write(self, links: dict[str, Link]) -> None:
        rows = [asdict(links[name]) for name in sorted(links)]
        beside = self.file.with_suffix(".new")
        try:
            with open(beside, "w", encoding="utf-8", opener=_private) as stream:
                os.fchmod(stream.fileno(), 0o600)
                json.dump(rows, stream, indent=1, ensure_ascii=False)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(self.file)
        except OSError as error:
            raise LinkError(f"cannot write {self.file}: {error}. Make room for it") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            lock = self.file.with_suffix(".lock").open("w")
        except OSError as error:
            raise LinkError(f"cannot write {self.file}: {error}. Make room for it") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _check(link: Link) -> None:
    if not _NAME.fullmatch(link.name):
        raise LinkError(
            f"cannot link {link.name!r}: no name. Use letters, digits, points and hyphens"
        )
    if link.platform not in PLATFORMS:
        known = ", ".join(PLATFORMS)
        raise LinkError(f"cannot link {link.name}: no platform {link.platform!r}. Use {known}")
    if not link.address or len(link.address) > 500 or not link.address.isprintable():
        raise LinkError(f"cannot link {link.name}: address {link.address!r}. Give one line of text")
    if link.webhook:
        try:
            parts = urlsplit(link.webhook)
            fine = parts.scheme in {"http", "https"} and bool(parts.hostname)
            _ = parts.port  # reading it checks it
        except ValueError:
            fine = False
        if not fine:
            raise LinkError(f"cannot link {link.name}: its webhook is no address. Give an http URL")
