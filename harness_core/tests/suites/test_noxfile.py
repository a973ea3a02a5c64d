"""The noxfile refuses a name that two files want: nox itself would keep the last and say nothing."""

import json
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nox as nox_package
import pytest

from harness_core.assurance.conformance import mistakes_in, to_toml

ROOT = Path(__file__).parents[3]

SUITE = """
[suite]
name = "{name}"
summary = "s"
group = "test"
faults = "faults.toml"
[[session]]
name = "{session}"
summary = "s"
[[bench]]
name = "{bench}"
summary = "s"
script = "bench.py"
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with this noxfile and one suite."""
    shutil.copy(ROOT / "noxfile.py", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    add(tmp_path, "alpha", session="alpha", bench="scale")
    return tmp_path


def add(tree: Path, name: str, *, session: str, bench: str) -> None:
    """Write a suite."""
    folder = tree / "suites" / name
    folder.mkdir(parents=True, exist_ok=True)
    text = SUITE.format(name=name, session=session, bench=bench)
    (folder / "suite.toml").write_text(text)


def nox(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What nox says of the tree."""
    return subprocess.run(
        [sys.executable, "-m", "nox", "-l", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )


def test_names_of_their_own_are_listed(tree):
    """Sessions of two suites, with the faults and the benchmarks of each."""
    add(tree, "beta", session="beta", bench="depth")
    listed = {row["session"] for row in json.loads(nox(tree, "--json", "-t", "tests").stdout)}
    faults = {row["session"] for row in json.loads(nox(tree, "--json", "-t", "faults").stdout)}

    assert {"alpha", "beta"} <= listed
    assert {"faults-alpha", "faults-beta"} == faults


def test_own_tests_of_a_reference_system_are_given_no_options_of_the_harness(tree):
    """Sessions tagged ``tests`` are: CI divides and measures them by the harness's pytest plugin."""
    path = tree / "suites/alpha/suite.toml"
    row = '[[session]]\nname = "own"\nsummary = "s"\nown_tests = true\ntags = ["fast"]\n'
    path.write_text(path.read_text() + row)
    listed = nox(tree, "--json", "-t", "fast").stdout
    (own,) = (row for row in json.loads(listed) if row["session"] == "own")

    assert ["fast"] == own["tags"]


@pytest.mark.parametrize(
    ("session", "bench", "key", "other"),
    [
        pytest.param("alpha", "b", "session.name: found 'alpha'", "suites/alpha/", id="suite"),
        pytest.param("core", "b", "session.name: found 'core'", "noxfile.py", id="noxfile"),
        pytest.param(
            "faults-alpha", "b", "session.name: found 'faults-alpha'", "noxfile.py", id="faults"
        ),
        pytest.param(
            "bench-beta", "b", "session.name: found 'bench-beta'", "noxfile.py", id="own-bench"
        ),
        pytest.param(
            "explore-beta", "b", "session.name: found 'explore-beta'", "noxfile.py", id="explore"
        ),
        pytest.param("b", "scale", "bench.name: found 'scale'", "suites/alpha/", id="bench"),
        pytest.param("b", "postgres", "bench.name: found 'postgres'", "benchmarks", id="core"),
    ],
)
def test_a_name_that_is_taken_is_refused(tree, session, bench, key, other):
    """One sentence with both files, and nothing is listed or run."""
    add(tree, "beta", session=session, bench=bench)
    refused = nox(tree)
    (line,) = [line for line in refused.stderr.splitlines() if "cannot read" in line]

    assert 0 != refused.returncode
    assert f"cannot read suites/beta/suite.toml: {key}, expected a name that is not taken." in line
    assert other in line.partition("not taken.")[2]
    assert "Traceback" not in refused.stderr


def test_a_session_that_is_there_twice_in_one_suite_is_refused(tree):
    """The file names itself."""
    path = tree / "suites/alpha/suite.toml"
    path.write_text(path.read_text() + '[[session]]\nname = "alpha"\nsummary = "again"\n')
    refused = nox(tree)

    assert 0 != refused.returncode
    assert "not taken. suites/alpha/suite.toml has this one." in refused.stderr


@pytest.fixture
def registry(monkeypatch):
    """The sessions of this process: none but those of the noxfile that a test loads."""
    # Given back whatever the noxfile does to them.
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    registered = nox_package.registry._REGISTRY
    before = dict(registered)
    yield registered
    registered.clear()
    registered.update(before)


@pytest.mark.parametrize(
    "path", [path.relative_to(ROOT) for path in sorted(ROOT.glob("suites/*/suite.toml"))], ids=str
)
def test_a_mistake_in_a_suite_toml_is_one_sentence_or_the_lints(tmp_path, registry, path):
    """Whatever is misspelt, missing or of another kind: the file and the key, and no traceback."""
    for name in ("noxfile.py", "pyproject.toml", path):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    refused = 0
    for mistake in mistakes_in(tomllib.loads((ROOT / path).read_text())):
        (tmp_path / path).write_text(to_toml(mistake.content))
        registry.clear()
        said = refusal(tmp_path / "noxfile.py")
        refused += bool(said)

        assert not said or f"cannot read {path}: " in said, mistake
        assert not said or any(name in said for name in mistake.names), (mistake, said)
    assert 20 < refused


class Asked:
    """A session as the noxfile sees it."""

    def __init__(self, *posargs: str) -> None:
        self.posargs = posargs
        self.notified = {}

    def notify(self, name, posargs=()):
        """Note what runs afterwards."""
        self.notified[name] = list(posargs)

    def error(self, text):
        """End."""
        raise SystemExit(text)


def test_suites_that_explore_are_found(tree, registry):
    """By the mark in their files; another suite is refused, with the names of those."""
    add(tree, "beta", session="beta", bench="depth")
    (tree / "suites/beta/test_beta.py").write_text("@pytest.mark.explore\ndef test_x(): pass\n")
    registry.clear()
    runpy.run_path(str(tree / "noxfile.py"))
    explore = registry["explore"].func

    bare, one = Asked(), Asked("beta", "--seconds", "9")
    explore(bare)
    explore(one)

    assert {"explore-beta": []} == bare.notified
    assert {"explore-beta": ["--seconds", "9"]} == one.notified
    with pytest.raises(SystemExit, match="no test of alpha is marked explore; of beta some are"):
        explore(Asked("alpha"))


def refusal(noxfile: Path) -> str:
    """What it ends with when it is loaded; empty when it has read everything."""
    try:
        runpy.run_path(str(noxfile))
    except SystemExit as exit_:
        return str(exit_.code)
    return ""
