"""What the plugin adds to pytest, seen from outside: pytest run on small projects."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT
from harness_core.process import _warden
from harness_core.tests.plugin.inner import Inner

USAGE, INTERRUPTED = pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED

#: What the inner tests use.
HEAD = """
import pytest
from harness_core.base.errors import BadInput, HarnessError, NotReady, Unavailable
from harness_core.front.pytest_plugin import add_kept, add_summary, explain_failures
"""
PASSES = "def test_passes(): pass\n"
HARNESS_FAILS = "def test_harness(): raise HarnessError('look', observed='it is dark')\n"
BAD_ROW = 'raise BadInput("rows.toml", key="row[3].id", found="", expected="an id")\n'
BAD_ROW_IS = "cannot read rows.toml: row[3].id: found '', expected an id."
GATES = """
from harness_core.assurance.gates import Gate, gates, register
if not any(gate.name == "shut" for gate in gates()):
    register(Gate(name="shut", summary="x", probe=lambda: "it is closed today"))
    register(Gate(name="wide", summary="x", probe=lambda: ""))
"""
SUITE = """
[suite]
name = "demo"
summary = "A demo."
group = "test"
{suite}
{optional}
[[session]]
name = "demo"
summary = "All of it."
"""


EXPLORES = """
from hypothesis import strategies as st
from hypothesis.stateful import rule
from harness_core.assertions.exploring import Machine
class Sum(Machine):
    total = 0
    @rule(value=st.integers(min_value=0))
    def add(self, value):
        self.total += value
        assert self.total < 10, "a sum stays below ten"
class Right(Machine):
    @rule()
    def step(self): pass
@pytest.mark.explore
def test_sum(explore): explore.run(Sum, steps=9)
@pytest.mark.explore
def test_right(explore): explore.run(Right, steps=2)
def test_passes(): pass
"""


def requires(names: str, body: str = "pass") -> str:
    """A test behind gates."""
    return f"@pytest.mark.requires({names})\ndef test_gated(): {body}\n"


@pytest.fixture
def inner(tmp_path: Path) -> Inner:
    """An empty project, and a pytest for it."""
    return Inner(tmp_path)


def verdicts(output: str) -> dict[str, str]:
    """Test → verdict of the verbose report."""
    return dict(
        re.findall(r"^test_\w+\.py::(test_\w+) ((?:HARNESS )?[A-Z]+)(?: |$)", output, re.MULTILINE)
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of pytest on one file of tests, and what becomes of it.

    Attributes:
        tests: the file, below :data:`HEAD`.
        conftest: another one.
        more: further files.
        words: of its command line.
        env: variables besides.
        status: its exit status, or those that are right.
        says: what stands in its output.
        never: what does not.
        both: it is the same on a worker of xdist.
    """

    tests: str = PASSES
    conftest: str = ""
    more: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    status: int | set[int] = USAGE
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    both: bool = True

    def check(self, inner: Inner, *words: str) -> None:
        """It is so."""
        head = {"conftest.py": HEAD + self.conftest, "test_one.py": HEAD + self.tests}
        done = inner.run(*self.words, *words, files=head | self.more, **self.env)
        output = done.stdout + done.stderr
        right = self.status if isinstance(self.status, set) else {self.status}

        assert done.returncode in right, output
        assert [] == [text for text in self.says if text not in output], output
        assert [] == [text for text in self.never if text in output], output
        if self.status == USAGE:
            assert [] == [text for text in QUIET if text in output], output
            assert 1 == len(re.findall(r"(?m)^ERROR: ", output)), output


#: A mistake that the collection finds is one sentence and nothing else.
QUIET = ("INTERNALERROR", "Traceback", "raise BadInput", "1 passed")

