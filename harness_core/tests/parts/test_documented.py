"""The example of docs/how-to/parts.md, run as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.tests.conformance import sample_server

pytestmark = [pytest.mark.real, pytest.mark.slow]

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "parts.md"
RUN_S = 60.0


def test_the_page_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boots a database and a process, takes both away, and leaves nothing."""
    found = re.search(r"```python[^\n]*\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    (tmp_path / "test_page.py").write_text(found[1])
    shop = tmp_path / "shop"
    shop.write_text(f'#!/bin/sh\nexec {sys.executable} {sample_server.__file__} serve "$2" "$4"\n')
    shop.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = ["-p", "no:cacheprovider", "-o", "trio_mode=true", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "test_page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "1 passed" in done.stdout
