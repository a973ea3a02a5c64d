"""Who removes what this package does not know: containers, databases on a server that is not ours.

Each kind of ledger entry is an entry point of the group ``staging_harness.sweepers`` in a
``pyproject.toml``: the packages of the harness above this one, or a suite with things of its own.
It is imported when there is something for it to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from harness_core.base.errors import Unavailable

#: Removes one thing a ledger entry names; returns what it removed, empty when it was gone.
Sweeper = Callable[[Mapping[str, Any]], str]

_GROUP: Final = "staging_harness.sweepers"


def installed_sweepers() -> dict[str, Sweeper]:
    """Every sweeper that is installed, by kind of ledger entry."""
    return {point.name: _on_demand(point) for point in entry_points(group=_GROUP)}


def _on_demand(point: EntryPoint) -> Sweeper:
    def remove(entry: Mapping[str, Any]) -> str:
        try:
            sweeper: Sweeper = point.load()
        except (ImportError, Unavailable) as error:
            missing = (
                f"the package {error.name} is not installed"
                if isinstance(error, ImportError)
                else error.observed
            )
            raise Unavailable(
                f"remove the {point.name} of dead run {entry.get('run')}",
                observed=missing,
                next_step="Sweep from the environment that the run was started in",
            ) from error
        return sweeper(entry)

    return remove