RUNS = {
    # --- whose error it was --------------------------------------------------------------------
    "bug-of-the-test": Run(tests="def test_one(): raise RuntimeError('x')\n", status=1),
    "harness-alone": Run(tests=HARNESS_FAILS, status=HARNESS_ERROR_EXIT, says=("1 error",)),
    "product-among-harness": Run(
        tests=f"{HARNESS_FAILS}def test_b(): assert False\n", status=1, says=("1 failed, 1 error",)
    ),
    "another-plugin-joins-bits-to-the-status": Run(
        tests=HARNESS_FAILS,
        conftest="def pytest_sessionfinish(session, exitstatus): session.exitstatus |= exitstatus\n",
        status=HARNESS_ERROR_EXIT,
    ),
    # --- gates ---------------------------------------------------------------------------------
    "gate-closed": Run(
        tests=requires("'wide', 'shut'", "assert False"),
        conftest=GATES,
        status=0,
        says=("gate 'shut': it is closed today", "1 skipped"),
    ),
    "gate-open": Run(tests=requires("'wide'", "assert False"), conftest=GATES, status=1),
    "gate-demanded": Run(
        tests=requires("'shut'"),
        conftest=GATES,
        env={"HARNESS_REQUIRE": "shut"},
        status=HARNESS_ERROR_EXIT,
        says=("gate 'shut' is demanded by HARNESS_REQUIRE: it is closed today", "1 error"),
    ),
    "gate-of-a-conftest-is-optional": Run(
        more={
            "demo/suite.toml": SUITE.format(suite="", optional='[optional_gates]\nshut = "why"'),
            "demo/conftest.py": GATES,
            "demo/test_demo.py": PASSES,
        },
        status=0,
        both=False,
    ),
    # --- what cannot be meant is refused before anything runs -----------------------------------
    "budget-below-nothing": Run(
        words=("--llm-budget-usd=-0.01",), says=("usd: found -0.01, expected USD of zero or more",)
    ),
    "budget-that-nothing-exceeds": Run(
        words=("--llm-budget-usd=nan",), says=("usd: found nan, expected USD",), both=False
    ),
    "replay-of-nothing": Run(
        words=("--llm=replay",),
        says=("--llm-cassette: found None with --llm replay, expected a directory",),
        both=False,
    ),
    "cassette-without-its-mode": Run(
        words=("--llm-cassette=x",),
        says=("found 'x' with --llm rehearsed, expected a directory",),
        both=False,
    ),
    "demand-for-no-gate": Run(
        env={"HARNESS_REQUIRE": "dokcer"}, says=("found 'dokcer'",), both=False
    ),
    "marker-without-a-gate": Run(
        tests=requires(""), says=("ERROR: cannot read test_one.py::test_gated: requires",)
    ),
    "marker-misspelt": Run(
        tests=requires("'dokcer'"), says=("ERROR: cannot read test_one.py::test_gated: requires",)
    ),
    "optional-gate-misspelt": Run(
        more={
            "demo/suite.toml": SUITE.format(suite="", optional='[optional_gates]\nemcas = "why"'),
            "demo/test_demo.py": PASSES,
        },
        says=("demo/suite.toml: optional_gates.emcas: found 'emcas'", " Did you mean emacs?\n"),
    ),
    "mistake-that-a-conftest-finds": Run(
        conftest=f"def pytest_collection_modifyitems(): {BAD_ROW}", says=(f"ERROR: {BAD_ROW_IS}\n",)
    ),
    "mistake-that-a-module-finds": Run(
        tests=BAD_ROW,
        more={"test_two.py": PASSES},
        status={INTERRUPTED, HARNESS_ERROR_EXIT},
        says=(BAD_ROW_IS,),
        never=("Traceback", "raise BadInput"),
    ),
    "seconds-that-there-are-not": Run(
        words=("--explore-seconds=0",), says=("--explore-seconds: found 0, expected more than",)
    ),
    "seed-below-nothing": Run(
        words=("--explore-seed=-1",), says=("--explore-seed: found -1, expected zero or more",)
    ),
    # --- exploring -----------------------------------------------------------------------------
    "explorers-are-left-out": Run(
        tests=EXPLORES, status=0, says=("1 passed",), never=("failed", "= explored =")
    ),
    "explorers-are-left-out-of-other-marks": Run(
        tests=EXPLORES, words=("-m", "not slow"), status=0, says=("1 passed",), never=("failed",)
    ),
    "explorers-that-a-mark-asks-for": Run(
        tests=EXPLORES,
        words=("-m", "explore", "--explore-seed=7", "--explore-seconds=1"),
        status=1,
        says=(
            "1 failed, 1 passed",
            "AssertionError: a sum stays below ten",
            "Found by exploring with seed 7, at the end of 1 step:",
            "    state.add(value=10)",
            "Repeat it: pytest test_one.py::test_sum --explore-seed=7 --explore-seconds=1",
            "= explored =",
            "test_one.py::test_right: ",
        ),
        never=("state.teardown", "Falsifying", "/hypothesis/"),
    ),
    "explorers-that-an-option-asks-for": Run(
        tests=EXPLORES, words=("--explore-seconds=0.1",), status=1, says=("1 failed, 2 passed",)
    ),
    "an-explorer-without-the-mark": Run(
        tests="def test_one(explore): explore.run(int)\n",
        status=HARNESS_ERROR_EXIT,
        says=("its marks: found [], expected explore",),
    ),
    # --- the end of a run ----------------------------------------------------------------------
    "summary": Run(
        tests="def test_one(pytestconfig): add_summary(pytestconfig, 'model cost', '0.42 USD')\n",
        status=0,
        says=("= model cost =", "\n0.42 USD\n"),
    ),
}


