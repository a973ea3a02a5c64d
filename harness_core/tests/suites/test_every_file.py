"""Every file of this repository that the harness reads, with every mistake that a hurry makes."""

import shutil
import tomllib
from pathlib import Path

import pytest

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.assurance.planted import load_faults, load_product
from harness_core.assurance.requirements import check_gates, load_ledger
from harness_core.system.subject import load_subject
from harness_core.system.suites import load_suite, load_suites

ROOT = Path(__file__).parents[3]
LEFT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def files(pattern: str) -> list:
    """Files of the tree as parameters, named by their path."""
    found = sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
    return [pytest.param(path, id=str(path)) for path in found]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of what the files speak of."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "suites", tree / "suites", ignore=LEFT)
    shutil.copytree(ROOT / "roster", tree / "roster", ignore=LEFT)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@pytest.fixture
def tree(copied, request):
    """The copy, and the file of the test as it was."""
    yield copied
    relative = request.node.callspec.params["path"]
    shutil.copy(ROOT / relative, copied / relative)


@pytest.mark.parametrize("path", files("suites/*/suite.toml"))
def test_suite_toml(tmp_path, path):
    """Whatever key of it is misspelt, missing or of another kind is named with the file."""
    content = tomllib.loads((ROOT / path).read_text())
    # A tree of this suite alone: the others would be read again for every mistake.
    shutil.copytree(ROOT / path.parent, tmp_path / path.parent, ignore=LEFT)
    shutil.copytree(ROOT / "roster", tmp_path / "roster", ignore=LEFT)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def read() -> None:
        (suite,) = load_suites(tmp_path)
        check_gates(suite, root=tmp_path)

    assert 40 < check_reader(read, tmp_path / path, content=content, write=to_toml)


@pytest.mark.parametrize("path", files("suites/*/faults.toml") + files("suites/*/faults/*.toml"))
def test_faults(copied, path):
    """The variables that switch a fault on have names of the product's choice."""
    content = tomllib.loads((ROOT / path).read_text())
    # Alone: the others of its folder would be read again for every mistake.
    alone = copied / path.parts[0] / path.parts[1] / "alone.toml"

    assert 18 < check_reader(
        lambda: load_faults(alone),
        alone,
        content=content,
        write=to_toml,
        named_by_the_author=("fault.env.*",),
    )


@pytest.mark.parametrize("path", files("suites/*/foreign/*/faults.toml"))
def test_faults_of_another_make(tree, path):
    """The same, and what is asked of the product."""
    content = tomllib.loads((ROOT / path).read_text())
    suite = load_suite(tree / path.parts[0] / path.parts[1])

    assert 18 < check_reader(
        lambda: load_product(suite, (tree / path).with_name("subject.toml")),
        tree / path,
        content=content,
        write=to_toml,
        named_by_the_author=("fault.env.*",),
    )


@pytest.mark.parametrize("path", files("suites/*/foreign/*/subject.toml"))
def test_a_product_of_another_make(path):
    """It is described in under thirty lines, and can be made wrong in six ways at least."""
    lines = [line for line in (ROOT / path).read_text().splitlines() if line.strip()]
    suite = load_suite(ROOT / path.parts[0] / path.parts[1])

    assert len(lines) < 30
    assert len(load_product(suite, ROOT / path).faults) >= 6


@pytest.mark.parametrize("path", files("suites/*/ledger.toml"))
def test_ledger(tree, path):
    """Priorities and stand-ins have names of the suite's choice."""
    content = tomllib.loads((ROOT / path).read_text())

    assert 20 < check_reader(
        lambda: load_ledger(tree / path),
        tree / path,
        content=content,
        write=to_toml,
        named_by_the_author=("ledger.priorities.*", "ledger.stand_ins.*"),
    )


@pytest.mark.parametrize(
    "path",
    files("suites/*/reference-system/subject*.toml") + files("suites/*/subjects/*.toml"),
)
def test_subject(tree, path):
    """What every subject file has; the tables of a suite are that suite's to check."""
    content = tomllib.loads((ROOT / path).read_text())
    own = [key for key in content if key not in {"subject", "env"}]

    assert 5 < check_reader(
        lambda: load_subject(tree / path),
        tree / path,
        content=content,
        write=to_toml,
        named_by_the_author=("env", "env.*"),
        left_to_others=own,
    )
