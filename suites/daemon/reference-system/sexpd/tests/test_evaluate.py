"""The evaluator of /eval: values, refusals, bounds."""

import pytest

from sexpd.evaluate import EvaluationError, evaluate_text

VALUES = {
    "(+ 1 2)": "3",
    "(/ 1 3)": "1/3",
    "(- 5)": "-5",
    "(if (< 1 2) \"yes\" \"no\")": '"yes"',
    "(let ((x 2)) (let ((x 3) (y x)) (+ x y)))": "5",
    "(length '(1 2 3))": "3",
    "(car '(a b))": "A",
    "(and 1 nil)": "NIL",
    '"text"': '"text"',
}
REFUSED = [
    "", "(", "x", "(foo)", "(1 2)", "(+ 1 \"a\")", "(/ 1 0)", "#.(+ 1 2)", "(if)", "(let 1 2)",
    "(let ((x)) x)", "(car 1)", "(open \"/etc/passwd\")", "(+ . 1)", "(length 1)",
    "(let ((x 99999999999999999999)) (let ((x (* x x x x x x x x))) (let ((x (* x x x x x x x x))) "
    "(* x x x x x x x x))))",
    "(* 1e300 1e300)",
]


@pytest.mark.parametrize("text", VALUES)
def test_value(text):
    """Each expression has its value."""
    assert VALUES[text] == evaluate_text(text)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    """What has no value here is one kind of error."""
    with pytest.raises(EvaluationError):
        evaluate_text(text)
