"""What tests that start a pytest of their own share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that a server's own user may enter, which pytest's ``tmp_path`` is not."""
    with tempfile.TemporaryDirectory(prefix="harness-state-") as name:
        Path(name).chmod(0o711)
        yield Path(name)
