"""Last words, judged loosely."""

import pytest

from harness_core.assertions import Said
from harness_core.base.errors import BadInput

TEXT = "Noted: your weight of 72,5 kg (zx1)."


@pytest.mark.parametrize(
    "said",
    [
        Said(contains=("weight", "ZX1")),
        Said(any_of=("pulse", "weight")),
        Said(regex=r"72.5\s*kg"),
        Said(near=72.5),
        Said(without=("sorry", "not", "weigh")),
    ],
)
def test_what_was_said_will_do(said):
    """Case, decimal comma and the words around make no difference."""
    assert [] == list(said.problems(TEXT))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (Said(contains=("weight", "pulse")), "expected 'pulse' in what was said, found 'Noted"),
        (Said(any_of=("pulse", "sleep")), "expected one of 'pulse', 'sleep', found"),
        (Said(regex=r"\d+ lbs"), "expected something like"),
        (Said(near=72), "expected the number 72, found"),
        (Said(near=1), "expected the number 1, found"),
        (Said(without=("kg",)), "expected no 'kg' in what was said, found"),
    ],
)
def test_what_was_said_will_not_do(said, problem):
    """Each condition by itself, in one sentence."""
    (found,) = said.problems(TEXT)

    assert found.startswith(problem)


def test_a_number_is_a_whole_one():
    """Not the end of another, nor a part of a word or a date."""
    assert list(Said(near=5).problems("72.5 kg on 2026-05-05, zx5"))


@pytest.mark.parametrize(
    "wrong",
    [{}, {"contains": "text"}, {"contains": ("",)}, {"regex": "("}, {"without": (3,)}],
)
def test_a_condition_that_cannot_fail_is_refused(wrong):
    """Or that is none."""
    with pytest.raises(BadInput, match="Said"):
        Said(**wrong)
