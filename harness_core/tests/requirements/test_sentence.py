"""An assertion on the product's value has a sentence; each row is a body and the lines that lack one."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness_core.assurance.requirements import SourceFile
from harness_core.assurance.requirements._coverage import covering_tests
from harness_core.assurance.requirements._sentence import check_sentences

HEAD = "import pytest\npytestmark = pytest.mark.covers('X-1')\n"

BARE = [
    "async def test_x(app):\n    assert [1] == await app.rows()",
    "async def test_x(app):\n    found = await app.rows()\n    assert [1] == found",
    "async def test_x(app):\n    found = await app.rows()\n    assert len(found) == 1, found",
    "async def test_x(app):\n    found = await app.rows()\n    assert found, f'{found}'",
    "async def test_x(app):\n    found = await app.rows()\n    assert found, str(found)",
    "async def test_x(app):\n    found = await app.rows()\n    assert found, 'no rows'",
    "def test_x(app):\n    assert app.status == 200",
    "def test_x(app):\n    assert app.ask(1)['a'] == 2",
    "def test_x(app):\n    answer = ask(app, 1)\n    assert answer.ok",
    "def test_x(app):\n    for row in app.rows():\n        assert row.a",
    "def test_x(app):\n    with app.open() as log:\n        assert log.lines",
    "def test_x(app):\n    names = {row.name for row in app.rows()}\n    assert 'a' in names",
    "def test_x(app):\n    one(app)\ndef one(app):\n    assert app.rows",
    "@pytest.mark.parametrize('row', ROWS)\ndef test_x(app, row):\n    assert row.a == app.a",
]

FINE = [
    "async def test_x(app):\n    assert [1] == await app.rows(), 'a row is kept: expected one'",
    "def test_x(app):\n    assert app.status == 200, f'expected 200, found {app.status}'",
    "def test_x(app):\n    assert app.a == 1, sentence(app.a)",
    "def test_x(app):\n    why = f'a row stays: {app.a}'\n    assert app.a == 1, why",
    "def test_x(app):\n    assert app.a, 'a row is ' + 'kept for ever'",
    "@pytest.mark.parametrize('row', ROWS)\ndef test_x(app, row):\n    assert row.a",
    "@pytest.mark.parametrize(('row', 'n'), ROWS)\ndef test_x(row, n):\n    assert n.a == row.b",
    "def test_x():\n    x = [1]\n    assert x == [1]",
    "@pytest.mark.aside('of the suite alone')\ndef test_x(app):\n    assert app.status == 200",
    "def test_x(app):\n    assert app.a == 1  # lint: allow no-sentence: it is one of many",
]


def lacking(body):
    """The lines of a test file that lack a sentence."""
    file = SourceFile.parse(HEAD + dedent(body) + "\n", path="suites/demo/test_x.py")
    tests = covering_tests({Path("test_x.py"): file})
    return {found.line for test in tests if test.ids for found in check_sentences(test)}


@pytest.mark.parametrize("body", BARE)
def test_an_assertion_without_a_sentence_is_found(body):
    """One of them in each body, which is its last line."""
    assert {HEAD.count("\n") + body.count("\n") + 1} == lacking(body)


@pytest.mark.parametrize("body", FINE)
def test_what_has_one_or_needs_none_is_left_alone(body):
    """Messages that are made, values of the test's own, tests that are aside."""
    assert set() == lacking(body)
