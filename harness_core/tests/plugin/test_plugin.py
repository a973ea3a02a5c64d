"""What the plugin adds to pytest, seen from outside: pytest run on small projects."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT
from harness_core.process import _warden

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of pytest on a small project, with state of its own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    for name in ("HARNESS_REQUIRE", "HARNESS_SESSION", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    # Other plugins of this environment take a second to load; what a test needs, it names.
    return {
        **env,
        "HARNESS_STATE_DIR": str(tmp_path / "state"),
        "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "bytecode"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    path = tmp_path / "project"
    path.mkdir()
    (path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -ra\n")
    return path


def command(*arguments: str) -> list[str]:
    """Pytest with the plugins that the arguments need."""
    plugins = ["-p", "harness_core.front.pytest_plugin"]
    if any(argument.startswith("-n") for argument in arguments):
        plugins += ["-p", "xdist"]
    return [sys.executable, "-m", "pytest", *plugins, *arguments]


@pytest.fixture
def run_pytest(project: Path, environment: dict[str, str]) -> Pytest:
    """Write test files and run pytest on them."""

    def run(*arguments: str, env: dict[str, str] | None = None, **files: str):
        for name, text in files.items():
            path = project / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return subprocess.run(
            command(*arguments),
            cwd=project,
            env={**environment, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


OUTCOMES = """
import pytest
from harness_core.base.errors import HarnessError

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
"""


def verdicts(output: str) -> dict[str, str]:
    """Test → verdict of the verbose report."""
    return dict(
        re.findall(r"^test_\w+\.py::(test_\w+) ((?:HARNESS )?[A-Z]+)(?: |$)", output, re.MULTILINE)
    )


def test_outcomes_are_told_apart(run_pytest):
    """Product failure, harness error and skip are three things, also under xfail and in groups."""
    result = run_pytest("-v", test_outcomes=OUTCOMES)

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
    } == verdicts(result.stdout)
    assert "2 failed, 1 passed, 1 skipped, 1 xfailed, 4 errors" in result.stdout
    assert 1 == result.returncode


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise RuntimeError('bug of the test')", 1),
        ("raise HarnessError('a', observed='b')", HARNESS_ERROR_EXIT),
    ],
)
def test_exit_status_tells_the_harness_from_the_product(run_pytest, body, status):
    """A run that only the harness spoilt has a status of its own."""
    result = run_pytest(
        test_one=f"from harness_core.base.errors import HarnessError\ndef test_one():\n    {body}\n"
    )

    assert status == result.returncode, result.stdout


def test_one_product_failure_among_harness_errors_is_a_failure(run_pytest):
    """As soon as the product failed once, the run says so; also when pytest runs in workers."""
    errors = "from harness_core.base.errors import HarnessError\n" + "".join(
        f"def test_{n}(): raise HarnessError('a', observed='b')\n" for n in range(3)
    )
    only = run_pytest("-n1", test_a=errors)
    both = run_pytest(test_b="def test_b(): assert False\n")

    assert HARNESS_ERROR_EXIT == only.returncode, only.stdout
    assert "3 errors" in only.stdout
    assert 1 == both.returncode
    assert "1 failed, 3 errors" in both.stdout


def test_async_failures_are_failures(run_pytest):
    """What an async test raises in its nursery is judged as itself."""
    result = run_pytest(
        *("-v", "-p", "pytest_trio.plugin", "-o", "trio_mode=true"),
        test_async="""
import trio
from harness_core.base.errors import NotReady
async def fail(error): raise error
async def test_product():
    async with trio.open_nursery() as nursery: nursery.start_soon(fail, AssertionError("x"))
async def test_harness():
    async with trio.open_nursery() as nursery: nursery.start_soon(fail, NotReady("x", observed="y"))
""",
    )

    assert {"test_product": "FAILED", "test_harness": "HARNESS ERROR"} == verdicts(result.stdout)


EVIDENCE = """
import pytest
from harness_core.front.pytest_plugin import add_kept

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


