"""The rules for tests from outside: each violation is found, and what only looks like one is not."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from harness_core.assurance.requirements import (
    SourceFile,
    check_fail_path,
    check_outside,
    check_stand_ins,
    covering_tests,
    load_ledger,
)


@pytest.fixture
def ledger(tmp_path):
    """A ledger with one requirement that has a fail path, one observer and one stand-in."""
    text = """\
[ledger]
prefix = "REQ-"
observers = ["temporalio"]
failures = ["slammed"]
priorities = { p0 = "now" }
stand_ins = { model = "model provider" }
[[requirement]]
id = "REQ-001"
title = "Doors open"
priority = "p0"
asserts = ["open"]
fails = "a locked door is refused"
status = "covered"
[[requirement]]
id = "REQ-002"
title = "Doors creak"
priority = "p0"
asserts = ["heard"]
no_fail_path = "nothing is refused"
status = "covered"
"""
    path = tmp_path / "ledger.toml"
    path.write_text(text)
    return load_ledger(path)


def rules(text: str, ledger) -> list[str]:
    """The rules that one file breaks."""
    file = SourceFile.parse(text, path="test_x.py")
    return [problem.rule for problem in check_outside(file, ledger)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import psycopg", "driver"),
        ("from sqlalchemy import text", "driver"),
        ("import boto3", "driver"),
        ("import subprocess", "driver"),
        ("import socket", "driver"),
        ("os.system('true')", "driver"),
        ("pytest.importorskip('asyncpg')", "driver"),
        ("from fastapi.testclient import TestClient", "in-process"),
        ("from starlette.testclient import TestClient", "in-process"),
        ("import uvicorn", "in-process"),
        ("import respx", "fake-client"),
        ("from moto import mock_aws", "fake-client"),
        ("from httpx import MockTransport", "fake-client"),
        ("from httpx import ASGITransport", "fake-client"),
        ("from temporalio.testing import WorkflowEnvironment", "fake-client"),
        ("open('x', 'w')", "local-write"),
        ("open('x', mode='ab')", "local-write"),
        ("open('x', 'r+')", "local-write"),
        ("open('x', mode)", "local-write"),
        ("Path('x').open('w')", "local-write"),
        ("path.write_text('x')", "local-write"),
        ("(tmp_path / 'x').write_bytes(b'')", "local-write"),
        ("path.mkdir()", "local-write"),
        ("path.unlink()", "local-write"),
        ("path.symlink_to('x')", "local-write"),
        ("path.replace(other)", "local-write"),
        ("import shutil", "local-write"),
        ("from tempfile import NamedTemporaryFile", "local-write"),
        ("os.remove('x')", "local-write"),
        ("os.makedirs('x')", "local-write"),
        ("stack.rows('insert into t values (1)')", "writes-rows"),
        ("stack.rows('  UPDATE t SET a = 1')", "writes-rows"),
        ("stack.database.execute('truncate t')", "writes-rows"),
        ("stack.rows(f'delete from {name}')", "writes-rows"),
        ("stack.rows('with x as (delete from t returning 1) select 1')", "writes-rows"),
    ],
)
def test_a_way_past_the_api_is_found(text, rule, ledger):
    """Drivers, processes, applications in the test, fakes, local writes, SQL that writes."""
    assert [rule] == rules(text, ledger)


@pytest.mark.parametrize(
    "text",
    [
        "import httpx",
        "from temporalio.client import Client",
        "from workbench_contract import Episode",
        "open('x')",
        "open('x', 'rb')",
        "path.open()",
        "path.read_text()",
        "client.open(url)",
        "text.replace('a', 'b')",
        "evidence.write_text('a', 'b')",
        "evidence.child('a').path",
        "os.environ.get('X')",
        "stack.rows('select updated from episodes')",
        "stack.rows('with x as (select 1) select * from x')",
        "path.write_text('x')  # lint: allow local-write: a file of the test's own",
    ],
)
def test_what_looks_from_outside_is_accepted(text, ledger):
    """Reading, HTTP, observers, evidence; and a line that says why it is right."""
    assert [] == rules(text, ledger)


def checked(body: str, ledger, *, identity: str = "REQ-001") -> list[str]:
    """What is found of the fail path of one test."""
    text = (
        "import pytest\n"
        f"def helper(answer):\n    assert 403 == answer.status\n"
        f'@pytest.mark.covers("{identity}")\n@pytest.mark.now\n'
        f'def test_doors(door):\n    """It opens."""\n    {body}\n'
    )
    file = SourceFile.parse(text, path="test_x.py")
    tests = covering_tests({Path("test_x.py"): file})
    ledger = replace(ledger, requirements={identity: ledger.requirements[identity]})
    return [problem.rule for problem in check_fail_path(tests, ledger)]


@pytest.mark.parametrize(
    "body",
    [
        "assert 422 == answer.status",
        "assert answer.status in {401, 403}",
        'assert "failed" == episode["status"]',
        "expect_refused(answer, 404)",
        "await expect_failed(episode)",
        "helper(answer)",
        "with pytest.raises(Unanswered):\n        await client.get('/')",
        'assert "slammed" == door.state',
        "assert door.slammed, door",
        "assert slammed(door)",
        "slammed(door)",
        'assert door["success"] is False',
        'assert [False] == [row["success"] for row in rows]',
        'check(door, expected={"state": "slammed"})',
        'expected = {"state": "failed"}\n    check(door, expected)',
    ],
)
def test_a_test_that_sees_a_refusal_has_its_fail_path(body, ledger):
    """A status of an error, a failed state, a helper that looks for one."""
    assert [] == checked(body, ledger)


@pytest.mark.parametrize(
    "body",
    [
        "assert 200 == answer.status",
        "assert 422 != answer.status",
        "assert answer.status < 500",
        "client.get('/failed')",
        'assert "completed" == episode["status"]',
        "assert 4 == len(rows)",
        "assert True in (answer.refused,)",
        'check(door, expected={"failed": False})',
        "assert not door.slammed",
        'assert door["success"] is True',
        'assert door["open"] is False',
        'found = {"state": "failed"}',
    ],
)
def test_a_required_fail_path_that_is_missing_is_found(body, ledger):
    """Only success is looked at; a refusal that is excluded is not one that is seen."""
    assert ["no-fail-path"] == checked(body, ledger)


def test_one_test_of_a_requirement_sees_the_failure(ledger):
    """Others may look at what goes well; the finding stands where the first of them is."""
    file = SourceFile.parse(
        "import pytest\n"
        'pytestmark = pytest.mark.covers("REQ-001")\n'
        "def test_open():\n    assert 200 == answer.status\n"
        "def test_locked():\n    assert 423 == answer.status\n",
        path="test_x.py",
    )
    tests = covering_tests({Path("test_x.py"): file})

    assert [] == list(check_fail_path(tests, ledger))
    assert [(3, "no-fail-path")] == [
        (problem.line, problem.rule) for problem in check_fail_path(tests[:1], ledger)
    ]


def test_a_rule_is_lifted_for_a_suite_with_a_reason(ledger):
    """That one alone."""
    lifted = replace(ledger, allowed={"local-write": "doors are configured by files"})

    assert ["driver"] == rules("path.write_text('x')\nimport boto3", lifted)


def test_a_requirement_without_a_fail_path_needs_none(ledger):
    """The ledger says why."""
    assert [] == checked("assert 200 == a.status", ledger, identity="REQ-002")


@pytest.mark.parametrize(
    ("doc", "of_file", "found"),
    [
        ("It opens.", "", ["stand-in"]),
        ("It opens, with a stand-in.", "", ["stand-in"]),
        ("It opens. The gateway is a stand-in for the model\n    provider: no key here.", "", []),
        ("It opens.", "Doors, with a stand-in for the model provider: no key.", []),
    ],
)
@pytest.mark.parametrize("used", ["def test_doors(model):", "def test_doors(stack):"])
def test_a_stand_in_is_named_in_the_docstring(used, doc, of_file, found, ledger):
    """The word, and the third party; used as a fixture, or by ``stack.model()``."""
    text = f'"""{of_file}"""\n{used}\n    """{doc}"""\n    assert 403 == stack.model().status\n'
    file = SourceFile.parse(text, path="test_x.py")
    tests = covering_tests({Path("test_x.py"): file})

    assert found == [p.rule for test in tests for p in check_stand_ins(test, ledger)]
