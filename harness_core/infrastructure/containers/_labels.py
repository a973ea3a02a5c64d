"""Whose a container is: labels that every container, network and volume of a run carries."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.process import start_time

__all__ = ["LABEL_RUN", "belongs", "host_id", "run_labels"]

_PREFIX: Final = "staging-harness"
LABEL_RUN: Final = f"{_PREFIX}.run"
_LABEL_HOST: Final = f"{_PREFIX}.host"
_LABEL_PID: Final = f"{_PREFIX}.pid"
_LABEL_START: Final = f"{_PREFIX}.start"


@functools.cache
def host_id() -> str:
    """Tells this machine from others that share an engine; no secret, and says nothing else."""
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


def belongs(labels: Mapping[str, Any] | None, run_id: str) -> bool:
    """Whether labels say: made on this machine, for that run."""
    labels = labels or {}
    return labels.get(LABEL_RUN) == run_id and labels.get(_LABEL_HOST) == host_id()
