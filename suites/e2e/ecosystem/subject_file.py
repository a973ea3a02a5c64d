"""The subject file of an ecosystem, read whole: a table or key that no adapter reads is a mistake.

What each table means stands where it is read: ``layout.py``, ``tools.py``, ``knobs.py``,
``containers.py``, ``worlds/credentialed.py``, ``golden/``; docs/subject.md has them all.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from harness_core.system.subject import Subject, load_subject
from harness_core.system.suites import Shape
from suites.e2e.ecosystem.knobs import KNOBS
from suites.e2e.ecosystem.layout import OWN_PROCESS, layout_of
from suites.e2e.worlds.credentialed import MODULES

__all__ = ["TABLES", "read_subject"]

#: Names and values of environment variables, with ``{fields}`` in both.
_VARIABLES: Final[Shape] = {"*": str}

#: Every table but ``[subject]`` and ``[env]``.
TABLES: Final[Shape] = {
    "container": {
        "image": str,
        "dockerfile": str,
        "base": str,
        "context": [str],
        "read": [str],
    },
    "golden": {"directory": str},
    "heartbeat": {
        "env": _VARIABLES,
        "ticks": {"table!": str, "butler!": str, "at!": str, "success!": str},
    },
    "knobs": dict.fromkeys(KNOBS, _VARIABLES),
    "migrations": [{"path!": str, "version_table!": str}],
    "model": {
        "message": str,
        "registry": str,
        "answer": str,
        "tool": str,
        "arguments": {"*": object},
        "servers": [str],
    },
    "modules": {name: {"env": _VARIABLES} for name in MODULES},
    "ports": {"source": str, "*": int},
    "process": {"layout": str},
    "profile": {"frames": str},
    "roster!": {"directory!": str},
    "session": {"environment": [str]},
    "tools": {"transport": str, "call": str, "list": str, "result": str, "error": str},
}


def read_subject(path: Path) -> Subject:
    """A subject file, with the capability that its layout of processes implies.

    Args:
        path: the file.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    subject = load_subject(path)
    subject.check_tables(TABLES)
    if layout_of(subject).one_process:
        return subject
    return dataclasses.replace(subject, capabilities=subject.capabilities | {OWN_PROCESS})