#: Those that ``nox -s core`` runs under workers as well; all others ``core_rest`` does.
WITH_WORKERS = ("bug-of-the-test", "explorers-that-an-option-asks-for", "summary")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(
            name,
            words,
            id=f"{name}-{words[0][1:]}" if words else name,
            marks=[pytest.mark.slow] if words and name not in WITH_WORKERS else [],
        )
        for name, run in RUNS.items()
        for words in ([(), ("-n2",)] if run.both else [()])
    ],
)
def test_a_run_ends_as_it_should(inner, name, words):
    """Status and output say what was found; a refusal is one sentence, also from workers."""
    RUNS[name].check(inner, *words)


OUTCOMES = """
def test_passes(): pass
def test_product_fails(): assert 1 == 2
def test_harness_fails(evidence):
    evidence.write_text("server.log", "boom")
    raise HarnessError("start server", observed="no room", next_step="Make room")
def test_skips(): pytest.skip("not here")

@pytest.fixture
def broken():
    raise HarnessError("open fixture", observed="it broke")
def test_fixture_of_the_harness(broken): pass

@pytest.mark.xfail(reason="known", strict=True)
def test_expected_failure_needs_the_product():
    raise HarnessError("look", observed="too dark")
@pytest.mark.xfail(reason="known", strict=True)
def test_expected_failure(): assert False

def test_group_of_harness_errors():
    raise ExceptionGroup("", [HarnessError("a", observed="b"), HarnessError("c", observed="d")])
def test_group_with_a_failure():
    raise ExceptionGroup("", [HarnessError("a", observed="b"), AssertionError("c")])

import trio
async def fail(error): raise error
async def test_async_product():
    async with trio.open_nursery() as nursery: nursery.start_soon(fail, AssertionError("x"))
async def test_async_harness():
    async with trio.open_nursery() as nursery: nursery.start_soon(fail, NotReady("x", observed="y"))
"""


def test_explorers_of_a_suite_share_the_time_and_name_its_session(inner):
    """A fourth of it each; the command is the one that people use."""
    body = """
@pytest.mark.explore
@pytest.mark.parametrize("n", range(4))
def test_share(explore, n): print(f"share {explore._seconds:g}; {explore._repeat(9)}")
"""
    tree = {
        "suites/demo/suite.toml": SUITE.format(suite="", optional=""),
        "suites/demo/test_demo.py": HEAD + body,
    }
    done = inner.run("-m", "explore", "--explore-seconds=20", "-s", files=tree)

    assert 4 == done.stdout.count("share 5; "), done.stdout + done.stderr
    again = "nox -s explore -- demo 'suites/demo/test_demo.py::test_share[2]' --seed 9 --seconds 20"
    assert again in done.stdout


def test_outcomes_are_told_apart(inner):
    """Product failure, harness error and skip are three things, also under xfail and in groups."""
    words = ("-v", "-p", "pytest_trio.plugin", "-o", "trio_mode=true")
    done = inner.run(*words, files={"test_outcomes.py": HEAD + OUTCOMES})

    assert {
        "test_passes": "PASSED",
        "test_product_fails": "FAILED",
        "test_harness_fails": "HARNESS ERROR",
        "test_skips": "SKIPPED",
        "test_fixture_of_the_harness": "HARNESS ERROR",
        "test_expected_failure_needs_the_product": "HARNESS ERROR",
        "test_expected_failure": "XFAIL",
        "test_group_of_harness_errors": "HARNESS ERROR",
        "test_group_with_a_failure": "FAILED",
        "test_async_product": "FAILED",
        "test_async_harness": "HARNESS ERROR",
    } == verdicts(done.stdout)
    assert "3 failed, 1 passed, 1 skipped, 1 xfailed, 5 errors" in done.stdout
    assert 1 == done.returncode


