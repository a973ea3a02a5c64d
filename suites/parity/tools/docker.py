"""A model of the ``docker`` command: containers that exist only here.

Stand-in for an engine that a bare machine does not have. Its exit statuses are those of
docker 20.10 and 28, its words those of one of the two where they differ; the live lane runs the
same scenarios on a real engine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from suites.parity.compare import Call, Reply, UnknownInvocation
from suites.parity.tools.flags import SWITCH, VALUE, Flags, mounts_of, parse
from suites.parity.tools.guest import USERS, Guest, Ran

__all__ = ["Docker", "image_environment"]

_ENV: Final = {"-e": ("env", VALUE), "--env": ("env", VALUE), "--env-file": ("env-file", VALUE)}
_TTY: Final = {
    "-i": ("interactive", SWITCH),
    "--interactive": ("interactive", SWITCH),
    "-t": ("tty", SWITCH),
    "--tty": ("tty", SWITCH),
    "-d": ("detach", SWITCH),
    "--detach": ("detach", SWITCH),
    "-u": ("user", VALUE),
    "--user": ("user", VALUE),
    "-w": ("workdir", VALUE),
    "--workdir": ("workdir", VALUE),
    **_ENV,
}
_RUN: Final = {
    **_TTY,
    "--name": ("name", VALUE),
    "-l": ("label", VALUE),
    "--label": ("label", VALUE),
    "--rm": ("rm", SWITCH),
    "--init": ("init", SWITCH),
    "-h": ("hostname", VALUE),
    "--hostname": ("hostname", VALUE),
    "-v": ("volume", VALUE),
    "--volume": ("volume", VALUE),
    "--mount": ("mount", VALUE),
    "--network": ("network", VALUE),
    "--pull": ("pull", VALUE),
    "--entrypoint": ("entrypoint", VALUE),
    "--cap-drop": ("cap-drop", VALUE),
    "--security-opt": ("security-opt", VALUE),
}
_FORCE: Final = {
    "-f": ("force", SWITCH),
    "--force": ("force", SWITCH),
    "-v": ("volumes", SWITCH),
    "--volumes": ("volumes", SWITCH),
}
_PS: Final = {
    "-a": ("all", SWITCH),
    "--all": ("all", SWITCH),
    "-q": ("quiet", SWITCH),
    "--quiet": ("quiet", SWITCH),
    "--no-trunc": ("no-trunc", SWITCH),
    "-f": ("filter", VALUE),
    "--filter": ("filter", VALUE),
    "--format": ("format", VALUE),
}
_FORMAT: Final = {"-f": ("format", VALUE), "--format": ("format", VALUE)}
_STOP: Final = {"-t": ("time", VALUE), "--time": ("time", VALUE)}
#: The docker CLI reads an env file line by line into a buffer of this size.
_LINE_BYTES: Final = 65_536
_STATUS: Final = {
    "running": "Up 1 second",
    "exited": "Exited (137) 1 second ago",
    "created": "Created",
}
_FIELD: Final = re.compile(r"\{\{\s*(?:json\s+)?\.(\w+)?(?:\s+\"([^\"]*)\")?\s*\}\}")


def image_environment(image: str) -> dict[str, str]:
    """The variables that an image sets: no two have the same value, and one is of this image alone."""
    mark = hashlib.sha256(image.encode()).hexdigest()[:6]
    return {
        "PATH": f"/opt/{mark}/bin:/usr/local/bin:/usr/bin:/bin",
        "IMAGE_VERSION": mark,
        f"ONLY_OF_{mark.upper()}": "1",
    }


class Docker:
    """An engine with containers and images.

    Args:
        images: the images it has.
        lacking: more of them, that lack something: image → ``sleep``, ``sh`` or the user ``node``.
        context: what ``DOCKER_CONTEXT`` must say; another engine has none of these containers.

    Attributes:
        guests: name → container.
        env_files: every env file it read: mode bits and contents.
        ran: every command it ran in a container.
        starts: a container can be started; else it is created, and stays so.
    """

    name = "docker"

    def __init__(
        self,
        images: tuple[str, ...],
        *,
        lacking: Mapping[str, str] | None = None,
        context: str = "",
    ) -> None:
        self.lacking = dict(lacking or {})
        self.images = {*images, *self.lacking}
        self.starts = True
        self.context = context
        self.ran: list[Ran] = []
        self.guests: dict[str, Guest] = {}
        self.env_files: list[tuple[int, str]] = []
        self._ids: dict[str, str] = {}

    def run(self, call: Call) -> Reply:  # noqa: C901, PLR0911, PLR0912 - one row per command
        """Answer one ``docker …`` command."""
        if call.env.get("DOCKER_CONTEXT", "") != self.context:
            found = call.env.get("DOCKER_CONTEXT", "default")
            return _says(f"Cannot connect to the Docker daemon of the context {found}", 1)
        match call.argv[1:]:
            case ("run", *rest):
                return self._run(rest, call)
            case ("exec", *rest):
                return self._exec(rest, call)
            case ("cp", source, target) if source[:1] != "-" and (
                source[:1] == "/" or ":" not in source
            ):
                return self._copy(source, target)
            case ("rm", *rest) | ("container", "rm", *rest):
                return self._each(rest, _FORCE, self._remove, command="docker rm")
            case ("stop", *rest):
                return self._each(rest, _STOP, self._stop, command="docker stop")
            case ("kill", *rest):
                return self._each(rest, {}, self._kill, command="docker kill")
            case ("start", *rest):
                return self._each(rest, {}, self._start, command="docker start")
            case ("rename", old, new):
                return self._rename(old, new)
            case ("ps", *rest) | ("container", "ls" | "list", *rest):
                return self._ps(rest)
            case ("image", "inspect", *rest):
                return self._image(rest)
            case ("inspect", *rest) | ("container", "inspect", *rest):
                return self._inspect(rest)
            case ("version" | "info" | "--version", *_):
                return Reply(stdout=b"20.10.24\n")
        message = f"docker has no such command here: {call}"
        raise UnknownInvocation(message)

    def adopt(self, name: str, guest: Guest) -> None:
        """A container that the launcher did not make."""
        self.guests[name] = guest
        self._ids[name] = secrets.token_hex(32)

    def _run(self, rest: list[str], call: Call) -> Reply:
        flags = parse(rest, _RUN, command="docker run")
        if not flags.rest:
            return _says('"docker run" requires at least 1 argument.', 125)
        image, *command = flags.rest
        if not flags.has("detach"):
            message = f"a container in the foreground: {call}"
            raise UnknownInvocation(message)
        if image not in self.images:
            return _says(f"Unable to find image '{image}' locally", 125)
        name = flags.one("name") or secrets.token_hex(4)
        if name in self.guests:
            return _daemon(f'Conflict. The container name "/{name}" is already in use.', 125)
        env = self._environment(flags, call.env, {**image_environment(image), "HOME": "/root"})
        if isinstance(env, Reply):
            return env
        if command != ["sleep", "infinity"]:
            message = f"a container that does not stay: {call}"
            raise UnknownInvocation(message)
        labels = dict(label.partition("=")[::2] for label in flags.all("label"))
        if "" in labels:
            return _says(f"invalid label '={labels['']}': empty name", 125)
        guest = Guest(env=env, image=image, labels=labels, is_running=False, has_run=False)
        guest.mounts = mounts_of(flags)
        self.adopt(name, guest)
        started = self._start(name, flags)
        if not started.returncode:
            started = Reply(stdout=f"{self._ids[name]}\n".encode())
        # One that could not be started is there all the same.
        return dataclasses.replace(started, returncode=127 if started.returncode else 0)

    def _environment(
        self, flags: Flags, host: Mapping[str, str], base: Mapping[str, str]
    ) -> dict[str, str] | Reply:
        """Env files first, then ``-e``; a bare name takes the value from docker's own environment."""
        env = dict(base)
        entries: list[str] = []
        for path in map(Path, flags.all("env-file")):
            lines = self._read_env_file(path)
            if isinstance(lines, Reply):
                return lines
            entries += lines
        for entry in [*entries, *flags.all("env")]:
            name, equals, value = entry.partition("=")
            if not name:
                return _says("invalid environment variable: " + entry, 125)
            if equals:
                env[name] = value
            elif name in host:
                env[name] = host[name]
        return env

    def _read_env_file(self, path: Path) -> list[str] | Reply:
        """As the docker CLI does: no quotes, no escapes; blank lines and comments mean nothing."""
        try:
            text = path.read_bytes().decode()
            self.env_files.append((stat.S_IMODE(path.stat().st_mode), text))
        except OSError:
            return _says(f"open {path}: no such file or directory", 125)
        except UnicodeDecodeError:
            return _says(f"env file {path} contains invalid utf8 bytes", 125)
        entries = []
        for line in text.split("\n"):
            if len(line.encode()) >= _LINE_BYTES:
                return _says("bufio.Scanner: token too long", 125)
            trimmed = line.lstrip().removesuffix("\r")
            if not trimmed or trimmed.startswith("#"):
                continue
            name = trimmed.partition("=")[0]
            if not name or any(character.isspace() for character in name):
                return _says(f"poorly formatted environment: variable '{name}'", 125)
            entries.append(trimmed)
        return entries

    def _exec(self, rest: list[str], call: Call) -> Reply:
        flags = parse(rest, _TTY, command="docker exec")
        name, *command = flags.rest
        guest = self._guest(name)
        if guest is None:
            return _daemon(f"No such container: {name}", 1)
        if not guest.is_running:
            return _daemon(f"Container {self._ids[name]} is not running", 1)
        env = self._environment(flags, call.env, {})
        if isinstance(env, Reply):
            return env
        # An empty user is that of the image.
        user = USERS.get(flags.one("user"), flags.one("user")) or "root"
        lacks = self.lacking.get(guest.image)
        named = user.partition(":")[0]
        if named == lacks or not (named in USERS.values() or named.isdecimal()):
            message = f"unable to find user {user}: no matching entries in passwd file\n"
            return Reply(returncode=126, stderr=message.encode())
        if lacks is not None and PurePosixPath(command[0]).name == lacks:
            return _says(f'exec: "{command[0]}": executable file not found in $PATH', 127)
        named = {entry.partition("=")[0] for entry in flags.all("env")}
        given = {key: value for key, value in env.items() if key in named}
        self.ran.append(
            Ran(
                guest=name,
                argv=tuple(command),
                user=user,
                tty=flags.has("tty"),
                interactive=flags.has("interactive"),
                env={**guest.env, **given},
            )
        )
        return guest.run(tuple(command), env=given, user=user)

    def _copy(self, source: str, target: str) -> Reply:
        name, colon, path = target.partition(":")
        if not colon:
            message = f"docker cp out of a container: {source} {target}"
            raise UnknownInvocation(message)
        guest = self._guest(name)
        if guest is None:
            return _daemon(f"No such container: {name}", 1)
        return copy_tree(Path(source), guest, path, command="lstat")

    def _each(
        self,
        rest: list[str],
        known: dict[str, tuple[str, str]],
        act: Callable[[str, Flags], Reply],
        *,
        command: str,
    ) -> Reply:
        flags = parse(rest, known, command=command, interspersed=True)
        replies = [act(name, flags) for name in flags.rest]
        if not replies:
            return _says(f'"{command}" requires at least 1 argument.', 1)
        return Reply(
            returncode=max(reply.returncode for reply in replies),
            stdout=b"".join(reply.stdout for reply in replies),
            stderr=b"".join(reply.stderr for reply in replies),
        )

    def _remove(self, name: str, flags: Flags) -> Reply:
        guest = self._guest(name)
        if guest is None:
            # With --force that is no failure, though it is printed all the same.
            message = f"Error: No such container: {name}\n".encode()
            return Reply(returncode=0 if flags.has("force") else 1, stderr=message)
        if guest.is_running and not flags.has("force"):
            return _daemon(f"You cannot remove a running container {self._ids[name]}.", 1)
        self.guests = {key: value for key, value in self.guests.items() if value is not guest}
        return Reply(stdout=f"{name}\n".encode())

    def _stop(self, name: str, _flags: Flags) -> Reply:
        guest = self._guest(name)
        if guest is None:
            return _daemon(f"No such container: {name}", 1)
        guest.is_running = False
        return Reply(stdout=f"{name}\n".encode())

    def _kill(self, name: str, _flags: Flags) -> Reply:
        guest = self._guest(name)
        if guest is None:
            return _daemon(f"Cannot kill container: {name}: No such container: {name}", 1)
        if not guest.is_running:
            message = f"Container {self._ids[name]} is not running"
            return _daemon(f"Cannot kill container: {name}: {message}", 1)
        guest.is_running = False
        return Reply(stdout=f"{name}\n".encode())

    def _start(self, name: str, _flags: Flags) -> Reply:
        guest = self._guest(name)
        if guest is None:
            message = f"No such container: {name}\nError: failed to start containers: {name}"
            return _daemon(message, 1)
        if not self.starts:
            return _daemon("failed to create task for container: no space left on device", 1)
        if self.lacking.get(guest.image) == "sleep":
            return _daemon('exec: "sleep": executable file not found in $PATH', 1)
        guest.start()
        return Reply(stdout=f"{name}\n".encode())

    def _rename(self, old: str, new: str) -> Reply:
        failed = f"\nError: failed to rename container named {old}"
        if self._guest(old) is None:
            return _daemon(f"No such container: {old}{failed}", 1)
        if new in self.guests:
            conflict = f'Conflict. The container name "/{new}" is already in use.'
            return _daemon(f"Error when allocating new name: {conflict}{failed}", 1)
        self.guests[new] = self.guests.pop(old)
        self._ids[new] = self._ids.pop(old)
        return Reply()

    def _ps(self, rest: list[str]) -> Reply:
        flags = parse(rest, _PS, command="docker ps", interspersed=True)
        lines = []
        for name, guest in self.guests.items():
            if not (guest.is_running or flags.has("all")):
                continue
            if all(_passes(name, guest, each) for each in flags.all("filter")):
                lines.append(self._line(name, guest, flags))
        return Reply(stdout="".join(f"{line}\n" for line in lines).encode())

    def _line(self, name: str, guest: Guest, flags: Flags) -> str:
        fields = {
            "ID": self._ids[name][:12],
            "Names": name,
            "Image": guest.image,
            "State": guest.state("exited"),
            "Status": _STATUS[guest.state("exited")],
            "Labels": ",".join(f"{key}={value}" for key, value in guest.labels.items()),
        }
        if flags.has("quiet"):
            return fields["ID"]
        template = flags.one("format", "{{.ID}}\t{{.Image}}\t{{.Status}}\t{{.Names}}")
        if template in ("json", "{{json .}}"):
            return json.dumps(fields)

        def filled(match: re.Match[str]) -> str:
            if match[1] == "Label":
                return guest.labels.get(match[2], "")
            if match[1] not in fields:
                message = f"docker ps has no field {match[0]} here"
                raise UnknownInvocation(message)
            return fields[match[1]]

        return _FIELD.sub(filled, template.replace("\\t", "\t").replace("\\n", "\n"))

    def _image(self, rest: list[str]) -> Reply:
        flags = parse(rest, _FORMAT, command="docker image inspect", interspersed=True)
        for image in flags.rest:
            if image not in self.images:
                return Reply(
                    returncode=1, stdout=b"[]\n", stderr=f"Error: No such image: {image}\n".encode()
                )
        found = [
            {
                "RepoTags": [image],
                "Config": {"Env": [f"{k}={v}" for k, v in image_environment(image).items()]},
            }
            for image in flags.rest
        ]
        return Reply(stdout=json.dumps(found).encode())

    def _inspect(self, rest: list[str]) -> Reply:
        flags = parse(rest, _FORMAT, command="docker inspect", interspersed=True)
        found = []
        for name in flags.rest:
            guest = self._guest(name)
            if guest is None:
                message = f"Error: No such object: {name}\n"
                return Reply(returncode=1, stdout=b"[]\n", stderr=message.encode())
            state = {
                "Running": guest.is_running,
                "Status": guest.state("exited"),
            }
            found.append(
                {
                    "Id": self._ids[name],
                    "Name": f"/{name}",
                    "State": state,
                    "Config": {
                        "Image": guest.image,
                        "Labels": guest.labels,
                        "Env": [f"{key}={value}" for key, value in guest.env.items()],
                    },
                }
            )
        match flags.one("format"):
            case "":
                return Reply(stdout=json.dumps(found).encode())
            case "{{.State.Running}}":
                lines = [str(each["State"]["Running"]).lower() for each in found]
                return Reply(stdout="".join(f"{line}\n" for line in lines).encode())
            case template:
                message = f"docker inspect with the template {template}"
                raise UnknownInvocation(message)

    def _guest(self, name: str) -> Guest | None:
        if name in self.guests:
            return self.guests[name]
        known = [key for key, id_ in self._ids.items() if name and id_.startswith(name)]
        return self.guests.get(known[0]) if known else None


