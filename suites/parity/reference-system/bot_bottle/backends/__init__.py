"""The backends, a row each.

- ``base.py``: what a backend and a bottle are.
- ``docker.py``: containers; ``smolmachines.py``: micro-VMs; ``bubblewrap.py``: namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot_bottle import faults
from bot_bottle.backends.base import Backend
from bot_bottle.backends.bubblewrap import BubblewrapBackend
from bot_bottle.backends.docker import DockerBackend
from bot_bottle.backends.smolmachines import SmolmachinesBackend
from bot_bottle.errors import BackendError
from bot_bottle.host import Host

BACKENDS: Mapping[str, Callable[[Host], Backend]] = {
    "docker": DockerBackend,
    "smolmachines": SmolmachinesBackend,
    "bubblewrap": BubblewrapBackend,
}

VARIABLE = "BOT_BOTTLE_BACKEND"


def choose_backend(flag: str | None, environ: Mapping[str, str]) -> str:
    """`--backend`, then `BOT_BOTTLE_BACKEND`, then docker.

    Raises:
        BackendError: there is no such backend.
    """
    if faults.on("unknown-flag-passed-over") and flag not in BACKENDS:
        flag = None
    name = flag or environ.get(VARIABLE) or "docker"
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise BackendError(f"cannot use backend {name!r}: expected one of {known}")
    return name
