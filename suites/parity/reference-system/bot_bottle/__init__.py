"""Launches bottles: sandboxes for coding agents, described by manifests, run by a backend.

- ``manifest.py``: a manifest read and merged; ``env.py``: its environment resolved.
- ``host.py``: everything outside that a launcher touches; ``run.py``: the one subprocess layer.
- ``state.py``: what is recorded of a bottle; ``proposals.py``: changes that wait for approval.
- ``backends/``: docker, smolmachines, bubblewrap; a row each.
- ``launcher.py``: start, resume, list, cleanup, approve; ``cli.py``: the same on a command line.
"""

from bot_bottle.errors import BottleError
from bot_bottle.host import Host
from bot_bottle.launcher import Launcher

__all__ = ["BottleError", "Host", "Launcher"]
