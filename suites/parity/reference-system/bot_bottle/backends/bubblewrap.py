"""Namespaces, by the `bwrap` command: one sandboxed process per command, no daemon.

A guest is a folder, `~/.bot-bottle/guests/<identity>/`, with the home and the temporary files of
the bottle; the rest of what it sees is the host's system folders, read-only. The environment is
read by `bwrap` from a descriptor, so that it is neither on a command line nor in `bwrap`'s own
environment, where a variable such as LD_PRELOAD would act outside the sandbox.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bot_bottle import faults
from bot_bottle.backends.base import Bottle, ExecResult, Plan, Spec, closing, source_of
from bot_bottle.copying import copy_into
from bot_bottle.env import ResolvedEnv
from bot_bottle.errors import BackendError, RemediationError, told
from bot_bottle.host import Host
from bot_bottle.run import DESCRIPTOR, Completed

_USERS = {"node": 1000, "root": 0}
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000:node:/home/node:/bin/sh\n"
_BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/node", "LANG": "C.UTF-8"}

#: Guest path → folder below the guest's own. Nothing else of it can be written.
_WRITABLE = {"/home/node": "home", "/tmp": "tmp"}


class BubblewrapBackend:
    """Runs bottles in namespaces of their own."""

    name = "bubblewrap"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._guests = host.root / "guests"

    def prepare(self, spec: Spec) -> Plan:
        """There are no images here: the guest sees the host's programs."""
        guest = str(self._guests / spec.identity)
        return Plan(identity=spec.identity, guest=guest, image=spec.image, env=spec.env)

    @contextmanager
    def launch(self, plan: Plan) -> Iterator[Bottle]:
        folder = Path(plan.guest)
        # What is in it is the guest's, whatever the modes of its files are.
        making = f"make a folder for {plan.identity}"
        with told(BackendError, making):
            folder.mkdir(mode=0o700, parents=True)
        with closing(BubblewrapBottle(self._host, plan.identity, folder, plan.env)) as bottle:
            with told(BackendError, making):
                for name in _WRITABLE.values():
                    (folder / name).mkdir()
                (folder / "passwd").write_text(_PASSWD)
                (folder / "guest.json").write_text(json.dumps({"identity": plan.identity}))
            done = bottle.run(["true"], user="node")
            if done.returncode != 0:
                output = self._host.hidden.taken_out(done.stderr)
                raise BackendError(f"cannot start {plan.identity}: bwrap says: {output}")
            yield bottle

    def enumerate_active(self) -> list[str]:
        return self.leftovers()

    def leftovers(self) -> list[str]:
        if not self._guests.is_dir():
            return []
        return sorted(path.name for path in self._guests.iterdir() if path.is_dir())

    def remove(self, identity: str) -> None:
        _remove(self._guests / identity)

    def apply_image(self, identity: str, image: str) -> None:
        raise RemediationError(
            f"cannot apply {image} to {identity}: bubblewrap has no images. Nothing was changed; "
            "install on the host what the agent needs"
        )


class BubblewrapBottle:
    """One guest folder, and a sandbox over it for every command."""

    def __init__(self, host: Host, identity: str, folder: Path, env: ResolvedEnv) -> None:
        self.identity = identity
        self._host = host
        self._folder = folder
        self._env = env
        self._closed = False

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        return self._argv(argv, user="node", tty=tty)

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        done = self.run(argv, user="node", tty=tty, attached=True)
        return 0 if tty and faults.on("bubblewrap-terminal-status-lost") else done.returncode

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        return ExecResult.of(self.run(["sh", "-c", script], user=user))

    def run(
        self, argv: Sequence[str], *, user: str, tty: bool = False, attached: bool = False
    ) -> Completed:
        """Run one command in a sandbox."""
        if not self._folder.is_dir():
            raise BackendError(f"cannot run in {self.identity}: the guest is gone")
        environ = {"PATH": self._host.environ.get("PATH", _BASE["PATH"])}
        if faults.on("bubblewrap-env-inherited"):
            environ = dict(self._host.environ)
        hidden = self._hidden()
        if attached and faults.on("bubblewrap-agent-without-env"):
            hidden = b"--clearenv\0"
        return self._host.runner.run(
            self._argv(argv, user=user, tty=tty),
            env=environ,
            inherited=hidden,
            attached=attached,
        )

    def cp_in(self, host: Path, guest: str) -> None:
        source = source_of(host)
        root, parts = self._writable(guest)
        if guest.endswith("/") and not source.is_dir():
            parts = [*parts, source.name]
        try:
            copy_into(source, root, parts)
        except OSError as error:
            raise BackendError(
                f"cannot copy {host} to {guest} of {self.identity}: {error.strerror}. A link in "
                "the guest is not followed"
            ) from error

    def close(self) -> None:
        # A bottle that is resumed later has the same folder.
        if not self._closed:
            _remove(self._folder)
        self._closed = True

    def _argv(self, argv: Sequence[str], *, user: str, tty: bool) -> list[str]:
        if user not in _USERS and not faults.on("bubblewrap-unknown-user-is-root"):
            known = ", ".join(_USERS)
            raise BackendError(f"cannot run as {user!r}: bubblewrap has the users {known}")
        command = ["bwrap", "--args", DESCRIPTOR, "--die-with-parent", "--unshare-all"]
        number = str(_USERS.get(user, 0))
        command += ["--share-net", "--uid", number, "--gid", number]
        if not tty:
            command.append("--new-session")
        for folder in _SYSTEM:
            command += ["--ro-bind-try", folder, folder]
        command += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        command += ["--ro-bind-try", "/etc/ssl", "/etc/ssl"]
        command += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
        command += ["--ro-bind", str(self._folder / "passwd"), "/etc/passwd"]
        if faults.on("bubblewrap-binds-the-root"):
            command += ["--ro-bind", "/", "/host"]
        command += ["--proc", "/proc", "--dev", "/dev"]
        for inside, name in _WRITABLE.items():
            command += ["--bind", str(self._folder / name), inside]
        return [*command, "--chdir", "/home/node", "--", *argv]

    def _hidden(self) -> bytes:
        """The arguments that `bwrap` reads from a descriptor."""
        words = [] if faults.on("bubblewrap-env-inherited") else ["--clearenv"]
        for name, value in {**_BASE, **self._env.literals, **self._env.forwarded}.items():
            words += ["--setenv", name, value]
        return b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)

    def _writable(self, guest: str) -> tuple[Path, list[str]]:
        """A folder that the guest has of its own, and the names of what is below it."""
        path = PurePosixPath(guest)
        for inside, name in _WRITABLE.items():
            if path.is_relative_to(inside) and ".." not in path.parts:
                return self._folder / name, list(path.relative_to(inside).parts)
        known = ", ".join(_WRITABLE)
        raise BackendError(f"cannot copy to {guest}: a bubblewrap guest can write to {known} only")


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BackendError(f"cannot remove {folder}: {error.strerror}") from error
