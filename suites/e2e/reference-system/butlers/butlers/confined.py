"""Becomes the runtime's binary, with the listed variables only and a life tied to its butler's.

Run as a program (`python -I -S confined.py PID_FILE BINARY NAME… -- ARGUMENT…`), between the
library that starts a session and the binary it means: the library merges its own environment into
the child's, and knows no way to end the child when the butler itself is killed.
"""

import os
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def main(arguments: list[str]) -> None:
    """Replace this process."""
    split = arguments.index("--")
    pid_file, binary, *names = arguments[:split]
    butler = os.getppid()
    _die_with_parent()
    if os.getppid() != butler:  # it ended before the line above took effect
        os._exit(1)
    with open(pid_file, "w", encoding="ascii") as file:  # noqa: PTH123 - no imports to spare
        file.write(str(os.getpid()))
    allowed = {name: os.environ[name] for name in names if name in os.environ}
    os.execve(binary, [binary, *arguments[split + 1 :]], allowed)


def _die_with_parent() -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
