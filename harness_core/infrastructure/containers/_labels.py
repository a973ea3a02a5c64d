"""Whose a container is: its name in the run's ledger, and labels, as of every network and volume."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_core.infrastructure.engine import Engine
from harness_core.process import start_time

if TYPE_CHECKING:
    from harness_core.process import Run

_PREFIX: Final = "staging-harness"
LABEL_RUN: Final = f"{_PREFIX}.run"
_LABEL_HOST: Final = f"{_PREFIX}.host"
_LABEL_PID: Final = f"{_PREFIX}.pid"
_LABEL_START: Final = f"{_PREFIX}.start"


@functools.cache
def host_id() -> str:
    """Tells this machine from others that share an engine; no secret, and tells nothing else."""
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except OSError:
        machine = ""
    return hashlib.sha256(f"{platform.node()} {machine}".encode()).hexdigest()[:16]


def run_labels(run_id: str) -> dict[str, str]:
    """The labels of what this process makes for a run."""
    return {
        LABEL_RUN: run_id,
        _LABEL_HOST: host_id(),
        _LABEL_PID: str(os.getpid()),
        _LABEL_START: str(start_time(os.getpid())),
    }


def announce(run: Run, kind: str, name: str, engine: Engine) -> None:
    """Write down that a thing of that name is about to be made.

    Before it is: a runner that is killed in the middle leaves the name, and a sweep finds the thing.
    """
    run.ledger.record(kind, name=name, engine=engine.url, run=run.id, at=time.time())


def belongs(labels: Mapping[str, Any] | None, run_id: str) -> bool:
    """Whether labels name this machine and that run."""
    labels = labels or {}
    return labels.get(LABEL_RUN) == run_id and labels.get(_LABEL_HOST) == host_id()
