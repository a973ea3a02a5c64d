"""The handle of a stack: what it reads, and what it refuses."""

from types import MappingProxyType

import pytest

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import HttpClient
from harness_core.ports import lease_port
from harness_core.system.compose import Access, Stack
from harness_core.system.parts import Booted, Part, open_parts, recorder_part


class Idle(Part):
    """A part of which only what it left is looked at."""

    def __init__(self, name, kind, address, evidence, log=""):
        super().__init__(name, kind=kind, evidence=evidence, log=log)
        self.where = address

    @property
    def address(self):
        """Where a test says."""
        return self.where

    async def _nothing(self):
        raise AssertionError("nothing of it is started")

    _check = _start = _stop = _kill = _pause = _resume = _nothing


def stack_of(folder, *, names=MappingProxyType({}), **access) -> Stack:
    """A stack whose logs are in the folder."""
    evidence = open_evidence(folder)
    parts = [
        Idle("worker", "process", "127.0.0.1:1", evidence),
        Idle("controller-worker", "process", "", evidence),
        Idle("db", "postgres", "127.0.0.1:2", evidence, log="postgres"),
        Idle("langfuse", "recorder", "127.0.0.1:3", evidence),
    ]
    booted = Booted(
        title="t",
        parts={part.name: part for part in parts},
        boot_s=1.0,
        evidence=folder,
        loop=None,
    )
    return Stack(booted, Access(driver="local", **access), names=names)


def test_logs_are_those_of_all_lives_of_the_service_alone(tmp_path):
    """In the order of its lives; the log of a service with a longer name is not its own."""
    for number, name in enumerate(("worker", "worker-2", "worker-10", "controller-worker")):
        (tmp_path / f"{name}.log").write_text(f"line {number}\n")

    stack = stack_of(tmp_path)

    assert ("line 0", "line 1", "line 2") == stack.logs("worker")
    assert ("line 3",) == stack.logs("controller-worker")
    assert () == stack.logs("db")


async def test_what_stands_in_for_a_third_party_is_handed_out(tmp_path):
    """Its whole requests, not only what may be written down of them; another service is none."""
    evidence = open_evidence(tmp_path)
    with lease_port() as lease:
        double = recorder_part("langfuse", lease=lease, evidence=evidence)
        async with open_parts([double], title="t", evidence=evidence) as system:
            booted = Booted(
                title="t",
                parts={"langfuse": system["langfuse"]},
                boot_s=1.0,
                evidence=tmp_path,
                loop=None,
            )
            stack = Stack(booted, Access(driver="local"))
            await HttpClient(stack.url("langfuse")).request("POST", "/a", content=b"\0\1")
            (request,) = stack.recorder("langfuse").requests

    assert b"\0\1" == request.body
    with pytest.raises(BadInput, match="a recorder"):
        stack_of(tmp_path).recorder("worker")


def test_a_service_is_found_by_what_tests_call_it(tmp_path):
    """Where the product has another name for it, by that one too; what it has not is not there."""
    stack = stack_of(tmp_path, names={"postgres": "db", "minio": "store"})

    assert ("db", "postgres") == (stack["postgres"].name, stack["db"].kind)
    assert ("db", "worker") == (stack.called("postgres"), stack.called("worker"))
    there = [name for name in ("postgres", "db", "worker", "minio", "temporal") if name in stack]
    assert ["postgres", "db", "worker"] == there
    with pytest.raises(BadInput, match="one of worker, controller-worker, db, langfuse"):
        _ = stack["minio"]


def test_what_is_not_there_is_named(tmp_path):
    """A service, a port, a gateway."""
    stack = stack_of(tmp_path)

    with pytest.raises(BadInput, match="one of worker, controller-worker, db, langfuse"):
        stack.url("wroker")
    with pytest.raises(BadInput, match="one that has a port"):
        stack.url("controller-worker")
    with pytest.raises(HarnessError, match="no model gateway"):
        _ = stack.gateway


async def test_a_stack_without_servers_says_so(tmp_path):
    """No database, no S3 server, no bucket."""
    stack = stack_of(tmp_path)

    with pytest.raises(HarnessError, match="no database"):
        await stack.rows("select 1")
    with pytest.raises(HarnessError, match="no S3 server"):
        await stack.objects()
    with pytest.raises(BadInput, match="gives its S3 server no `bucket`"):
        await stack_of(tmp_path, s3_url="http://a:b@127.0.0.1:1").objects()
