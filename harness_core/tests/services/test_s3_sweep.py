"""Buckets of dead runs on a server that is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.errors import Unavailable
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.services import (
    S3_URL_VARIABLE,
    S3Service,
    make_bucket,
    name_bucket,
    open_s3,
    sweep_bucket,
)
from harness_core.infrastructure.services._s3_client import ask_s3
from harness_core.process import Run

OURS = name_bucket("assets", run_id="dead")


@pytest.fixture
def server(harness_loop: Loop, harness_run: Run, evidence: Evidence) -> Iterator[S3Service]:
    """A server that stands for an external one."""
    with harness_loop.hold(open_s3(harness_run, evidence=evidence)) as opened:
        yield opened


def entry(server: S3Service, *, bucket: str = OURS) -> dict[str, str]:
    """In the ledger of the dead run."""
    return {"kind": "bucket", "server": server.address, "run": "dead", "bucket": bucket}


def test_a_name_says_whose_it_is_and_is_never_too_long() -> None:
    """Every S3 server takes it, and two runs never share one."""
    assert "hs-a1-assets" == name_bucket("assets", run_id="a1")
    assert 63 == len(name_bucket("x" * 99, run_id="a1"))
    assert not name_bucket("x" * 56 + "-yz", run_id="a1").endswith("-")


@pytest.mark.real
def test_only_the_bucket_of_that_run_is_removed(
    server: S3Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket goes with what lies in it; one of another run and a foreign one stay."""
    others = {name_bucket("assets", run_id="alive"), "foreign"}
    for name in (OURS, *others):
        trio.run(make_bucket, server.url, name)
    put = methodcaller("put_object", Bucket=OURS, Key="a folder/an object", Body=b"anything")
    trio.run(ask_s3, server.url, put)
    monkeypatch.setenv(S3_URL_VARIABLE, server.url.with_keys)
    removed = sweep_bucket(entry(server))
    again = sweep_bucket(entry(server))
    foreign = sweep_bucket(entry(server, bucket="foreign"))

    assert OURS in removed
    assert ("", "") == (again, foreign)
    assert others == set(trio.run(server.buckets))


@pytest.mark.parametrize("given", ["", "http://me:secret-word@127.0.0.1:1"])
def test_another_server_is_never_touched(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the URL of the very server the ledger names, the sweep names what it needs."""
    monkeypatch.setenv(S3_URL_VARIABLE, given)
    with pytest.raises(Unavailable) as caught:
        sweep_bucket({"server": "10.1.2.3:9000", "run": "dead", "bucket": OURS})

    assert S3_URL_VARIABLE in caught.value.next_step
    assert "secret-word" not in str(caught.value)


def test_a_server_that_is_away_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger keeps the entry, since the sweep did not succeed."""
    monkeypatch.setenv(S3_URL_VARIABLE, "http://me:secret-word@127.0.0.1:1")
    with pytest.raises(Unavailable, match="does not answer"):
        sweep_bucket({"server": "127.0.0.1:1", "run": "dead", "bucket": OURS})
