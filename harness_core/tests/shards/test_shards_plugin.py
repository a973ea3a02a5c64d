"""``--shard`` of pytest, seen from outside: every test runs in exactly one shard, and is measured."""

import itertools
import xml.etree.ElementTree as ET

import pytest

from harness_core.assurance.shards import read_durations, update_durations
from harness_core.tests.plugin.inner import Inner

# Two files have tests of the same names: a name alone does not identify a test.
FILES = {
    "test_a.py": """
import pytest

@pytest.mark.parametrize("row", range(7))
def test_rows(row): pass

@pytest.mark.slow
def test_slow(): pass

def test_same(): pass
def test_fails(): assert False
def test_skips(): pytest.skip("never")
@pytest.mark.skip(reason="in its setup")
def test_skipped(): pass
""",
    "sub/test_a.py": """
class TestSame:
    def test_same(self): pass

def test_same(): pass
def test_rows(): pass
""",
}
#: Each run shuffles, as pytest-randomly does, and no two alike.
SHUFFLES = """
import os
import random

import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    random.Random(os.environ["ORDER"]).shuffle(items)
"""


@pytest.fixture
def run_shard(tmp_path):
    """Run pytest on a small project; answer its process and the ids that it ran."""
    inner = Inner(tmp_path, ini="markers = slow\naddopts = -p no:cacheprovider")
    inner.write(FILES | {"conftest.py": SHUFFLES})
    report = tmp_path / "report.xml"
    orders = itertools.count()

    def run(*words):
        report.unlink(missing_ok=True)
        words = ("--import-mode=importlib", f"--junitxml={report}", *words)
        done = inner.run(*words, ORDER=str(next(orders)))
        cases = ET.parse(report).iter("testcase") if report.exists() else ()
        return done, [f"{case.get('classname')}::{case.get('name')}" for case in cases]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "select"),
    [("0", []), ("2", ["-m", "not slow"]), ("0", ["-k", "same or rows", "sub"])],
)
def test_each_test_runs_in_exactly_one_shard(run_shard, workers, select):
    """The shards together run what one run without --shard does, and nothing twice."""
    _, every = run_shard("-n", workers, *select)

    shards = [run_shard("-n", workers, "--shard", f"{number}/3", *select) for number in (1, 2, 3)]

    assert sorted(every) == sorted(name for _, ran in shards for name in ran)
    sizes = [len(ran) for _, ran in shards]
    assert max(sizes) - min(sizes) <= 1
    assert "shard 2/3, balanced by number" in shards[1][0].stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_records_what_it_measured(run_shard, tmp_path, workers):
    """Each test that was called is in the file; one that was skipped before it says nothing."""
    file = tmp_path / "new" / "durations.json"

    done, _ = run_shard("-n", workers, f"--durations-file={file}")
    durations = read_durations(file)
    again, _ = run_shard("-n", "0", "--shard", "2/2", f"--durations-file={file}")

    assert 1 == done.returncode, done.stdout + done.stderr
    assert (int(workers) or 1) == durations.workers
    # Of 15 tests one is skipped by its mark.
    assert 14 == len(durations.seconds)
    assert "sub/test_a.py::TestSame::test_same" in durations.seconds
    assert "test_a.py::test_skips" in durations.seconds
    assert "test_a.py::test_skipped" not in durations.seconds
    assert f"balanced by 14 durations of {file}" in again.stdout


def test_shards_are_balanced_by_the_file(run_shard, tmp_path):
    """A test that takes as long as all others has a shard to itself.

    It takes nothing when it is run: a file that the first shard changed would divide otherwise.
    """
    file = tmp_path / "durations.json"
    run_shard("-n", "0", f"--durations-file={file}")
    usual = dict.fromkeys(read_durations(file).seconds, 1.0)
    update_durations(file, usual | {"test_a.py::test_slow": 100.0}, workers=1)

    shards = [run_shard("-n", "0", "--shard", f"{n}/2", f"--durations-file={file}") for n in (1, 2)]

    assert [["test_a::test_slow"], 14] == [shards[0][1], len(shards[1][1])]
    assert 100.0 == read_durations(file).seconds["test_a.py::test_slow"]
    assert {"test_a.py::test_slow"} == set(
        read_durations(tmp_path / "durations.1-of-2.json").seconds
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shard", "3/2"], "--shard: found '3/2', expected I/N with 1 <= I <= N"),
        (["--durations-file=pytest.ini"], "pytest.ini: found 'Expecting value"),
        (["--shard", "16/16"], "15 deselected"),
    ],
)
def test_what_cannot_be_is_refused(run_shard, arguments, text):
    """A malformed option or file, and a shard that has no test, are no green run."""
    done, ran = run_shard("-n", "0", *arguments)

    assert [] == ran
    assert done.returncode in {4, 5}
    assert text in done.stdout + done.stderr
