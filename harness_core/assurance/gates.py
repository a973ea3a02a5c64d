"""What can run on this machine: one gate per thing that may be missing, each with a reason.

A test says ``@pytest.mark.requires("docker")``. Where the gate is closed the test is skipped with
the reason, unless ``HARNESS_REQUIRE`` (a comma-separated list, set by CI) names the gate: then it
fails, so that CI cannot lose a lane in silence.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import platform
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.machine import (
    cannot_make_namespaces,
    cannot_run_postgres,
    find_postgres_binaries,
    find_program,
    lack_of,
    lack_of_space,
    missing_of,
    places,
    versions_of,
)
from harness_core.base.reading import did_you_mean
from harness_core.infrastructure.engine import engine_reason

__all__ = ["Gate", "check_names", "closed_reason", "gates", "register", "required"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One thing a test may need.

    Attributes:
        name: what ``requires(…)`` and ``HARNESS_REQUIRE`` call it.
        summary: what it opens, for ``harness doctor``.
        probe: answers ``""`` when it is there, else the reason why not and how to get it. Fast,
            and without effect.
        found: what is there, for ``harness doctor``; asked when the gate is open.
    """

    name: str
    summary: str
    probe: Callable[[], str]
    found: Callable[[], str] = lambda: ""


def _root() -> str:
    if os.geteuid() != 0:
        return "this is an ordinary user; run as root"
    python = Path(sys.executable).resolve()
    shut = next((each for each in python.parents if not each.stat().st_mode & stat.S_IXOTH), None)
    return f"no other user may run {python}: {shut} is closed to them" if shut else ""


def _ordinary_user() -> str:
    return "" if os.geteuid() != 0 else "this is root; run as an ordinary user"


def _ipv6() -> str:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return ""
    except OSError as error:
        return f"cannot listen on ::1: {error.strerror}"


def _tmpfs() -> str:
    return "" if Path("/dev/shm").is_mount() else "no tmpfs at /dev/shm"  # noqa: S108


def _linux() -> str:
    if platform.system() == "Linux":
        return ""
    return f"this is {platform.system()}; process supervision needs Linux"


def _postgres() -> str:
    return lack_of("postgres") or cannot_run_postgres()


def _postgres_found() -> str:
    server = find_postgres_binaries()
    words = [f"{server.version} from {server.source}"]
    if missing := missing_of("postgres"):
        words.append(f"of our extra {', '.join(missing)} is not installed")
    names = server.extensions
    words.append(f"{len(names)} extensions: {', '.join(names)}" if names else "extensions unknown")
    return "; ".join(words)


def _program(
    name: str, *, variable: str, extra: str
) -> tuple[Callable[[], str], Callable[[], str]]:
    """Probe and finding of a server that a wheel brings as one program."""

    def probe() -> str:
        if lack := lack_of(extra):
            return lack
        try:
            find_program(name, variable=variable, extra=extra)
        except HarnessError as error:
            return f"no {name}: {error.observed}. {error.next_step}".rstrip(". ")
        return ""

    return probe, lambda: str(find_program(name, variable=variable, extra=extra))


def _docker() -> str:
    return lack_of("containers") or engine_reason()


def _claude_code() -> str:
    if importlib.util.find_spec("claude_agent_sdk"):
        return ""
    return "no Claude Code CLI: pip install claude-agent-sdk, which bundles it"


def _key() -> str:
    return "" if os.environ.get("ANTHROPIC_API_KEY") else "ANTHROPIC_API_KEY is not set"


def _command(name: str) -> Callable[[], str]:
    def probe() -> str:
        return "" if shutil.which(name) else f"no {name} on the PATH: apt-get install {name}"

    return probe


def _dockerd() -> str:
    for name, package in (("dockerd", "docker.io"), ("unshare", "util-linux")):
        if shutil.which(name) is None:
            return f"no {name} on the PATH: apt-get install {package}"
    return "" if os.geteuid() == 0 else "only root can start an engine of its own"


def _compose() -> str:
    if shutil.which("docker-compose"):
        return ""
    if shutil.which("docker"):
        trial = ["docker", "compose", "version"]
        if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            return ""
    return "neither docker compose nor docker-compose: apt-get install docker-compose"


def _bubblewrap() -> str:
    if not shutil.which("bwrap"):
        return "no bwrap on the PATH: apt-get install bubblewrap"
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    said = done.stderr.strip() or f"exit status {done.returncode}"
    return "" if done.returncode == 0 else f"bwrap cannot make a sandbox here: {said}"


def _smolvm() -> str:
    if not shutil.which("smolvm"):
        return "no smolvm on the PATH"
    return "" if os.access("/dev/kvm", os.R_OK | os.W_OK) else "no access to /dev/kvm"


_GATES: Final[dict[str, Gate]] = {}


