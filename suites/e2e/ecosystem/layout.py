"""How a subject lays out its processes and ports, when its file says anything about it.

[process]
layout = "one"            # one process serves every butler; "each" (one per butler) when left out

[ports]
source = "lease"          # any free port, told to the subject; "roster": as each butler.toml says
switchboard = 9100        # or fixed numbers, butler by butler
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.roster import ButlerConfig

__all__ = ["OWN_PROCESS", "Layout", "layout_of"]

#: The capability of every subject that does not say ``layout = "one"``.
OWN_PROCESS: Final = "own-process"

_LAYOUTS: Final = ("each", "one")
_SOURCES: Final = ("lease", "roster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Processes and ports of a subject.

    Attributes:
        one_process: one process serves every butler.
        from_roster: a butler without a fixed port listens where its ``butler.toml`` says.
        fixed: butler → the port it insists on.
    """

    one_process: bool
    from_roster: bool
    fixed: Mapping[str, int]

    def port_of(self, config: ButlerConfig) -> int | None:
        """The port a butler insists on; ``None`` when it takes any."""
        return self.fixed.get(config.name, config.port if self.from_roster else None)


def layout_of(subject: Subject) -> Layout:
    """What the tables ``[process]`` and ``[ports]`` say.

    Raises:
        BadInput: an unknown key, layout or source, or a port that is none.
    """
    process = dict(subject.table("process"))
    layout = process.pop("layout", "each")
    if layout not in _LAYOUTS:
        raise BadInput(
            subject.path, key="process.layout", found=layout, expected=" or ".join(_LAYOUTS)
        )
    for key, value in process.items():
        raise BadInput(subject.path, key=f"process.{key}", found=value, expected="only 'layout'")
    ports = dict(subject.table("ports"))
    source = ports.pop("source", "lease")
    if source not in _SOURCES:
        raise BadInput(
            subject.path, key="ports.source", found=source, expected=" or ".join(_SOURCES)
        )
    for name, port in ports.items():
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= 65_535:
            raise BadInput(
                subject.path, key=f"ports.{name}", found=port, expected="a port from 1 to 65535"
            )
    return Layout(one_process=layout == "one", from_roster=source == "roster", fixed=ports)
