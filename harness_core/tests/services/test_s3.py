"""S3 by its providers, used by a client that is not ours."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.config import Config

from harness_core.base.bridge import blocking
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.services import (
    S3Url,
    fetch_object,
    list_objects,
    parse_s3_url,
    remove_bucket,
    remove_object,
)
from harness_core.infrastructure.services._s3_client import S3RefusedError, list_buckets

pytestmark = pytest.mark.real

KIND = "s3"


def client(url: S3Url) -> Any:
    """A client that people use, set not to hide an outage behind seconds of retries."""
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


async def test_a_client_stores_and_finds_objects(ours) -> None:
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


async def test_the_secret_is_in_no_evidence(ours, evidence: Evidence) -> None:
    """Nothing written under the evidence directory holds the key, and there is a log."""
    async with ours() as service:
        evidence.write_text("url.txt", service.url.with_keys)
        await service.make_bucket("kept")
        await blocking(client(service.url).put_object, Bucket="kept", Key="a", Body=b"word")
        secret = service.url.secret_key
    logged = "".join(path.read_text() for path in evidence.path.rglob("*") if path.is_file())

    assert "Starting s3 server" in logged
    assert secret not in logged
    assert secret not in repr(service.url)


def test_a_url_is_what_it_was_made_from() -> None:
    """Keys with every character survive the way into a URL and back."""
    url = S3Url(
        host="::1", port=9, access_key="a/b", secret_key="p:@/?#%+ ä", region="eu", secure=True
    )

    assert url == parse_s3_url(url.with_keys, where="here")


async def test_what_lies_in_a_bucket_is_as_it_was_put_there(ours):
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
        for _ in range(2):
            await remove_object(server.url, "things", keys[1])
        left = [each.key for each in await list_objects(server.url, "things")]
        assert sorted({*keys} - {keys[1]}) == left
        await remove_bucket(server.url, "things")
        assert "things" not in await server.buckets()


@pytest.mark.parametrize("keys", [None, ("shop", "shop-secret")], ids=["made", "given"])
async def test_only_its_keys_open_a_server_of_ours(ours, keys):
    """Its users may know them already; with any other one can neither read nor write."""
    async with ours(keys=keys) as server:
        assert keys in {None, (server.url.access_key, server.url.secret_key)}
        assert () == await server.buckets()
        with pytest.raises(S3RefusedError) as refused:
            await list_buckets(dataclasses.replace(server.url, secret_key="x" * 40))

    assert (403, "SignatureDoesNotMatch") == (refused.value.status, refused.value.code)