def register(gate: Gate) -> None:
    """Add a gate of a suite's own; the same name twice is refused."""
    if gate.name in _GATES:
        raise BadInput("gate", key=gate.name, found=gate.summary, expected="a name not yet taken")
    _GATES[gate.name] = gate


def gates() -> tuple[Gate, ...]:
    """Every gate there is, in the order of registration."""
    return tuple(_GATES.values())


def closed_reason(name: str) -> str:
    """Why the gate is closed here; empty when it is open.

    Raises:
        BadInput: no such gate.
    """
    gate = _GATES.get(name)
    if gate is None:
        raise BadInput("requires", found=name, expected=f"one of {', '.join(sorted(_GATES))}")
    return gate.probe()


def check_names(
    names: Sequence[object],
    *,
    where: str | Path,
    key: str = "",
    registered: Collection[str] = (),
) -> None:
    """Check what a ``requires`` marker names, or a file.

    Args:
        names: of gates.
        where: the marker or file, for messages.
        key: the table of the file that has the names as keys.
        registered: further gates, of whose registration the caller knows.

    Raises:
        BadInput: nothing at all, or no such gate.
    """
    known = sorted({*_GATES, *registered})
    if not names:
        raise BadInput(where, found="no gate", expected=f"one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise BadInput(
                where,
                key=f"{key}.{name}" if key else "",
                found=name,
                expected=f"a gate, one of {', '.join(known)}",
                next_step=did_you_mean(str(name), known),
            )


def required(environment: Iterable[str] | None = None) -> frozenset[str]:
    """The gates that ``HARNESS_REQUIRE`` demands.

    Args:
        environment: the names; read from ``HARNESS_REQUIRE`` when left out.

    Raises:
        BadInput: a name that is no gate: a typo would otherwise demand nothing.
    """
    if environment is None:
        environment = os.environ.get("HARNESS_REQUIRE", "").split(",")
    names = frozenset(name.strip() for name in environment if name.strip())
    if names:
        check_names(sorted(names), where="HARNESS_REQUIRE")
    return names


_S3: Final = _program("rclone", variable="HARNESS_RCLONE", extra="s3")
_TEMPORAL: Final = _program("temporal", variable="HARNESS_TEMPORAL", extra="temporal")

for _gate in (
    Gate(name="linux", summary="process supervision", probe=_linux),
    Gate(name="root", summary="children of other users", probe=_root),
    Gate(name="ordinary-user", summary="what root would not be refused", probe=_ordinary_user),
    Gate(name="ipv6", summary="listeners on ::1", probe=_ipv6),
    Gate(name="tmpfs", summary="data directories in memory", probe=_tmpfs),
    Gate(
        name="disk",
        summary="room for what a whole run writes",
        probe=lack_of_space,
        found=lambda: "; ".join(map(str, places())),
    ),
    Gate(
        name="postgres",
        summary="PostgreSQL on this machine, without Docker",
        probe=_postgres,
        found=_postgres_found,
    ),
    Gate(name="s3", summary="S3 on this machine, without Docker", probe=_S3[0], found=_S3[1]),
    Gate(
        name="temporal",
        summary="Temporal on this machine, without Docker",
        probe=_TEMPORAL[0],
        found=_TEMPORAL[1],
    ),
    *(
        Gate(
            name=extra,
            summary=summary,
            probe=partial(lack_of, extra),
            found=partial(versions_of, extra),
        )
        for extra, summary in (
            ("gateway", "the model gateway"),
            ("mail", "a mail server that keeps what it is given"),
            ("telemetry", "a collector of spans (OTLP)"),
            ("stack", "stacks of a compose file"),
            ("asyncpg", "a pool of asyncpg on a database, for tests on asyncio"),
        )
    ),
    Gate(
        name="claude-code",
        summary="tests that drive the Claude Code CLI themselves (a subject brings its own)",
        probe=_claude_code,
    ),
    Gate(name="docker", summary="servers in containers", probe=_docker),
    Gate(name="compose", summary="stacks in containers", probe=_compose),
    Gate(name="dockerd", summary="tests that stop an engine of their own", probe=_dockerd),
    Gate(
        name="namespaces",
        summary="namespaces of an ordinary user, which sandboxes without root are made of",
        probe=cannot_make_namespaces,
    ),
    Gate(name="bubblewrap", summary="sandboxes by namespaces", probe=_bubblewrap),
    Gate(name="smolvm", summary="sandboxes that are micro-VMs", probe=_smolvm),
    Gate(name="live-llm", summary="runs against the real model provider", probe=_key),
    Gate(name="tmux", summary="terminal user interfaces", probe=_command("tmux")),
    Gate(name="emacs", summary="the Emacs client", probe=_command("emacs")),
):
    register(_gate)
