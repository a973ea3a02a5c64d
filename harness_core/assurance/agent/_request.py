"""How the agent is asked: a folder with a request in it, which ``HARNESS_AGENT`` names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

#: Names the request to every process below the one that has it in its environment.
VARIABLE: Final = "HARNESS_AGENT"

_REQUEST: Final = "agent.json"
_SOCKET: Final = "hub.sock"
_MESSAGES: Final = "messages.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One change of one file.

    Attributes:
        id: of the mutant.
        path: the file.
        sha256: of its content, which the change was made for.
        start, end: what is replaced, in bytes.
        text: what takes its place.
    """

    id: str
    path: str
    sha256: str
    start: int
    end: int
    text: str


def ask_for_damage(folder: Path, damage: Damage, *, own: bool = False) -> Path:
    """Ask for a mutant; the request, for ``HARNESS_AGENT``.

    Args:
        folder: of this run alone.
        damage: the change.
        own: pytest itself is a process of the product.
    """
    return _ask(folder, {"mode": "mutant", "own": own, **asdict(damage)})


def ask_for_coverage(
    folder: Path, *, sources: Sequence[Path], libraries: Sequence[Path], own: bool = False
) -> Path:
    """Ask what the product executes; the request, for ``HARNESS_AGENT``.

    Args:
        folder: of this run alone.
        sources: the folders of the product's own code.
        libraries: where coverage.py lies for the product's Python, and the agent.
        own: pytest itself is a process of the product.
    """
    return _ask(
        folder,
        {
            "mode": "coverage",
            "own": own,
            "sources": [str(source) for source in sources],
            "libraries": [str(library) for library in libraries],
        },
    )


def _ask(folder: Path, request: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    # A process of the product may run as another user.
    folder.chmod(0o1777)
    messages = folder / _MESSAGES
    messages.touch()
    messages.chmod(0o666)
    path = folder / _REQUEST
    # A socket's path is short: 107 bytes. The caller sees to it that the folder's is.
    content = {**request, "folder": str(folder), "socket": str(folder / _SOCKET)}
    path.write_text(json.dumps(content), encoding="utf-8")
    path.chmod(0o644)
    return path


def read_messages(folder: Path) -> Iterator[dict[str, Any]]:
    """Every message that agents left in a folder; a last line that was cut off by SIGKILL is none."""
    for file in sorted(folder.glob("*.jsonl")):
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                yield message
