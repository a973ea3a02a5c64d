"""Every rule of the black-box lint, with a snippet it rejects and its nearest that it accepts."""

from textwrap import dedent

import pytest

from harness_core.assurance.requirements import SourceFile, check_test_file
from harness_core.assurance.requirements._blackbox import Rules

RULES = Rules(name="demo", internals=frozenset({"butlers"}), may_import=("butlers.contract",))


def rules_broken(source: str, rules: Rules = RULES) -> list[tuple[int, str]]:
    """Line and rule of each finding."""
    file = SourceFile.parse(dedent(source).lstrip("\n"), path="suites/demo/test_x.py")
    return [(problem.line, problem.rule) for problem in check_test_file(file, rules)]


BAD = [
    ("import butlers.db\n", "subject-internals"),
    ("from butlers import daemon\n", "subject-internals"),
    ("from butlers.contracts import x\n", "subject-internals"),
    ("import importlib\nx = importlib.import_module('butlers.db')\n", "subject-internals"),
    ("import pytest\nx = pytest.importorskip('butlers')\n", "subject-internals"),
    ("import sys\nsys.path.insert(0, 'x')\n", "subject-internals"),
    ("import runpy\nrunpy.run_path('x')\n", "subject-internals"),
    ("from suites.other import rows\n", "imports-suite"),
    ("from unittest import mock\n", "patching"),
    ("from unittest.mock import patch\n", "patching"),
    ("def test_x(monkeypatch):\n    assert f()\n", "patching"),
    ("def helper(*, mocker):\n    return 1\n", "patching"),
    ("import pytest\np = pytest.MonkeyPatch()\n", "patching"),
    ("import time\ntime.sleep(1)\n", "sleep"),
    ("from trio import sleep as nap\nasync def f():\n    await nap(1)\n", "sleep"),
    ("def test_x():\n    f()\n", "no-assertion"),
    ("async def test_x():\n    await f()\n", "no-assertion"),
    ("class TestX:\n    def test_x(self):\n        f()\n", "no-assertion"),
    ("def test_x():\n    def inner():\n        assert f()\n", "no-assertion"),
    ("def test_x(app):\n    app.run(f)\n", "no-assertion"),
    ("def test_x():\n    '''Says a lot.'''\n", "pass-only"),
    ("def test_x():\n    pass\n", "pass-only"),
    ("def test_x():\n    return\n", "pass-only"),
    ("def test_x():\n    assert True\n", "empty-assertion"),
    ("def test_x():\n    assert (f(), 'text')\n", "empty-assertion"),
    ("def test_x():\n    assert f() or True\n", "empty-assertion"),
    ("def test_x():\n    assert not False\n", "empty-assertion"),
    ("def test_x():\n    assert len(f()) >= 0\n", "empty-assertion"),
    ("def test_x():\n    x = f()\n    assert x == x\n", "empty-assertion"),
    ("def test_x(:\n", "syntax"),
]

GOOD = [
    "from butlers.contract import Envelope\n",
    "import butlers_client\n",
    "from suites.demo.adapter import start\n",
    "import time\nnow = time.monotonic()\n",
    "def test_x():\n    assert f()\n",
    "def test_x():\n    assert f(), 'why'\n",
    "def test_x():\n    assert not f()\n",
    "def test_x():\n    assert len(f()) >= 1\n",
    "import pytest\ndef test_x():\n    with pytest.raises(ValueError):\n        f()\n",
    "def test_x():\n    expect_row(table='x')\n",
    "def test_x(db):\n    db.assert_rows(1)\n",
    "def test_x():\n    holds()\ndef holds():\n    assert f()\n",
    "def test_x(nursery):\n    def inner():\n        assert f()\n    nursery.start_soon(inner)\n",
    "class TestX:\n    def test_x(self):\n        self.holds()\n    def holds(self):\n        assert f()\n",
    "def test_x(loop):\n    loop.run(lambda: holds(1))\ndef holds(x):\n    assert f(x)\n",
    "def helper():\n    f()\n",
    "async def test_x(explore):\n    await explore(lambda: Machine(1))\n",
    "def test_x(explore):\n    explore.run(Machine)\n",
]


@pytest.mark.parametrize(("source", "rule"), BAD)
def test_bad_snippet_is_found(source, rule):
    """Each rule finds what it is about."""
    assert rule in [found for _, found in rules_broken(source)]


@pytest.mark.parametrize("source", GOOD)
def test_good_snippet_passes(source):
    """What looks like a finding and is none passes."""
    assert [] == rules_broken(source)


def test_finding_names_file_line_rule_and_cure():
    """A finding reads ``file:line: rule: what to do``."""
    file = SourceFile.parse("import time\n\ntime.sleep(1)\n", path="suites/demo/test_x.py")

    (problem,) = check_test_file(file, RULES)

    assert str(problem).startswith("suites/demo/test_x.py:3: sleep: wait on an observable")


def test_adapter_may_import_the_subject():
    """The one adapter file of a suite reaches a subject that is a library."""
    adapter = Rules(name="demo", internals=frozenset({"butlers"}), is_adapter=True)

    assert [] == rules_broken("import butlers.db\n", adapter)


def test_suite_that_says_why_may_patch():
    """A suite whose suite.toml gives a reason for patching is not held to that rule."""
    patching = Rules(name="demo", patching=True)

    assert [] == rules_broken("def test_x(monkeypatch):\n    assert f()\n", patching)


def test_exception_needs_a_reason():
    """A line may allow one rule by name, with a reason, and no other line or rule."""
    allowed = "import time\ntime.sleep(1)  # lint: allow sleep: the clock is the subject\n"
    without_reason = "import time\ntime.sleep(1)  # lint: allow sleep:\n"
    other_rule = "import time\ntime.sleep(1)  # lint: allow patching: why\n"

    assert [] == rules_broken(allowed)
    assert [(2, "sleep")] == rules_broken(without_reason)
    assert [(2, "sleep")] == rules_broken(other_rule)


def test_helpers_that_call_each_other_end():
    """Mutual recursion among helpers is followed once."""
    source = "def test_x():\n    a()\ndef a():\n    b()\ndef b():\n    a()\n"

    assert [(1, "no-assertion")] == rules_broken(source)