EVIDENCE = """
@pytest.mark.parametrize("what", ["a b"])
def test_fails(evidence, request, what):
    evidence.redactor.add("hunter2-hunter2")
    evidence.write_text("server.log", "hunter2-hunter2")
    add_kept(request.node, "postgresql://127.0.0.1/clone_1")
    assert evidence.path.name == "test_one.test_fails[a-b]-" + evidence.path.name[-6:]
    assert False

class TestA:
    def test_same(self, evidence): evidence.write_text("a", "")
class TestB:
    def test_same(self, evidence): evidence.write_text("b", "")
"""


def test_failed_test_says_where_to_look_and_how_to_rerun(inner):
    """Below a failure stand directory, files, what was kept, and the command with its options."""
    done = inner.run("--llm=live", files={"test_one.py": HEAD + EVIDENCE})
    again = inner.run(HARNESS_SESSION="e2e")

    folder = next((inner.root / ".evidence" / "core").glob("test_one.test_fails*"))
    for text in (
        "where to look",
        f"evidence: {folder}",
        "  server.log (10 B)",
        "kept: postgresql://127.0.0.1/clone_1",
        "rerun: pytest 'test_one.py::test_fails[a b]' --llm=live",
    ):
        assert text in done.stdout
    assert "hunter2-hunter2" not in (folder / "server.log").read_text(encoding="utf-8")
    assert "rerun: nox -s e2e -- 'test_one.py::test_fails[a b]'" in again.stdout


