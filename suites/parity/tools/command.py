"""The models of the tools as commands on a PATH, for a launcher that runs commands itself.

Each command is a few lines of Python that come here. It reads all the input it is given. What the tools remember lies in one file, which
is locked while a command runs; so does a line for each call. Two scripts are more than a model: one
that stays until it is ended, and one that is ended by a signal itself.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from suites.parity.compare import Call, Tool, UnknownInvocation
from suites.parity.tools.docker import Docker
from suites.parity.tools.smolvm import Smolvm

__all__ = ["DIES", "STAYS", "Commands", "main"]

#: A script during which the command that runs it does not end by itself; its first line is "here".
STAYS: Final = "echo here; exec sleep infinity"

#: A script whose command is ended by SIGTERM, in the middle of its output.
DIES: Final = "echo half; kill -TERM $PPID"

#: As a shell and the tools have it for a command that is none.
_NO_SUCH_COMMAND: Final = 96


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands in a folder.

    Attributes:
        folder: what a PATH names; holds the commands and what the tools remember.
    """

    folder: Path

    @classmethod
    def made(cls, folder: Path, *, images: tuple[str, ...]) -> Commands:
        """Put the commands into a new folder."""
        folder.mkdir(parents=True)
        tools: dict[str, Tool] = {"docker": Docker(images=images), "smolvm": Smolvm()}
        (folder / "tools.pickle").write_bytes(pickle.dumps(tools))
        root = Path(__file__).parents[3]
        for name in tools:
            command = folder / name
            command.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
                f"from suites.parity.tools.command import main\nmain({str(folder)!r}, {name!r})\n"
            )
            command.chmod(0o755)
        return cls(folder)

    def tools(self) -> dict[str, Any]:
        """The tools as they are now."""
        # This test wrote it.
        content: dict[str, Any] = pickle.loads((self.folder / "tools.pickle").read_bytes())
        return content

    def guests(self) -> dict[str, Any]:
        """Every guest there is: its name → the guest."""
        return {name: each for tool in self.tools().values() for name, each in tool.guests.items()}

    def calls(self) -> list[dict[str, Any]]:
        """Every call: ``argv``, ``env``, ``cwd``, ``pid``, ``tty`` and ``stdin``."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(folder: str, name: str) -> None:
    """Run one command on the model of its tool, and end as it ends."""
    here = Path(folder)
    call = Call(argv=(name, *sys.argv[1:]), env=dict(os.environ))
    given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    with (here / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        row = {
            "argv": list(call.argv),
            "env": dict(call.env),
            "cwd": str(Path.cwd()),
            "pid": os.getpid(),
            "tty": sys.stdin.isatty(),
            "stdin": given.decode(errors="surrogateescape"),
        }
        with (here / "calls.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        if STAYS in call.argv or DIES in call.argv:
            lock.close()
            os.write(1, b"here\n" if STAYS in call.argv else b"half\n")
            if DIES in call.argv:
                os.kill(os.getpid(), signal.SIGTERM)
            while True:
                signal.pause()
        tools = pickle.loads((here / "tools.pickle").read_bytes())
        try:
            reply = tools[name].run(call)
        except UnknownInvocation as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(_NO_SUCH_COMMAND)
        (here / "tools.pickle").write_bytes(pickle.dumps(tools))
    sys.stdout.buffer.write(reply.stdout)
    sys.stderr.buffer.write(reply.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(reply.returncode)
