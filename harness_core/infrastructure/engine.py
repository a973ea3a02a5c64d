"""Which container engine this machine would use, and whether it answers.

The rules are those of the ``docker`` command, with Podman's Docker API as the last resort:
``DOCKER_HOST``; else the current context, when it is not the default one; else the sockets where
engines listen, first one that answers. An engine that was named and is silent is an error: no
other one takes its place. Only the standard library is used, so that a gate can ask in
milliseconds; what is done with an engine is left to ``harness_core.infrastructure.containers``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import ipaddress
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from harness_core.base.errors import BadInput, Unavailable

__all__ = ["Engine", "check_listening", "engine_reason", "find_engine"]

_LOOPBACK: Final = "127.0.0.1"

#: An engine answers what it is without touching a container: milliseconds, tens over a network.
_ANSWER_S: Final = 5.0

#: ``GET /version`` has some kilobytes.
_ANSWER_BYTES: Final = 1024 * 1024

_PLAIN_PORT: Final = 2375
_TLS_PORT: Final = 2376

#: Where an engine of all users listens.
_DOCKER_SOCKET: Final = Path("/var/run/docker.sock")
_PODMAN_SOCKET: Final = Path("/run/podman/podman.sock")

#: Where other tools look for the name under which published ports are reached.
_HOST_OVERRIDES: Final = ("TESTCONTAINERS_HOST_OVERRIDE", "TC_HOST")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A container engine that answers.

    Attributes:
        url: its address as ``DOCKER_HOST`` would give it.
        source: what named it, e.g. ``"DOCKER_HOST"``.
        name: what it calls itself, e.g. ``"Docker Engine"``, ``"Podman Engine"``.
        version: its own; empty for an engine behind ssh, which is asked when it is used.
        local: it runs on this machine.
        host: where its published ports are reached.
        api_version: of the protocol it speaks; empty where ``version`` is.
        certificates: directory of ``ca.pem``, ``cert.pem``, ``key.pem``, when it speaks TLS.
    """

    url: str
    source: str
    name: str
    version: str
    local: bool
    host: str
    api_version: str = ""
    certificates: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point any Docker client at this engine."""
        found = {"DOCKER_HOST": self.url}
        if self.certificates is not None:
            found |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(self.certificates)}
        return found

    def __str__(self) -> str:
        return f"{self.name} {self.version} at {self.url} ({self.source})".replace("  ", " ")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    url: str
    source: str
    named: bool
    certificates: Path | None = None


def find_engine(*, environment: Mapping[str, str] | None = None) -> Engine:
    """The engine to use.

    Args:
        environment: variables to read; the process's own when left out.

    Raises:
        Unavailable: none answers; names every place that was tried.
        BadInput: the current context cannot be read.
    """
    environment = os.environ if environment is None else environment
    tried: list[str] = []
    absent: list[str] = []
    for candidate in _candidates(environment):
        try:
            return _ask(candidate, environment)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            into = absent if isinstance(error, FileNotFoundError) else tried
            into.append(f"{candidate.url} ({candidate.source}): {reason}")
            if candidate.named:
                break
    if len(absent) > 1:
        # Most machines have one of the places: five times "no such file" would hide what matters.
        tried.append(f"nothing at {', '.join(line.partition(' ')[0] for line in absent)}")
    else:
        tried += absent
    raise Unavailable(
        "use a container engine",
        observed=f"none answers; {'; '.join(tried)}",
        next_step="Start Docker or Podman (as root on Debian: apt-get install docker.io, then "
        "dockerd), or point DOCKER_HOST at an engine, or run with --services local",
    )


def check_listening(engine: Engine) -> None:
    """Connect to an engine's socket and hang up.

    The client library leaks its own socket when no engine listens, so this is asked first.

    Raises:
        OSError: no server listens there any more.
    """
    parts = urlsplit(engine.url)
    if parts.scheme == "unix":
        connection = _UnixConnection(parts.path)
        connection.connect()
        connection.close()


def engine_reason() -> str:
    """Why no engine can be used here; empty when one answers. The probe of the gate ``docker``."""
    try:
        find_engine()
    except (Unavailable, BadInput) as error:
        return f"{error.observed}. {error.next_step}".strip()
    return ""


def _candidates(environment: Mapping[str, str]) -> Iterator[_Candidate]:
    if url := environment.get("DOCKER_HOST"):
        tls = bool(environment.get("DOCKER_TLS_VERIFY"))
        default = Path(environment.get("HOME", "/")) / ".docker"
        certificates = Path(environment.get("DOCKER_CERT_PATH") or default) if tls else None
        yield _Candidate(url=url, source="DOCKER_HOST", named=True, certificates=certificates)
        return
    if (context := _context(environment)) is not None:
        yield context
        return
    home = Path(environment.get("HOME", "/"))
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    for path, source in (
        (_DOCKER_SOCKET, "default socket"),
        (runtime / "docker.sock", "rootless Docker"),
        (home / ".docker/run/docker.sock", "Docker Desktop"),
        (runtime / "podman/podman.sock", "rootless Podman"),
        (_PODMAN_SOCKET, "Podman"),
    ):
        yield _Candidate(url=f"unix://{path}", source=source, named=False)


def _context(environment: Mapping[str, str]) -> _Candidate | None:
    """The current context of the ``docker`` command, unless it is the built-in one."""
    home = Path(environment.get("HOME", "/"))
    config = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    name = environment.get("DOCKER_CONTEXT") or _current_context(config / "config.json")
    if not name or name == "default":
        return None
    key = hashlib.sha256(name.encode()).hexdigest()
    path = config / "contexts" / "meta" / key / "meta.json"
    try:
        url = json.loads(path.read_text(encoding="utf-8"))["Endpoints"]["docker"]["Host"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            "Docker context",
            key=name,
            found=f"{type(error).__name__} in {path}",
            expected="a context that `docker context ls` lists",
        ) from error
    tls = config / "contexts" / "tls" / key / "docker"
    return _Candidate(
        url=str(url),
        source=f"context {name}",
        named=True,
        certificates=tls if tls.is_dir() else None,
    )


def _current_context(path: Path) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise BadInput(path, found=str(error), expected="the JSON that docker writes") from error
    name = content.get("currentContext", "") if isinstance(content, dict) else ""
    return name if isinstance(name, str) else ""


def _ask(candidate: _Candidate, environment: Mapping[str, str]) -> Engine:
    parts = urlsplit(candidate.url)
    override = next((environment[key] for key in _HOST_OVERRIDES if environment.get(key)), "")
    local = parts.scheme == "unix" or _is_loopback(parts.hostname or "")
    host = override or (_LOOPBACK if local else parts.hostname or "")
    if parts.scheme == "ssh":
        name, version, api_version = "engine behind ssh", "", ""
    else:
        answer = _version(parts, candidate)
        name, version = _engine_name(answer), str(answer.get("Version", ""))
        api_version = str(answer["ApiVersion"])
    return Engine(
        url=candidate.url,
        source=candidate.source,
        name=name,
        version=version,
        local=local,
        host=host,
        api_version=api_version,
        certificates=candidate.certificates,
    )


def _version(parts: SplitResult, candidate: _Candidate) -> dict[str, Any]:
    connection = _connection(parts, candidate)
    try:
        connection.request("GET", "/version", headers={"Host": "engine"})
        response = connection.getresponse()
        body = response.read(_ANSWER_BYTES)
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise ValueError(f"it answers {response.status} {response.reason}")
    answer = json.loads(body)
    if not isinstance(answer, dict) or "ApiVersion" not in answer:
        raise ValueError("what answers there is no container engine")
    return answer


def _connection(parts: SplitResult, candidate: _Candidate) -> http.client.HTTPConnection:
    if parts.scheme == "unix":
        return _UnixConnection(parts.path)
    if parts.scheme not in {"tcp", "http", "https"} or not parts.hostname:
        raise ValueError("expected unix://PATH, tcp://HOST:PORT or ssh://HOST")
    if candidate.certificates is None and parts.scheme != "https":
        return http.client.HTTPConnection(
            parts.hostname, parts.port or _PLAIN_PORT, timeout=_ANSWER_S
        )
    context = ssl.create_default_context()
    if candidate.certificates is not None:
        places = candidate.certificates
        context.load_verify_locations(places / "ca.pem")
        context.load_cert_chain(places / "cert.pem", places / "key.pem")
    return http.client.HTTPSConnection(
        parts.hostname, parts.port or _TLS_PORT, timeout=_ANSWER_S, context=context
    )


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket of an engine on this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(self.timeout)
        try:
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


def _engine_name(answer: Mapping[str, Any]) -> str:
    components = answer.get("Components") or []
    names = [str(part.get("Name", "")) for part in components if isinstance(part, dict)]
    if any("podman" in name.lower() for name in names):
        return "Podman Engine"
    return "Docker Engine"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
