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
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.machine import (
    cannot_make_namespaces,
    cannot_run_postgres,
    find_libfaketime,
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


def required() -> frozenset[str]:
    """The gates that ``HARNESS_REQUIRE`` demands.

    Raises:
        BadInput: a name that is no gate: a typo would otherwise demand nothing.
    """
    listed = os.environ.get("HARNESS_REQUIRE", "").split(",")
    names = frozenset(name.strip() for name in listed if name.strip())
    if names:
        check_names(sorted(names), where="HARNESS_REQUIRE")
    return names


# --- the gates of the harness, in the order that `harness doctor` shows ----------------------------------


def _gate(
    name: str, summary: str, *, found: Callable[[], str] = lambda: ""
) -> Callable[[Callable[[], str]], None]:
    """Register the function below as the probe of a gate."""
    return lambda probe: register(Gate(name=name, summary=summary, probe=probe, found=found))


@_gate("linux", "process supervision")
def _linux() -> str:
    if platform.system() == "Linux":
        return ""
    return f"this is {platform.system()}; process supervision needs Linux"


@_gate("root", "children of other users")
def _root() -> str:
    if os.geteuid() != 0:
        return "this is an ordinary user; run as root"
    python = Path(sys.executable).resolve()
    shut = next((each for each in python.parents if not each.stat().st_mode & stat.S_IXOTH), None)
    return f"no other user may run {python}: {shut} is closed to them" if shut else ""


@_gate("ordinary-user", "what root would not be refused")
def _ordinary_user() -> str:
    return "" if os.geteuid() != 0 else "this is root; run as an ordinary user"


@_gate("ipv6", "listeners on ::1")
def _ipv6() -> str:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return ""
    except OSError as error:
        return f"cannot listen on ::1: {error.strerror}"


@_gate("tmpfs", "data directories in memory")
def _tmpfs() -> str:
    return "" if Path("/dev/shm").is_mount() else "no tmpfs at /dev/shm"  # noqa: S108


_gate("disk", "room for what a whole run writes", found=lambda: "; ".join(map(str, places())))(
    lack_of_space
)


def _postgres_found() -> str:
    server = find_postgres_binaries()
    words = [f"{server.version} from {server.source}"]
    if missing := missing_of("postgres"):
        words.append(f"of our extra {', '.join(missing)} is not installed")
    names = server.extensions
    words.append(f"{len(names)} extensions: {', '.join(names)}" if names else "extensions unknown")
    return "; ".join(words)


@_gate("postgres", "PostgreSQL on this machine, without Docker", found=_postgres_found)
def _postgres() -> str:
    return lack_of("postgres") or cannot_run_postgres()


def _program_gate(extra: str, what: str, *, program: str, variable: str) -> None:
    """A server that the wheel of an extra brings as one program."""

    def find() -> str:
        return str(find_program(program, variable=variable, extra=extra))

    def probe() -> str:
        if lack := lack_of(extra):
            return lack
        try:
            find()
        except HarnessError as error:
            return f"no {program}: {error.observed}. {error.next_step}".rstrip(". ")
        return ""

    _gate(extra, f"{what} on this machine, without Docker", found=find)(probe)


_program_gate("s3", "S3", program="rclone", variable="HARNESS_RCLONE")
_program_gate("temporal", "Temporal", program="temporal", variable="HARNESS_TEMPORAL")
_program_gate("valkey", "Valkey", program="valkey-server", variable="HARNESS_VALKEY")
_program_gate("nats", "NATS", program="nats-server", variable="HARNESS_NATS")

for _extra, _summary in (
    ("gateway", "the model gateway"),
    ("mail", "a mail server that keeps what it is given"),
    ("telemetry", "a collector of spans (OTLP)"),
    ("stack", "stacks of a compose file"),
    ("asyncpg", "a pool of asyncpg on a database, for tests on asyncio"),
    ("explore", "generated steps against a running product"),
    ("mutation", "mutants of a product, and what tests execute of it"),
    ("dask", "mutants on a cluster"),
    ("report", "the page of a run"),
    ("ui", "the page of what is held"),
):
    _gate(_extra, _summary, found=partial(versions_of, _extra))(partial(lack_of, _extra))


@_gate(
    "claude-code",
    "tests that drive the Claude Code CLI themselves (a subject brings its own)",
)
def _claude_code() -> str:
    if importlib.util.find_spec("claude_agent_sdk"):
        return ""
    return "no Claude Code CLI: pip install claude-agent-sdk, which bundles it"


def _faketime_found() -> str:
    return str(find_libfaketime())


@_gate("faketime", "another time of day for a process (libfaketime)", found=_faketime_found)
def _faketime() -> str:
    try:
        find_libfaketime()
    except HarnessError as error:
        return f"{error.observed}: {error.next_step}".rstrip(": ")
    return ""


@_gate("docker", "servers in containers")
def _docker() -> str:
    return lack_of("containers") or engine_reason()


@_gate("compose", "stacks in containers")
def _compose() -> str:
    if shutil.which("docker-compose"):
        return ""
    if shutil.which("docker"):
        trial = ["docker", "compose", "version"]
        if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            return ""
    return "neither docker compose nor docker-compose: apt-get install docker-compose"


@_gate("dockerd", "tests that stop an engine of their own")
def _dockerd() -> str:
    lack = _no_command("dockerd", package="docker.io") or _no_command(
        "unshare", package="util-linux"
    )
    return lack or ("" if os.geteuid() == 0 else "only root can start an engine of its own")


_gate("namespaces", "namespaces of an ordinary user, which sandboxes without root are made of")(
    cannot_make_namespaces
)


@_gate("bubblewrap", "sandboxes by namespaces")
def _bubblewrap() -> str:
    if lack := _no_command("bwrap", package="bubblewrap"):
        return lack
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    reason = done.stderr.strip() or f"exit status {done.returncode}"
    return "" if done.returncode == 0 else f"bwrap cannot make a sandbox here: {reason}"


@_gate("smolvm", "sandboxes that are micro-VMs")
def _smolvm() -> str:
    if not shutil.which("smolvm"):
        return "no smolvm on the PATH"
    return "" if os.access("/dev/kvm", os.R_OK | os.W_OK) else "no access to /dev/kvm"


@_gate("live-llm", "runs against the real model provider")
def _key() -> str:
    return "" if os.environ.get("ANTHROPIC_API_KEY") else "ANTHROPIC_API_KEY is not set"


def _no_command(name: str, *, package: str) -> str:
    return "" if shutil.which(name) else f"no {name} on the PATH: apt-get install {package}"


#: As Debian, Ubuntu and Fedora, and as Google call it.
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """The browser of this machine that pages are looked at with; empty for none."""
    return next(filter(None, map(shutil.which, _BROWSERS)), "")


@_gate("browser", "pages, looked at in a real browser", found=find_browser)
def _browser() -> str:
    lacks = [name for name in ("playwright", "axe_playwright_python") if not _is_there(name)]
    if lacks:
        return f"no {' and '.join(lacks)}: uv pip install --group core"
    return "" if find_browser() else "no chromium on the PATH: apt-get install chromium"


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


_gate("node", "products in JavaScript")(partial(_no_command, "node", package="nodejs"))
_gate("tmux", "terminal user interfaces")(partial(_no_command, "tmux", package="tmux"))
_gate("emacs", "the Emacs client")(partial(_no_command, "emacs", package="emacs"))