def test_failed_test_says_where_to_look_and_how_to_rerun(run_pytest, project):
    """Below a failure stand directory, files, what was kept, and the command with its options."""
    result = run_pytest("--llm=live", test_one=EVIDENCE)

    folder = next((project / ".evidence" / "core").glob("test_one.test_fails*"))
    assert "where to look" in result.stdout
    assert f"evidence: {folder}" in result.stdout
    assert "  server.log (10 B)" in result.stdout
    assert "kept: postgresql://127.0.0.1/clone_1" in result.stdout
    assert "rerun: pytest 'test_one.py::test_fails[a b]' --llm=live" in result.stdout
    assert "hunter2-hunter2" not in (folder / "server.log").read_text(encoding="utf-8")

    again = run_pytest(env={"HARNESS_SESSION": "e2e"})
    assert "rerun: nox -s e2e -- 'test_one.py::test_fails[a b]'" in again.stdout


def test_every_test_has_a_directory_of_its_own(run_pytest, project):
    """Same names in different classes, files and folders do not share evidence."""
    text = "def test_same(evidence): evidence.write_text('x', '')\n"
    run_pytest(
        "--import-mode=importlib",
        test_one=EVIDENCE,
        suites__e2e__test_one=text,
        suites__integration__p0__test_one=text,
        suites__integration__p1__test_one=text,
    )

    root = project / ".evidence"
    found = {str(path.parent.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert {
        ".",
        "core/test_one.TestA.test_same",
        "core/test_one.TestB.test_same",
        "e2e/test_one.test_same",
        "integration/p0.test_one.test_same",
        "integration/p1.test_one.test_same",
    } == {name for name in found if "test_fails" not in name}


def test_evidence_is_wiped_at_start_and_kept_at_the_end(run_pytest, project):
    """A test begins with an empty directory and leaves it filled, also when it passes."""
    text = "def test_one(evidence):\n assert [] == list(evidence.path.iterdir())\n evidence.write_text('{}', '')\n"
    first = run_pytest(test_one=text.format("old"))
    second = run_pytest(test_one=text.format("new"))

    assert (0, 0) == (first.returncode, second.returncode)
    folder = project / ".evidence" / "core" / "test_one.test_one"
    assert ["new"] == [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(("workers", "folder"), [((), "_run"), (("-n1",), "_rungw0")])
def test_evidence_of_a_run_is_named_by_its_own_worker(run_pytest, project, workers, folder):
    """A pytest that a test starts inherits the variables of that test's worker."""
    text = "def test_one(run_evidence): pass\n"
    run_pytest(*workers, test_one=text, env={"PYTEST_XDIST_WORKER": "gw7"})

    assert [folder] == [path.name for path in (project / ".evidence").glob("_run*")]


def test_evidence_elsewhere(run_pytest, project, tmp_path):
    """``--evidence`` moves it all."""
    run_pytest(f"--evidence={tmp_path / 'there'}", test_one=EVIDENCE)

    assert (tmp_path / "there" / "core" / "test_one.TestA.test_same" / "a").exists()
    assert not (project / ".evidence").exists()


HOLDING = """
import sys
def test_one(evidence, progress):
    evidence.write_text("held", "first")
    progress("holding")
    sys.stdin.readline()
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_concurrent_run_does_not_wipe_evidence(run_pytest, project, environment, workers):
    """A second run at the same time writes beside the first, under xdist too."""
    (project / "test_one.py").write_text(HOLDING, encoding="utf-8")
    with subprocess.Popen(
        command("-s"),
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert any("holding" in line for line in first.stdout)
        second = run_pytest(
            *workers, test_one="def test_one(evidence): evidence.write_text('other', '')\n"
        )
        first.communicate("go\n")

    root = project / ".evidence"
    assert (0, 0) == (first.returncode, second.returncode)
    assert "first" == (root / "core/test_one.test_one/held").read_text(encoding="utf-8")
    assert (root / "concurrent-2/core/test_one.test_one/other").exists()


def test_progress_is_seen_at_once_past_the_capture(project, environment):
    """What a long step says is on the terminal while it runs; what the test prints is not."""
    reading, writing = os.pipe()
    text = f"import select\ndef wait(): select.select([{reading}], [], [], 10)\n"
    (project / "conftest.py").write_text(text, encoding="utf-8")
    (project / "test_one.py").write_text(
        "from conftest import wait\n"
        "def test_one(progress):\n    print('captured')\n    progress('booting')\n    wait()\n",
        encoding="utf-8",
    )
    with subprocess.Popen(
        command(),
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[reading],
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "booting" in line:
                os.write(writing, b"!")  # only now may the test end
                break
        rest = process.stdout.read()
    os.close(reading)
    os.close(writing)

    assert re.fullmatch(r"\[ *\d+\.\d\d s\] booting\n", lines[-1])
    assert "1 passed" in rest
    assert "captured" not in "".join(lines) + rest


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_summary_is_printed_at_the_end(run_pytest, workers):
    """What fixtures leave for the end of the run is printed, from workers too."""
    result = run_pytest(
        *workers,
        test_one="""
from harness_core.front.pytest_plugin import add_summary
def test_one(pytestconfig): add_summary(pytestconfig, "model cost", "0.0042 USD")
""",
    )

    assert re.search(r"=+ model cost =+\n0\.0042 USD\n", result.stdout)


@pytest.mark.parametrize(
    ("options", "env", "said"),
    [
        (["--llm-budget-usd=-0.01"], {}, "usd: found -0.01, expected USD of zero or more"),
        (["--llm-budget-usd=nan"], {}, "usd: found nan, expected USD of zero or more"),
        (
            ["--llm=replay"],
            {},
            "--llm-cassette: found None with --llm replay, expected a directory",
        ),
        (["--llm-cassette=x"], {}, "found 'x' with --llm rehearsed, expected a directory"),
        ([], {"HARNESS_REQUIRE": "dokcer"}, "found 'dokcer'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(run_pytest, options, env, said):
    """A budget that nothing exceeds, a mode without its cassette, a demand for no gate."""
    result = run_pytest(*options, test_one="def test_one(): pass\n", env=env)

    assert pytest.ExitCode.USAGE_ERROR == result.returncode
    assert said in result.stderr
    assert "passed" not in result.stdout


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


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_run_for_money_begins_with_its_budget(run_pytest, project, workers):
    """Its limit and who set it, the tests chosen, and what they would have cost offline.

    That is one table at the end of the offline run, of what all its workers counted.
    """
    (project / "pytest.ini").write_text("[pytest]\naddopts = -p cacheprovider\n")
    suite = project / "suites" / "demo"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text(
        '[suite]\nname = "demo"\nsummary = "A demo."\ngroup = "test"\nbudget_usd = 1.5\n'
        '[[session]]\nname = "demo"\nsummary = "All of it."\n'
    )
    files = {"suites__demo__conftest": BUDGETED, "suites__demo__test_one": BUDGETED_TESTS}

    def run(*options: str) -> str:
        return run_pytest("-s", *workers, *options, "suites/demo", **files).stdout

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


def test_a_test_that_asks_a_provider_by_itself_is_counted(run_pytest):
    """One for which a key is enough costs money in every mode of the gateway."""
    text = """
import pytest
@pytest.mark.requires("live-llm")
def test_real(): pass
def test_other(): pass
"""
    with_key = run_pytest(test_one=text, env={"ANTHROPIC_API_KEY": "sk-ant-some-key"})
    without = run_pytest(test_one=text, env={"ANTHROPIC_API_KEY": ""})

    assert "models (live): no suite may spend 0.20 USD (the default); 1 test chosen" in (
        with_key.stdout
    )
    assert "may spend" not in without.stdout


def test_a_harness_error_keeps_its_status_beside_other_plugins(run_pytest):
    """A plugin that joins bits to the exit status does not make another one of it."""
    conftest = """
import pytest
def pytest_sessionfinish(session, exitstatus):
    session.exitstatus |= exitstatus
"""
    test = """
from harness_core.base.errors import HarnessError
def test_one(): raise HarnessError("look", observed="nothing")
"""
    result = run_pytest(conftest=conftest, test_one=test)

    assert HARNESS_ERROR_EXIT == result.returncode


GATED = """
import pytest
from harness_core.assurance import gates
if not any(gate.name == "shut" for gate in gates.gates()):
    gates.register(gates.Gate(name="shut", summary="x", probe=lambda: "it is closed today"))
    gates.register(gates.Gate(name="wide", summary="x", probe=lambda: ""))
"""
REQUIRES = """
import pytest
@pytest.mark.requires({})
def test_one(): {}
"""


@pytest.mark.parametrize(
    ("names", "body", "demanded", "status", "said"),
    [
        ("'wide', 'shut'", "assert False", "", 0, ["gate 'shut': it is closed today", "1 skipped"]),
        ("'wide'", "assert False", "", 1, ["1 failed"]),
        (
            "'shut'",
            "pass",
            "shut",
            HARNESS_ERROR_EXIT,
            ["gate 'shut' is demanded by HARNESS_REQUIRE: it is closed today", "1 error"],
        ),
    ],
    ids=["closed", "open", "demanded"],
)
def test_a_gate_decides_whether_a_test_runs(run_pytest, names, body, demanded, status, said):
    """Closed, the test is skipped with the reason; under HARNESS_REQUIRE that is an error."""
    test = REQUIRES.format(names, body)
    result = run_pytest(conftest=GATED, test_one=test, env={"HARNESS_REQUIRE": demanded})

    assert status == result.returncode
    assert all(text in result.stdout for text in said), result.stdout


def test_marker_without_a_gate_is_refused_at_collection(run_pytest):
    """A marker that names nothing is an error with the test's id, not a skip."""
    result = run_pytest(test_one=REQUIRES.format("", "pass"))

    assert pytest.ExitCode.USAGE_ERROR == result.returncode
    assert "cannot read test_one.py::test_one: requires" in result.stderr
    assert "passed" not in result.stdout


ONE_TEST = "def test_one(): pass\n"
SUITE = """
[suite]
name = "demo"
summary = "s"
group = "test"
[optional_gates]
{} = "a reason"
[[session]]
name = "demo"
summary = "s"
"""
BAD_INPUT = """
from harness_core.base.errors import BadInput
{}raise BadInput("rows.toml", key="row[3].id", found="", expected="an id")
"""


@pytest.fixture(params=["-n0", "-n2"])
def refuses(run_pytest, request):
    """Run pytest in one process, and on two workers: one sentence, status 4 and nothing else."""

    def run(**files: str) -> str:
        result = run_pytest(request.param, **files)
        said = result.stdout + result.stderr
        (line,) = [line for line in said.splitlines() if line.startswith("ERROR: ")]

        assert pytest.ExitCode.USAGE_ERROR == result.returncode, said
        for word in ("INTERNALERROR", "Traceback", "passed"):
            assert word not in said
        return line

    return run


def test_unknown_gate_of_a_suite_is_refused(refuses, project):
    """What CI may do without must be a gate: misspelt, the skip would be an error, or none."""
    (project / "demo").mkdir()
    (project / "demo" / "suite.toml").write_text(SUITE.format("emcas"))
    line = refuses(demo__test_one=ONE_TEST)

    assert f"{project / 'demo' / 'suite.toml'}: optional_gates.emcas: found 'emcas'" in line
    assert line.endswith(" Did you mean emacs?")


def test_gate_that_a_conftest_registers_is_known(run_pytest, project):
    """A suite may list its own gates as optional."""
    (project / "demo").mkdir()
    (project / "demo" / "suite.toml").write_text(SUITE.format("shut"))
    result = run_pytest(demo__conftest=GATED, demo__test_one=ONE_TEST)

    assert 0 == result.returncode, result.stderr


def test_misspelt_marker_is_refused(refuses):
    """On workers too, where an error of the collection would be one of xdist's own."""
    line = refuses(test_one=REQUIRES.format("'dokcer'", "pass"))

    assert "test_one.py::test_one: requires: found 'dokcer'" in line


def test_mistake_that_a_conftest_finds_is_refused(refuses):
    """A suite checks its own files when tests have been collected."""
    conftest = BAD_INPUT.format("def pytest_collection_modifyitems(): ")
    line = refuses(conftest=conftest, test_one=ONE_TEST)

    assert "ERROR: cannot read rows.toml: row[3].id: found '', expected an id." == line


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_mistake_that_a_module_finds_is_one_sentence(run_pytest, workers):
    """A malformed row is an error of the collection, without the lines of our code that found it."""
    result = run_pytest(workers, test_one=BAD_INPUT.format(""), test_two=ONE_TEST)

    assert result.returncode in {pytest.ExitCode.INTERRUPTED, HARNESS_ERROR_EXIT}
    assert "cannot read rows.toml: row[3].id: found '', expected an id." in result.stdout
    assert "Traceback" not in result.stdout
    assert "raise BadInput" not in result.stdout


RUN = """
import sys
def test_one(harness_run, harness_loop, run_evidence, token):
    data = harness_run.directory("data")
    with harness_loop.hold(harness_run.child(["sleep", "3600"], name="sleep")) as child:
        print("child", child.pid, flush=True)
        {}
"""


def test_session_run_leaves_nothing(run_pytest, project, tmp_path):
    """The run of a session stops its children and removes its state; logs stay as evidence."""
    result = run_pytest("-s", test_one=RUN.format("assert child.returncode is None"))

    assert 0 == result.returncode, result.stdout
    pid = int(re.search(r"child (\d+)", result.stdout)[1])
    assert ["sleep", "3600"] != _warden.command_line(pid)
    assert [] == list((tmp_path / "state" / "runs").iterdir())
    assert (project / ".evidence" / "_run" / "sleep.log").exists()


def test_leak_of_a_session_is_a_harness_error(run_pytest):
    """A process that outlives its parent fails the run at its end, by name."""
    leak = (
        "import subprocess, sys; subprocess.Popen(['sleep', '3601'], start_new_session=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    )
    result = run_pytest(
        test_one=f"""
def test_one(harness_run, harness_loop):
    import sys
    argv = [sys.executable, "-c", {leak!r}]
    with harness_loop.hold(harness_run.child(argv, name="parent")) as child:
        assert 0 == harness_loop.run(child.wait)
"""
    )

    assert HARNESS_ERROR_EXIT == result.returncode
    assert "1 process(es) outlived the child that started them" in result.stdout
    assert "sleep 3601" in result.stdout
    assert "1 passed, 1 error" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_session_leaves_no_process(project, environment, tmp_path, number):
    """Ctrl-C cleans up as the end of the session would; SIGKILL leaves at most directories."""
    (project / "test_one.py").write_text(RUN.format("sys.stdin.readline()"), encoding="utf-8")
    with subprocess.Popen(
        command("-s"),
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
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
    runs = list((tmp_path / "state" / "runs").iterdir())
    if number is signal.SIGINT:
        assert pytest.ExitCode.INTERRUPTED == process.returncode
        assert "KeyboardInterrupt" in output
        assert [] == runs
    else:
        assert 1 == len(runs)
        clean = subprocess.run(
            [
                sys.executable,
                "-c",
                "from harness_core.process import sweep; print(sweep().problems)",
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "()\n" == clean.stdout
        assert [] == list((tmp_path / "state" / "runs").iterdir())


def test_pytest_finds_the_plugin_by_itself():
    """Installing the distribution is enough: pytest loads the plugin, nothing is to be imported."""
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}

    assert "harness_core.front.pytest_plugin" == found.get("harness")


def test_token_and_subject_fixtures(run_pytest, project):
    """The token is fresh for each test; the subject file is absolute, or none."""
    text = """
seen = []
def test_one(token, subject_file): seen.append(token); assert {}
def test_two(token): assert token not in seen
"""
    given = run_pytest(
        "--subject=x.toml",
        test_one=text.format(f"str(subject_file) == {str(project / 'x.toml')!r}"),
    )
    none = run_pytest(test_one=text.format("subject_file is None"))

    assert (0, 0) == (given.returncode, none.returncode)


EXPLAINED = """
import pytest
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.front.pytest_plugin import explain_failures

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
import pytest
from harness_core.base.errors import HarnessError

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


def test_a_failure_says_what_is_known_of_its_cause(run_pytest: Pytest) -> None:
    """In its own text, once per test, in setup and call; what cannot be found out changes nothing."""
    done = run_pytest("-p", "no:randomly", conftest=EXPLAINED, test_it=EXPLAINED_TESTS)
    said = re.findall(r"^E +the key was refused to test_(\w+)$", done.stdout, re.MULTILINE)

    # An error of a shared fixture is one error, shown with what was said for each test.
    assert ["harness", "setup_one", "setup_one", "setup_two", "fails"] == said, done.stdout
    assert "nothing more is known: cannot ask the gateway: it is gone." in done.stdout
    assert {"1 failed", "1 skipped", "1 xfailed"} <= set(
        re.findall(r"\d+ \w+", done.stdout.splitlines()[-1])
    )