def test_every_test_has_a_directory_of_its_own(inner, tmp_path):
    """Same names in different classes, files and folders do not share evidence."""
    same = "def test_same(evidence): evidence.write_text('x', '')\n"
    there = tmp_path / "there"
    others = {f"suites/{each}/test_one.py": same for each in ("e2e", "int/p0", "int/p1")}
    files = {"test_one.py": HEAD + EVIDENCE} | others
    inner.run("--import-mode=importlib", f"--evidence={there}", files=files)

    found = {str(path.parent.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert {
        ".",
        "core/test_one.TestA.test_same",
        "core/test_one.TestB.test_same",
        "e2e/test_one.test_same",
        "int/p0.test_one.test_same",
        "int/p1.test_one.test_same",
    } == {name for name in found if "test_fails" not in name}
    assert not (inner.root / ".evidence").exists()


def test_evidence_is_wiped_at_start_and_kept_at_the_end(inner):
    """A test begins with an empty directory and leaves it filled, also when it passes."""
    text = "def test_one(evidence):\n assert [] == list(evidence.path.iterdir())\n evidence.write_text('{}', '')\n"
    runs = [inner.run(files={"test_one.py": text.format(name)}) for name in ("old", "new")]

    assert [0, 0] == [run.returncode for run in runs]
    folder = inner.root / ".evidence" / "core" / "test_one.test_one"
    assert ["new"] == [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(("workers", "folder"), [((), "_run"), (("-n1",), "_rungw0")])
def test_evidence_of_a_run_is_named_by_its_own_worker(inner, workers, folder):
    """A pytest that a test starts inherits the variables of that test's worker."""
    inner.env["PYTEST_XDIST_WORKER"] = "gw7"
    inner.run(*workers, files={"test_one.py": "def test_one(run_evidence): pass\n"})

    assert [folder] == [path.name for path in (inner.root / ".evidence").glob("_run*")]


HOLDING = """
import os
def test_one(evidence, progress):
    evidence.write_text("held", "first")
    print("captured")
    progress("holding")
    os.read({}, 1)
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_concurrent_run_does_not_wipe_evidence(inner, workers):
    """A second run at the same time writes beside the first, under xdist too.

    What a long step says is on the terminal while it runs; what the test prints is not.
    """
    reading, writing = os.pipe()
    inner.write({"test_one.py": HOLDING.format(reading)})
    other = "def test_one(evidence): evidence.write_text('other', '')\n"
    with inner.start(pass_fds=[reading]) as first:
        lines = []
        for line in first.stdout:
            lines.append(line)
            if "holding" in line:
                break
        second = inner.run(*workers, files={"test_one.py": other})
        os.write(writing, b"!")  # only now may the test end
        rest, _ = first.communicate()
    os.close(reading)
    os.close(writing)

    root = inner.root / ".evidence"
    assert (0, 0) == (first.returncode, second.returncode)
    assert "first" == (root / "core/test_one.test_one/held").read_text(encoding="utf-8")
    assert (root / "concurrent-2/core/test_one.test_one/other").exists()
    assert re.fullmatch(r"\[ *\d+\.\d\d s\] holding\n", lines[-1])
    assert "1 passed" in rest
    assert "captured" not in "".join(lines) + rest


BUDGETED = """
from pathlib import Path
import pytest
from harness_core.doubles.model import Totals
from harness_core.doubles.model._ledger import Sum
from harness_core.front.budget import llm_budget_usd, report_costs

FOLDER = Path(__file__).parent
counted = {}

@pytest.fixture(scope="session", autouse=True)
def gateway(pytestconfig):
    yield
    totals = Totals(overall=sum(counted.values(), Sum()), by_test=counted, mode="rehearsed")
    report_costs(pytestconfig, FOLDER, totals, note="from one gateway")

@pytest.fixture(autouse=True)
def asks_once(request, gateway):
    counted[request.node.nodeid] = Sum(calls=1, usd=1.25 if "dear" in request.node.nodeid else 0.0)

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        print(f"budget {llm_budget_usd(session.config, FOLDER)}")
"""

BUDGETED_TESTS = """
def test_dear(): pass
def test_free(): pass
def test_fails(): assert False
"""


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["alone", "xdist"]
)
def test_a_run_for_money_begins_with_its_budget(inner, workers):
    """Its limit and who set it, the tests chosen, and what they would have cost offline.

    That is one table at the end of the offline run, of what all its workers counted.
    """
    suite = SUITE.format(suite="budget_usd = 1.5", optional="")
    inner.write({"pytest.ini": "[pytest]\naddopts = -p cacheprovider\n"})
    inner.write({"suites/demo/suite.toml": suite, "suites/demo/conftest.py": BUDGETED})
    inner.write({"suites/demo/test_one.py": BUDGETED_TESTS})

    def run(*options: str) -> str:
        return inner.run("-s", *workers, *options, "suites/demo").stdout

    limit = "models (live): demo may spend 1.50 USD (budget_usd in demo/suite.toml); 3 tests chosen"
    first = run("--llm=live")
    offline = run()
    second = run("--llm=live")
    small = run("--llm=live", "--llm-budget-usd=1")

    assert "may spend" not in offline
    assert 1 == offline.count("cost of the model")
    (total,) = re.findall(r"^total +(\d+) .* ([\d.]+)$", offline, re.MULTILINE)
    assert ("3", "1.25000") == total
    assert max(1, 2 * len(workers)) == offline.count("from one gateway\n")
    assert f"{limit}\n  none of them was run offline here" in first
    assert "budget 1.5\n" in first
    assert (
        f"{limit}\n  once each, at the tokens counted offline: 1.25 USD; 1 test of them" in second
    )
    assert "may spend 1.00 USD (--llm-budget-usd); 3 tests chosen\n" in small
    assert "the run will stop before its end" in small
    assert "budget 1.0\n" in small
    assert 1 == small.count("models (live)"), small


def test_a_test_that_asks_a_provider_by_itself_is_counted(inner):
    """One for which a key is enough costs money in every mode of the gateway."""
    inner.write({"test_one.py": HEAD + requires("'live-llm'") + PASSES})
    with_key = inner.run(ANTHROPIC_API_KEY="sk-ant-some-key").stdout
    without = inner.run(ANTHROPIC_API_KEY="").stdout

    assert "models (live): no suite may spend 0.20 USD (the default); 1 test chosen" in with_key
    assert "may spend" not in without


RUN = """
import sys
def test_one(harness_run, harness_loop, run_evidence, token):
    data = harness_run.directory("data")
    with harness_loop.hold(harness_run.child(["sleep", "3600"], name="sleep")) as child:
        print("child", child.pid, flush=True)
        {}
"""


def test_session_run_leaves_nothing(inner):
    """The run of a session stops its children and removes its state; logs stay as evidence."""
    done = inner.run("-s", files={"test_one.py": RUN.format("assert child.returncode is None")})

    assert 0 == done.returncode, done.stdout
    pid = int(re.search(r"child (\d+)", done.stdout)[1])
    assert ["sleep", "3600"] != _warden.command_line(pid)
    assert [] == list((inner.state / "runs").iterdir())
    assert (inner.root / ".evidence" / "_run" / "sleep.log").exists()


def test_leak_of_a_session_is_a_harness_error(inner):
    """A process that outlives its parent fails the run at its end, by name."""
    leak = (
        "import subprocess, sys; subprocess.Popen(['sleep', '3601'], start_new_session=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    )
    text = f"""
def test_one(harness_run, harness_loop):
    import sys
    argv = [sys.executable, "-c", {leak!r}]
    with harness_loop.hold(harness_run.child(argv, name="parent")) as child:
        assert 0 == harness_loop.run(child.wait)
"""
    done = inner.run(files={"test_one.py": text})

    assert HARNESS_ERROR_EXIT == done.returncode
    assert "1 process(es) outlived the child that started them" in done.stdout
    assert "sleep 3601" in done.stdout
    assert "1 passed, 1 error" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_session_leaves_no_process(inner, number):
    """Ctrl-C cleans up as the end of the session would; SIGKILL leaves at most directories."""
    inner.write({"test_one.py": RUN.format("sys.stdin.readline()")})
    with inner.start("-s") as process:
        line = next(line for line in process.stdout if "child" in line)
        child = int(line.split()[-1])
        start = _warden.start_time(child)
        assert start is not None
        process.send_signal(number)
        try:
            output, _ = process.communicate(timeout=20)
        finally:
            process.kill()  # leaving the block waits for its end

    until_blocking(lambda: not _warden.runs(child, start), seconds=5, action="see the child end")
    runs = list((inner.state / "runs").iterdir())
    if number is signal.SIGINT:
        assert INTERRUPTED == process.returncode
        assert "KeyboardInterrupt" in output
        assert [] == runs
    else:
        assert 1 == len(runs)
        sweep = "from harness_core.process import sweep; print(sweep().problems)"
        argv = [sys.executable, "-c", sweep]
        swept = subprocess.run(argv, env=inner.env, capture_output=True, text=True, check=True)
        assert "()\n" == swept.stdout
        assert [] == list((inner.state / "runs").iterdir())


def test_pytest_finds_the_plugin_by_itself():
    """Installing the distribution is enough: pytest loads the plugin, nothing is to be imported."""
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}

    assert "harness_core.front.pytest_plugin" == found.get("harness")


def test_a_token_is_new_for_each_test(inner):
    """What carries it was caused by that very test."""
    text = """
seen = []
def test_one(token): seen.append(token)
def test_two(token): assert seen and token not in seen
"""
    done = inner.run(files={"test_one.py": text})

    assert 0 == done.returncode, done.stdout


EXPLAINED = """
def pytest_configure(config):
    explain_failures(config, lambda item, began: f"the key was refused to {item.name}")
    explain_failures(config, lambda item, began: "")
    explain_failures(config, broken)

def broken(item, began):
    if "harness" in item.name:
        raise Unavailable("ask the gateway", observed="it is gone")
    return ""
"""

EXPLAINED_TESTS = """
def test_passes(): pass
def test_skips(): pytest.skip("no reason")
@pytest.mark.xfail
def test_expected(): assert False
def test_fails(): assert 1 == 2
def test_harness(): raise HarnessError("look", observed="nothing")
@pytest.fixture(scope="module")
def broken(): assert False, "no fixture"
def test_setup_one(broken): pass
def test_setup_two(broken): pass
@pytest.fixture
def late():
    yield
    assert False, "too late"
def test_teardown(late): pass
"""


def test_a_failure_says_what_is_known_of_its_cause(inner):
    """In its own text, once per test, in setup and call; what cannot be found out changes nothing."""
    files = {"conftest.py": HEAD + EXPLAINED, "test_it.py": HEAD + EXPLAINED_TESTS}
    done = inner.run(files=files)
    shown = re.findall(r"^E +the key was refused to test_(\w+)$", done.stdout, re.MULTILINE)

    # An error of a shared fixture is one error, shown with what was said for each test.
    assert ["harness", "setup_one", "setup_one", "setup_two", "fails"] == shown, done.stdout
    assert "nothing more is known: cannot ask the gateway: it is gone." in done.stdout
    assert {"1 failed", "1 skipped", "1 xfailed"} <= set(
        re.findall(r"\d+ \w+", done.stdout.splitlines()[-1])
    )
