"""An S3 server as the rest of the harness sees it, whoever provides it.

``local`` and ``container`` run ``rclone serve s3`` over a directory. It keeps objects and their
times over a kill; the metadata that a client gives an object lives in its memory alone, tags and
versions there are none.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.base.machine import find_program, need_extra
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._as_child import ServerCommand, open_child_server
from harness_core.infrastructure.services._elsewhere import ExternalServer
from harness_core.infrastructure.services._handle import ServiceHandle, opened_here
from harness_core.infrastructure.services._in_container import open_container_server
from harness_core.infrastructure.services._readiness import Readiness, reach
from harness_core.infrastructure.services._s3_client import list_buckets, make_bucket
from harness_core.infrastructure.services._s3_url import S3Url, parse_s3_url
from harness_core.infrastructure.services._service import Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["S3_URL_VARIABLE", "S3Service", "open_s3"]

#: Where the URL of an external server is given; on a command line its keys could be read.
S3_URL_VARIABLE: Final = "HARNESS_S3_URL"

S3_IMAGES: Final = ImageChoice(
    variable="HARNESS_S3_IMAGE", prepared=("s3",), public="rclone/rclone:1.75.2"
)
_PORT: Final = 8080


class S3Service(ServiceHandle):
    """An S3 server for tests; a :class:`~harness_core.infrastructure.services.Service`.

    Built only by :func:`open_s3`.

    Attributes:
        url: its address, our keys there, and the region.
    """

    def __init__(self, service: Service, url: S3Url, *, provider: str) -> None:
        super().__init__(service, provider=provider)
        self.url = url

    @anywhere
    async def buckets(self) -> tuple[str, ...]:
        """The names of all buckets.

        Raises:
            OSError: nobody listens.
            S3RefusedError: the server refuses.
        """
        return await list_buckets(self.url)

    @anywhere
    async def make_bucket(self, name: str) -> None:
        """Make a bucket; nothing happens when it is there already."""
        await make_bucket(self.url, name)


def _options(*, address: str, place: str) -> tuple[str, ...]:
    """Rclone's command line; the keys are in its environment, which nobody else can read."""
    # A bucket is a directory: without the second option it goes with its last object.
    return ("serve", "s3", "--addr", address, "--no-cleanup", "--log-level", "INFO", place)


def _environment(url: S3Url, *, place: str) -> dict[str, str]:
    return {
        # A list of pairs, as comma-separated values: the pair has a comma of its own.
        "RCLONE_AUTH_KEY": f'"{url.access_key},{url.secret_key}"',
        "RCLONE_CONFIG": f"{place}/rclone.conf",  # there is none: not the user's own
        "RCLONE_CACHE_DIR": f"{place}/rclone-cache",
    }


def _new_url(host: str, port: int, *, keys: tuple[str, str] | None, evidence: Evidence) -> S3Url:
    """Keys of this run, or those that the server's users know already."""
    if keys is None:
        keys = f"harness{secrets.token_hex(6)}", secrets.token_hex(20)
        evidence.redactor.add(keys[1])
    return S3Url(host=host, port=port, access_key=keys[0], secret_key=keys[1])


def _at(address: str, keys: S3Url) -> S3Url:
    """The same keys at another address."""
    host, _, port = address.rpartition(":")
    return dataclasses.replace(keys, host=host.strip("[]"), port=int(port))


def _readiness(keys: S3Url) -> Readiness:
    async def probe(address: str) -> object:
        return await list_buckets(_at(address, keys))

    return Readiness(probe=probe, seconds=limits.S3_READY_S)


@asynccontextmanager
async def _open_local(
    run: Run,
    *,
    evidence: Evidence,
    url: str | None,
    keys: tuple[str, str] | None,
    say: Say,  # noqa: ARG001 - the shape of all providers
) -> AsyncIterator[S3Service]:
    _refuse_url(url, "local")
    program = find_program("rclone", variable="HARNESS_RCLONE", extra="s3")
    home = run.directory("s3")
    data = home / "data"
    data.mkdir()
    ours = _new_url("127.0.0.1", 0, keys=keys, evidence=evidence)

    def command(port: int) -> ServerCommand:
        return ServerCommand(
            name="s3",
            argv=(str(program), *_options(address=f"127.0.0.1:{port}", place=str(data))),
            env=_environment(ours, place=str(home)),
            home=home,
        )

    readiness = _readiness(ours)
    async with open_child_server(run, command, readiness=readiness, evidence=evidence) as server:
        yield S3Service(server, _at(server.address, ours), provider="local")


@asynccontextmanager
async def _open_container(
    run: Run,
    *,
    evidence: Evidence,
    url: str | None,
    keys: tuple[str, str] | None,
    say: Say,
) -> AsyncIterator[S3Service]:
    _refuse_url(url, "container")
    ours = _new_url("", _PORT, keys=keys, evidence=evidence)

    def spec(image: str) -> ContainerSpec:
        return ContainerSpec(
            name="s3",
            image=image,
            port=_PORT,
            command=_options(address=f":{_PORT}", place="/data"),
            env=_environment(ours, place="/tmp"),  # noqa: S108 - the container's own
        )

    async with open_container_server(
        run,
        spec,
        images=S3_IMAGES,
        readiness=_readiness(ours),
        evidence=evidence,
        say=say,
    ) as (server, _container):
        yield S3Service(server, _at(server.address, ours), provider="container")


@asynccontextmanager
async def _open_external(
    run: Run,  # noqa: ARG001 - the shape of all providers
    *,
    evidence: Evidence,
    url: str | None,
    keys: tuple[str, str] | None,
    say: Say,  # noqa: ARG001
) -> AsyncIterator[S3Service]:
    if keys is not None:
        expected = "none with the provider external: they are part of the URL"
        raise BadInput("open_s3", key="keys", found="keys", expected=expected)
    if not url:
        raise BadInput("open_s3", key="url", found=url, expected="the URL of a server")
    parts = parse_s3_url(url, where="open_s3")
    evidence.redactor.add(parts.secret_key)
    await reach("s3", parts.address, _readiness(parts))
    yield S3Service(ExternalServer(name="s3", address=parts.address), parts, provider="external")


_PROVIDERS: Final[Mapping[str, Callable[..., AbstractAsyncContextManager[S3Service]]]] = {
    "container": _open_container,
    "external": _open_external,
    "local": _open_local,
}


def open_s3(
    run: Run,
    *,
    evidence: Evidence,
    provider: str = "local",
    url: str | None = None,
    keys: tuple[str, str] | None = None,
    say: Say = lambda _text: None,
) -> AbstractAsyncContextManager[S3Service]:
    """Open an S3 server; it is stopped and removed, with its objects, at the end of the block.

    Args:
        run: the run it belongs to and dies with.
        evidence: directory for its log.
        provider: ``local``, ``container`` or ``external``.
        url: of the server, for the provider ``external`` alone: see :class:`S3Url`.
        keys: access key and secret key of a server of our own; made up otherwise.
        say: told what takes long.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; says what is missing.
    """
    opener = _PROVIDERS.get(provider)
    if opener is None:
        expected = f"one of {', '.join(sorted(_PROVIDERS))}"
        raise BadInput("open_s3", key="provider", found=provider, expected=expected)
    need_extra("s3", action="open an S3 server")
    return opened_here(opener(run, evidence=evidence, url=url, keys=keys, say=say))


def _refuse_url(url: str | None, provider: str) -> None:
    if url is not None:
        expected = f"none with the provider {provider}, which starts a server of its own"
        raise BadInput("open_s3", key="url", found="a URL", expected=expected)
