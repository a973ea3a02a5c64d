"""Micro-VMs, by the `smolvm` command.

`smolvm` has no env file, so literals are on its command line; typed and host values never are: they
go through its own environment under names that nothing reads, and are mapped by `--secret-env`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bot_bottle import faults
from bot_bottle.backends.base import Bottle, ExecResult, Plan, Spec, closing, source_of
from bot_bottle.env import ResolvedEnv
from bot_bottle.errors import BackendError, RemediationError
from bot_bottle.host import Host
from bot_bottle.run import checked
from bot_bottle.state import State

_PREFIX = "bot-bottle-"
_SECRET = "BOT_BOTTLE_SECRET_"


class SmolmachinesBackend:
    """Runs bottles as micro-VMs."""

    name = "smolmachines"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._state = State(host)

    def prepare(self, spec: Spec) -> Plan:
        return Plan(
            identity=spec.identity,
            guest=_PREFIX + spec.identity,
            image=spec.image,
            env=spec.env,
        )

    @contextmanager
    def launch(self, plan: Plan) -> Iterator[Bottle]:
        flags, environ = env_flags(plan.env, self._host.environ)
        argv = ["machine", "create", "--name", plan.guest, "--image", plan.image, *flags]
        self._smolvm(argv, f"create machine {plan.guest}", env=environ)
        bottle = SmolmachinesBottle(self._host, plan.identity, plan.guest, plan.env)
        with closing(bottle):
            self._smolvm(["machine", "start", "--name", plan.guest], f"start {plan.guest}")
            yield bottle

    def enumerate_active(self) -> list[str]:
        if faults.on("smolmachines-lists-everything"):
            return self._state.identities()
        return self._machines(running=True)

    def leftovers(self) -> list[str]:
        return [] if faults.on("cleanup-forgets-smolmachines") else self._machines(running=False)

    def remove(self, identity: str) -> None:
        if identity in self._machines(running=False):
            name = _PREFIX + identity
            self._smolvm(["machine", "delete", "--name", name, "-f"], f"remove machine {name}")

    def apply_image(self, identity: str, image: str) -> None:
        if faults.on("smolmachines-teardown-before-refusal"):
            self.remove(identity)
        raise RemediationError(
            f"cannot apply {image} to {identity}: smolmachines cannot change the image of a "
            "machine. Nothing was changed; end the bottle and start it with that image"
        )

    def _machines(self, *, running: bool) -> list[str]:
        """Identities of machines that this home recorded; a machine has no labels."""
        answer = self._smolvm(["machine", "list", "--json"], "list machines")
        try:
            states = {row["name"]: row["state"] for row in json.loads(answer)}
        except (ValueError, LookupError, TypeError) as error:
            raise BackendError("cannot list machines: smolvm answers no list of them") from error
        names = {name for name, state in states.items() if not running or state == "running"}
        return [each for each in self._state.identities() if _PREFIX + each in names]

    def _smolvm(
        self, argv: Sequence[str], doing: str, *, env: Mapping[str, str] | None = None
    ) -> bytes:
        environ = dict(self._host.environ) if env is None else env
        command = ["smolvm", *argv]
        return checked(self._host.runner, command, doing, env=environ, hidden=self._host.hidden)


class SmolmachinesBottle:
    """One machine. `smolvm` has no user flag: another user than root takes `runuser`."""

    def __init__(self, host: Host, identity: str, name: str, env: ResolvedEnv) -> None:
        self.identity = identity
        self._host = host
        self._name = name
        self._flags, self._environ = env_flags(env, host.environ)
        self._closed = False

    def __repr__(self) -> str:
        return f"SmolmachinesBottle({self.identity!r})"

    def __getstate__(self) -> object:
        raise TypeError("a bottle is not written anywhere")

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        return self._argv(argv, user="node", flags=["-i", "-t"] if tty else ["-i"])

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        command = self.agent_argv(argv, tty=tty)
        return self._host.runner.run(command, env=self._environ, attached=True).returncode

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        argv = self._argv(["sh", "-c", script], user=user, flags=[])
        result = ExecResult.of(self._host.runner.run(argv, env=self._environ))
        if faults.on("smolmachines-stderr-merged"):
            return ExecResult(result.returncode, result.stdout + result.stderr, "")
        return result

    def cp_in(self, host: Path, guest: str) -> None:
        argv = ["smolvm", "machine", "cp", str(source_of(host)), f"{self._name}:{guest}"]
        environ, hidden = dict(self._host.environ), self._host.hidden
        checked(self._host.runner, argv, f"copy {host}", env=environ, hidden=hidden)

    def close(self) -> None:
        if self._closed:
            if faults.on("smolmachines-close-twice-fails"):
                raise BackendError(f"cannot remove {self._name}: it is closed already")
            return
        argv = ["smolvm", "machine", "delete", "--name", self._name, "-f"]
        done = self._host.runner.run(argv, env=dict(self._host.environ))
        if done.returncode != 0 and b"not found" not in done.stderr:
            output = self._host.hidden.taken_out(done.stderr)
            raise BackendError(f"cannot remove {self._name}: smolvm says: {output}")
        self._closed = True

    def _argv(self, argv: Sequence[str], *, user: str, flags: Sequence[str]) -> list[str]:
        command = ["smolvm", "machine", "exec", "--name", self._name, *flags, *self._flags, "--"]
        if user == "root" or faults.on("smolmachines-user-ignored"):
            return [*command, *argv]
        return [*command, "runuser", "-u", user, "--", *argv]


def env_flags(env: ResolvedEnv, host: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The flags that hand an environment to a machine, and the environment `smolvm` needs for it."""
    flags: list[str] = []
    environ = dict(host)
    forwarded = {**env.forwarded}
    if faults.on("smolmachines-drops-second-secret"):
        forwarded = dict(list(forwarded.items())[:1])
    for name, value in env.literals.items():
        if faults.on("smolmachines-quotes-literals"):
            value = f'"{value}"'
        flags += ["-e", f"{name}={value}"]
    for name, value in forwarded.items():
        if faults.on("smolmachines-secret-on-argv"):
            flags += ["-e", f"{name}={value}"]
            continue
        flags += ["--secret-env", f"{name}={_SECRET}{name}"]
        environ[f"{_SECRET}{name}"] = value
    return flags, environ
