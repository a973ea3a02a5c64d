"""A command behind walls, as a process.

It reads what to do, and behind which walls, from its standard input; in its arguments the command
could see it. It reports on descriptor 3 of what became of it: ``ready`` when the command starts, ``exit N`` when
it has ended, ``broken TEXT`` when there are no walls to be had.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from workbench_worker.walls import WORKSPACE, Walls, die_with_parent, fork_behind

REPORT_FD = 3


def environment() -> dict[str, str]:
    """The environment of a command; nothing of the worker's own settings."""
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": WORKSPACE, "TMPDIR": "/tmp", "LANG": "C.UTF-8"}


def main() -> int:
    """Run the command; the status of this process says nothing, the report does."""
    die_with_parent()
    specification = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        pid = fork_behind(Walls(**specification["walls"]))
        if pid == 0:
            _first(specification["argv"])
    except OSError as error:
        _report(f"broken {error}")
        os._exit(1)
    os.close(REPORT_FD)
    os.waitpid(pid, 0)
    return 0


def _first(argv: list[str]) -> None:
    """The first process behind the walls: all others end with it."""
    _report("ready")
    command = os.fork()
    if command == 0:
        os.close(REPORT_FD)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvpe(argv[0], argv, environment())
        except OSError as error:
            sys.stderr.write(f"cannot run {argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            _report(f"exit {os.waitstatus_to_exitcode(status)}")
            os._exit(0)


def _report(text: str) -> None:
    os.write(REPORT_FD, text.encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    sys.exit(main())
