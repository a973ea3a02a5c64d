"""What a daemon has, by its own account: over the wire, or by a command line of ``[lists]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from harness_core.front.skips import not_run
from harness_core.process import Run
from suites.daemon.daemon import Daemon
from suites.daemon.ending import ended
from suites.daemon.messages import ask, request
from suites.daemon.wire import Keyword, lookup

__all__ = ["listed"]

#: A command starts, asks and prints in a third of a second.
LISTED_S: Final = 30.0

#: What is listed → target, sensor and key of the rows on the wire, and the contract.
_WIRE: Final = {
    "skills": ("SKILL", "SKILL-LIST", "SKILLS", 4),
    "gateways": ("GATEWAY", "GATEWAY-LIST", "GATEWAYS", 7),
}


async def listed(daemon: Daemon, run: Run, what: str) -> list[dict[str, object]]:
    """Rows of a list, each with its ``name`` and what else is said of it (``source`` of a gateway).

    Args:
        daemon: whose.
        run: of the test, for a command line.
        what: ``skills`` or ``gateways``.
    """
    listing = daemon.subject.table("lists").get(what)
    if listing is not None:
        return await _printed(daemon, run, listing, what)
    target, sensor, rows, contract = _WIRE[what]
    if f"{target.lower()}-list" not in daemon.subject.capabilities:
        file = daemon.subject.path.name
        not_run("subject", f"{file} has no capability {target.lower()}-list and no [lists.{what}]")
    async with daemon.connect() as connection:
        answer = await ask(connection, request(target, "LIST"))

    assert answer.get("PAYLOAD", "SENSOR") == Keyword(sensor), (
        f"contract {contract}: expected the list of {what}, found {answer.payload}"
    )
    found = answer.get("PAYLOAD", rows)

    assert isinstance(found, tuple), f"contract {contract}: no list of :{rows}: {answer.payload}"
    return [
        {"name": lookup(row, "NAME"), "source": str(lookup(row, "SOURCE")).lstrip(":")}
        for row in found
    ]


async def _printed(
    daemon: Daemon, run: Run, listing: Mapping[str, object], what: str
) -> list[dict[str, object]]:
    words = cast("list[str]", listing["argv"])
    argv = [daemon.fill(word) for word in words]
    starting = run.child(argv, name=what, env=daemon.environment(), cwd=daemon.home)
    async with starting as child:
        status, printed = await ended(child, argv, seconds=LISTED_S, contract=_WIRE[what][3])

    assert status == 0, (
        f"contract {_WIRE[what][3]}: {what} are listed, found status {status}:\n{printed}"
    )
    rows = re.finditer(str(listing["row"]), printed, re.MULTILINE)
    return [dict(row.groupdict()) for row in rows]
