"""S3 by its providers, used by a client that is not ours."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import build_images
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import (
    S3_URL_VARIABLE,
    S3Service,
    S3Url,
    fetch_object,
    list_objects,
    open_s3,
    parse_s3_url,
    remove_bucket,
)
from harness_core.infrastructure.services._s3_client import S3RefusedError, list_buckets
from harness_core.process import Run
from harness_core.tests.conformance.services import ServiceState, check_service

pytestmark = pytest.mark.real

Open = Callable[..., AbstractAsyncContextManager[S3Service]]


@pytest.fixture
def opened(run: Run, evidence: Evidence, provider: str) -> Open:
    """Opens a server of the chosen provider."""
    url = os.environ.get(S3_URL_VARIABLE) if provider == "external" else None

    def opener(*, evidence: Evidence = evidence):
        return open_s3(run, evidence=evidence, provider=provider, url=url, say=print)

    return opener


@pytest.fixture
def ours(opened: Open, provider: str) -> Open:
    """The same, where the server is ours to fill and to take away."""
    if provider == "external":
        not_run("options", "an external server is not ours to take away")
    return opened


def client(url: S3Url) -> Any:
    """A client that people use, told not to hide an outage behind seconds of retries."""
    config = Config(
        connect_timeout=5,
        read_timeout=5,
        retries={"total_max_attempts": 1},
        s3={"addressing_style": "path"},
    )
    return boto3.client(
        "s3",
        endpoint_url=url.endpoint,
        aws_access_key_id=url.access_key,
        aws_secret_access_key=url.secret_key,
        region_name=url.region,
        config=config,
    )


async def answers(service: S3Service) -> tuple[str, ...]:
    """One round trip."""
    return await service.buckets()


async def write_mark(service: S3Service) -> None:
    """Leave an object."""
    await service.make_bucket("kept")
    await blocking(client(service.url).put_object, Bucket="kept", Key="a/mark", Body=b"\0word")


async def read_mark(service: S3Service) -> bool:
    """Whether it is there, whole."""
    try:
        found = await blocking(client(service.url).get_object, Bucket="kept", Key="a/mark")
    except ClientError:
        return False
    return await blocking(found["Body"].read) == b"\0word"


STATE = ServiceState(write=write_mark, read=read_mark)


async def test_the_chosen_provider_passes_the_conformance_check(
    opened: Open, provider: str, leftovers: Callable[[str], list[str]]
) -> None:
    """A server can be taken away and given back in every way, unless it is somebody else's."""
    await check_service(
        opened,
        ask=answers,
        state=STATE,
        leftovers=partial(leftovers, "s3"),
        controllable=provider != "external",
    )
    async with opened() as service:
        assert isinstance(await service.buckets(), tuple)


@pytest.mark.docker
@pytest.mark.requires("docker")
async def test_container_passes_the_conformance_check(
    run: Run, evidence: Evidence, leftovers: Callable[[str], list[str]]
) -> None:
    """A server in a container is taken away and given back like a local one, and leaves nothing."""
    await blocking(build_images, find_engine(), names=("s3",), say=print)
    await check_service(
        lambda: open_s3(run, evidence=evidence, provider="container"),
        ask=answers,
        state=STATE,
        leftovers=partial(leftovers, "s3"),
    )


async def test_external_passes_the_conformance_check(run: Run, evidence: Evidence) -> None:
    """A server of somebody else is used, never taken away, and lives on."""
    async with open_s3(run, evidence=evidence) as theirs:
        url = theirs.url.with_keys
        await check_service(
            lambda: open_s3(run, evidence=evidence, provider="external", url=url),
            ask=answers,
            controllable=False,
        )

        assert () == await theirs.buckets()


async def test_a_client_stores_and_finds_objects(ours: Open) -> None:
    """What a client library does all day works: put, list by prefix, size, delete; buckets stay."""
    async with ours() as service:
        s3 = client(service.url)
        await blocking(s3.create_bucket, Bucket="work")
        for key in ("a/1", "a/2", "b/1"):
            await blocking(s3.put_object, Bucket="work", Key=key, Body=key.encode() * 1000)
        listed = await blocking(s3.list_objects_v2, Bucket="work", Prefix="a/")
        head = await blocking(s3.head_object, Bucket="work", Key="b/1")
        for key in ("a/1", "a/2", "b/1"):
            await blocking(s3.delete_object, Bucket="work", Key=key)
        left = await blocking(s3.list_objects_v2, Bucket="work")

        assert ["a/1", "a/2"] == [row["Key"] for row in listed["Contents"]]
        assert 3000 == head["ContentLength"]
        assert [] == left.get("Contents", [])
        assert ("work",) == await service.buckets()


async def test_strangers_are_refused(ours: Open) -> None:
    """Without our keys, other users of the machine read and write nothing."""
    async with ours() as service:
        url = service.url
        stranger = S3Url(
            host=url.host, port=url.port, access_key=url.access_key, secret_key="x" * 40
        )
        with pytest.raises(S3RefusedError) as refused:
            await list_buckets(stranger)

        assert 403 == refused.value.status
        assert "SignatureDoesNotMatch" == refused.value.code


