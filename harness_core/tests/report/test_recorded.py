"""What a run writes for its report while it goes on: rows, what failed tests saw, and no secret."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import zlib

import pytest

from harness_core.base.wait import until_blocking
from harness_core.front.outcomes import Ended, Finished, Started, Word, read_rows
from harness_core.front.report import build_report

#: A secret that a product is given, and tells everywhere.
CANARY = "kx83-Canary-of-this-test-0142"

TESTS = f"""
import os, signal, pytest
from harness_core.base.evidence import Frame, tell

@pytest.fixture(scope="session", autouse=True)
def secret(run_evidence):
    run_evidence.redactor.add({CANARY!r})

def test_passes(evidence):
    evidence.write_text("a.txt", "fine")
    tell(lambda: [Frame(connection="1", sender="we", after_s=0.1, text="unseen")])

def test_fails(harness_run, run_evidence, evidence):
    run_evidence.append("shop.log", "2026-11-26T09:00:00Z error sold for {CANARY}")
    run_evidence.append("ledger.jsonl", '{{"x": "{CANARY}"}}')
    tell(lambda: [Frame(connection="1", sender="product", after_s=0.1, text="{CANARY} told")])
    assert [] == ["{CANARY}"], "nothing is left: expected none, found {CANARY}"

def test_is_skipped():
    pytest.skip("no key, which is {CANARY}")

def test_hangs():
    if "HANG" in os.environ:
        signal.pause()
"""


@pytest.fixture
def project(tmp_path):
    """A project of a few tests."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def command(*words):
    """Pytest with a JUnit report, as nox starts it."""
    junit = "--junitxml=.evidence/reports/demo.xml"
    return [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        junit,
        *words,
    ]


def run(project, *words):
    """Run it to its end."""
    return subprocess.run(command(*words), cwd=project, capture_output=True, text=True, check=False)


def unpacked(page):
    """All data of a page, as text."""
    blocks = re.findall(r'<script type="text/plain" id="(\w+)">([^<]*)</script>', page)
    data = dict(blocks)
    index = json.loads(zlib.decompress(base64.b64decode(data["index"])))
    details = [
        zlib.decompress(
            base64.b64decode(data["details"][test["offset"] :][: test["size"]])
        ).decode()
        for test in index["tests"]
        if test["size"]
    ]
    return json.dumps(index) + "".join(details)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_rows_and_page_without_a_secret(project, workers):
    """Each test has its row, a failure what it saw, and the secret is nowhere in rows, page or evidence."""
    done = run(project, "--report", *workers)

    rows = list(read_rows(project / ".evidence/reports/demo.jsonl"))
    ended = {row.test.partition("::")[2]: row for row in rows if isinstance(row, Ended)}
    words = {name: str(row.word) for name, row in ended.items()}
    assert {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_is_skipped": "not run",
        "test_hangs": "passed",
    } == words, done.stdout
    assert isinstance(rows[-1], Finished)
    assert {"gw0", "gw1"} >= {row.worker for row in ended.values()} if workers else True
    failed = ended["test_fails"]
    assert "core/test_it.test_fails" == failed.evidence
    assert failed.rerun.endswith("test_it.py::test_fails")
    folder = project / ".evidence" / failed.evidence
    assert {"during/shop.log", "during/ledger.jsonl", "story.jsonl"} == {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.*l*")
    }
    assert (project / ".evidence/core/test_it.test_passes/story.jsonl").exists(), (
        "--report wants it"
    )
    page = (project / ".evidence/reports/demo.html").read_text()
    assert "[redacted] told" in unpacked(page)
    assert CANARY not in page + unpacked(page)
    written = [
        path
        for path in (project / ".evidence").rglob("*.*")
        if path.is_file() and path.suffix != ".xml"
    ]
    assert [] == [path for path in written if CANARY in path.read_text()]


def test_a_run_without_report_makes_none(project):
    """No page is made and no story of a test that passed is kept; rows are there all the same."""
    run(project)

    assert (project / ".evidence/reports/demo.jsonl").exists()
    assert not (project / ".evidence/reports/demo.html").exists()
    assert not (project / ".evidence/core/test_it.test_passes/story.jsonl").exists()


def test_what_is_only_collected_takes_no_place(project):
    """The rows of the last run stay where nothing is run."""
    run(project)
    rows = project / ".evidence/reports/demo.jsonl"
    before = rows.read_bytes()

    run(project, "--collect-only")

    assert before == rows.read_bytes()


def test_a_killed_run_has_a_report(project):
    """Of a run that got SIGKILL there is no JUnit file, and a report with what had ended and what not."""
    rows = project / ".evidence/reports/demo.jsonl"
    with subprocess.Popen(
        command(), cwd=project, env={**os.environ, "HANG": "1"}, stdout=subprocess.DEVNULL
    ) as process:

        def hangs():
            begun = (
                [row.test for row in read_rows(rows) if isinstance(row, Started)]
                if rows.exists()
                else []
            )
            return any(test.endswith("test_hangs") for test in begun)

        until_blocking(hangs, seconds=60, action="see the test that hangs begin")
        process.send_signal(signal.SIGKILL)

    report = build_report([project / ".evidence"], root=project)

    [session] = report.sessions
    assert ("killed", ("test_it.py::test_hangs",)) == (session.ended, session.under_way)
    found = {test.id.partition("::")[2]: test.word for test in report.tests}
    assert Word.FAILED is found["test_fails"]
    assert not rows.with_suffix(".xml").exists()


def test_earlier_runs_are_kept_and_bounded(project):
    """The rows of an earlier run go to history, of which the last twenty stay."""
    history = project / ".evidence/reports/history"
    history.mkdir(parents=True)
    for number in range(25):
        (history / f"demo.{number}.jsonl").write_text("")
    run(project, "-k", "passes")
    run(project, "-k", "passes")

    kept = sorted(int(path.name.split(".")[1]) for path in history.iterdir())
    assert 20 == len(kept)
    assert 20 < kept[-1], "the newest of them"
    report = build_report([project / ".evidence"], root=project)
    assert ["P"] == [test.earlier for test in report.tests]


def test_a_report_is_refused_where_it_cannot_be_made(project):
    """Without the extra a run with --report ends before its first test, with the command that helps."""
    hidden = (
        "import sys, importlib.metadata as m\n"
        "real = m.distribution\n"
        "def distribution(name):\n"
        "    if name.lower() == 'jinja2': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.distribution = distribution\n"
        "import pytest; sys.exit(pytest.main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden, *command("--report")[3:]],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert pytest.ExitCode.USAGE_ERROR == done.returncode, done.stdout
    assert "pip install 'staging-harness[report]'" in done.stdout + done.stderr
