"""``workbench-controller``: the controller's HTTP side as a process."""

from __future__ import annotations

import sys

from workbench_foundation.keys import App
from workbench_foundation.serving import run_service


async def _make() -> App:
    from workbench_controller.app import make_app
    from workbench_controller.settings import read_settings

    return await make_app(read_settings())


def main() -> int:
    """Serve until SIGTERM; the exit status."""
    return run_service("controller", _make)


if __name__ == "__main__":
    sys.exit(main())