async def test_two_servers_do_not_meet(ours: Open, evidence: Evidence) -> None:
    """Servers of one run have addresses, keys and objects of their own."""
    async with (
        ours(evidence=evidence.child("a")) as first,
        ours(evidence=evidence.child("b")) as second,
    ):
        await first.make_bucket("one")
        await first.make_bucket("one")

        assert first.address != second.address
        assert first.url.secret_key != second.url.secret_key
        assert (("one",), ()) == (await first.buckets(), await second.buckets())


async def test_the_secret_is_in_no_evidence(ours: Open, evidence: Evidence) -> None:
    """Nothing written under the evidence directory holds the key, and there is a log."""
    async with ours() as service:
        evidence.write_text("url.txt", service.url.with_keys)
        await write_mark(service)
        secret = service.url.secret_key
    logged = "".join(path.read_text() for path in evidence.path.rglob("*") if path.is_file())

    assert "Starting s3 server" in logged
    assert secret not in logged
    assert secret not in repr(service.url)


async def test_a_missing_program_is_one_clear_error(
    run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not installed is named, with the extra that brings it."""
    monkeypatch.setattr(
        "harness_core.base.machine._programs.shutil.which", lambda *_args, **_more: None
    )
    with pytest.raises(Unavailable, match=r"staging-harness\[s3\]"):
        async with open_s3(run, evidence=evidence):
            pass


async def test_a_dead_external_server_is_one_clear_error(run: Run, evidence: Evidence) -> None:
    """Nobody at the URL: the error names the address and never the key."""
    url = "http://me:geheimnis@127.0.0.1:9/"
    with pytest.raises(Unavailable) as caught:
        async with open_s3(run, evidence=evidence, provider="external", url=url):
            pass

    assert "reach the external s3 on 127.0.0.1:9" == caught.value.action
    assert "geheimnis" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        pytest.param({"provider": "cloud"}, "provider", id="unknown-provider"),
        pytest.param({"url": "http://a:b@h:1"}, "url", id="url-for-local"),
        pytest.param({"provider": "external"}, "url", id="external-without-url"),
        pytest.param({"provider": "external", "url": "http://h:1"}, "url", id="no-keys"),
        pytest.param({"provider": "external", "url": "s3://a:b@bucket"}, "url", id="no-server"),
        pytest.param({"provider": "external", "url": "http://a:b@h:x"}, "url", id="no-port"),
    ],
)
async def test_malformed_arguments_are_refused(
    run: Run, evidence: Evidence, arguments: dict[str, str], key: str
) -> None:
    """Each mistake in the choice of a provider gives one error that names the argument."""
    with pytest.raises(BadInput) as caught:
        async with open_s3(run, evidence=evidence, **arguments):
            pass

    assert key == caught.value.key


def test_a_url_is_what_it_was_made_from() -> None:
    """Keys with every character survive the way into a URL and back."""
    url = S3Url(
        host="::1", port=9, access_key="a/b", secret_key="p:@/?#%+ ä", region="eu", secure=True
    )

    assert url == parse_s3_url(url.with_keys, where="here")


async def test_what_lies_in_a_bucket_is_told_as_it_was_put_there(ours):
    """Keys of every kind, bytes, etag, content type and metadata, as another client put them."""
    keys = ("a/b c.txt", "a/ü+&=%41.bin", "b/plain")
    body = bytes(range(256)) * 64
    async with ours() as server:
        await server.make_bucket("things")
        put = partial(
            client(server.url).put_object,
            Bucket="things",
            Body=body,
            ContentType="model/step",
            Metadata={"episode_id": "e-1"},
        )
        etags = {key: (await blocking(put, Key=key))["ETag"].strip('"') for key in keys}

        listed = await list_objects(server.url, "things")
        below = await list_objects(server.url, "things", prefix="a/")
        found = await fetch_object(server.url, "things", keys[1])

        assert sorted((key, len(body), etags[key]) for key in keys) == sorted(
            (each.key, each.size_bytes, each.etag) for each in listed
        )
        assert set(keys[:2]) == {each.key for each in below}
        assert (body, etags[keys[1]], "model/step") == (found.body, found.etag, found.content_type)
        assert "e-1" == found.metadata["episode_id"]
        with pytest.raises(S3RefusedError) as error:
            await fetch_object(server.url, "things", "a/nothing")
        assert "NoSuchKey" == error.value.code
        with pytest.raises(S3RefusedError):
            await list_objects(server.url, "no-such-bucket")
        await remove_bucket(server.url, "things")
        assert "things" not in await server.buckets()


async def test_a_server_of_ours_can_be_given_its_keys(run, evidence):
    """Those that its users know already; any other is refused."""
    async with open_s3(run, evidence=evidence, keys=("shop", "shop-secret")) as server:
        assert ("shop", "shop-secret") == (server.url.access_key, server.url.secret_key)
        assert () == await server.buckets()
        with pytest.raises(S3RefusedError):
            await list_buckets(dataclasses.replace(server.url, secret_key="another"))
