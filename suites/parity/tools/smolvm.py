"""A model of the ``smolvm`` command (1.0.4): micro-VMs that exist only here.

Stand-in for a machine monitor that needs /dev/kvm. What it accepts is what contract "bottle" lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from suites.parity.compare import Call, Reply, UnknownInvocation
from suites.parity.tools.docker import copy_tree
from suites.parity.tools.flags import SWITCH, VALUE, Flags, mounts_of, parse
from suites.parity.tools.guest import USERS, Guest, Ran

__all__ = ["Smolvm"]

_ENV: Final = {
    "-e": ("env", VALUE),
    "--env": ("env", VALUE),
    "--secret-env": ("secret-env", VALUE),
    "--name": ("name", VALUE),
}
_CREATE: Final = {
    **_ENV,
    "--image": ("image", VALUE),
    "--net": ("net", SWITCH),
    "--cpus": ("cpus", VALUE),
    "--mem": ("mem", VALUE),
    "-v": ("volume", VALUE),
    "--volume": ("volume", VALUE),
}
_EXEC: Final = {**_ENV, "-i": ("interactive", SWITCH), "-t": ("tty", SWITCH)}
_NAME: Final = {"--name": ("name", VALUE), "-f": ("force", SWITCH), "--force": ("force", SWITCH)}


class Smolvm:
    """A machine monitor.

    Attributes:
        guests: name → machine.
        homes: what ``HOME`` may be, where a world says so; without it ``smolvm`` finds no machine.
        starts: a machine can be started; else it is created, and stays so.
        ran: every command it ran in a machine.
    """

    name = "smolvm"

    def __init__(self) -> None:
        self.homes: set[str] = set()
        self.starts = True
        self.ran: list[Ran] = []
        self.guests: dict[str, Guest] = {}

    def run(self, call: Call) -> Reply:  # noqa: PLR0911 - one row per command
        """Answer one ``smolvm …`` command."""
        if self.homes and call.env.get("HOME") not in self.homes:
            return _says(f"no machines are kept in the home {call.env.get('HOME')}")
        match call.argv[1:]:
            case ("--version",):
                return Reply(stdout=b"smolvm 1.0.4\n")
            case ("machine", "create", *rest):
                return self._create(parse(rest, _CREATE, command="smolvm machine create"), call)
            case ("machine", "start" | "stop" as command, *rest):
                return self._power(parse(rest, _NAME, command=f"smolvm machine {command}"), command)
            case ("machine", "exec", *rest):
                return self._exec(parse(rest, _EXEC, command="smolvm machine exec"), call)
            case ("machine", "cp", source, target) if source[:1] != "-" and (
                source[:1] == "/" or ":" not in source
            ):
                return self._copy(source, target)
            case ("machine", "delete", *rest):
                return self._delete(parse(rest, _NAME, command="smolvm machine delete"))
            case ("machine", "list" | "ls", *rest) if set(rest) <= {"--json", "-a", "--all"}:
                return self._list(as_json="--json" in rest)
        message = f"smolvm has no such command here: {call}"
        raise UnknownInvocation(message)

    def _create(self, flags: Flags, call: Call) -> Reply:
        name = _name(flags, call)
        if name in self.guests:
            return _says(f"machine '{name}' already exists")
        env = _environment(flags, call.env)
        if isinstance(env, Reply):
            return env
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
        self.guests[name] = Guest(
            env={**base, **env}, image=flags.one("image"), is_running=False, has_run=False
        )
        self.guests[name].mounts = mounts_of(flags)
        return Reply(stdout=f"{name}\n".encode())

    def _power(self, flags: Flags, command: str) -> Reply:
        name = flags.one("name")
        if name not in self.guests:
            return _says(f"machine '{name}' not found")
        if command == "stop":
            self.guests[name].is_running = False
        elif self.starts:
            self.guests[name].start()
        else:
            return _says(f"machine '{name}' cannot be started: no space left on device")
        return Reply()

    def _exec(self, flags: Flags, call: Call) -> Reply:
        name = _name(flags, call)
        if name not in self.guests:
            return _says(f"machine '{name}' not found")
        if not self.guests[name].is_running:
            return _says(f"machine '{name}' is not running")
        env = _environment(flags, call.env)
        if isinstance(env, Reply):
            return env
        # The machine runs as root, there is no user flag: another user takes runuser.
        user, command = "root", flags.rest
        match command:
            case ("runuser", "-u", who, "--", *rest):
                if who not in USERS.values():
                    message = f"runuser: user {who} does not exist\n"
                    return Reply(returncode=1, stderr=message.encode())
                user, command = who, tuple(rest)
        self.ran.append(
            Ran(
                guest=name,
                argv=tuple(command),
                user=user,
                tty=flags.has("tty"),
                interactive=flags.has("interactive"),
                env={**self.guests[name].env, **env},
            )
        )
        return self.guests[name].run(command, env=env, user=user)

    def _copy(self, source: str, target: str) -> Reply:
        name, colon, path = target.partition(":")
        if not colon:
            message = f"smolvm machine cp out of a machine: {source} {target}"
            raise UnknownInvocation(message)
        if name not in self.guests:
            return _says(f"machine '{name}' not found")
        return copy_tree(Path(source), self.guests[name], path, command="cannot copy")

    def _delete(self, flags: Flags) -> Reply:
        name = flags.one("name")
        if name not in self.guests:
            return _says(f"machine '{name}' not found")
        if not flags.has("force"):
            message = "smolvm machine delete asks on the terminal unless -f is given"
            raise UnknownInvocation(message)
        del self.guests[name]
        return Reply()

    def _list(self, *, as_json: bool) -> Reply:
        rows = [
            {"name": name, "state": guest.state("stopped")} for name, guest in self.guests.items()
        ]
        text = json.dumps(rows) if as_json else "\n".join(row["name"] for row in rows)
        return Reply(stdout=f"{text}\n".encode())


def _environment(flags: Flags, host: Mapping[str, str]) -> dict[str, str] | Reply:
    env: dict[str, str] = {}
    for entry in flags.all("env"):
        name, equals, value = entry.partition("=")
        if not name or not equals:
            return _says(f"invalid value '{entry}' for '-e': expected KEY=VALUE")
        env[name] = value
    for entry in flags.all("secret-env"):
        name, equals, source = entry.partition("=")
        if not name or not equals or not source:
            return _says(f"invalid value '{entry}' for '--secret-env': expected GUEST=HOST")
        if source not in host:
            return _says(f"host environment variable '{source}' is not set")
        env[name] = host[source]
    return env


def _name(flags: Flags, call: Call) -> str:
    if not flags.one("name"):
        message = f"smolvm needs --name: {call}"
        raise UnknownInvocation(message)
    return flags.one("name")


def _says(text: str) -> Reply:
    return Reply(returncode=1, stderr=f"error: {text}\n".encode())