def copy_tree(source: Path, guest: Guest, path: str, *, command: str) -> Reply:
    """Copy a file or a folder into a guest, by the links of the guest; those of a folder are kept.

    A file whose target ends in ``/`` goes into that folder under its own name.
    """
    if not source.exists():
        message = f"{command} {source}: no such file or directory\n"
        return Reply(returncode=1, stderr=message.encode())
    files = [source] if source.is_file() else sorted(source.rglob("*"))
    for file in files:
        inside = PurePosixPath(*file.relative_to(source).parts)
        if source.is_file() and path.endswith("/"):
            inside = PurePosixPath(source.name)
        target = guest.place(str(PurePosixPath(path) / inside))
        if file.is_symlink() and file != source:
            guest.files.pop(target, None)
            guest.links[target] = str(file.readlink())
        elif file.is_file():
            guest.files[target] = file.read_bytes()
            guest.modes[target] = stat.S_IMODE(file.stat().st_mode)
    return Reply()


def _passes(name: str, guest: Guest, condition: str) -> bool:
    key, _, value = condition.partition("=")
    match key:
        case "label":
            label, equals, wanted = value.partition("=")
            return label in guest.labels and (not equals or guest.labels[label] == wanted)
        case "name":
            # An expression that may match anywhere in the name, not the name itself.
            return re.search(value, f"/{name}") is not None or re.search(value, name) is not None
        case "status":
            return value == guest.state("exited")
    message = f"docker ps has no filter {condition} here"
    raise UnknownInvocation(message)


def _says(text: str, returncode: int) -> Reply:
    return Reply(returncode=returncode, stderr=f"docker: {text}\n".encode())


def _daemon(text: str, returncode: int) -> Reply:
    return Reply(returncode=returncode, stderr=f"Error response from daemon: {text}\n".encode())
