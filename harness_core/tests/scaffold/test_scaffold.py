"""A scaffolded suite is whole: it runs green, its fault goes red, and nothing else had to change."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
import trio

from harness_core.assurance.planted import Verdict, run_faults
from harness_core.assurance.requirements import check_tree
from harness_core.base.errors import BadInput
from harness_core.front.scaffold import scaffold_suite
from harness_core.process import open_run
from harness_core.system.staging import Options, opener_of, subject_of
from harness_core.system.suites import load_suites

ROOT = Path(__file__).parents[3]
LONGEST = "a" * 30


@pytest.fixture
def tree(tmp_path):
    """A copy of this tree without its suites and without what building left."""
    for name in ("pyproject.toml", "noxfile.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    leave = shutil.ignore_patterns("tests", "__pycache__")
    shutil.copytree(ROOT / "harness_core", tmp_path / "harness_core", ignore=leave)
    (tmp_path / "suites").mkdir()
    return tmp_path


@pytest.fixture
def install(tree, monkeypatch):
    """Give a reference system its commands, as an installer would."""

    def make(folder: Path) -> None:
        reference = folder / "reference-system"
        project = tomllib.loads((reference / "pyproject.toml").read_text())["project"]
        (tree / "bin").mkdir()
        for name, function in project["scripts"].items():
            module, _, called = function.partition(":")
            command = tree / "bin" / name
            command.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(reference)!r})\n"
                f"from {module} import {called}\n{called}()\n"
            )
            command.chmod(0o755)
        monkeypatch.setenv("HARNESS_SUBJECT_BIN", str(tree / "bin"))

    return make


@pytest.fixture
def installed(tree, install):
    """A suite whose reference system has its command."""
    folder = scaffold_suite("tally", root=tree)
    install(folder)
    return folder


@pytest.fixture
def several(tree, install):
    """The same of three processes."""
    folder = scaffold_suite("tally", root=tree, processes=3)
    install(folder)
    return folder


def run(*argv: str, cwd: Path, errors: int = subprocess.STDOUT) -> subprocess.CompletedProcess[str]:
    """Run one of our tools in the tree; what it says of errors stands in its output, or as given."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        check=False,
    )


def test_scaffolded_suite_is_green(tree, installed):
    """Its tests pass against its own reference system: a scenario and a refusal among them."""
    result = run("pytest", "suites/tally", "-q", "-p", "no:cacheprovider", cwd=tree)

    assert result.returncode == 0, result.stdout
    assert "6 passed" in result.stdout


@pytest.mark.slow
def test_scaffolded_suite_of_several_processes_is_green(tree, several):
    """So do those of three processes, whose keepers are taken away and given back."""
    result = run("pytest", "suites/tally", "-q", "-p", "no:cacheprovider", cwd=tree)

    assert result.returncode == 0, result.stdout
    assert "10 passed" in result.stdout


@pytest.mark.parametrize("processes", [0, 10])
def test_a_number_of_processes_that_shows_nothing_is_refused(tree, processes):
    """One clear error, and nothing is written."""
    with pytest.raises(BadInput, match="a number from 1 to 9"):
        scaffold_suite("tally", root=tree, processes=processes)

    assert [] == list((tree / "suites").iterdir())


