"""Containers, by the `docker` command.

Literals go through an env file that only its owner reads, typed and host values through docker's
own environment by bare `-e NAME`, so that no process list shows either. What an env file cannot
hold goes the other way, and so does what would steer docker itself.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bot_bottle import faults
from bot_bottle.backends.base import Bottle, ExecResult, Plan, Spec, closing, source_of
from bot_bottle.env import ResolvedEnv
from bot_bottle.errors import BackendError, EnvError, RemediationError, told
from bot_bottle.host import Host
from bot_bottle.run import checked

_PREFIX = "bot-bottle-"
_IDENTITY = "bot-bottle.identity"
_HOME = "bot-bottle.home"

#: Names of the variables that the bottle was given: those of its image are not among them.
_VARIABLES = "bot-bottle.variables"

#: The folder of env files, below the launcher's own. What is there after a launch was left by one
#: that was killed.
ENV_FILES = "env-files"

#: Variables that change what docker, or any program, does.
_STEERING = re.compile(
    r"PATH|HOME|TMPDIR|USER|SHELL|NO_COLOR|(?:LD|DOCKER|BUILDKIT|COMPOSE|XDG|SSL|OTEL)_.*|"
    r"GO(?:DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|COVERDIR|RACE)|(?:HTTPS?|NO|ALL)_PROXY",
    re.IGNORECASE,
)

#: The docker CLI reads an env file line by line, with a buffer of 64 KiB.
_LINE_BYTES = 60_000


class DockerBackend:
    """Runs bottles as containers."""

    name = "docker"

    def __init__(self, host: Host) -> None:
        self._host = host

    def prepare(self, spec: Spec) -> Plan:
        return Plan(
            identity=spec.identity,
            guest=_PREFIX + spec.identity,
            image=spec.image,
            env=spec.env,
        )

    @contextmanager
    def launch(self, plan: Plan) -> Iterator[Bottle]:
        self._run(plan.guest, plan.identity, plan.image, plan.env)
        bottle = DockerBottle(self._host, plan.identity, plan.guest)
        if faults.on("docker-block-that-fails-leaves-guest"):
            yield bottle
            bottle.close()
            return
        with closing(bottle):
            yield bottle

    def enumerate_active(self) -> list[str]:
        return self._identities()

    def leftovers(self) -> list[str]:
        return self._identities("-a")

    def remove(self, identity: str) -> None:
        for name, whose in self._containers("-a"):
            if whose == identity or faults.on("docker-cleanup-removes-foreign"):
                self._docker(["rm", "-f", name], f"remove container {name}")

    def apply_image(self, identity: str, image: str) -> None:
        """Start the new container beside the old one, then let them change places."""
        name = _PREFIX + identity
        new, old = f"{name}-new", f"{name}-old"
        if not faults.on("docker-remediation-removes-first"):
            self._or_refuse(["image", "inspect", image], f"find image {image}")
        described = self._or_refuse(["inspect", name], f"inspect {name}")
        if faults.on("docker-prints-what-it-inspects"):
            print(described.decode(errors="replace"), file=sys.stderr)
        env = _env_of(described)
        self._host.hidden.add(env.forwarded.values())
        if faults.on("docker-remediation-removes-first"):
            self._docker(["rm", "-f", name], f"remove {name}")
            self._run(name, identity, image, env)
            return
        undo: list[list[str]] = []
        try:
            # One that fails removes what it made; what has its name may be another's.
            self._run(new, identity, image, env)
            undo.append(["rm", "-f", new])
            self._docker(["exec", "-u", "node", new, "sh", "-c", "id -un"], f"run {image}")
            undo.insert(0, ["rename", old, name])
            with suppress(*[BackendError] if faults.on("docker-approval-revives") else []):
                self._docker(["rename", name, old], f"set {name} aside")
            undo.insert(0, ["rename", name, new])
            self._docker(["rename", new, name], f"put {image} in its place")
            self._docker(["rm", "-f", old], f"remove the old {name}")
        except BackendError as error:
            for step in undo:
                self._host.runner.run(["docker", *step], env=dict(self._host.environ))
            raise RemediationError(
                f"cannot apply {image} to {identity}: {error}. The bottle is as it was"
            ) from error

    def _run(self, name: str, identity: str, image: str, env: ResolvedEnv) -> None:
        in_file, bare = split(env)
        argv = ["run", "-d", "--name", name]
        argv += ["--label", f"{_IDENTITY}={identity}", "--label", f"{_HOME}={self._host.owner}"]
        argv += ["--label", f"{_VARIABLES}={' '.join([*env.literals, *env.forwarded])}"]
        if faults.on("docker-mounts-the-home"):
            argv += ["-v", f"{self._host.home}:/host"]
        inherited = dict(self._host.environ)
        try:
            with _env_file(self._host.root, identity, in_file) as file:
                argv += ["--env-file", str(file)]
                if faults.on("docker-forwards-the-agents-socket"):
                    argv += ["-e", "SSH_AUTH_SOCK"]
                for variable, value in bare.items():
                    if faults.on("docker-secret-on-argv") and variable in env.forwarded:
                        argv += ["-e", f"{variable}={value}"]
                        continue
                    argv += ["-e", variable]
                    inherited[variable] = value
                argv += [image, "sleep", "infinity"]
                self._docker(argv, f"start {name}", env=inherited)
        except BackendError:
            # Docker leaves a container behind that it created but could not start. If the name was
            # taken, the container is another's.
            with suppress(BackendError):
                if (name, identity) in self._containers("-a"):
                    self._docker(["rm", "-f", name], f"remove container {name}")
            raise

    def _identities(self, *flags: str) -> list[str]:
        """Each once: a bottle whose image is being changed has two containers."""
        rows = self._containers(*flags)
        # Anything else is no answer of docker's.
        if not faults.on("docker-cleanup-removes-foreign"):
            rows = [row for row in rows if all(row)]
        return list(dict.fromkeys(identity for _, identity in rows))

    def _containers(self, *flags: str) -> list[tuple[str, str]]:
        template = '{{.Names}}\t{{.Label "' + _IDENTITY + '"}}'
        condition = f"label={_HOME}={self._host.owner}"
        if faults.on("docker-cleanup-removes-foreign"):
            condition = "name=bot"
        argv = ["ps", *flags, "--filter", condition, "--format", template]
        lines = self._docker(argv, "list containers").decode(errors="replace").splitlines()
        return [(name, identity) for name, _, identity in (line.partition("\t") for line in lines)]

    def _or_refuse(self, argv: Sequence[str], doing: str) -> bytes:
        try:
            return self._docker(argv, doing)
        except BackendError as error:
            raise RemediationError(f"{error}. Nothing was changed on docker") from error

    def _docker(
        self, argv: Sequence[str], doing: str, *, env: Mapping[str, str] | None = None
    ) -> bytes:
        environ = dict(self._host.environ) if env is None else env
        command = ["docker", *argv]
        return checked(self._host.runner, command, doing, env=environ, hidden=self._host.hidden)


class DockerBottle:
    """One container."""

    def __init__(self, host: Host, identity: str, name: str) -> None:
        self.identity = identity
        self._host = host
        self._name = name
        self._closed = False

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        flags = ["-i", "-t"] if tty else ["-i"]
        return ["docker", "exec", *flags, "-u", "node", self._name, *argv]

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        environ = dict(self._host.environ)
        command = self.agent_argv(argv, tty=tty)
        return self._host.runner.run(command, env=environ, attached=True).returncode

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        if not user:
            # To docker that is the user of the image.
            raise BackendError(f"cannot run in {self.identity} as a user without a name")
        argv = ["docker", "exec", "-u", user, self._name, "sh", "-c", script]
        result = ExecResult.of(self._host.runner.run(argv, env=dict(self._host.environ)))
        if faults.on("docker-exit-code-lost"):
            return ExecResult(0, result.stdout, result.stderr)
        return result

    def cp_in(self, host: Path, guest: str) -> None:
        argv = ["docker", "cp", str(source_of(host)), f"{self._name}:{guest}"]
        environ, hidden = dict(self._host.environ), self._host.hidden
        checked(self._host.runner, argv, f"copy {host}", env=environ, hidden=hidden)

    def close(self) -> None:
        if self._closed and not faults.on("docker-close-is-stateless"):
            return
        environ = dict(self._host.environ)
        names = [self._name]
        if faults.on("docker-closes-by-filter"):
            found = ["docker", "ps", "-aq", "--filter", f"name={self._name}"]
            names = self._host.runner.run(found, env=environ).stdout.decode().split() or names
        done = self._host.runner.run(["docker", "rm", "-f", *names], env=environ)
        if done.returncode != 0 and b"No such container" not in done.stderr:
            output = self._host.hidden.taken_out(done.stderr)
            raise BackendError(f"cannot remove {self._name}: docker says: {output}")
        self._closed = True


def split(env: ResolvedEnv) -> tuple[dict[str, str], dict[str, str]]:
    """Which variables go through the env file, and which through docker's own environment.

    Raises:
        EnvError: one can go neither way.
    """
    in_file: dict[str, str] = {}
    bare: dict[str, str] = {}
    for name, value in {**env.literals, **env.forwarded}.items():
        is_line = "\n" not in value and not value.endswith("\r") and _fits(name, value)
        steers = _STEERING.fullmatch(name) is not None
        if faults.on("docker-is-redirected"):
            steers = False
        if faults.on("docker-literal-newline-split"):
            is_line = True
        if not is_line and steers:
            raise EnvError(
                f"cannot hand {name} to docker: a value that is no single line of text would "
                "have to go through docker's own environment, which this variable steers"
            )
        if is_line and (name in env.literals or steers):
            in_file[name] = value
        else:
            bare[name] = value
    if faults.on("docker-strips-spaces"):
        in_file = {name: value.strip() for name, value in in_file.items()}
    if faults.on("docker-drops-second-literal"):
        in_file = dict(list(in_file.items())[:1])
    return in_file, bare


def _fits(name: str, value: str) -> bool:
    try:
        return len(name.encode()) + len(value.encode()) < _LINE_BYTES
    except UnicodeEncodeError:
        # The host's variables are bytes, of which docker takes no others than UTF-8 in a file.
        return False


def _env_of(described: bytes) -> ResolvedEnv:
    """What a container was given; nothing says any more which of it was a literal."""
    try:
        config: Mapping[str, Any] = json.loads(described)[0]["Config"]
        labels, pairs = config["Labels"], config["Env"]
        entries = dict(entry.partition("=")[::2] for entry in pairs)
        is_told = _VARIABLES in labels
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RemediationError(
            "cannot read what docker says of a container. Nothing was changed on docker"
        ) from error
    if not is_told:
        raise RemediationError(
            "cannot change the image of a docker container that an older launcher started: which "
            "variables are its image's is not known. Nothing was changed; end it and resume it"
        )
    given = labels[_VARIABLES].split()
    return ResolvedEnv({}, {name: entries[name] for name in given if name in entries})


@contextmanager
def _env_file(root: Path, identity: str, entries: Mapping[str, str]) -> Iterator[Path]:
    """A file that only its owner reads, gone at the end of the block; cleanup knows whose it is."""
    folder = root / ENV_FILES
    path = folder / f"{identity}.{secrets.token_hex(8)}"
    try:
        with told(BackendError, f"write a file for the variables of {identity}"):
            folder.mkdir(parents=True, exist_ok=True)
            mode = 0o644 if faults.on("docker-env-file-for-all") else 0o600
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.writelines(f"{name}={value}\n" for name, value in entries.items())
        yield path
    finally:
        if not faults.on("docker-env-file-left-behind"):
            with told(BackendError, f"remove {path}"):
                path.unlink(missing_ok=True)
