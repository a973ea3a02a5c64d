"""The handle of a stack: what it reads, what it refuses, and that its description crosses a socket."""

import json

import pytest

from harness_core.errors import BadInput, HarnessError
from harness_core.stack import Description, ServiceSeen, Stack


class NoControl:
    """Of a stack of which only files are looked at."""


def stack_of(folder, **fields) -> Stack:
    """A stack whose logs are in the folder."""
    services = {
        "worker": ServiceSeen(address="127.0.0.1:1", kind="process", log="worker"),
        "controller-worker": ServiceSeen(address="", kind="process", log="controller-worker"),
        "db": ServiceSeen(address="127.0.0.1:2", kind="postgres", log="postgres"),
        "langfuse": ServiceSeen(address="127.0.0.1:3", kind="recorder", log="langfuse"),
    }
    description = Description(
        title="t", driver="local", boot_s=1.0, evidence=folder, services=services, **fields
    )
    return Stack(description, NoControl())


def test_logs_are_those_of_all_lives_of_the_service_alone(tmp_path):
    """In the order of its lives; the log of a service with a longer name is not its own."""
    for number, name in enumerate(("worker", "worker-2", "worker-10", "controller-worker")):
        (tmp_path / f"{name}.log").write_text(f"line {number}\n")

    stack = stack_of(tmp_path)

    assert ("line 0", "line 1", "line 2") == stack.logs("worker")
    assert ("line 3",) == stack.logs("controller-worker")
    assert () == stack.logs("db")


def test_what_a_recorder_was_sent_is_read_back(tmp_path):
    """One row for each request; another service is none."""
    rows = [{"method": "POST", "target": "/a"}, {"method": "GET", "target": "/b"}]
    (tmp_path / "langfuse.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    stack = stack_of(tmp_path)

    assert tuple(rows) == stack.recorded("langfuse")
    with pytest.raises(BadInput, match="a recorder"):
        stack.recorded("worker")


def test_what_is_not_there_is_named(tmp_path):
    """A service, a port, a gateway."""
    stack = stack_of(tmp_path)

    with pytest.raises(BadInput, match="one of worker, controller-worker, db, langfuse"):
        stack.url("wroker")
    with pytest.raises(BadInput, match="one that has a port"):
        stack.url("controller-worker")
    with pytest.raises(HarnessError, match="no model gateway"):
        stack.gateway()


async def test_a_stack_without_servers_says_so(tmp_path):
    """No database, no S3 server, no bucket."""
    stack = stack_of(tmp_path)

    with pytest.raises(HarnessError, match="no database"):
        await stack.rows("select 1")
    with pytest.raises(HarnessError, match="no S3 server"):
        await stack.objects()
    with pytest.raises(BadInput, match="gives its S3 server no `bucket`"):
        await stack_of(tmp_path, s3_url="http://a:b@127.0.0.1:1").objects()


def test_a_description_crosses_a_socket(tmp_path):
    """What another process reads is what was written, more keys or not."""
    told = stack_of(tmp_path, database_url="postgresql://a:b@h/d", bucket="b").description

    sent = json.loads(json.dumps({**told.as_json(), "parts": []}))

    assert told == Description.from_json(sent)
