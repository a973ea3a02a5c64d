"""Every kind of server by every provider: one conformance check, and one error for each mistake."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.machine import find_program
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import build_images, image_tag
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import (
    S3RefusedError,
    external_address,
    fetch_object,
    open_nats,
    open_nats_connection,
    open_postgres,
    open_s3,
    open_temporal,
    open_valkey,
    postgres_answers,
)
from harness_core.infrastructure.services._s3_client import ask_s3
from harness_core.tests.conformance.services import ServiceState, check_service

pytestmark = pytest.mark.real


async def write_table(service: Any) -> None:
    """Leave a table."""
    async with Database(service.url()) as database:
        await database.execute("create table mark (word text)")


async def read_table(service: Any) -> bool:
    """Whether the table is there."""
    async with Database(service.url()) as database:
        return (await database.one("select to_regclass('mark') is not null as there"))["there"]


async def write_object(service: Any) -> None:
    """Leave an object; a bucket that is there may be made once more."""
    await service.make_bucket("kept")
    await service.make_bucket("kept")

    def put(client: Any) -> None:
        client.put_object(Bucket="kept", Key="a/mark", Body=b"\0word")

    await ask_s3(service.url, put)


async def read_object(service: Any) -> bool:
    """Whether it is there, whole."""
    try:
        return b"\0word" == (await fetch_object(service.url, "kept", "a/mark")).body
    except S3RefusedError:
        return False


async def temporal(service: Any, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of Temporal's own command line on this server."""
    program = find_program("temporal", variable="HARNESS_TEMPORAL", extra="temporal")
    argv = [program, "workflow", *words, "--workflow-id", "mark", "--address", service.address]
    return await blocking(
        subprocess.run,
        [*argv, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def write_workflow(service: Any) -> None:
    """Start a workflow, which waits for a worker."""
    done = await temporal(service, "start", "--type", "Kept", "--task-queue", "unserved")

    assert 0 == done.returncode, done.stderr


async def read_workflow(service: Any) -> bool:
    """Whether it still waits."""
    done = await temporal(service, "describe")
    if done.returncode != 0:
        return False
    status = json.loads(done.stdout)["workflowExecutionInfo"]["status"]
    return status == "WORKFLOW_EXECUTION_STATUS_RUNNING"


async def write_key(service: Any) -> None:
    """Leave a key."""
    await service.command("SET", "mark", b"\0word\r\n")


async def read_key(service: Any) -> bool:
    """Whether it is there, whole."""
    return await service.command("GET", "mark") == b"\0word\r\n"


async def write_stream(service: Any) -> None:
    """Leave a message in a stream, acknowledged."""
    async with open_nats_connection(service.address) as connection:
        made = {"name": "KEPT", "subjects": ["kept.*"], "storage": "file"}
        await connection.ask("$JS.API.STREAM.CREATE.KEPT", made)
    async with open_nats_connection(service.address) as connection:
        assert 1 == (await connection.ask("kept.mark", {"word": 1}))["seq"]


async def read_stream(service: Any) -> bool:
    """Whether stream and message are there."""
    if "KEPT" not in await service.streams():
        return False
    async with open_nats_connection(service.address) as connection:
        found = await connection.ask("$JS.API.STREAM.INFO.KEPT", {})
    return found["state"]["messages"] == 1


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of server.

    Args:
        name: as its own ``name`` says.
        opener: opens one.
        ask: one round trip.
        state: leaves something, and finds it.
        external: the arguments that make one of ours an external one.
        secret: what two of them must not share.
        nowhere: such arguments for a port without a listener.
    """

    name: str
    opener: Callable[..., Any]
    ask: Callable[[Any], Awaitable[object]]
    state: ServiceState
    external: Callable[[Any], dict[str, str]]
    secret: Callable[[Any], str]
    nowhere: Callable[[int], dict[str, str]]


KINDS = [
    Kind(
        name="postgres",
        opener=open_postgres,
        ask=postgres_answers,
        state=ServiceState(write=write_table, read=read_table),
        external=lambda service: {"url": service.url()},
        secret=lambda service: service.url().partition("@")[0],
        nowhere=lambda port: {"url": f"postgresql://me:geheimnis@127.0.0.1:{port}/x"},
    ),
    Kind(
        name="s3",
        opener=open_s3,
        ask=lambda service: service.buckets(),
        state=ServiceState(write=write_object, read=read_object),
        external=lambda service: {"url": service.url.with_keys},
        secret=lambda service: service.url.secret_key,
        nowhere=lambda port: {"url": f"http://me:geheimnis@127.0.0.1:{port}/"},
    ),
    Kind(
        name="temporal",
        opener=open_temporal,
        ask=lambda service: service.answers(),
        state=ServiceState(write=write_workflow, read=read_workflow),
        external=lambda service: {"address": service.address},
        secret=lambda service: service.address,
        nowhere=lambda port: {"address": f"127.0.0.1:{port}"},
    ),
    Kind(
        name="valkey",
        opener=open_valkey,
        ask=lambda service: service.command("PING"),
        state=ServiceState(write=write_key, read=read_key),
        external=lambda service: {"url": service.url},
        secret=lambda service: service.address,
        nowhere=lambda port: {"url": f"redis://127.0.0.1:{port}"},
    ),
    Kind(
        name="nats",
        opener=open_nats,
        ask=lambda service: service.streams(),
        state=ServiceState(write=write_stream, read=read_stream),
        external=lambda service: {"address": service.address},
        secret=lambda service: service.address,
        nowhere=lambda port: {"address": f"127.0.0.1:{port}"},
    ),
]

of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@of_each_kind
async def test_the_chosen_provider_passes_the_conformance_check(kind, opened, provider, leftovers):
    """A server can be taken away and given back in every way, unless it is external."""
    await check_service(
        partial(opened, kind.name),
        ask=kind.ask,
        state=kind.state,
        leftovers=partial(leftovers, kind.name),
        controllable=provider != "external",
    )
    async with opened(kind.name) as service:
        assert (kind.name, provider) == (service.name, service.provider)


@pytest.mark.docker
@pytest.mark.requires("docker")
@pytest.mark.parametrize(
    ("kind", "image"),
    [
        pytest.param(KINDS[0], "postgres-baked", id="postgres-baked"),
        pytest.param(KINDS[0], "postgres", id="postgres"),
        pytest.param(KINDS[1], "s3", id="s3"),
        pytest.param(KINDS[2], "temporal", id="temporal"),
        pytest.param(KINDS[3], "valkey", id="valkey"),
        pytest.param(KINDS[4], "nats", id="nats"),
    ],
)
async def test_container_passes_the_conformance_check(
    kind, image, run, evidence, leftovers, monkeypatch
):
    """A server in a container is taken away and given back like a local one, and leaves nothing."""
    await blocking(build_images, find_engine(), names=(image,), say=print)
    monkeypatch.setenv(f"HARNESS_{kind.name.upper()}_IMAGE", image_tag(image))
    await check_service(
        lambda: kind.opener(run, evidence=evidence, provider="container"),
        ask=kind.ask,
        state=kind.state,
        leftovers=partial(leftovers, kind.name),
    )


@of_each_kind
async def test_external_passes_the_conformance_check(kind, run, evidence):
    """An external server is used, never taken away, and lives on."""
    async with kind.opener(run, evidence=evidence) as theirs:
        more = kind.external(theirs)
        await check_service(
            lambda: kind.opener(run, evidence=evidence, provider="external", **more),
            ask=kind.ask,
            controllable=False,
        )
        await kind.state.write(theirs)

        assert await kind.state.read(theirs)


@of_each_kind
async def test_two_servers_do_not_meet(kind, opened, provider, evidence):
    """Servers of one run have addresses, secrets and data of their own."""
    if provider == "external":
        not_run("options", "an external server is not ours to fill")
    async with (
        opened(kind.name, evidence=evidence.child("a")) as first,
        opened(kind.name, evidence=evidence.child("b")) as second,
    ):
        await kind.state.write(first)

        assert first.address != second.address
        assert kind.secret(first) != kind.secret(second)
        assert not await kind.state.read(second)


@of_each_kind
async def test_a_dead_external_server_is_one_clear_error(kind, run, evidence):
    """Without a server at its place the error names the address and never the secret."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Unavailable) as caught:
        async with kind.opener(run, evidence=evidence, provider="external", **kind.nowhere(port)):
            pass

    assert f"reach the external {kind.name} on 127.0.0.1:{port}" == caught.value.action
    assert "geheimnis" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        pytest.param(KINDS[1], {}, id="s3-local"),
        pytest.param(KINDS[2], {}, id="temporal-local"),
        pytest.param(KINDS[3], {}, id="valkey-local"),
        pytest.param(KINDS[4], {}, id="nats-local"),
        pytest.param(KINDS[2], {"provider": "container"}, id="temporal-container"),
        pytest.param(
            KINDS[2], {"provider": "external", "address": "127.0.0.1:9"}, id="temporal-external"
        ),
    ],
)
async def test_a_missing_program_is_one_clear_error(kind, arguments, run, evidence, monkeypatch):
    """The extra that brings it is named, and at once: not when a start has taken too long.

    Temporal's is its client too, and so is needed for every provider.
    """
    monkeypatch.setattr(
        "harness_core.base.machine._programs.shutil.which", lambda *_args, **_more: None
    )
    with pytest.raises(Unavailable, match=rf"staging-harness\[{kind.name}\]"):
        async with kind.opener(run, evidence=evidence, **arguments):
            pass


