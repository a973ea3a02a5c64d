"""What is known of a living system now; renewed while anyone looks, and not otherwise."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Redactor
from harness_core.base.wait import until
from harness_core.front.live._asking import ACT_S, Holder
from harness_core.front.live._feed import Feed
from harness_core.front.live._memory import memory_of
from harness_core.front.live._tail import Tails
from harness_core.front.live._travel import Travels

__all__ = ["Board"]

#: Between two looks at the files: what happens is seen at once, as far as a person can tell.
_LOOK_S: Final = 0.25

#: Every so many looks: the parts and messages; memory and what was spent.
_PARTS_EVERY: Final = 2
_MEMORY_EVERY: Final = 8

#: The page's own log tells of no part of the system.
_OWN: Final = frozenset({"page.log"})


class Board:
    """What clients are shown.

    Args:
        socket: the control socket of what is held.
        holder: the pid of its process, whose memory is no part's.
        evidence: what its processes write.
        title: the name of the suite.

    Attributes:
        feed: what happened last.
        changed: set, and replaced, when there is something new.
        title: the name of the suite.
        clients: how many look.
    """

    def __init__(self, socket: Path, *, holder: int, evidence: Path, title: str) -> None:
        self.title = title
        self.feed = Feed()
        self.changed = trio.Event()
        self.clients = 0
        self._holder = Holder(socket)
        self._pid = holder
        self._tails = Tails(evidence, leave_out=_OWN)
        self._travels = Travels(self._holder, self.feed)
        self._someone = trio.Event()
        self._shown: dict[str, tuple[int, bytes]] = {}
        self._version = 0
        self._looks = 0
        self._memory: dict[int, int] = {}
        self._missed = 0
        self._redact = Redactor().redact
        self._show("began", time.time())

    # --- for clients --------------------------------------------------------------------------------

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Somebody looks, during the block."""
        self.clients += 1
        self._someone.set()
        try:
            yield
        finally:
            self.clients -= 1
            if not self.clients:
                self._someone = trio.Event()

    def since(self, seen: Mapping[str, int]) -> dict[str, tuple[int, bytes]]:
        """What is shown otherwise than a client has seen: its name → version, JSON."""
        return {
            name: (version, text)
            for name, (version, text) in self._shown.items()
            if seen.get(name) != version
        }

    async def offers(self) -> Any:
        """What can be sent, and whether any text can; ``None`` where nothing can, or not yet."""
        return await self._holder.ask("offers")

    async def act(self, part: str, verb: str) -> None:
        """Take a part away, or give it back.

        Raises:
            HarnessError: it cannot be done.
        """
        await self._holder.ask("act", seconds=ACT_S, part=part, verb=verb)

    async def send(self, offer: str, text: str, *, title: str) -> str:
        """Send a message; its id.

        Raises:
            HarnessError: it was not taken.
        """
        sent = await self._travels.send(offer, text, title=title)
        self._show("travels", self._travels.rows())
        self._tell()
        return sent

    # --- renewing -----------------------------------------------------------------------------------

    async def renew(self) -> None:
        """Look again and again, while there is a client."""
        await until(self._look, poll_s=_LOOK_S, slowest_s=_LOOK_S)

    async def _look(self) -> bool:
        await self._someone.wait()
        before = self.feed.last, self._version
        try:
            await self._renew_once()
        except Exception as error:  # noqa: BLE001 - of what a system says nothing may end its page
            traceback.print_exception(error)
            self._show("trouble", f"{type(error).__name__}: {error}")
        self._looks += 1
        if before != (self.feed.last, self._version):
            self._tell()
        return False

    async def _renew_once(self) -> None:
        self._missed += self.feed.add(self._tails.new())
        if self._missed:
            self._show("missed", self._missed)
        if self._looks % _PARTS_EVERY == 0:
            await self._look_at_parts()
            await self._travels.look()
            self._show("travels", self._travels.rows())
        if self._looks % _MEMORY_EVERY == 0:
            await self._look_at_spent()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    async def _look_at_parts(self) -> None:
        try:
            found = await self._holder.ask("describe")
        except HarnessError as error:
            self._show("trouble", str(error).partition("\n")[0])
            return
        self._show("trouble", "")
        if found is None:
            self._show("parts", None)
            return
        if "offers" not in self._shown:
            self._show("offers", await self._offers_or_none())
        parts = [self._public(part, found.get("busy", {})) for part in found["parts"]]
        if self._looks % _MEMORY_EVERY == 0:
            self._memory = await blocking(memory_of, {part["pid"] for part in parts if part["pid"]})
        for part in parts:
            part["memory"] = self._memory.get(part["pid"] or 0)
        self._show("parts", parts)

    async def _offers_or_none(self) -> Any:
        try:
            return await self.offers()
        except HarnessError:
            return None

    async def _look_at_spent(self) -> None:
        try:
            spent = await self._holder.ask("spent")
        except HarnessError:  # it boots, or the gateway is away
            return
        if spent is not None:
            spent.pop("by_test", None)
        self._show("spent", spent)

    def _public(self, part: Mapping[str, Any], busy: Mapping[str, str]) -> dict[str, Any]:
        """A part without passwords and keys."""
        pid = part.get("pid")
        return {
            "name": str(part["name"]),
            "kind": str(part.get("kind", "")),
            "state": str(part.get("state", "")),
            "address": str(part.get("address", "")),
            # A double lives in the process that holds all.
            "pid": pid if pid != self._pid else None,
            "container": str(part.get("container", ""))[:12],
            "urls": {key: self._redact(str(value)) for key, value in part.get("urls", {}).items()},
            "restarts": part.get("restarts", 0),
            "died": self._redact(str(part.get("died", ""))),
            "verbs": list(part.get("verbs", ())),
            "busy": busy.get(str(part["name"]), ""),
        }

    def _show(self, name: str, value: Any) -> None:
        text = msgspec.json.encode(value, enc_hook=str)
        if self._shown.get(name, (0, b""))[1] != text:
            self._version += 1
            self._shown[name] = (self._version, text)
