"""suite.toml: what is read, and that every mistake is one error with file, key and cure."""

import ast
import runpy
from pathlib import Path

import nox
import pytest

from benchmarks.__main__ import SUBJECTS
from harness_core.base.errors import BadInput, Unavailable
from harness_core.system.suites import (
    RESERVED,
    RESERVED_BENCHES,
    find_root,
    load_suites,
)

GOOD = """
[suite]
name = "demo"
summary = "A demo."
group = "test"
extras = ["postgres"]
faults = "faults.toml"

[optional_gates]
docker = "only the big machines have it"

[[session]]
name = "demo"
summary = "All of it."
default = true
tags = ["fast"]

[[session]]
name = "demo_p1"
summary = "Priority 1."
markers = "p1"
paths = ["more"]
group = "heavy"

[[bench]]
name = "scale"
summary = "How it grows."
script = "bench.py"

[[capability]]
name = "route.v1"
demands = "It routes."
shown_by = ["bench.py::test_route[row]"]
needs = ["texts.echo"]

[[capability]]
name = "echo"
demands = "It says what it is told."
shown_by = ["bench.py::TestEcho::test_echo"]
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with one good suite."""
    add_suite(tmp_path, "demo", GOOD)
    (tmp_path / "suites/demo/faults.toml").touch()
    (tmp_path / "suites/demo/bench.py").touch()
    (tmp_path / "suites/demo/more").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "staging-harness"\n[project.optional-dependencies]\npostgres = []\n'
        "[dependency-groups]\ntest = []\nheavy = []\n"
    )
    return tmp_path


def add_suite(root: Path, name: str, text: str) -> Path:
    """Write a suite.toml and return its folder."""
    folder = root / "suites" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(text)
    return folder


def test_suite_is_read(tree):
    """Every key arrives, defaults included."""
    (suite,) = load_suites(tree)

    assert ("demo", "A demo.", "test") == (suite.name, suite.summary, suite.group)
    assert ("postgres",) == suite.extras
    assert tree / "suites/demo/faults.toml" == suite.faults
    assert (None, None) == (suite.subject, suite.budget_usd)
    first, second = suite.sessions
    assert (True, ("fast",), "", (".",)) == (first.default, first.tags, first.markers, first.paths)
    assert ("", "heavy") == (first.group, second.group)
    assert {"docker": "only the big machines have it"} == suite.optional_gates
    (bench,) = suite.benches
    assert ("scale", tree / "suites/demo/bench.py") == (bench.name, bench.script)
    route, echo = suite.capabilities
    assert ("route.v1", ("texts.echo",), ()) == (route.name, route.needs, echo.needs)
    assert (False, "p1", ("more",)) == (
        second.default,
        second.markers,
        second.paths,
    )


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ('markers = "p1"', "own_tests = true", "session[1].group", "none: own tests run where"),
        ("default = true", "own_tests = true", "session[0].own_tests", "a suite with a subject"),
        ('name = "demo"\n', 'name = "other"\n', "suite.name", "the name of the folder, 'demo'"),
        ('group = "test"', 'group = "tset"', "suite.group", "a dependency group of pyproject.toml"),
        ('["postgres"]\nfaults', '["oracle"]\nfaults', "suite.extras", "an extra of pyproject"),
        ('"faults.toml"', '"nowhere.toml"', "suite.faults", "a file relative to"),
        ("extras =", 'library = "more"\nextras =', "suite.library", "a folder with a pyproject"),
        ('"demo_p1"', '"lint"', "session[1].name", "a name the noxfile does not use"),
        ('"demo_p1"', '"faults-demo"', "session[1].name", "a name the noxfile does not use"),
        ('"demo_p1"', '"demo"', "session.name", "a name used once"),
        ('"demo_p1"', '"Demo P1"', "session[1].name", "a text like"),
        ('tags = ["fast"]', 'tags = ["fast", "fast"]', "session[0].tags", "without repetition"),
        ('paths = ["more"]', 'paths = ["less"]', "session[1].paths", "a file or folder below"),
        ('"heavy"', '"heavvy"', "session.demo_p1.group", "a dependency group of pyproject.toml"),
        ('"demo_p1"', '"bench-demo"', "session[1].name", "a name the noxfile does not use"),
        ('"bench.py"', '"nowhere.py"', "bench[0].script", "a file relative to"),
        ('"scale"', '"Scale"', "bench[0].name", "a text like"),
        (
            '"only the big machines have it"',
            '""',
            "optional_gates.docker",
            "a text that is not empty",
        ),
        ('"route.v1"', '"Route"', "capability[0].name", "a text like"),
        ('"route.v1"', '"echo"', "capability.name", "a name used once"),
        ('"It routes."', '""', "capability[0].demands", "a text that is not empty"),
        ('"bench.py::test_route[row]"', "", "capability[0].shown_by", "ids of tests, at least one"),
        ('"bench.py::test_r', '"bench.py:test_r', "capability[0].shown_by[0]", "a text like"),
        ('"bench.py::test_r', '"b.py::test_r', "capability.route.v1.shown_by", "FILE.py::TEST"),
        ('["texts.echo"]', '["texts.", "x"]', "capability[0].needs[0]", "a text like"),
        ("needs =", 'tests = ["bench.py::"]\nneeds =', "capability[0].tests[0]", "a text like"),
        ("needs =", 'tests = ["b*.ph"]\nneeds =', "capability[0].tests[0]", "a text like"),
        ("needs =", 'tests = ["c*.py"]\nneeds =', "capability.route.v1.tests", "a file below"),
        ("extras =", 'boots = "bench.py"\nextras =', "suite.boots", "a text like"),
        ("extras =", 'boots = "b.py::test_x"\nextras =', "suite.boots", "FILE.py::TEST"),
        ('"scale"', '"postgres"', "bench[0].name", "a name no benchmark of the harness has"),
        ("extras =", "budget_usd = -1\nextras =", "suite.budget_usd", "USD, from 0 on"),
        ("extras =", "budget_usd = inf\nextras =", "suite.budget_usd", "USD, from 0 on"),
    ],
)
def test_malformed_suite_names_its_mistake(tree, old, new, key, expected):
    """Each is refused with file, key and what would be right; of every key, see test_every_file."""
    assert old in GOOD
    add_suite(tree, "demo", GOOD.replace(old, new))

    with pytest.raises(BadInput) as caught:
        load_suites(tree)

    assert str(tree / "suites/demo/suite.toml") == caught.value.where
    assert key == caught.value.key
    assert expected in caught.value.expected


