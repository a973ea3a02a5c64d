"""What a noxfile of a few lines has: the sessions of its suites, of the harness that nox runs with."""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nox
import pytest

from harness_core.front.scaffold import scaffold_suite
from harness_core.front.sessions import _environment, add_sessions, read_tree

NOXFILE = '''"""What runs here: nox -l lists it."""

from pathlib import Path

from harness_core.sessions import add_sessions, read_tree

add_sessions(read_tree(Path(__file__).parent))
'''

PYPROJECT = """
[project]
name = "theirs"
version = "1"

[dependency-groups]
test = ["pytest-trio"]
"""


@pytest.fixture
def tree(tmp_path):
    """Somebody else's folder with one suite."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "noxfile.py").write_text(NOXFILE)
    scaffold_suite("tally", root=tmp_path)
    return tmp_path


@pytest.fixture
def registry(monkeypatch):
    """The sessions of this process: none but those that a test adds."""
    # Given back whatever the sessions do to them.
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    registered = nox.registry._REGISTRY
    before = dict(registered)
    registered.clear()
    yield registered
    registered.clear()
    registered.update(before)


def listed(tree: Path, *words: str) -> dict[str, dict]:
    """The sessions that nox finds in a tree, by name."""
    found = subprocess.run(
        [sys.executable, "-m", "nox", "-l", "--json", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == found.returncode, found.stderr
    return {row["session"]: row for row in json.loads(found.stdout)}


def test_a_noxfile_of_a_few_lines_lists_everything(tree):
    """Its suite's own sessions, its faults and mutants, and those that take a suite's name."""
    assert {"lint", "tally"} <= listed(tree).keys()
    assert {"faults-tally"} == listed(tree, "-t", "faults").keys()
    assert {"mutate-tally"} == listed(tree, "-t", "mutants").keys()


def test_sessions_need_nothing_but_nox():
    """Where nox runs, the libraries of the harness may be missing."""
    ours = [
        line.partition(";")[0]
        for line in importlib.metadata.requires("staging-harness")
        if "extra ==" not in line
    ]
    names = {re.match(r"[\w.-]+", line)[0] for line in ours}
    found = subprocess.run(
        [sys.executable, "-c", "import sys, harness_core.sessions; print(*sorted(sys.modules))"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(found.stdout.split())

    assert {"click", "msgspec", "pytest", "trio"} <= names
    assert "harness_core.front.sessions" in loaded
    assert set() == names & loaded, "a noxfile loads no library of the harness"


def test_a_session_of_the_noxfile_stays(tree, registry):
    """One of the same name is not made again."""

    @nox.session
    def lint(session):
        """Mine."""

    add_sessions(read_tree(tree))

    assert "Mine." == registry["lint"].func.__doc__
    assert "tally" in registry


def test_coverage_and_benchmarks_are_there_where_they_can_run(tree, registry):
    """Coverage with its dependency group, benchmarks with a suite that declares one."""
    add_sessions(read_tree(tree))
    bare = set(registry)
    registry.clear()
    (tree / "pyproject.toml").write_text(PYPROJECT + 'coverage = ["coverage"]\n')
    suite = tree / "suites/tally/suite.toml"
    row = '\n[[bench]]\nname = "rate"\nsummary = "s"\nscript = "bench.py"\n'
    suite.write_text(suite.read_text() + row)
    add_sessions(read_tree(tree))

    assert {"bench", "bench-tally", "coverage"} == set(registry) - bare


ORIGINS = {
    "index": ("", "staging-harness[s3,stack]==9.1"),
    "wheel": (
        '{"url": "file:///shelf/staging_harness-9.1-py3-none-any.whl", "archive_info": {}}',
        "staging-harness[s3,stack] @ file:///shelf/staging_harness-9.1-py3-none-any.whl",
    ),
    "folder": (
        '{"url": "file:///src/a%20harness", "dir_info": {}}',
        "staging-harness[s3,stack] @ file:///src/a%20harness",
    ),
    "editable": (
        '{"url": "file:///src/a%20harness", "dir_info": {"editable": true}}',
        "-e /src/a harness[s3,stack]",
    ),
}


@pytest.mark.parametrize(("origin", "words"), ORIGINS.values(), ids=ORIGINS)
def test_tests_have_the_harness_that_nox_runs_with(tree, tmp_path, monkeypatch, origin, words):
    """The same version, or the same file or folder where no index has it."""
    info = tmp_path / "staging_harness-9.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: staging-harness\nVersion: 9.1\n")
    if origin:
        (info / "direct_url.json").write_text(origin)
    monkeypatch.setattr(
        _environment.importlib.metadata, "distribution", lambda _: Distribution(info)
    )

    assert words == " ".join(_environment.harness_words(read_tree(tree), ["s3", "stack"]))


Distribution = importlib.metadata.PathDistribution


@pytest.mark.parametrize(
    ("words", "may_import", "installed"),
    [
        ([], [], True),
        (["--subject", "mine.toml"], [], False),
        (["--subject", "mine.toml"], ["demo_contract"], True),
    ],
)
def test_a_library_that_tests_import_is_there_for_every_product(words, may_import, installed):
    """A library under test gives way to another product; published schemas are read whatever is tested."""
    suite = {"name": "demo", "group": "test", "library": "lib", "may_import": may_import}
    tree, session = SimpleNamespace(root=Path("/tree")), SimpleNamespace(posargs=words)

    found = _environment.needs_of(tree, session, suite)["libraries"]

    assert ([Path("/tree/suites/demo/lib")] if installed else []) == found


def test_the_harness_itself_is_installed_from_its_tree():
    """Editable, with the extras that a session needs."""
    root = Path(__file__).parents[3]

    assert ["-e", f"{root}[s3]"] == _environment.harness_words(read_tree(root), ["s3"])
