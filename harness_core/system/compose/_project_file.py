"""The compose file that compose is given: the user's, with what is ours put in its place."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core.base import limits
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.infrastructure.containers import run_labels
from harness_core.infrastructure.engine import Engine
from harness_core.system.compose._compose import Compose

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["DATA", "Project", "build_of", "create_containers"]

#: Where ``{data}`` is in a container.
DATA: Final = "/data"

#: What of a service is read by us, or would have compose do what we do.
_LEFT_OUT: Final = (
    "build",
    "depends_on",
    "expose",
    "healthcheck",
    "networks",
    "restart",
    "x-harness",
)

#: Creating a dozen containers takes seconds; an engine under load, more.
_CREATE_S: Final = 2 * limits.CONTAINER_START_S


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What compose is to create.

    Attributes:
        name: of the project; part of every name that it makes.
        compose: the user's file.
        images: the services that are containers, and what each runs.
        network: made already, with everything on it.
        hosts: further names on it, and their addresses.
        ports: service → port of 127.0.0.1 where its first port is published.
        run_id: whose everything is.
    """

    name: str
    compose: Compose
    images: Mapping[str, str]
    network: str
    hosts: Mapping[str, str]
    ports: Mapping[str, int]
    run_id: str

    def container(self, service: str) -> str:
        """The name of a service's container."""
        return f"{self.name}-{service}"

    @property
    def volumes(self) -> dict[str, str]:
        """Volumes to be made: name in the file, or of a service whose data needs one → real name."""
        found: dict[str, str] = {}
        for service in self.images:
            for row in self.compose.services[service].body.get("volumes", []):
                source = _source(row)
                if source and not source.startswith((".", "/", "~")):
                    found[source] = f"{self.name}-volume-{source}"
            if self._needs_data(service):
                found[f"data of {service}"] = f"{self.name}-data-{service}"
        return found

    def content(self) -> dict[str, Any]:
        """The whole file."""
        volumes = self.volumes
        return {
            "services": {name: self._service(name, volumes) for name in self.images},
            "networks": {"default": {"name": self.network, "external": True}},
            "volumes": {real: {"name": real, "external": True} for real in volumes.values()},
        }

    def _needs_data(self, service: str) -> bool:
        """It keeps its data in ``{data}``, and mounts nothing there."""
        kept = any(
            "{data}" in value for value in self.compose.services[service].environment.values()
        )
        targets = {_target(row) for row in self.compose.services[service].body.get("volumes", [])}
        return kept and DATA not in targets

    def _service(self, name: str, volumes: Mapping[str, str]) -> dict[str, Any]:
        raw = self.compose.services[name].body
        made = {key: value for key, value in raw.items() if key not in _LEFT_OUT}
        made |= {
            "image": self.images[name],
            "container_name": self.container(name),
            "labels": run_labels(self.run_id),
            "healthcheck": {"disable": True},  # waited for from outside
            # Compose fills in variables once more: what is a dollar now must be one then.
            "environment": {
                key: value.replace("{data}", DATA).replace("$", "$$")
                for key, value in self.compose.services[name].environment.items()
            },
            "volumes": [_mounted(row, volumes) for row in raw.get("volumes", [])],
        }
        if self._needs_data(name):
            made["volumes"].append(f"{volumes[f'data of {name}']}:{DATA}")
        # The name of a service that is down is asked for elsewhere, for ten seconds where
        # nothing answers.
        made.setdefault("dns_opt", ["timeout:1", "attempts:1"])
        if name in self.ports:
            port = self.compose.services[name].port
            made["ports"] = [f"127.0.0.1:{self.ports[name]}:{port}"]
        if self.hosts:
            made["extra_hosts"] = [f"{host}:{address}" for host, address in self.hosts.items()]
        return made


def build_of(compose: Compose, service: str) -> tuple[Path, Path]:
    """Dockerfile and context of a service that is built from the tree."""
    build = compose.services[service].body["build"]
    keys = build if isinstance(build, Mapping) else {"context": build}
    context = (compose.path.parent / str(keys.get("context", "."))).resolve()
    dockerfile = context / str(keys.get("dockerfile", "Dockerfile"))
    if not dockerfile.is_file():
        key = f"services.{service}.build"
        raise BadInput(compose.path, key=key, found=str(dockerfile), expected="a Dockerfile there")
    return dockerfile, context


async def create_containers(
    run: Run,
    project: Project,
    *,
    engine: Engine,
    variables: Mapping[str, str],
    home: Path,
    evidence: Evidence,
) -> None:
    """Have compose create every container of a project, and start none.

    Raises:
        Unavailable: there is no compose on this machine.
        HarnessError: compose refuses; carries its last lines.
    """
    file = home / "compose.json"
    file.write_text(json.dumps(project.content(), indent=2), encoding="utf-8")
    environment = {
        **variables,
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "COMPOSE_API_VERSION": "auto",
        **engine.environment,
    }
    argv = await _compose(run, environment, evidence=evidence)
    words = ["-p", project.name, "--project-directory", str(project.compose.path.parent)]
    words += ["-f", str(file), "up", "--no-start", "--no-build"]
    async with run.child(
        [*argv, *words], name="compose", env=environment, cwd=home, evidence=evidence
    ) as child:
        with trio.move_on_after(_CREATE_S):
            await child.wait()
    if child.returncode != 0:
        raise HarnessError(
            f"create the containers of {project.compose.path}",
            observed=f"{' '.join(argv)} ended with {child.returncode}",
            next_step="Read its last lines below",
            tail=child.tail(),
            log=child.log,
        )


async def _compose(
    run: Run, environment: Mapping[str, str], *, evidence: Evidence
) -> tuple[str, ...]:
    """The command that is compose: the plugin of version 2, or the program of version 1."""
    tried = []
    for argv in (("docker", "compose"), ("docker-compose",)):
        try:
            async with run.child(
                [*argv, "version"], name="compose-version", env=environment, evidence=evidence
            ) as child:
                if await child.wait() == 0:
                    return argv
                tried.append(f"{' '.join(argv)} ended with {child.returncode}")
        except Unavailable as error:
            tried.append(f"{' '.join(argv)}: {error.observed}")
    raise Unavailable(
        "run compose",
        observed="; ".join(tried),
        next_step="Install docker-compose (1.29) or the compose plugin of docker (2), or run with "
        "--services local",
    )


def _source(row: object) -> str:
    if isinstance(row, Mapping):
        return str(row.get("source", "")) if row.get("type", "volume") == "volume" else ""
    parts = str(row).split(":")
    return parts[0] if len(parts) > 1 else ""


def _target(row: object) -> str:
    if isinstance(row, Mapping):
        return str(row.get("target", ""))
    parts = str(row).split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def _mounted(row: object, volumes: Mapping[str, str]) -> object:
    """A mount with the real name of its volume."""
    source = _source(row)
    if source not in volumes:
        return row
    if isinstance(row, Mapping):
        return {**row, "source": volumes[source]}
    return ":".join([volumes[source], *str(row).split(":")[1:]])
