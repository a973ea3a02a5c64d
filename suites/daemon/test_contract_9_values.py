"""Contract 9, /eval: the value of an expression is that of Lisp, and what has none is an error.

Expressions are generated together with their values, so no evaluator is needed to judge them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.daemon.daemon import Daemon
from suites.daemon.generated import generated
from suites.daemon.messages import expect_health, say
from suites.daemon.spelling import canonical
from suites.daemon.wire import (
    NIL,
    Form,
    Keyword,
    RemoteProtocolError,
    Symbol,
    T,
    print_form,
    read_form,
)

pytestmark = [pytest.mark.covers("CONTRACT-9-TERMINAL"), pytest.mark.capability("eval-text")]


@dataclass(frozen=True, slots=True)
class Valued:
    """An expression and its value."""

    text: str
    value: Form


def _truth(value: bool) -> Form:  # noqa: FBT001 - what a comparison came to
    return T if value else NIL


def _number(value: Fraction | int) -> Form:
    fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else fraction


NUMBERS: Final = (st.integers(-(10**12), 10**12) | st.fractions(max_denominator=999)).map(
    lambda n: Valued(print_form(_number(n)), _number(n))
)


def _calculations(numbers: st.SearchStrategy[Valued]) -> st.SearchStrategy[Valued]:
    """Arithmetic on numbers."""
    many = st.lists(numbers, min_size=1, max_size=4)

    def calculated(name: str, values: list[Valued]) -> Valued:
        texts = " ".join(value.text for value in values)
        first, *rest = [Fraction(value.value) for value in values]
        if name == "+":
            total = first + sum(rest)
        elif name == "*":
            total = first
            for each in rest:
                total *= each
        elif name == "-":
            total = first - sum(rest) if rest else -first
        else:
            total = first if rest else 1 / first
            for each in rest:
                total /= each
        return Valued(f"({name} {texts})", _number(total))

    def divides(values: list[Valued]) -> bool:
        return all(value.value != 0 for value in (values[1:] or values))

    def chosen(test: Form, yes: Valued, no: Valued) -> Valued:
        text = f"(if {print_form(test)} {yes.text} {no.text})"
        return Valued(text, no.value if test == NIL else yes.value)

    def bound(outer: Valued, inner: Valued) -> Valued:
        # The inner Y is bound while X is still the outer one.
        text = f"(let ((x {outer.text})) (let ((x {inner.text}) (y x)) (- x y)))"
        return Valued(text, _number(Fraction(inner.value) - Fraction(outer.value)))

    return (
        st.builds(calculated, st.sampled_from("+*-"), many)
        | many.filter(divides).map(lambda values: calculated("/", values))
        | st.builds(
            chosen, st.sampled_from([NIL, T, 0, "", Keyword("K")]).filter(plain), numbers, numbers
        )
        | st.builds(bound, numbers, numbers)
        | st.builds(lambda a, b: Valued(f"(progn {a.text} {b.text})", b.value), numbers, numbers)
    )


def plain(form: Form) -> bool:
    """Whether a form has itself for a value."""
    return not isinstance(form, Symbol) or form == T


CALCULATED: Final = st.recursive(NUMBERS, _calculations, max_leaves=8)

COMPARE: Final = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}


def compared(name: str, values: list[Valued]) -> Valued:
    """A comparison of each number with the next."""
    numbers = [Fraction(value.value) for value in values]
    true = all(COMPARE[name](a, b) for a, b in itertools.pairwise(numbers))
    return Valued(f"({name} {' '.join(value.text for value in values)})", _truth(true))


def quoted(items: list[Form]) -> st.SearchStrategy[Valued]:
    """What becomes of a list."""
    text = "'" + print_form(tuple(items))
    first: Form = items[0] if items else NIL
    rest = tuple(items[1:])
    rows = [
        Valued(f"(car {text})", first),
        Valued(f"(cdr {text})", rest),
        Valued(f"(length {text})", len(items)),
        Valued(f"(cons 1 {text})", (1, *items)),
        Valued(f"(list {text} {text})", (tuple(items), tuple(items))),
        Valued(f"(not {text})", _truth(not items)),
        Valued(
            f"(equal {text} (list {' '.join(print_form((Symbol('QUOTE'), i)) for i in items)}))", T
        ),
        Valued(f"(and 1 {text})", tuple(items)),
        Valued(f"(or {text} 2)", tuple(items) or 2),
        Valued(f"(quote {print_form(tuple(items))})", tuple(items)),
    ]
    return st.sampled_from(rows)


ITEMS: Final = (
    st.integers(-99, 99)
    | st.text('ab"\\é日', max_size=4)
    | st.sampled_from([Symbol("A"), Keyword("B")])
)

EXPRESSIONS: Final = (
    CALCULATED
    | st.builds(
        compared, st.sampled_from(sorted(COMPARE)), st.lists(CALCULATED, min_size=1, max_size=3)
    )
    | st.lists(ITEMS, max_size=4).flatmap(quoted)
    | st.sampled_from(
        [Valued("(and)", T), Valued("(or)", NIL), Valued("(progn)", NIL), Valued("(let ())", NIL)]
    )
)


@st.composite
def expressions(draw: st.DrawFn) -> Valued:
    """Any of them; by a name, for what the strategies come to is too long to be shown."""
    return draw(EXPRESSIONS)


#: Values at the edges of what each function takes.
EDGES: Final[dict[str, Form]] = {
    "(/= 1 2)": T,
    "(/= 1 1)": NIL,
    "(/= 1 2 1)": NIL,
    "(/= 1 2 3)": T,
    "(/= 1/2 2/4)": NIL,
    "(= 1 1 2)": NIL,
    "(< 1 3 2)": NIL,
    "(< 1 1)": NIL,
    "(<= 1 1 2)": T,
    "(>= 2 2 3)": NIL,
    "(> 3 2 1)": T,
    "(+)": 0,
    "(*)": 1,
    "(- 5)": -5,
    "(- 5 2 1)": 2,
    "(/ 4)": Fraction(1, 4),
    "(/ 6 4)": Fraction(3, 2),
    "(/ 12 2 3)": 2,
    "(/ -1 2)": Fraction(-1, 2),
    "(/ 1.0 4)": 0.25,
    "(/ 3 2.0)": 1.5,
    "(/ 0.5)": 2.0,
    "(* 2 0.25)": 0.5,
    "(- 1.5)": -1.5,
    "(and 1 2 3)": 3,
    "(and 1 nil 3)": NIL,
    "(and nil (car 7))": NIL,
    "(or nil nil)": NIL,
    "(or nil 2 3)": 2,
    "(or 1 (car 7))": 1,
    "(if nil 1)": NIL,
    "(if t 1 (car 7))": 1,
    "(if nil (car 7) 2)": 2,
    "(progn 1 2 3)": 3,
    "(let ((x 1)) )": NIL,
    "(let ((x 1) (y 2)) (list y x))": (2, 1),
    "(let ((x 1)) (let ((x 2)) x) x)": 1,
    "(let ((x nil)) (not x))": T,
    "(let ((X 7)) x)": 7,
    "(car nil)": NIL,
    "(cdr nil)": NIL,
    "(cdr '(1))": NIL,
    "(car '((1 2) 3))": (1, 2),
    "(cons 1 nil)": (1,),
    "(cons '(1) '(2))": ((1,), 2),
    "(list)": NIL,
    "(list nil nil)": (NIL, NIL),
    "(length nil)": 0,
    '(length "")': 0,
    '(length "日本 😀")': 4,
    "(length '(1 (2 3)))": 2,
    "(not nil)": T,
    "(not 0)": NIL,
    "(equal '(1 (2)) '(1 (2)))": T,
    "(equal '(1 2) '(1))": NIL,
    '(equal "a" "A")': NIL,
    "(equal 'a 'A)": T,
    "(equal nil '())": T,
    '(equal "1" 1)': NIL,
    "''a": (Symbol("QUOTE"), Symbol("A")),
    '"a \\" b"': 'a " b',
    ":key": Keyword("KEY"),
    "t": T,
    "nil": NIL,
    "()": NIL,
    "-7": -7,
    "+7": 7,
    "6/4": Fraction(3, 2),
}

#: What has no value here.
WITHOUT: Final = (
    "(- t)",
    "(/ t)",
    "(/ 0)",
    '(- "a")',
    "(< 1 t)",
    '(< "a" "b")',
    "(not)",
    "(cons 1)",
    "(car '(1) '(2))",
    "(let ((x 1)) y)",
    "(if 1 2 3 4)",
    "(/ 1 0)",
    '(+ 1 "a")',
    "(car 1)",
    "(car 0)",
    '(car "")',
    '(car "a")',
    "(cdr 0)",
    "(<)",
    "(car)",
    "(this-is-not-a-function 1)",
    "nobody",
    "(1 2)",
    "(if)",
    "(let 1 2)",
    "(let ((1 2)) 3)",
    "(quote)",
    "(quote a b)",
    "(+ . 1)",
    "(+ 1 . 2)",
    "#.(+ 1 2)",
    "(",
    ")",
    "",
    "(+ 1 t)",
    "(length 1)",
    '(open "/etc/passwd")',
    '(uiop:run-program "id")',
    "(" * 500 + ")" * 500,
    "(let ((x 9)) " + "(let ((x (* x x))) " * 20 + "x" + ")" * 21,
    "(* 1e300 1e300)",
    "(list" + " (list 1)" * 6_000 + ")",
)


async def evaluated(daemon: Daemon, form: str) -> str:
    """What the daemon answers an expression."""
    text = daemon.subject.table("texts")["eval"].replace("{form}", form)
    async with daemon.connect() as connection:
        return await say(connection, text)


@generated(80)
@given(valued=st.lists(expressions(), min_size=1, max_size=4))
async def test_values_are_those_of_lisp(daemon: Daemon, valued: list[Valued]) -> None:
    """Arithmetic is exact, comparisons go through all, branches are chosen, lists are taken apart."""
    for each in valued:
        answer = await evaluated(daemon, each.text)
        expected = canonical(each.value)
        text = answer.removeprefix("=> ")
        try:
            found = canonical(read_form(text))
        except RemoteProtocolError:
            found = answer

        assert found == expected, (
            f"contract 9: the value of {each.text} is {expected}, found {answer!r}"
        )


async def test_values_at_the_edges(daemon: Daemon) -> None:
    """Each function has the value of Lisp at the edges: of no argument, of one, of many, of nothing."""
    wrong: list[str] = []
    for text, value in EDGES.items():
        answer = await evaluated(daemon, text)
        try:
            found = canonical(read_form(answer.removeprefix("=> ")))
        except RemoteProtocolError:
            found = answer
        if found != canonical(value):
            wrong.append(f"{text}: expected {canonical(value)}, found {answer!r}")

    assert not wrong, "contract 9: the values of expressions are those of Lisp:\n" + "\n".join(
        wrong
    )


async def test_what_has_no_value_is_an_error(daemon: Daemon) -> None:
    """An expression without a value is answered by a sentence, and nothing of it is run."""
    for form in WITHOUT:
        answer = await evaluated(daemon, form)

        assert not answer.startswith("=>"), (
            f"contract 9: {form[:80]} has no value, found {answer[:200]!r}"
        )
        assert len(answer) > 3, f"contract 9: the error of {form[:80]} says nothing: {answer!r}"
        assert "inside me" not in answer, f"contract 9: {form[:80]} is a failure within: {answer!r}"
    expect_health(await daemon.health())
