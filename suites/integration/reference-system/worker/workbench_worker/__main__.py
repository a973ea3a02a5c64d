"""``workbench-worker``: the worker as a process."""

from __future__ import annotations

import sys

from workbench_foundation.keys import App
from workbench_foundation.serving import run_service


async def _make() -> App:
    from workbench_worker.app import make_app
    from workbench_worker.settings import read_settings

    return await make_app(read_settings())


def main() -> int:
    """Serve until SIGTERM; the exit status."""
    return run_service("worker", _make)


if __name__ == "__main__":
    sys.exit(main())
