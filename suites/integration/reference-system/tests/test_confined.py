"""What every command of a session waits for before it starts."""

from __future__ import annotations

import subprocess
import sys


def test_a_command_waits_for_no_models():
    """The process behind which it runs loads no pydantic, which takes longer than most commands."""
    look = "import sys, workbench_worker.confined; print('pydantic' in sys.modules)"

    said = subprocess.run([sys.executable, "-I", "-c", look], capture_output=True, text=True, check=True)

    assert "False" == said.stdout.strip()
