"""Where a butler listens, and where its database is, in the words of a subject file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final
from urllib.parse import unquote, urlsplit

from harness_core.base.errors import PortTaken, Unavailable
from harness_core.ports import PortLease, lease_port
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.roster import ButlerConfig
from suites.e2e.ecosystem.subject_file import EcosystemTables, tables_of

__all__ = ["database_fields", "lease_ports"]

#: Ecosystems of one product that may be up at once where it has ports of its own.
MOST: Final = 16


def lease_ports(
    subject: Subject, configs: Mapping[str, ButlerConfig], *, leases: ExitStack
) -> dict[str, PortLease]:
    """A port for each butler: any that is free, or the one that the product insists on.

    Where another ecosystem has that one, each is ``[ports] offset`` further.

    Args:
        subject: the product.
        configs: its butlers.
        leases: holds what is leased.

    Raises:
        Unavailable: a port is taken, and nothing says that the product may have another.
    """
    tables = tables_of(subject)
    step = tables.offset
    for number in range(MOST if step else 1):
        with ExitStack() as tried:
            try:
                taken = {
                    name: tried.enter_context(lease_port(port=_moved(tables, config, number)))
                    for name, config in configs.items()
                }
            except PortTaken as error:
                last = error
                continue
            leases.enter_context(tried.pop_all())
            return taken
    raise Unavailable(
        f"boot an ecosystem of {subject.name} beside another",
        observed=f"{last}; its ports are those of its file and its butlers ([ports])",
        next_step="Say [ports] offset = N, by how much each next ecosystem's are higher; or run one "
        "at a time, with -n 0",
    ) from last


def _moved(tables: EcosystemTables, config: ButlerConfig, number: int) -> int | None:
    port = tables.port_of(config)
    return None if port is None else port + number * tables.offset


def database_fields(url: str) -> dict[str, str | int]:
    """The parts of a database's address, for a product that takes no URL."""
    parts = urlsplit(url)
    return {
        "database_host": parts.hostname or "127.0.0.1",
        "database_port": parts.port or 5432,
        "database_user": unquote(parts.username or ""),
        "database_password": unquote(parts.password or ""),
        "database_name": unquote(parts.path.lstrip("/")),
    }
