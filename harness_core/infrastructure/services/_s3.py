"""An S3 server as the rest of the harness sees it, whoever provides it.

``local`` and ``container`` run ``rclone serve s3`` over a directory. It keeps objects and their
times over a kill; the metadata that a client gives an object lives in its memory alone, tags and
versions there are none.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.base.machine import find_program, need_extra
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._providers import check_provider, open_service
from harness_core.infrastructure.services._readiness import Readiness, split_address
from harness_core.infrastructure.services._recipe import Recipe, ServerCommand
from harness_core.infrastructure.services._s3_client import list_buckets, make_bucket
from harness_core.infrastructure.services._s3_url import S3Url, parse_s3_url
from harness_core.infrastructure.services._service import Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

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
            OSError: no server listens.
            S3RefusedError: the server refuses.
        """
        return await list_buckets(self.url)

    @anywhere
    async def make_bucket(self, name: str) -> None:
        """Make a bucket; nothing happens when it is there already."""
        await make_bucket(self.url, name)


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
        say: gets a line for what takes long.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; names what is missing.
    """
    check_provider(
        "open_s3", provider, key="url", given=url, shown="a URL", expected="the URL of a server"
    )
    if url is not None and keys is not None:
        expected = "none with the provider external: they are part of the URL"
        raise BadInput("open_s3", key="keys", found="keys", expected=expected)
    if url is not None:
        known = parse_s3_url(url, where="open_s3")
    else:
        access, secret = keys or (f"harness{secrets.token_hex(6)}", secrets.token_hex(20))
        known = S3Url(host="", port=_PORT, access_key=access, secret_key=secret)
    if keys is None:  # those that the server's users know already may be words
        evidence.redactor.add(known.secret_key)
    need_extra("s3", action="open an S3 server")

    def handle(server: Service) -> S3Service:
        return S3Service(server, _at(server.address, known), provider=provider)

    return open_service(
        run,
        _recipe(run, known),
        handle,
        provider=provider,
        evidence=evidence,
        say=say,
    )


def _recipe(run: Run, keys: S3Url) -> Recipe:
    async def probe(address: str) -> object:
        return await list_buckets(_at(address, keys))

    @asynccontextmanager
    async def local(port: int) -> AsyncIterator[ServerCommand]:
        program = find_program("rclone", variable="HARNESS_RCLONE", extra="s3")
        home = run.directory("s3")
        data = home / "data"
        data.mkdir()
        yield ServerCommand(
            argv=(str(program), *_options(address=f"127.0.0.1:{port}", place=str(data))),
            env=_environment(keys, place=str(home)),
            home=home,
        )

    def container(image: str) -> ContainerSpec:
        return ContainerSpec(
            name="s3",
            image=image,
            port=_PORT,
            command=_options(address=f":{_PORT}", place="/data"),
            env=_environment(keys, place="/tmp"),  # noqa: S108 - the container's own
        )

    return Recipe(
        name="s3",
        readiness=Readiness(probe=probe, seconds=limits.S3_READY_S),
        local=local,
        images=S3_IMAGES,
        container=container,
        external=keys.address,
    )


def _options(*, address: str, place: str) -> tuple[str, ...]:
    """Rclone's command line; the keys are in its environment, which other users cannot read."""
    # A bucket is a directory: without the second option it goes with its last object.
    return ("serve", "s3", "--addr", address, "--no-cleanup", "--log-level", "INFO", place)


def _environment(url: S3Url, *, place: str) -> dict[str, str]:
    return {
        # A list of pairs, as comma-separated values: the pair has a comma of its own.
        "RCLONE_AUTH_KEY": f'"{url.access_key},{url.secret_key}"',
        "RCLONE_CONFIG": f"{place}/rclone.conf",  # there is none: not the user's own
        "RCLONE_CACHE_DIR": f"{place}/rclone-cache",
    }


def _at(address: str, keys: S3Url) -> S3Url:
    """The same keys at another address."""
    host, port = split_address(address)
    return dataclasses.replace(keys, host=host, port=port)
