"""Where the harness cannot run, and the one sentence that says so; it imports next to nothing."""

import sys

__all__ = ["REFUSAL"]

#: A text of its own: a type checker takes ``sys.platform`` for that of the machine it runs on.
_HERE = str(sys.platform)
_NAME = {"darwin": "macOS", "win32": "Windows"}.get(_HERE, _HERE)

#: Empty on Linux. ``harness_core`` ends with it before anything is imported that exists there alone, so
#: that the command, pytest and a program print one sentence and no traceback.
REFUSAL = (
    ""
    if _HERE == "linux"
    else f"cannot use staging-harness on {_NAME}: it supervises processes as Linux runs them. "
    "Use Linux, a container or WSL 2; as a dependency \"staging-harness; sys_platform == 'linux'\" "
    "it is left out here."
)
