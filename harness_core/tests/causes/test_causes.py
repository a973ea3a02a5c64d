"""One cause is told once: the shape of a sentence, what failures share, and what a run prints of it."""

import re

import pytest

from harness_core.front.causes import Cause, Failure, causes_of, shape_of
from harness_core.tests.plugin.inner import Inner

ALIKE = [
    (
        "expected the episode 7746be44-83f6-572e-9d1a-6120902019d2 to be completed, found failed",
        "expected the episode 01a21596-7c9e-76a2-9970-9abbd45dcfd6 to be completed, found failed",
    ),
    (
        "health.state_set refused {'key': 'a', 'value': 1}: no such tool",
        "health.state_set refused {'key': 'b'}: no such tool",
    ),
    (
        "port 33353 is listened on by the processes [5616, 5619]",
        "port 1 is listened on by the processes [2]",
    ),
    ("silent: 10 s passed without an answer", "silent: 2.5 s passed without an answer"),
    ("cannot read /tmp/a/b.txt: it is gone", "cannot read /var/x: it is gone"),
    ("expected token-a1b2 in the row", "expected token-ffff0 in the row"),
]
OTHERWISE = [
    ("expected health to be ok, found degraded", "expected health to be ok, found failed"),
    ("silent: 10 s passed without an answer", "closed: 10 s passed without an answer"),
    ("expected a greeting", "expected a farewell"),
    ("expected 'health', found 'general'", "expected 7, found 8"),
    ("assert 1 == 2", "assert 3 == 4"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_values_do_not_tell_two_sentences_apart(one, other):
    """Ids, numbers, quoted texts, mappings, paths."""
    assert shape_of(one) == shape_of(other)


@pytest.mark.parametrize(("one", "other"), OTHERWISE)
def test_words_do(one, other):
    """What is told of two is told apart; so are values where there is little else."""
    assert shape_of(one) != shape_of(other)


def test_the_strongest_evidence_is_first():
    """A death before a wrong value, that before a refusal, that before what did not come; then by number."""
    told = [
        *(
            Failure(test=f"t{n}", sentence=f"silent: {n} s passed without an answer")
            for n in range(3)
        ),
        Failure(test="u", sentence="the switchboard refused 'ingest'"),
        Failure(test="v1", sentence="the target was expected to be 'health', found 'general'"),
        Failure(test="v2", sentence="the target was expected to be 'x', found 'y'"),
        Failure(test="w", sentence="health was killed by signal 11"),
        Failure(test="t0", sentence="silent: 9 s passed without an answer"),
    ]

    assert [
        Cause(sentence="health was killed by signal 11", tests=("w",)),
        Cause(
            sentence="the target was expected to be 'health', found 'general'", tests=("v1", "v2")
        ),
        Cause(sentence="the switchboard refused 'ingest'", tests=("u",)),
        Cause(sentence="silent: 0 s passed without an answer", tests=("t0", "t1", "t2")),
    ] == causes_of(told)


def test_the_name_of_a_row_is_a_value():
    """A table names its rows in its sentences; long values are compared whole."""
    owed = "contract 3: {} is owed an error LOG; the connection ended"
    cut = "a frame that is cut is an error: {}"
    told = [
        *(
            Failure(test=f"t.py::t[{n}]", sentence=owed.format(n))
            for n in ("no-prefix", "of-words")
        ),
        Failure(test="t.py::u", sentence=owed.format("of-words")),
        *(Failure(test=f"t.py::v{n}", sentence=cut.format([f"after {n}"] * n)) for n in (1, 90)),
    ]

    assert {
        ("t.py::t[no-prefix]", "t.py::t[of-words]"),
        ("t.py::u",),
        ("t.py::v1", "t.py::v90"),
    } == {cause.tests for cause in causes_of(told)}


def test_a_death_is_the_cause_of_what_fails_with_it():
    """Whatever the tests say: the same process died, each time by the same signal."""
    died = "daemon was killed by SIGSEGV"
    told = [
        Failure(test="a", sentence="silent: 10 s passed without an answer", deaths=(died,)),
        Failure(test="b", sentence="closed: the connection ended", deaths=(died,)),
        Failure(test="b", sentence="the daemon died of this test", deaths=(died,)),
        Failure(test="c", sentence="silent: 10 s passed without an answer"),
    ]
    of_the_death, other = causes_of(told)

    assert (died, ("a", "b")) == (of_the_death.sentence, of_the_death.tests)
    assert tuple(each.sentence for each in told[:3]) == of_the_death.told
    assert ("c",) == other.tests


def test_one_error_in_the_log_joins_what_is_told_otherwise():
    """Only where every failure of a sentence came after it."""
    log = "ERROR general: connection to {} refused"
    told = [
        Failure(test="a", sentence="no row in the inbox", log_error=log.format(5432)),
        Failure(test="b", sentence="the session was left open", log_error=log.format(5433)),
        Failure(test="c", sentence="a hop has no duration", log_error=log.format(1)),
        Failure(test="d", sentence="a hop has no duration"),
        Failure(test="e", sentence="another thing entirely"),
    ]
    found = {cause.tests: cause.sentence for cause in causes_of(told)}

    assert {("a", "b"), ("c", "d"), ("e",)} == set(found)
    assert log.format(5432) in found["a", "b"]


TESTS = """
import pytest
from harness_core.base.errors import HarnessError

@pytest.mark.parametrize("n", range(24))
def test_row(n):
    assert False, f"expected a greeting of {n}, found {[n] * (400 if n == 9 else 1)}"

def test_other():
    assert 1 == 2, "health died: it ended by itself"

@pytest.fixture
def late():
    yield
    assert False, "something was left behind\\nand more"

def test_left(late):
    pass

def test_ours():
    raise HarnessError("boot", observed="no room", next_step="Make some")

def test_good():
    pass
"""


@pytest.mark.parametrize("words", [("-q", "-n0"), ("-q", "-n2"), ("-n0",), ("-v", "-n2")])
def test_a_run_tells_each_cause_once(tmp_path, words):
    """At once with its sentence, also under -q and with workers; at the end by cause, ours apart."""
    inner = Inner(tmp_path, ini="addopts = -p no:cacheprovider -rx")
    done = inner.run("test_it.py", *words, "--tb=no", files={"test_it.py": TESTS})

    told = re.findall(r"^FAILED test_it\.py::(\S+) - (.+)$", done.stdout, re.MULTILINE)
    assert 25 == len(told), done.stdout
    assert ("test_row[3]", "expected a greeting of 3, found [3]") in told
    assert {300 + 1} == {len(sentence) for row, sentence in told if row == "test_row[9]"}
    assert "\nFAILED at teardown test_it.py::test_left - something was left behind\n" in done.stdout
    assert re.search(r"^HARNESS ERROR \S+::test_ours - .*boot", done.stdout, re.MULTILINE)
    ours, _, product = done.stdout.partition("= product failed: 26 tests, 3 causes =")
    assert "= harness could not run: 1 test, 1 cause =" in ours
    assert re.search(
        r"^1\. health died: it ended by itself\n +test_it\.py::test_other\n2\. expected a greeting of \d+, found \[",
        product,
        re.MULTILINE,
    ), done.stdout
    assert "     and 4 more\n3. something was left behind\n" in product


def test_nothing_is_added_to_a_run_that_is_good(tmp_path):
    """No section, no line."""
    text = "def test_a():\n    pass\n"
    done = Inner(tmp_path).run("test_it.py", "-q", files={"test_it.py": text})

    assert 0 == done.returncode
    assert re.fullmatch(r"\. +\[100%\]\n1 passed in [\d.]+s\n", done.stdout), done.stdout


def test_a_module_that_cannot_be_collected_is_no_failure_of_the_product(tmp_path):
    """It is told once, with the error itself, also by two workers."""
    text = "import nothing_of_that_name\n"
    done = Inner(tmp_path).run("test_it.py", "-q", "-n2", files={"test_it.py": text})

    [line] = re.findall(r"^HARNESS ERROR .*$", done.stdout, re.MULTILINE)
    assert "test_it.py - ModuleNotFoundError: No module named 'nothing_of_that_name'" in line
    assert "= harness could not run: 1 test, 1 cause =" in done.stdout


PRODUCT = """
import os, signal, sys
import pytest
from harness_core.base.wait import until_blocking

SAYS = "print('hello', flush=True); print('ERROR no luck today', flush=True); import time; time.sleep(60)"

@pytest.fixture(scope="session")
def product(harness_loop, harness_run):
    with harness_loop.hold(harness_run.child([sys.executable, "-c", SAYS], name="product")) as child:
        said(child, "ERROR no luck today")
        yield child

def said(child, text):
    until_blocking(lambda: text in child.tail() or None, seconds=20, action="hear it")

def die(child, number):
    os.kill(child.pid, number)
    until_blocking(lambda: child.returncode, seconds=20, action="see it die")

def test_first(product):
    assert False, "expected a, found b"

def test_second(product):
    assert False, "expected c, found d"

@pytest.mark.parametrize("n", range(2))
def test_death(harness_loop, harness_run, evidence, n):
    sleeping = harness_run.child(["sleep", "60"], name="own", evidence=evidence)
    with harness_loop.hold(sleeping) as child:
        die(child, signal.SIGSEGV)
        assert False, ["silent: nothing came", "closed: the connection ended"][n]

def test_wished(harness_loop, harness_run):
    with harness_loop.hold(harness_run.child(["sleep", "60"], name="wished")) as child:
        child.kill()
        until_blocking(lambda: child.returncode, seconds=20, action="see it die")
        assert False, "not what was wished for"
"""


def test_a_failure_has_the_log_and_the_deaths_of_its_time(tmp_path):
    """Below what was expected and found; of a log, what was added while the test ran."""
    inner = Inner(tmp_path)
    done = inner.run("test_it.py", "-q", files={"test_it.py": PRODUCT})
    texts = dict(
        re.findall(r"_ (test_\w+(?:\[\d\])?) _+\n(.*?)(?=\n_{4}|\n={4})", done.stdout, re.DOTALL)
    )

    assert re.search(
        r"found b.*log of product during this test -+\nhello\nERROR no luck today$",
        texts["test_first"],
        re.DOTALL,
    ), done.stdout
    assert "log of product" not in texts["test_second"], "it had said nothing more"
    ended = r"processes that ended by themselves -+\nown was killed by SIGSEGV\n-+ where to look"
    assert re.search(ended, texts["test_death[0]"]), done.stdout
    assert "ended by themselves" not in texts["test_wished"], "the harness itself killed it"
    assert re.search(
        r"^1\. own was killed by SIGSEGV\n     told as: silent: nothing came\n"
        r"     told as: closed: the connection ended\n     test_it.py::test_death\[0\]\n"
        r"     test_it.py::test_death\[1\]\n",
        done.stdout,
        re.MULTILINE,
    ), done.stdout
