"""Comparing: the backend that regressed is named, and nothing passes by comparing nothing."""

import pytest

from harness_core.base.errors import BadInput
from suites.parity.compare import ABSENT, Allowance, ParityError, check_parity, compare, fields_of

pytestmark = pytest.mark.aside("how the suite compares")

GOOD = {"env": {"A": "1", "B": "two"}, "calls": [["docker", "run"]], "files": {}}


def first_line(observations, *, expected=None, allowances=()):
    """The first line of the failure."""
    with pytest.raises(ParityError) as caught:
        check_parity("row", observations, expected=expected or {}, allowances=allowances)
    return str(caught.value).splitlines()[0]


def test_an_observation_is_taken_apart_into_fields():
    """Leaves have the path of their keys and indices; what is empty is a leaf."""
    assert {
        "env.A": "1",
        "env.B": "two",
        "calls[0][0]": "docker",
        "calls[0][1]": "run",
        "files": {},
    } == fields_of(GOOD)
    assert {"names": ["a", "b"]} == fields_of({"names": {"b", "a"}})


def test_equal_observations_pass():
    """Nothing is reported when every side is as expected."""
    check_parity("row", {"docker": GOOD, "smol": dict(GOOD)}, expected={"env": GOOD["env"]})


def test_the_backend_that_is_not_as_expected_is_named():
    """The first line has backend, field, both values and what each other side produced."""
    bad = {**GOOD, "env": {"A": "1", "B": "three"}}

    assert (
        "smol regressed: env 'B': expected 'two', found 'three' (says the scenario; docker 'two') [row]"
        == first_line({"docker": GOOD, "smol": bad}, expected={"env": GOOD["env"]})
    )


@pytest.mark.parametrize(
    ("env", "reported"),
    [
        ({"A": "1"}, "smol regressed: env 'B': expected 'two', found absent"),
        ({**GOOD["env"], "C": "x"}, "smol regressed: env 'C': expected absent, found 'x'"),
        ({"A": 1, "B": "two"}, "smol regressed: env 'A': expected '1', found 1"),
        ({}, "smol regressed: env 'A': expected '1', found absent"),
    ],
)
def test_a_mapping_that_is_expected_is_whole(env, reported):
    """What is missing, what is too much and what has another type are differences."""
    observations = {"docker": GOOD, "smol": {**GOOD, "env": env}}

    assert first_line(observations, expected={"env": GOOD["env"]}).startswith(reported)


def test_what_should_be_empty_is_reported_by_what_it_holds():
    """Not twice: the field that should not be there is the one difference."""
    with pytest.raises(ParityError) as caught:
        check_parity(
            "row", {"docker": {"left": {"a": 1}}, "smol": {"left": {}}}, expected={"left": {}}
        )

    (difference,) = caught.value.differences

    assert (("docker",), "left.a") == (difference.backends, difference.field)


def test_backends_that_are_wrong_alike_are_all_named():
    """Agreement with each other is no excuse; the line is the same in the test of each."""
    bad = {"env": {"A": "leak"}}

    assert first_line({"docker": bad, "smol": bad}, expected={"env": {"A": "1"}}).startswith(
        "every side regressed: env 'A': expected '1', found 'leak'"
    )


def test_two_sides_without_an_expectation_differ():
    """Where nothing says who is right, neither is called wrong."""
    assert "docker and smol differ: code: docker 0, smol 1 [row]" == first_line(
        {"docker": {"code": 0}, "smol": {"code": 1}}
    )


def test_a_majority_names_the_odd_one():
    """With three sides the one that stands alone regressed."""
    sides = {"docker": {"code": 0}, "smol": {"code": 1}, "bwrap": {"code": 0}}

    assert (
        "smol regressed: code: expected 0, found 1 (the other backends agree; docker 0, bwrap 0) [row]"
        == first_line(sides)
    )
    assert first_line({**sides, "bwrap": {"code": 2}}).startswith(
        "docker and smol and bwrap differ"
    )


def test_a_documented_difference_passes_and_only_exactly_that():
    """An allowance holds for one backend, one pattern of fields and one value."""
    allowance = Allowance(backend="smol", field="argv.*", value=True, reason="it has no env file")
    good, other = {"argv": {"A": False}}, {"argv": {"A": True}}

    check_parity("row", {"docker": good, "smol": other}, expected=good, allowances=[allowance])
    assert first_line(
        {"docker": other, "smol": other}, expected=good, allowances=[allowance]
    ).startswith("docker regressed: argv 'A': expected False, found True")
    stale = first_line({"docker": good, "smol": good}, expected=good, allowances=[allowance])
    assert stale.startswith(
        "smol regressed: argv 'A': expected True, found False (allowed because it has no env file"
    )
    check_parity("row", {"docker": good, "smol": other}, expected={}, allowances=[allowance])


def test_one_side_is_judged():
    """Of two sides that regressed, a test of one of them names that one alone."""
    bad = {"env": {"A": "2"}}
    observations = {"docker": {"env": {"A": "1"}}, "smol": {"env": {"A": "3"}}, "bwrap": bad}
    expected = {"env": {"A": "1"}}

    check_parity("row", observations, expected=expected, judged="docker")
    with pytest.raises(ParityError) as caught:
        check_parity("row", observations, expected=expected, judged="bwrap")

    assert [("bwrap",)] == [each.backends for each in caught.value.differences]


def test_what_is_expected_first_is_told_first():
    """Also where it should have been empty: what a scenario names first tells most."""
    seen = {"docker": {"said": "no", "calls": ["run"]}, "smol": {"said": "yes", "calls": []}}

    assert first_line(seen, expected={"calls": [], "said": "yes"}).startswith(
        "docker regressed: calls[0]: expected absent, found 'run'"
    )


def test_every_difference_is_listed():
    """Further differences follow the first line, the undecided ones last."""
    with pytest.raises(ParityError) as caught:
        check_parity(
            "row",
            {"docker": {"x": 1, "env": {"A": "1"}}, "smol": {"x": 2, "env": {"A": "2"}}},
            expected={"env": {"A": "1"}},
        )
    lines = str(caught.value).splitlines()

    assert lines[0].startswith("smol regressed: env 'A'")
    assert "also: docker and smol differ: x: docker 1, smol 2" == lines[1]


@pytest.mark.parametrize(
    ("observations", "expected"),
    [({}, {"a": 1}), ({"docker": {"a": 1}}, {}), ({"docker": {}, "smol": {}}, {})],
)
def test_a_comparison_of_nothing_is_our_mistake(observations, expected):
    """No observation, one without an expectation, or empty ones prove nothing."""
    with pytest.raises(BadInput):
        check_parity("row", observations, expected=expected)


def test_an_allowance_needs_a_reason():
    """A difference without a reason is not documented."""
    with pytest.raises(BadInput, match="reason"):
        Allowance(backend="smol", field="*", value=1, reason=" ")


def test_absence_is_a_value_of_its_own():
    """A field that is there and holds None differs from one that is not there."""
    (difference,) = compare(
        {"docker": {"a": None}, "smol": {"b": 1, "a": None}}, expected={"a": None, "b": 1}
    )

    assert ("docker",) == difference.backends
    assert difference.seen["docker"] is ABSENT
