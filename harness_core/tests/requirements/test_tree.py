"""The lint over a whole tree: which files are held to which rules."""

import pytest

from harness_core.assurance.requirements import (
    SourceFile,
    check_core_imports,
    check_reference_imports,
    check_tree,
)
from harness_core.base.errors import BadInput

SUITE = """
[suite]
name = "demo"
summary = "s"
group = "test"
faults = "faults.toml"
adapter = "adapter.py"
[[session]]
name = "demo"
summary = "s"
"""

FAULTS = """
[[fault]]
id = "a"
why = "w"
requirement = "R-1"
env = { X = "1" }
tests = ["test_demo.py::test_demo[row]"]
says = "total"
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with one suite that breaks no rule."""
    files = {
        "pyproject.toml": "[dependency-groups]\ntest = []\n",
        "harness_core/__init__.py": "",
        "harness_core/wait.py": "import trio\nfrom harness_core import clock\n",
        "suites/demo/suite.toml": SUITE,
        "suites/demo/faults.toml": FAULTS,
        "suites/demo/README.md": "# demo\n",
        "suites/demo/adapter.py": "import shop\n",
        "suites/demo/test_demo.py": "def test_demo():\n    assert f()\n",
        "suites/demo/reference-system/shop/pyproject.toml": "[project]\nname = 'shop'\n",
        "suites/demo/reference-system/shop/shop/__init__.py": "import asyncio\n",
        "suites/demo/reference-system/shop/shop/rows.py": "import shop.db\n",
        "suites/demo/foreign/stall/test_stall.py": "import time\ntime.sleep(1)\n",
        "suites/demo/foreign/stall/subject.toml": '[subject]\nname = "s"\nargv = ["true"]\n',
        "suites/demo/foreign/stall/faults.toml": FAULTS,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_clean_tree_has_no_findings(tree):
    """A tree that keeps the rules passes, with its adapter, and products that do as they like."""
    assert () == check_tree(tree)


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("suites/demo/test_demo.py", "def test_demo():\n    f()\n", "no-assertion"),
        ("suites/demo/deep/test_y.py", "import shop.db\n", "subject-internals"),
        ("suites/demo/conftest.py", "import time\ntime.sleep(1)\n", "sleep"),
        ("suites/demo/test_demo.py", "def test_other():\n    assert f()\n", "fault-names-no-test"),
        (
            "suites/demo/reference-system/shop/shop/db.py",
            "from harness_core import wait\n",
            "reference-imports-harness",
        ),
        (
            "suites/demo/foreign/stall/stall.py",
            "from harness_core import wait\n",
            "reference-imports-harness",
        ),
        (
            "suites/demo/foreign/stall/faults.toml",
            FAULTS.replace("::test_demo", "::test_other"),
            "fault-names-no-test",
        ),
        (
            "suites/demo/reference-system/shop/shop/db.py",
            "from shop.rows import Row\n",
            "import-circle",
        ),
        ("suites/demo/reference-system/shop/tests/test_shop.py", "import shop\n", "unrun-test"),
        ("harness_core/clock.py", "import harness_core.wait\n", "import-circle"),
        (
            "harness_core/infrastructure/databases/_x.py",
            "import suites.demo.adapter\n",
            "core-imports-suite",
        ),
        ("harness_core/infrastructure/databases/_x.py", "import threading\n", "threads"),
    ],
)
def test_broken_rule_is_found_where_it_is(tree, path, text, finding):
    """Each rule reaches the files it is about."""
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)

    assert finding in [problem.rule for problem in check_tree(tree)]


OPTIONAL = '[optional_gates]\n{} = "the big machines have it"\n[[session]]'


def test_own_tests_of_a_reference_system_have_a_session(tree):
    """A session with ``own_tests`` and their folder runs them."""
    suite = tree / "suites/demo"
    (suite / "reference-system/subject.toml").write_text("")
    (suite / "reference-system/shop/tests").mkdir()
    (suite / "reference-system/shop/tests/test_shop.py").write_text("import shop\n")
    subject = SUITE.replace("adapter =", 'subject = "reference-system/subject.toml"\nadapter =')
    row = 'own_tests = true\npaths = ["reference-system/shop/tests"]\n'
    (suite / "suite.toml").write_text(subject + row)

    assert () == check_tree(tree)


def test_optional_gate_that_there_is_not_is_refused(tree):
    """Misspelt, it would make every skip for want of the real one an error."""
    path = tree / "suites/demo/suite.toml"
    path.write_text(SUITE.replace("[[session]]", OPTIONAL.format("dokcer")))

    with pytest.raises(BadInput) as refused:
        check_tree(tree)

    assert (str(path), "optional_gates.dokcer") == (refused.value.where, refused.value.key)
    assert "Did you mean docker?" in str(refused.value)


def test_optional_gate_of_the_suites_own_is_known(tree):
    """It is registered in a conftest, which the lint reads and does not run."""
    path = tree / "suites/demo/suite.toml"
    path.write_text(SUITE.replace("[[session]]", OPTIONAL.format("big-machine")))
    (tree / "suites/demo/conftest.py").write_text(
        "from harness_core import gates\n"
        "gates.register(gates.Gate(name='big-machine', summary='s', probe=lambda: ''))\n"
    )

    assert () == check_tree(tree)


def test_suite_without_readme_is_found(tree):
    """A suite folder says what it tests and how to use it."""
    (tree / "suites/demo/README.md").unlink()

    assert ["readme"] == [problem.rule for problem in check_tree(tree)]


def core(path: str, text: str) -> SourceFile:
    """A source file of harness_core."""
    return SourceFile.parse(text, path=f"harness_core/{path}")


def test_library_belongs_to_one_package():
    """The second package that imports a library gets one finding, which names the first."""
    files = [
        core("infrastructure/databases/_a.py", "import psycopg\n"),
        core(
            "infrastructure/databases/_b.py", "from psycopg import sql\nimport trio\nimport json\n"
        ),
        core("doubles/model/_a.py", "import psycopg\n"),
        core("doubles/model/_b.py", "import psycopg\n"),
    ]

    problems = list(check_core_imports(files))

    assert [("harness_core/doubles/model/_a.py", "library-in-two-packages")] == [
        (problem.path, problem.rule) for problem in problems
    ]
    assert "harness_core/infrastructure/databases" in problems[0].advice


def test_bridge_may_use_threads():
    """The bridge is where trio meets threads and asyncio."""
    assert [] == list(
        check_core_imports([core("base/bridge/_x.py", "import threading, asyncio\n")])
    )


def test_reference_system_stands_alone():
    """A reference system imports no suite either."""
    file = SourceFile.parse(
        "from suites.demo import rows\n", path="suites/demo/reference-system/x.py"
    )

    assert ["reference-imports-harness"] == [
        problem.rule for problem in check_reference_imports(file)
    ]
