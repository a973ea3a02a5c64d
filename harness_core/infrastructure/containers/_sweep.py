"""What a dead run left in an engine: its containers, networks and volumes, and only those.

Two witnesses must agree: the ledger of a dead run names the thing, and the thing's own labels name
that run and this machine. Whatever carries only one of the two is left alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.errors import Unavailable
from harness_core.base.wait import until_blocking
from harness_core.infrastructure.containers._client import engine_client, engine_errors, library
from harness_core.infrastructure.containers._labels import belongs
from harness_core.infrastructure.engine import find_engine
from harness_core.process import state_root

#: The ledger names a container before the engine is asked for it, and an engine finishes what it
#: was asked for after the asker is dead. Until an entry is so old its container may still appear.
_APPEARS_S: Final = 10.0


def sweep_container(entry: Mapping[str, Any]) -> str:
    """Remove one container of a dead run, with its volumes; a :data:`Sweeper`.

    Args:
        entry: a ledger entry of kind ``container``: ``name``, ``engine``, ``run``, ``at``.

    Returns:
        What was removed, as text; empty when nothing was left.

    Raises:
        Unavailable: the engine that holds it does not answer.
        NotReady: it could not be removed in time.
    """
    return _sweep(entry, "containers", remove=lambda found: found.remove(force=True, v=True))


def sweep_network(entry: Mapping[str, Any]) -> str:
    """Remove one network of a dead run; see :func:`sweep_container`."""
    return _sweep(entry, "networks", remove=lambda found: found.remove())


def sweep_volume(entry: Mapping[str, Any]) -> str:
    """Remove one volume of a dead run; see :func:`sweep_container`."""
    return _sweep(entry, "volumes", remove=lambda found: found.remove(force=True))


def _sweep(entry: Mapping[str, Any], collection: str, *, remove: Any) -> str:
    kind, name, run_id = collection.removesuffix("s"), str(entry.get("name")), str(entry.get("run"))
    action = f"remove {kind} {name} of dead run {run_id}"
    library(action)
    wanted = str(entry.get("engine"))
    try:
        engine = find_engine(environment=_environment(wanted))
    except Unavailable as error:
        raise Unavailable(
            action,
            observed=f"the engine that holds it does not answer: {wanted}",
            next_step=f"Start it and sweep again; when it is gone for good, remove "
            f"{state_root() / 'runs' / run_id}",
        ) from error
    with engine_client(engine, timeout_s=limits.CONTAINER_REMOVE_S) as client:
        found = _find(getattr(client, collection), name, entry, action=action)
        if found is None or not belongs(_labels(found), run_id):
            return ""
        with engine_errors(action):
            try:
                remove(found)
            except library().errors.NotFound:  # another sweep was faster
                return ""
    return f"{kind} {name}"


def _environment(url: str) -> dict[str, str]:
    """Ask exactly the engine of the entry, with the certificates of the caller's environment."""
    return {**os.environ, "DOCKER_HOST": url}


def _find(collection: Any, name: str, entry: Mapping[str, Any], *, action: str) -> Any:
    """The thing of that name; ``None`` when there is none and none can appear any more."""
    at = entry.get("at")
    young_s = _APPEARS_S - (time.time() - at) if isinstance(at, (int, float)) else 0.0
    settled = time.monotonic() + min(young_s, _APPEARS_S)

    def get() -> Any:
        with engine_errors(action):
            try:
                return collection.get(name)
            except library().errors.NotFound:
                return None

    def answer() -> tuple[Any] | None:
        final = time.monotonic() >= settled  # before the engine is asked
        found = get()
        return (found,) if found is not None or final else None

    seconds = _APPEARS_S + limits.CONTAINER_REMOVE_S  # the longest that the last question takes
    return until_blocking(answer, seconds=seconds, action=action)[0]


def _labels(found: Any) -> Mapping[str, Any]:
    attributes = found.attrs
    return (attributes.get("Config") or {}).get("Labels") or attributes.get("Labels") or {}