#: Opener, arguments, and the one that is refused.
MALFORMED = {
    "postgres-provider": (open_postgres, {"provider": "cloud"}, "provider"),
    "postgres-url-for-local": (open_postgres, {"url": "postgresql://h/"}, "url"),
    "postgres-no-url": (open_postgres, {"provider": "external"}, "url"),
    "postgres-scheme": (open_postgres, {"provider": "external", "url": "mysql://h/"}, "url"),
    "postgres-no-host": (open_postgres, {"provider": "external", "url": "postgresql:///x"}, "url"),
    "postgres-port": (open_postgres, {"provider": "external", "url": "postgresql://h:x/"}, "url"),
    "postgres-settings": (
        open_postgres,
        {"provider": "external", "url": "postgresql://h/", "settings": {"jit": "on"}},
        "settings",
    ),
    "s3-provider": (open_s3, {"provider": "cloud"}, "provider"),
    "s3-url-for-local": (open_s3, {"url": "http://a:b@h:1"}, "url"),
    "s3-no-url": (open_s3, {"provider": "external"}, "url"),
    "s3-no-keys": (open_s3, {"provider": "external", "url": "http://h:1"}, "url"),
    "s3-no-server": (open_s3, {"provider": "external", "url": "s3://a:b@bucket"}, "url"),
    "s3-port": (open_s3, {"provider": "external", "url": "http://a:b@h:x"}, "url"),
    "s3-keys": (
        open_s3,
        {"provider": "external", "url": "http://a:b@h:1", "keys": ("a", "b")},
        "keys",
    ),
    "temporal-provider": (open_temporal, {"provider": "cloud"}, "provider"),
    "temporal-address-for-local": (open_temporal, {"address": "h:1"}, "address"),
    "temporal-namespace-for-local": (open_temporal, {"namespace": "other"}, "namespace"),
    "temporal-no-address": (open_temporal, {"provider": "external"}, "address"),
    "temporal-port": (open_temporal, {"provider": "external", "address": "h"}, "address"),
    "valkey-provider": (open_valkey, {"provider": "cloud"}, "provider"),
    "valkey-url-for-local": (open_valkey, {"url": "redis://h:1"}, "url"),
    "valkey-no-url": (open_valkey, {"provider": "external"}, "url"),
    "valkey-scheme": (open_valkey, {"provider": "external", "url": "http://h:1"}, "url"),
    "valkey-port": (open_valkey, {"provider": "external", "url": "redis://h:x"}, "url"),
    "valkey-number": (open_valkey, {"provider": "external", "url": "redis://h:1/a"}, "url"),
    "valkey-password": (open_valkey, {"provider": "external", "url": "redis://:p@h:1"}, "url"),
    "nats-provider": (open_nats, {"provider": "cloud"}, "provider"),
    "nats-address-for-local": (open_nats, {"address": "h:1"}, "address"),
    "nats-no-address": (open_nats, {"provider": "external"}, "address"),
    "nats-port": (open_nats, {"provider": "external", "address": "h"}, "address"),
}


@pytest.mark.parametrize(("opener", "arguments", "key"), MALFORMED.values(), ids=MALFORMED)
async def test_malformed_arguments_are_refused(run, evidence, opener, arguments, key):
    """Each mistake in the choice of a provider gives one error that names the argument."""
    with pytest.raises(BadInput) as caught:
        async with opener(run, evidence=evidence, **arguments):
            pass

    assert key == caught.value.key


def test_an_external_server_that_is_not_named_is_one_clear_error(monkeypatch: Any) -> None:
    """With the variable that would name it, and what to do without; else it is what the variable has."""
    monkeypatch.delenv("SHOP_URL", raising=False)
    with pytest.raises(Unavailable, match=r"SHOP_URL is not set.*--services local"):
        external_address("postgres", variable="SHOP_URL")
    monkeypatch.setenv("SHOP_URL", "postgresql://me@there/")

    assert "postgresql://me@there/" == external_address("postgres", variable="SHOP_URL")
