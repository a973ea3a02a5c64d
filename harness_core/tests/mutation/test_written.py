"""Mutants of one's own: where they apply, what they are called, and what is refused."""

import pytest

from harness_core.assurance.mutation import Choice, Plan, Verdict, run_campaign
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._written import load_written
from harness_core.base.errors import BadInput


@pytest.fixture
def file_of(words, tmp_path):
    """A file of mutants, each by what, old and new; of the product's tally."""
    name = next(name for name in words.setting.product().files if name.endswith("tally.py"))

    def write(*rows, file=name):
        path = tmp_path / "mine.toml"
        path.write_text(
            "".join(
                f"[[mutant]]\nwhat = '{what}'\nfile = '{file}'\nold = '''{old}'''\nnew = '''{new}'''\n"
                for what, old, new in rows
            )
        )
        return path

    return write


def loaded(words, path):
    """The mutants of a file."""
    return load_written(path, words.setting.product())


def line_of(words, text):
    """The line of a text in the product's tally."""
    path = next(path for path in words.setting.product().files.values() if path.stem == "tally")
    lines = path.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(("> LIMIT", ">= LIMIT", "> LIMIT", "> LIMIT", "count"), id="within-a-line"),
        pytest.param(("LIMIT = 3", "LIMIT = 4", "LIMIT = 3", "LIMIT = 3", "<module>"), id="module"),
        pytest.param(
            (
                "    words = text.split()\n    if len(words) > LIMIT:\n",
                "    words = text.split()\n    if len(words) > 9:\n",
                "> LIMIT",
                "> LIMIT",
                "count",
            ),
            id="what-differs-of-several-lines",
        ),
        pytest.param(
            (
                "    words = text.split()\n    if len",
                "    words = text.split()\n    words.pop()\n    if len",
                "words = text",
                "> LIMIT",
                "count",
            ),
            id="a-line-between-two",
        ),
        pytest.param(
            ("        raise ValueError(text)\n", "", "raise Value", "raise Value", "count"),
            id="gone",
        ),
    ],
)
def test_the_lines_that_differ_choose_the_tests(words, file_of, row):
    """By what is changed of ``old``, not by all of it."""
    old, new, first, last, function = row
    (mutant,) = loaded(words, file_of(("it is wrong", old, new)))

    assert (mutant.first, mutant.last) == (line_of(words, first), line_of(words, last))
    assert mutant.function == function
    assert mutant.at_import == (function == "<module>")
    assert mutant.what == "it is wrong"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        pytest.param([("a", "nothing of it", "x")], "found .0 places in .*tally", id="not-there"),
        pytest.param([("a", "words", "x")], "expected a text that stands there once", id="twice"),
        pytest.param([("a", "LIMIT = 3", "LIMIT = 3")], "mutant 1.new", id="no-change"),
        pytest.param(
            [("a", "LIMIT = 3", "LIMIT = 4"), ("a", "LIMIT = 3", "LIMIT = 5")],
            "mutant 2.what: found 'a', expected a sentence used once",
            id="named-twice",
        ),
        pytest.param([("", "LIMIT = 3", "LIMIT = 4")], "what", id="without-a-name"),
    ],
)
def test_what_does_not_fit_is_refused(words, file_of, rows, problem):
    """With the row and what is there."""
    with pytest.raises(BadInput, match=problem):
        loaded(words, file_of(*rows))


def test_a_file_of_another_product_is_refused(words, file_of):
    """With some that there are."""
    path = file_of(("a", "LIMIT = 3", "LIMIT = 4"), file="else.py")

    with pytest.raises(BadInput, match=r"mutant 1\.file: found 'else\.py', expected .*tally\.py"):
        loaded(words, path)


async def test_what_does_not_fit_is_told_before_anything_is_run(words, file_of):
    """Neither the file nor an id that there is not costs the runs of the suite that a map takes."""
    said = []
    setting = words.setting
    file = file_of(("a", "LIMIT = 3", "LIMIT = 4"), file="else.py")

    with pytest.raises(BadInput, match="else"):
        await run_campaign(words.suite, Plan(setting=setting, written=file), say=said.append)
    with pytest.raises(BadInput, match="0123456789"):
        await run_campaign(
            words.suite, Plan(setting=setting, choice=Choice(only=("0123456789",))), say=said.append
        )
    assert not [line for line in said if "run" in line]


@pytest.mark.slow
async def test_they_are_judged_as_the_others(words, file_of):
    """Killed, survived, not covered and stillborn; the results lie beside those of other campaigns."""
    path = file_of(
        ("two words are three", "return len(words)", "return len(words) + 1"),
        ("a longer line is refused with another reason", "ValueError(text)", "ValueError(words)"),
        ("what no test reaches", "number + 1", "number + 2"),
        ("no Python", "def count(text):", "def count(text:"),
    )
    plan = Plan(setting=words.setting, choice=Choice(), written=path)

    store = await run_campaign(words.suite, plan)

    found = {row["what"]: store.results()[id_].verdict for id_, row in store.mutants().items()}
    assert found == {
        "two words are three": Verdict.KILLED,
        "a longer line is refused with another reason": Verdict.SURVIVED,
        "what no test reaches": Verdict.NOT_COVERED,
        "no Python": Verdict.STILLBORN,
    }
    assert store.path.name == "results-mine.sqlite"
    store.close()


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        pytest.param("WHERE id", "WHERE name", (2, 6), id="within-a-text-of-many-lines"),
        pytest.param("            one,", "            two,", (2, 6), id="an-argument"),
        pytest.param("and two", "or two", (7, 8), id="a-condition-of-two-lines"),
        pytest.param("return one", "return two", (9, 9), id="a-line-by-itself"),
        pytest.param("not one", "one", (11, 11), id="the-end-of-a-branch"),
        pytest.param("    else:", "    if True:", (10, 11), id="a-word-above-a-branch"),
    ],
)
def test_a_statement_of_many_lines_is_run_as_one(tmp_path, old, new, lines):
    """Of a text that it holds no line is executed by itself: tests that execute any of it are asked."""
    code = tmp_path / "code.py"
    code.write_text(
        "async def ask(db, one, two):\n"
        "    found = await db.fetch(\n"
        '        """SELECT *\n'
        "        FROM things WHERE id = $1\n"
        '        """,\n'
        "            one, two)\n"
        "    if (one\n"
        "            and two):\n"
        "        return one\n"
        "    else:\n"
        "        return not one\n"
    )
    mine = tmp_path / "mine.toml"
    mine.write_text(f"[[mutant]]\nwhat = 'w'\nfile = 'code.py'\nold = '{old}'\nnew = '{new}'\n")
    product = Product(
        sources=(tmp_path,), files={"code.py": code}, environment=None, in_tests=False
    )
    (mutant,) = load_written(mine, product)

    assert lines == (mutant.first, mutant.last)
    assert mutant.function == "ask"