def test_two_suites_cannot_share_a_session_name(tree):
    """Nox would silently keep one of them."""
    add_suite(tree, "other", GOOD.replace('"demo"', '"other"', 1).replace("faults =", "#"))
    (tree / "suites/other/more").mkdir()
    (tree / "suites/other/bench.py").touch()

    with pytest.raises(BadInput) as caught:
        load_suites(tree)

    assert "demo" == caught.value.found
    assert str(tree / "suites/other/suite.toml") == caught.value.where
    assert f"a name that {tree / 'suites/demo/suite.toml'} does not use" == caught.value.expected


def test_root_is_found_from_below(tree):
    """Any folder of the tree finds its root; a folder elsewhere is refused."""
    assert tree.resolve() == find_root(tree / "suites/demo/more")
    with pytest.raises(Unavailable, match="cannot find the suites"):
        find_root(Path("/"))


def test_reserved_names_are_those_of_the_noxfile(monkeypatch):
    """The set of names a suite may not use follows the noxfile: sessions that are of no suite."""
    root = Path(__file__).parents[3]
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")  # given back whatever the noxfile does to it
    monkeypatch.setattr(nox.registry, "_REGISTRY", {})
    runpy.run_path(str(root / "noxfile.py"))
    of_suites = {session.name for suite in load_suites(root) for session in suite.sessions}
    own = {name for name in nox.registry.get() if "-" not in name} - of_suites

    assert own == RESERVED


def test_reserved_benchmarks_are_those_of_the_harness():
    """The set of names a suite's benchmark may not have follows the harness and the noxfile."""
    noxfile = ast.parse((Path(__file__).parents[3] / "noxfile.py").read_text())
    (written,) = (
        ast.literal_eval(node.value)
        for node in noxfile.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BENCHES"
    )

    assert RESERVED_BENCHES == set(SUBJECTS) == set(written)