@pytest.fixture
def imports_of(tree, monkeypatch):
    """The tree's suites can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tree))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "suites":
            del sys.modules[name]


async def test_scaffolded_environment_is_held(tree, installed, imports_of, evidence, monkeypatch):
    """It answers, says where it is, and has no variable of its caller but what it asks for."""
    monkeypatch.setenv("KEY_OF_A_DEVELOPER", "x")
    monkeypatch.setenv("TALLY_FAULT", "none")
    (suite,) = load_suites(tree)
    opener = opener_of(suite, root=tree)
    subject = subject_of(suite, None, root=tree)
    said = []

    async with (
        open_run(evidence=evidence) as run_,
        opener(run_, subject, options=Options(), evidence=evidence, say=said.append) as held,
    ):
        (part,) = held.describe()["parts"]
        variables = Path(f"/proc/{part['pid']}/environ").read_text().split("\0")
        host, _, port = part["address"].rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"TOTAL\n")
            answer = await stream.receive_some(100)

    assert b"OK 0\n" == answer
    assert "running" == part["state"]
    assert "TALLY_FAULT=none" in variables
    assert not [each for each in variables if each.startswith("KEY_OF_A_DEVELOPER")]
    assert ["starting tally counter (reference)"] == said


async def test_scaffolded_fault_is_killed(tree, installed):
    """Its planted fault turns its named test red, for the reason given."""
    (suite,) = load_suites(tree)

    (result,) = await run_faults(suite, root=tree)

    assert Verdict.KILLED == result.verdict, result.tests


@pytest.mark.slow
async def test_faults_of_several_processes_are_killed(tree, several):
    """One of them is a keeper that is left out."""
    (suite,) = load_suites(tree)

    results = await run_faults(suite, root=tree)

    assert {"refused-amount-counted", "counted-while-one-is-away"} == {
        each.fault.id for each in results
    }
    assert {Verdict.KILLED} == {each.verdict for each in results}, results


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("name", ["tally", "ab", LONGEST])
def test_scaffolded_suite_pleases_every_lint(tree, name, processes):
    """Ruff and the harness's own lint have nothing to say, whatever the name's length."""
    folder = scaffold_suite(name, root=tree, processes=processes)
    path = str(folder.relative_to(tree))

    assert [] == [problem for problem in check_tree(tree) if problem.path.startswith(path)]
    for command in (("ruff", "check", path), ("ruff", "format", "--check", path)):
        result = run(*command, cwd=tree)
        assert result.returncode == 0, result.stdout


def test_no_placeholder_is_left(tree):
    """Every file name and every text carries the suite's own name."""
    folder = scaffold_suite("tally", root=tree, processes=3)
    files = sorted(path for path in folder.rglob("*") if path.is_file())

    assert [] == [path for path in files if "@" in path.name or ".tmpl" in path.name]
    assert [] == [path for path in files if "@name@" in path.read_text().lower()]
    assert folder / "reference-system" / "tally_reference" / "__init__.py" in files


def test_new_suite_is_in_the_front_door(tree):
    """``nox -l`` lists its session and its faults with no edit elsewhere."""
    scaffold_suite("tally", root=tree)

    # Without uv nox says so, where errors go.
    listed = partial(run, "nox", "-l", "--json", cwd=tree, errors=subprocess.PIPE)
    bare = json.loads(listed().stdout)
    faults = json.loads(listed("-t", "faults").stdout)

    assert "tally" in [row["session"] for row in bare]
    assert ["faults-tally"] == [row["session"] for row in faults]


@pytest.mark.real
@pytest.mark.slow
def test_new_suite_runs_by_nox_alone(tree):
    """From nothing but nox: environments, a green run, a killed fault."""
    scaffold_suite("tally", root=tree)

    green = run("nox", "-s", "tally", cwd=tree)
    killed = run("nox", "-s", "faults", "--", "tally", "refused-amount-counted", cwd=tree)

    assert green.returncode == 0, green.stdout
    assert "6 passed" in green.stdout
    assert killed.returncode == 0, killed.stdout
    assert "1 of 1 planted faults killed" in killed.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "2 to 30 lower case letters"),
        ("x", "2 to 30 lower case letters"),
        ("Tally", "2 to 30 lower case letters"),
        ("../tally", "2 to 30 lower case letters"),
        ("tally-ho", "2 to 30 lower case letters"),
        (LONGEST + "a", "2 to 30 lower case letters"),
        ("class", "Python can import"),
        ("lint", "no nox session of the harness itself"),
        ("taken", "a name not yet taken"),
        ("taken_p1", "no session of suite taken"),
    ],
)
def test_bad_name_is_refused_and_nothing_written(tree, name, expected):
    """One clear error, and the tree is as it was."""
    folder = scaffold_suite("taken", root=tree)
    text = (folder / "suite.toml").read_text()
    row = '\n[[session]]\nname = "taken_p1"\nsummary = "More."\n'
    (folder / "suite.toml").write_text(text + row)
    before = sorted(tree.rglob("*"))

    with pytest.raises(BadInput) as caught:
        scaffold_suite(name, root=tree)

    assert expected in caught.value.expected
    assert before == sorted(tree.rglob("*"))
