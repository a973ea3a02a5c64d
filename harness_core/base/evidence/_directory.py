"""One readable directory per test or run: how evidence is written and where it lies."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_core.base.evidence._redaction import Redactor
from harness_core.base.machine import writing

#: Longest directory name made of a test's name; file systems stop at 255 bytes.
_NAME_CHARS: Final = 120


class Evidence:
    """A directory that redacts what is written into it; built by :func:`open_evidence`.

    Attributes:
        path: the directory; exists.
        redactor: shared with every child directory.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.path = path
        self.redactor = redactor
        self._inside: set[str] = set()
        with writing_evidence(path):
            path.mkdir(parents=True, exist_ok=True)

    def child(self, name: str) -> Evidence:
        """A directory below this one; ``name`` is made safe for file systems."""
        return Evidence(self.path / safe_name(name), self.redactor)

    def write_text(self, name: str, text: str) -> Path:
        """Write (or replace) a text file and return its path."""
        path = self._file(name)
        with writing_evidence(path):
            path.write_text(self.redactor.redact(text), encoding="utf-8", errors="backslashreplace")
        return path

    def write_json(self, name: str, value: object) -> Path:
        """Write (or replace) a JSON file; dataclasses become objects, unknown types their text."""
        return self.write_text(name, json.dumps(value, indent=2, default=_plain) + "\n")

    def keep(self, name: str, data: bytes) -> Path:
        """Write (or replace) a file that is no text, a picture say, as it is; nothing is redacted."""
        path = self._file(name)
        with writing_evidence(path):
            path.write_bytes(data)
        return path

    def append(self, name: str, line: str) -> Path:
        """Append one line to a text file and return its path."""
        path = self._file(name)
        with (
            writing_evidence(path),
            path.open("a", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(self.redactor.redact(line.rstrip("\n")) + "\n")
        return path

    def append_json(self, name: str, value: object) -> Path:
        """Append one JSON line to a ``.jsonl`` file and return its path."""
        return self.append(name, json.dumps(value, default=_plain))

    def _file(self, name: str) -> Path:
        path = self.path / name
        if name not in self._inside:  # asked once: a log has thousands of lines
            if self.path.resolve() not in path.resolve().parents:
                message = f"cannot write evidence {name!r}: it lies outside {self.path}"
                raise ValueError(message)
            self._inside.add(name)
        with writing_evidence(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path


def open_evidence(path: Path, *, redactor: Redactor | None = None, wipe: bool = False) -> Evidence:
    """Make (and with ``wipe`` empty) an evidence directory."""
    if wipe and path.exists():
        shutil.rmtree(path)
    return Evidence(path, redactor or Redactor())


def writing_evidence(path: Path) -> AbstractContextManager[None]:
    """Turn a full disk of the evidence into one error; see :func:`machine.writing`."""
    return writing(path, what="evidence", elsewhere="--evidence DIR")


def safe_name(name: str) -> str:
    """``name`` as one path component that a person still recognises.

    Two names never become one: where something had to be left out, a digest of the whole follows.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._\-\[\]]+", "-", name).strip("-.")[:_NAME_CHARS]
    if cleaned == name:
        return cleaned
    digest = hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()[:6]
    return f"{cleaned or 'unnamed'}-{digest}"


def _plain(value: Any) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    return str(value)
