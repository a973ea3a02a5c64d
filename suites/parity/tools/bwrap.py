"""A model of the ``bwrap`` command: one process in namespaces of its own, over folders of the host.

Stand-in for machines without user namespaces; the live lane runs the real one. There is no guest
between two commands: what they share is the folders they bind.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from suites.parity.compare import Call, Reply, UnknownInvocation
from suites.parity.tools.guest import USERS, Guest, Ran, followed

__all__ = ["Bwrap"]

_ONE: Final = frozenset(
    {"--args", "--tmpfs", "--dir", "--proc", "--dev", "--chdir", "--hostname", "--uid", "--gid"}
    | {"--unsetenv", "--perms", "--size", "--remount-ro", "--mqueue", "--lock-file"}
)
_TWO: Final = frozenset(
    {"--bind", "--ro-bind", "--bind-try", "--ro-bind-try", "--dev-bind", "--dev-bind-try"}
    | {"--setenv", "--symlink"}
)
_NONE: Final = frozenset(
    {
        "--clearenv",
        "--unshare-all",
        "--unshare-user",
        "--unshare-user-try",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup",
        "--unshare-cgroup-try",
        "--share-net",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--disable-userns",
    }
)


class Bwrap:
    """The command.

    Attributes:
        ran: every command it ran in a sandbox.
        starts: the kernel lets it make a sandbox.
        mounts: what its commands saw of the host: path inside → folder or file of the host.
    """

    name = "bwrap"

    def __init__(self) -> None:
        self.ran: list[Ran] = []
        self.starts = True
        self.mounts: dict[str, Path] = {}

    def run(self, call: Call) -> Reply:
        """Run one command in a sandbox over the folders it binds."""
        if call.argv[1:] == ("--version",):
            return Reply(stdout=b"bubblewrap 0.8.0\n")
        sandbox = _Sandbox(env=dict(call.env))
        command = sandbox.set_up(list(call.argv[1:]), call)
        for source in sandbox.missing:
            message = f"bwrap: Can't find source path {source}: No such file or directory\n"
            return Reply(returncode=1, stderr=message.encode())
        if not command:
            return Reply(returncode=1, stderr=b"bwrap: No command specified\n")
        if not self.starts:
            return Reply(returncode=1, stderr=b"bwrap: No permissions to create a new namespace\n")
        self.mounts |= {path: each for path, each in sandbox.binds.items() if each is not None}
        self.ran.append(
            Ran(guest="", argv=tuple(command), user=sandbox.user, env=dict(sandbox.env))
        )
        return Guest().run(tuple(command), env=sandbox.env, user=sandbox.user, files=sandbox)


@dataclass(slots=True, kw_only=True)
class _Sandbox:
    """What the flags of one command add up to.

    Attributes:
        env: of the command.
        binds: path inside → path on the host, ``None`` for what is empty and in memory.
        read_only: paths inside that nothing can be written below.
        missing: paths that were to be bound and are not there.
        user: who the command runs as.
    """

    env: dict[str, str]
    binds: dict[str, Path | None] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)
    missing: list[Path] = field(default_factory=list)
    user: str = "root"

    def set_up(self, words: list[str], call: Call) -> list[str]:
        """Take the flags; what is left is the command."""
        while words and words[0].startswith("--"):
            flag = words.pop(0)
            if flag == "--":
                break
            taken = [words.pop(0) for _ in range(_arity(flag, call)) if words]
            self._take(flag, taken, call)
        return words

    def _take(self, flag: str, values: list[str], call: Call) -> None:
        match flag, values:
            case "--args", [_]:
                rest = self.set_up(
                    call.inherited.decode(errors="surrogateescape").split("\0")[:-1], call
                )
                if rest:
                    message = f"bwrap: arguments from a descriptor hold a command: {rest}"
                    raise UnknownInvocation(message)
            case "--clearenv", []:
                self.env.clear()
            case "--setenv", [name, value]:
                self.env[name] = value
            case "--unsetenv", [name]:
                self.env.pop(name, None)
            case "--uid", [uid]:
                self.user = USERS.get(uid, uid)
            case "--tmpfs", [target]:
                self.binds[target] = None
            case _, [source, target] if "bind" in flag:
                self._bind(Path(source), target, is_needed=not flag.endswith("-try"))
                if flag.startswith("--ro-"):
                    self.read_only.add(target)

    def _bind(self, source: Path, target: str, *, is_needed: bool) -> None:
        if source.exists() or _of_the_host(source):
            self.binds[target] = source
        elif is_needed:
            self.missing.append(source)

    def read(self, path: str) -> bytes | None:
        """A file as the command sees it."""
        file = self._file(path)
        return None if file is None else file.read_bytes()

    def mode(self, path: str) -> int | None:
        """Its permissions."""
        file = self._file(path)
        return None if file is None else stat.S_IMODE(file.stat().st_mode)

    def link(self, target: str, path: str) -> bool:
        """Make a symbolic link, which means nothing outside the sandbox."""
        above = followed(str(PurePosixPath(path).parent), self._link_at)
        if above is None or self._holder(above) in {None, *self.read_only}:
            return False
        file = self._source(above / PurePosixPath(path).name)
        if file is None or file.exists() or file.is_symlink() or not file.parent.is_dir():
            return False
        file.symlink_to(target)
        return True

    def _file(self, path: str) -> Path | None:
        place = followed(path, self._link_at)
        file = None if place is None else self._source(place)
        return file if file is not None and file.is_file() else None

    def _link_at(self, place: PurePosixPath) -> str | None:
        file = self._source(place)
        return str(file.readlink()) if file is not None and file.is_symlink() else None

    def _holder(self, place: PurePosixPath) -> str | None:
        holders = [target for target in self.binds if place.is_relative_to(target)]
        return max(holders, key=len) if holders else None

    def _source(self, place: PurePosixPath) -> Path | None:
        """Where on the host lies what a place without links holds; ``None`` for nowhere."""
        holder = self._holder(place)
        source = None if holder is None else self.binds[holder]
        return None if holder is None or source is None else source / place.relative_to(holder)


def _arity(flag: str, call: Call) -> int:
    """How many values a flag takes.

    Raises:
        UnknownInvocation: there is no such flag.
    """
    for flags, values in ((_NONE, 0), (_ONE, 1), (_TWO, 2)):
        if flag in flags:
            return values
    message = f"bwrap has no flag {flag} here: {call}"
    raise UnknownInvocation(message)


def _of_the_host(source: Path) -> bool:
    """System folders, which a faked file system need not have."""
    return source.parts[:2] in {
        ("/", name) for name in ("usr", "bin", "lib", "lib64", "sbin", "etc")
    }
