"""What becomes of tests that are not run: pytest run on small trees, with and without CI."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_core.base.errors import BadInput
from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT
from harness_core.front.skips import Cause, SkipRule, Why
from harness_core.tests.plugin.inner import Inner

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]

SUITE = """
[suite]
name = "demo"
summary = "a demo"
group = "test"

[[session]]
name = "demo"
summary = "the demo"
"""
OPTIONAL = '\n[optional_gates]\nshut = "no machine of ours has it"\n'
GATE = """
from harness_core.assurance import gates
from harness_core.assurance.gates import Gate
if not any(gate.name == "shut" for gate in gates.gates()):
    gates.register(Gate(name="shut", summary="never", probe=lambda: "it is closed today"))
"""
#: A test for each kind of cause, and two modules that leave themselves out as a whole.
SKIPS = """
@pytest.mark.requires("shut")
def test_gate(): pass
def test_subject(): not_run("subject", "it has no knob")
def test_options(): not_run("options", "--live excludes it")
def test_plain(): pytest.skip("just so")
@pytest.mark.skipif(True, reason="just so")
def test_mark(): pass
"""
MODULES = {
    "test_module": 'pytest.skip("just so", allow_module_level=True)\n',
    "test_import": 'pytest.importorskip("no_such_module")\n',
}
HEAD = "import pytest\nfrom harness_core.front.skips import not_run\n"
PASSES = "def test_passes(): pass\n"


@pytest.fixture
def run_suite(tmp_path: Path) -> Pytest:
    """Write a tree with one suite and run pytest on it."""
    inner = Inner(tmp_path)
    project = '[dependency-groups]\ntest = []\n[project]\nname="x"\n'
    inner.write({"pyproject.toml": project, "suites/demo/conftest.py": GATE})

    def run(test: str, *words: str, suite: str = SUITE, ci: str = "", require: str = "", **more):
        modules = {"test_demo": test, "test_other": PASSES} | more
        files = {f"suites/demo/{name}.py": HEAD + text for name, text in modules.items()}
        files["suites/demo/suite.toml"] = suite
        return inner.run("suites/demo", *words, files=files, CI=ci, HARNESS_REQUIRE=require)

    return run


def causes(output: str) -> dict[str, int]:
    """What the end of a run shows: cause → number."""
    found = re.findall(r"^ +(\d+) (.+)$", output.partition("= not run: ")[2], re.MULTILINE)
    return {cause: int(number) for number, cause in found}


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_skips_are_counted_by_cause(run_suite, workers):
    """Without CI every cause is accepted, and shown at the end with its number."""
    done = run_suite(SKIPS, workers, **MODULES)

    assert 0 == done.returncode, done.stdout
    assert {
        "gate 'shut': it is closed today": 1,
        "it has no knob": 1,
        "--live excludes it": 1,
        "just so": 3,
        "could not import 'no_such_module': No module named 'no_such_module'": 1,
    } == causes(done.stdout)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_skip_without_leave_is_an_error_in_ci(run_suite, workers):
    """A missing tool may not empty a contract: the test is an error that names the cause."""
    done = run_suite(SKIPS, workers, "-rA", ci="1")
    errors = re.findall(
        r"^HARNESS ERROR \S+::(\w+) - cannot leave a test out in CI", done.stdout, re.MULTILINE
    )

    assert HARNESS_ERROR_EXIT == done.returncode, done.stdout
    assert {"test_gate", "test_subject", "test_plain", "test_mark"} == set(errors)
    assert {
        "gate 'shut': it is closed today (refused in CI)": 1,
        "it has no knob (refused in CI)": 1,
        "just so (refused in CI)": 2,
        "--live excludes it": 1,
    } == causes(done.stdout)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_module_that_leaves_itself_out_is_an_error_in_ci(run_suite, workers):
    """What a module skips at its import is refused like what a test skips."""
    done = run_suite(PASSES, workers, ci="1", **MODULES)

    # Alone, pytest stops at a module that it cannot collect.
    assert done.returncode in {HARNESS_ERROR_EXIT, pytest.ExitCode.INTERRUPTED}, done.stdout
    for name in MODULES:
        assert f"ERROR suites/demo/{name}.py - cannot leave a test out in CI" in done.stdout
    assert "skipped" not in done.stdout


def test_an_optional_gate_is_accepted_with_its_reason(run_suite):
    """``[optional_gates]`` accepts the gate in CI, and the end of the run repeats the reason."""
    done = run_suite(SKIPS, "-k", "gate or passes", suite=SUITE + OPTIONAL, ci="true")

    assert 0 == done.returncode, done.stdout
    assert {"gate 'shut': it is closed today (optional: no machine of ours has it)": 1} == causes(
        done.stdout
    )


def test_a_demand_overrules_an_optional_gate(run_suite):
    """What HARNESS_REQUIRE names is not optional in this run."""
    done = run_suite(SKIPS, "-k", "gate", suite=SUITE + OPTIONAL, ci="1", require="shut")

    assert HARNESS_ERROR_EXIT == done.returncode
    assert "gate 'shut' is demanded by HARNESS_REQUIRE" in done.stdout


def test_a_foreign_subject_may_lack_things_in_ci(run_suite, tmp_path):
    """A capability that a product does not claim is no error when that product was named."""
    subject = tmp_path / "subject.toml"
    subject.write_text("")
    done = run_suite(SKIPS, "-k", "subject or passes", f"--subject={subject}", ci="1")

    assert 0 == done.returncode, done.stdout
    assert {"it has no knob": 1} == causes(done.stdout)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_run_of_nothing_but_skips_fails(run_suite, workers):
    """When every test was left out, nothing was shown, and the run says so, without CI too."""
    done = run_suite(SKIPS, workers, "-k", "options")

    assert pytest.ExitCode.NO_TESTS_COLLECTED == done.returncode
    assert "Nothing was shown: every test was skipped." in done.stdout


def test_an_expected_failure_is_no_skip(run_suite):
    """A strict xfail ran: it is neither counted nor refused."""
    done = run_suite("@pytest.mark.xfail(strict=True)\ndef test_known(): assert False\n", ci="1")

    assert 0 == done.returncode, done.stdout
    assert "not run" not in done.stdout


def test_a_tree_of_its_own_skips_as_it_likes(run_suite, tmp_path):
    """Where no suite.toml and no optional_gates stand, CI changes nothing, whatever fixtures are set."""
    (tmp_path / "project" / "test_plain.py").write_text(HEAD + SKIPS)
    (tmp_path / "project" / "pyproject.toml").write_text(
        "[tool.staging_harness.database]\nwarm = 1\n"
    )
    done = run_suite(PASSES, "test_plain.py", "--deselect=suites", ci="1")

    assert 0 == done.returncode, done.stdout
    assert "5 skipped" in done.stdout


@pytest.mark.parametrize("home", ["suite.toml", "pyproject.toml"])
@pytest.mark.parametrize("value", ["3", '""', '"  "', "[]"])
def test_a_gate_without_a_reason_is_refused(tmp_path, monkeypatch, home, value):
    """A gate is optional with a reason or not at all; file and key are named."""
    monkeypatch.setenv("CI", "1")
    (tmp_path / "pyproject.toml").write_text("[tool.staging_harness]\n")
    if home == "suite.toml":
        (tmp_path / "suite.toml").write_text(
            SUITE.replace("demo", tmp_path.name.replace("-", "_"))
            + f"[optional_gates]\nx = {value}\n"
        )
    else:
        (tmp_path / home).write_text(f"[tool.staging_harness.optional_gates]\nx = {value}\n")
    rule = SkipRule(tmp_path, foreign=False)
    with pytest.raises(BadInput) as refused:
        rule.judge(Cause(why=Why.GATE, reason="closed", gate="x"), tmp_path / "test_x.py")

    assert refused.value.where.endswith(home)
    assert refused.value.key.endswith("optional_gates.x")
