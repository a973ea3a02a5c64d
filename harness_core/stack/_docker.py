"""Driver *docker*: the containers of a compose file, created by compose and started by us.

Compose makes the containers, with all options of the file; what they share (a network, volumes) and
the order in which they start is ours, so that a service that does not come up is named here as it is
without containers. The model gateway and recorders run in the harness: containers reach them by
their own names, at the gateway address of their network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from harness_core import limits
from harness_core.bridge import blocking, this_loop
from harness_core.containers import (
    adopt_container,
    announce_container,
    build_subject_image,
    open_network,
    open_volume,
    provide_image,
)
from harness_core.engine import Engine, find_engine
from harness_core.errors import HarnessError
from harness_core.groups import lone_error
from harness_core.http import HttpClient
from harness_core.net import PortLease, lease_port, tcp_accepts
from harness_core.services import (
    SERVER_IMAGES,
    S3Url,
    make_bucket,
    open_postgres,
    open_s3,
    open_temporal,
)
from harness_core.stack._boot import boot
from harness_core.stack._compose import Compose, ComposeService
from harness_core.stack._container_part import ContainerPart
from harness_core.stack._control import PartsControl
from harness_core.stack._credentials import database_url
from harness_core.stack._description import Description, ServiceSeen
from harness_core.stack._handle import Stack
from harness_core.stack._here import Here
from harness_core.stack._keys import s3_keys
from harness_core.stack._local import bottom_up
from harness_core.stack._options import StackOptions
from harness_core.stack._part import Part
from harness_core.stack._probe import healthy
from harness_core.stack._project_file import DATA, Project, build_of, create_containers
from harness_core.stack._recipe import KINDS
from harness_core.stack._relay import open_relay

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.process import Run

__all__ = ["open_docker_stack"]

Say = Callable[[str], None]

#: What the harness does itself in place of a container.
_HERE: Final = frozenset({"gateway", "recorder"})


@asynccontextmanager
async def open_docker_stack(
    run: Run,
    compose: Compose,
    *,
    options: StackOptions,
    evidence: Evidence,
    say: Say,
) -> AsyncIterator[Stack]:
    """Boot a stack as containers; see :func:`harness_core.stack.open_stack`.

    Raises:
        Unavailable: no engine, no compose, no image.
    """
    began = trio.current_time()

    def note(text: str) -> None:
        say(f"{text} ({trio.current_time() - began:.1f} s)")

    engine = await blocking(find_engine)
    images = await _images(engine, compose, say=say)
    async with lone_error(), AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        maker = _Maker(
            run=run,
            compose=compose,
            engine=engine,
            options=options,
            evidence=evidence,
            nursery=nursery,
            stack=stack,
        )
        parts = await maker.parts(images)
        stack.push_async_callback(_stop_here, parts)
        waits = {name: service.depends_on for name, service in compose.services.items()}
        await boot(parts, waits, stack=str(compose.path), say=note)
        description = maker.description(parts, boot_s=trio.current_time() - began)
        loop = await stack.enter_async_context(this_loop(f"the stack {description.title}"))
        ordered = {name: parts[name] for name in bottom_up(compose)}
        handle = Stack(description, PartsControl(ordered, loop=loop, say=say))
        stack.push_async_callback(handle.close)
        yield handle


async def _stop_here(parts: Mapping[str, Part]) -> None:
    """End what runs in this process; containers are removed as they are."""
    with trio.CancelScope(shield=True):
        for part in parts.values():
            if not isinstance(part, ContainerPart):
                await part.stop()


async def _images(engine: Engine, compose: Compose, *, say: Say) -> dict[str, str]:
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


class _Maker:
    """Makes the parts of one stack."""

    def __init__(  # noqa: PLR0913 - built in one place
        self,
        *,
        run: Run,
        compose: Compose,
        engine: Engine,
        options: StackOptions,
        evidence: Evidence,
        nursery: trio.Nursery,
        stack: AsyncExitStack,
    ) -> None:
        self._run = run
        self._compose = compose
        self._engine = engine
        self._options = options
        self._evidence = evidence
        self._stack = stack
        self._home = run.directory("compose")
        # A run may have several stacks.
        self._project = f"hs-{run.id}-{self._home.name}"
        self._here = Here(
            run=run,
            options=options,
            evidence=evidence,
            nursery=nursery,
            lease=self._lease,
            data_of=lambda name: self._run.directory(f"data-{name}"),
        )
        self._environments: dict[str, Mapping[str, str]] = {}

    def _lease(self) -> PortLease:
        return self._stack.enter_context(lease_port())

    async def parts(self, images: Mapping[str, str]) -> dict[str, Part]:
        """Create everything and start nothing."""
        services = self._compose.services.values()
        network = f"{self._project}-network"
        enter = self._stack.enter_async_context
        gateway = await enter(open_network(self._run, network, engine=self._engine))
        here: dict[str, Part] = {}
        for service in services:
            if service.recipe.service in _HERE:
                make = getattr(self._here, service.recipe.service)
                here[service.name] = make(service)
                await enter(
                    open_relay(
                        gateway,
                        service.port or KINDS[service.recipe.service],
                        to=int(here[service.name].address.rpartition(":")[2]),
                        name=service.name,
                    )
                )
        project = Project(
            name=self._project,
            compose=self._compose,
            images=images,
            network=network,
            hosts=dict.fromkeys(here, gateway),
            ports={each.name: self._lease().hand_over() for each in services if each.port},
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
            home=self._home,
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
        self._environments[service.name] = {
            name: value.replace("{data}", DATA) for name, value in service.environment.items()
        }
        return ContainerPart(
            service.name,
            container,
            published=bool(port),
            once=service.one_shot,
            probe=self._probe(service, container.address),
            ready_s=service.recipe.ready_s or limits.STACK_READY_S,
        )

    def _probe(self, service: ComposeService, address: str) -> Callable[[], Awaitable[str]]:
        kind = service.recipe.service
        if kind == "postgres":
            url = database_url(address, service)
            return partial(
                _reached,
                lambda: open_postgres(
                    self._run, evidence=self._evidence, provider="external", url=url
                ),
            )
        if kind == "s3":
            return partial(self._s3_serves, service, address)
        if kind == "temporal":
            return partial(
                _reached,
                lambda: open_temporal(
                    self._run, evidence=self._evidence, provider="external", address=address
                ),
            )
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

    def _s3_url(self, service: ComposeService, address: str) -> S3Url:
        host, _, port = address.rpartition(":")
        access, secret = s3_keys(service)
        return S3Url(host=host, port=int(port), access_key=access, secret_key=secret)

    def description(self, parts: Mapping[str, Part], *, boot_s: float) -> Description:
        """How the running stack is reached."""
        database = s3_url = bucket = ""
        for name, service in self._compose.services.items():
            if service.recipe.service == "postgres":
                database = database_url(parts[name].address, service)
            elif service.recipe.service == "s3":
                s3_url = self._s3_url(service, parts[name].address).with_keys
                bucket = service.recipe.bucket
        return Description(
            title=self._compose.path.parent.name,
            driver="docker",
            boot_s=boot_s,
            evidence=self._evidence.path,
            services={
                name: ServiceSeen(
                    address=parts[name].address,
                    kind=service.recipe.service or "container",
                    log=name,
                    environment=self._environments.get(name, {}),
                )
                for name, service in self._compose.services.items()
            },
            database_url=database,
            s3_url=s3_url,
            bucket=bucket,
            gateway_key=self._here.gateway_key,
            gateway_token=self._here.gateway_token,
        )


async def _reached(opening: Callable[[], object]) -> str:
    """One look at a server by its own protocol."""
    manager = opening()
    try:
        async with manager:  # type: ignore[attr-defined]
            return ""
    except (HarnessError, OSError) as error:
        return error.observed if isinstance(error, HarnessError) else str(error)


async def _nothing_to_see() -> str:
    return ""
