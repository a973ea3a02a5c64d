"""Which tests a mutant may be noticed by: those that executed its lines, as agents told it."""

from pathlib import Path

import pytest

from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._map import Measured, write_map
from harness_core.assurance.mutation._product import Product


def message(test, *arcs, boot=False):
    """What an agent says of a file: which arcs a process went in a test."""
    return {"process": "p", "context": test, "boot": boot, "arcs": {"/code/a.py": list(arcs)}}


@pytest.fixture
def covering(tmp_path):
    """The tests of a mutant of a line, by what was executed."""

    def find(line, *messages):
        product = Product(
            sources=(tmp_path,),
            files={"a.py": Path("/code/a.py")},
            environment=None,
            in_tests=False,
        )
        tests = {name: Measured(seconds=1, green=True) for name in ("one", "two", "three")}
        found = write_map(
            tmp_path / "map", product=product, fingerprint="", messages=messages, tests=tests
        )
        mutant = Mutant(
            id="m", file="a.py", function="f", operator="o", what="w", line=line, first=line,
            last=line, at_import=False, start=0, end=0, text="", diff_hash="", sha256="",
        )  # fmt: skip
        tests = found.covering(mutant).tests
        found.close()
        return tests

    return find


def test_who_executed_the_line(covering):
    """And who used a process later that executed it before any test."""
    went = [message("one", (4, 5)), message("two", (5, 6)), message("three", (8, 9))]

    assert ("one",) == covering(5, *went)
    assert () == covering(7, *went)
    assert ("one", "two") == tuple(
        sorted(covering(5, *went[:2], message("", (4, 5), boot=True)))
    ), "what a process did before its first test counts for all that used it"


def test_a_line_that_was_only_left_was_executed(covering):
    """Of a way into it nothing was told; where there was one, who left it had come another time."""
    assert ("two",) == covering(5, message("one", (3, 4)), message("two", (5, 6)))
    assert ("one",) == covering(5, message("one", (4, 5)), message("two", (5, 6)))
