"""A butler starts without what it needs later or never: imports are most of what a start costs."""

import json
import subprocess
import sys

#: Migrations are rendered once and kept; a session, a span and a letter come later.
LATER = {"aiosmtplib", "alembic", "claude_agent_sdk", "opentelemetry.exporter", "sqlalchemy"}

STARTED = """
import json, sys
import butlers.core_tools, butlers.daemon, butlers.runtime, butlers.server, butlers.switchboard
butlers.server.preload()
print(json.dumps(list(sys.modules)))
"""


def test_a_start_imports_nothing_that_is_needed_later() -> None:
    """What serving and registering need, and no more."""
    shown = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, check=True)
    imported = set(json.loads(shown.stdout))

    assert "mcp.server.sse" in imported
    assert set() == LATER & imported
