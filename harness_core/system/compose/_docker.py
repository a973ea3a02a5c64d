"""Driver *docker*: the containers of a compose file, created by compose and started by us.

Compose makes the containers, with all options of the file; what they share (a network, volumes) and
the order in which they start is ours, so that a service that does not come up is named here as it is
without containers. The model gateway and recorders run in the harness: containers reach them by
their own names, at the gateway address of their network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.doubles.http import HttpClient
from harness_core.infrastructure.containers import (
    adopt_container,
    announce_container,
    build_subject_image,
    open_network,
    open_volume,
    provide_image,
)
from harness_core.infrastructure.engine import Engine, find_engine
from harness_core.infrastructure.services import (
    SERVER_IMAGES,
    S3Url,
    make_bucket,
    open_nats,
    open_postgres,
    open_s3,
    open_temporal,
    open_valkey,
)
from harness_core.ports import tcp_accepts
from harness_core.system.compose._compose import Compose, ComposeService
from harness_core.system.compose._container_part import ContainerPart
from harness_core.system.compose._credentials import database_url
from harness_core.system.compose._driver import Driver
from harness_core.system.compose._keys import s3_keys
from harness_core.system.compose._project_file import DATA, Project, build_of, create_containers
from harness_core.system.compose._recipe import KINDS
from harness_core.system.compose._relay import open_relay
from harness_core.system.parts import Part, healthy

__all__ = ["DockerDriver"]

#: What the harness does itself in place of a container.
_HERE: Final = frozenset({"gateway", "recorder"})


class DockerDriver(Driver):
    """What the harness does not do itself, as containers."""

    name = "docker"

    async def parts(self) -> Mapping[str, Part]:
        """Create everything and start nothing.

        Raises:
            Unavailable: no engine, no compose, no image.
        """
        self._engine = await blocking(find_engine)
        images = await _images(self._engine, self._compose, say=self._say)
        home = self._run.directory("compose")
        # A run may have several stacks.
        title = f"hs-{self._run.id}-{home.name}"
        services = self._compose.services.values()
        network = f"{title}-network"
        enter = self._stack.enter_async_context
        # Addresses of this machine that containers reach, and the ports of each that are taken. What
        # is done here by two services of one port needs two, and a network without containers on it
        # has an address too.
        gateways = {await enter(open_network(self._run, network, engine=self._engine)): set[int]()}
        here: dict[str, Part] = {}
        hosts: dict[str, str] = {}
        for service in services:
            if service.recipe.service not in _HERE:
                continue
            make = self.recorder if service.recipe.service == "recorder" else self.gateway
            here[service.name] = make(service)
            port = service.port or KINDS[service.recipe.service]
            address = next((each for each, taken in gateways.items() if port not in taken), None)
            if address is None:
                further = f"{network}-{len(gateways) + 1}"
                address = await enter(open_network(self._run, further, engine=self._engine))
            gateways.setdefault(address, set()).add(port)
            hosts[service.name] = address
            await enter(
                open_relay(
                    address,
                    port,
                    to=int(here[service.name].address.rpartition(":")[2]),
                    name=service.name,
                )
            )
        project = Project(
            name=title,
            compose=self._compose,
            images=images,
            network=network,
            hosts=hosts,
            ports={each.name: self.lease().hand_over() for each in services if each.port},
            run_id=self._run.id,
        )
        for volume in project.volumes.values():
            await enter(open_volume(self._run, volume, engine=self._engine))
        for name in images:
            announce_container(self._run, project.container(name), engine=self._engine)
        await create_containers(
            self._run,
            project,
            engine=self._engine,
            variables=self._options.environment,
            home=home,
            evidence=self._evidence,
        )
        return {
            each.name: here.get(each.name) or await self._container(each, project)
            for each in services
        }

    async def _container(self, service: ComposeService, project: Project) -> Part:
        port = project.ports.get(service.name, 0)
        container = await self._stack.enter_async_context(
            adopt_container(
                self._run,
                project.container(service.name),
                engine=self._engine,
                port=port,
                evidence=self._evidence,
                log=service.name,
            )
        )
        return ContainerPart(
            service.name,
            container,
            kind=service.recipe.service or "container",
            evidence=self._evidence,
            environment={
                name: value.replace("{data}", DATA) for name, value in service.environment.items()
            },
            published=bool(port),
            once=service.one_shot,
            probe=self._probe(service, container.address),
            ready_s=service.recipe.ready_s or limits.STACK_READY_S,
        )

    def _probe(self, service: ComposeService, address: str) -> Callable[[], Awaitable[str]]:
        kind = service.recipe.service
        if kind == "s3":
            return partial(self._s3_serves, service, address)
        places: Mapping[str, tuple[Callable[..., Any], dict[str, str]]] = {
            "postgres": (open_postgres, {"url": database_url(address, service)}),
            "temporal": (open_temporal, {"address": address}),
            "valkey": (open_valkey, {"url": f"redis://{address}"}),
            "nats": (open_nats, {"address": address}),
        }
        if kind in places:
            opener, place = places[kind]
            there = {"evidence": self._evidence, "provider": "external", **place}
            return partial(_reached, partial(opener, self._run, **there))
        if service.recipe.health:
            return partial(
                healthy, HttpClient(f"http://{address}", name=service.name), service.recipe.health
            )
        if service.port:
            host, _, port = address.rpartition(":")
            return tcp_accepts(int(port), host=host)
        return _nothing_to_see

    async def _s3_serves(self, service: ComposeService, address: str) -> str:
        url = self._s3_url(service, address)
        seen = await _reached(
            lambda: open_s3(
                self._run, evidence=self._evidence, provider="external", url=url.with_keys
            )
        )
        if not seen and service.recipe.bucket:
            try:
                await make_bucket(url, service.recipe.bucket)
            except (OSError, HarnessError) as error:
                return str(error)
        return seen

    def s3_url(self, service: ComposeService, part: Part) -> str:
        """The URL of a server of the file, keys included."""
        return self._s3_url(service, part.address).with_keys

    def _s3_url(self, service: ComposeService, address: str) -> S3Url:
        host, _, port = address.rpartition(":")
        access, secret = s3_keys(service)
        return S3Url(host=host, port=int(port), access_key=access, secret_key=secret)


async def _images(
    engine: Engine, compose: Compose, *, say: Callable[[str], None]
) -> dict[str, str]:
    """The image of each container: one of a server, one built from the tree, or the file's."""
    found: dict[str, str] = {}
    built: dict[tuple[Path, Path], str] = {}
    for name, service in compose.services.items():
        kind = service.recipe.service
        if kind in _HERE:
            continue
        if kind in SERVER_IMAGES:
            found[name] = await blocking(provide_image, engine, SERVER_IMAGES[kind], say=say)
        elif service.built:
            key = build_of(compose, name)
            if key not in built:
                dockerfile, context = key
                built[key] = await blocking(
                    build_subject_image,
                    engine,
                    name=compose.path.parent.parent.name.lower(),
                    base="python",
                    dockerfile=dockerfile,
                    context=[
                        path
                        for path in sorted(context.iterdir())
                        if not path.name.startswith(".") and path.suffix != ".egg-info"
                    ],
                    say=say,
                )
            found[name] = built[key]
        else:
            found[name] = service.image
    return found


async def _reached(opening: Callable[[], object]) -> str:
    """Probe a server by its own protocol."""
    manager = opening()
    try:
        async with manager:  # type: ignore[attr-defined]
            return ""
    except (HarnessError, OSError) as error:
        return error.observed if isinstance(error, HarnessError) else str(error)


async def _nothing_to_see() -> str:
    return ""
