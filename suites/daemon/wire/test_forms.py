"""The reader and the printer: what is printed is read back, and nothing is ever evaluated."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suites.daemon.generated import generated
from suites.daemon.wire import (
    NIL,
    Dotted,
    Keyword,
    LocalProtocolError,
    Quoted,
    RemoteProtocolError,
    Symbol,
    T,
    Violation,
    lookup,
    plist,
    print_form,
    read_form,
)

pytestmark = pytest.mark.aside("the driver of the suite")

NAMES = st.text(st.characters(codec="utf-8"), max_size=12) | st.text("aA:.|\\#'1e+-/ ", max_size=6)
ATOMS = (
    st.integers()
    | st.fractions()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | NAMES.map(Symbol)
    | NAMES.map(Keyword)
)


def branches(forms):
    """Lists, dotted lists and quotes of what is smaller."""
    return (
        st.lists(forms, max_size=4).map(tuple)
        | st.builds(
            Dotted,
            st.lists(forms, min_size=1, max_size=3).map(tuple),
            forms.filter(lambda form: not isinstance(form, tuple | Dotted)),
        )
        | st.builds(Quoted, forms)
    )


FORMS = st.recursive(ATOMS, branches, max_leaves=20)


@generated(100)
@given(FORMS)
@example(Symbol("NIL"))
@example(Symbol("a:b"))
@example(Symbol("CL::CAR"))
@example(Keyword(""))
@example(Symbol("1E5"))
@example(Symbol("0/0"))
@example(Symbol("1E999"))
@example(Symbol("ß"))
@example(1e300)
def test_what_is_printed_is_read_back(form):
    """Reading the print of a form gives the form."""
    read = read_form(print_form(form))

    assert form == read
    assert type(read) is type(form) or isinstance(form, Fraction)


@generated(100)
@given(st.text(max_size=40) | st.text("()'\"|\\.:;#`, aN1e/+-\n", max_size=40))
def test_arbitrary_text_raises_nothing_else(text):
    """Text of any kind gives a form that prints, or a RemoteProtocolError."""
    try:
        form = read_form(text, max_depth=10)
    except RemoteProtocolError:
        return

    assert form == read_form(print_form(form))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("(:type :Event)", (Keyword("TYPE"), Keyword("EVENT"))),
        ("NIL", NIL),
        ("()", NIL),
        ("nil", NIL),
        ("|nil|", Symbol("nil")),
        ("t", T),
        (r'"a\"b\\c\d"', 'a"b\\cd'),
        (
            "(1 -2 +3 4. 1/2 4/2 1.5 .5 1e3 2d0)",
            (1, -2, 3, 4, Fraction(1, 2), 2, 1.5, 0.5, 1e3, 2.0),
        ),
        ("(a . b)", Dotted((Symbol("A"),), Symbol("B"))),
        ("(a . (b . (c . nil)))", (Symbol("A"), Symbol("B"), Symbol("C"))),
        ("(a . (b . c))", Dotted((Symbol("A"), Symbol("B")), Symbol("C"))),
        ("'(x 'y)", Quoted((Symbol("X"), Quoted(Symbol("Y"))))),
        ("; first\n (a ; second )\n b) ; third", (Symbol("A"), Symbol("B"))),
        ("1+", Symbol("1+")),
        ("-", Symbol("-")),
        ("pkg::name", Symbol("PKG::NAME")),
        (r"a\bc", Symbol("AbC")),
        ('("a""b")', ("a", "b")),
    ],
)
def test_the_reader_follows_the_standard(text, form):
    """Case, numbers, dots, quotes, comments and escapes mean what they mean in Lisp."""
    assert form == read_form(text)


@pytest.mark.parametrize(
    ("text", "violation", "shown"),
    [
        ("", Violation.SYNTAX, "found nothing, expected a form"),
        ("(a", Violation.SYNTAX, "ends inside the list begun at character 0"),
        ("'", Violation.SYNTAX, "ends inside the quote begun at character 0"),
        ('(a "b', Violation.SYNTAX, "ends inside the string begun at character 3"),
        ("|a", Violation.SYNTAX, "ends inside the symbol begun at character 0"),
        ("a\\", Violation.SYNTAX, "ends after a backslash"),
        ("(a) b", Violation.SYNTAX, "text after the form"),
        (")", Violation.SYNTAX, "closes nothing"),
        ("(')", Violation.SYNTAX, "closes nothing"),
        ("( . a)", Violation.SYNTAX, "a dot with nothing before it"),
        ("(a . )", Violation.SYNTAX, "expected a form"),
        ("(a . b c)", Violation.SYNTAX, "two forms after a dot"),
        ("(a . b . c)", Violation.SYNTAX, "a second dot"),
        ("(a ... b)", Violation.SYNTAX, "names no symbol"),
        (":", Violation.SYNTAX, "names no symbol"),
        (":a:b", Violation.SYNTAX, "names no keyword"),
        ("1/0", Violation.SYNTAX, "divides by zero"),
        ("1e999", Violation.SYNTAX, "too large"),
        ("9" * 1001, Violation.SYNTAX, "1001 digits"),
        ("`a", Violation.SYNTAX, "found '`'"),
        ("(#.(run) b)", Violation.READER_MACRO, "the reader macro '#.' (character 1 of 11"),
        ("#'car", Violation.READER_MACRO, "#'"),
        ("#|a|#", Violation.READER_MACRO, "#|"),
        ("(((a)))", Violation.DEPTH, "nested deeper than 2"),
        ("'''a", Violation.DEPTH, "nested deeper than 2"),
        ("(" * 100_000, Violation.DEPTH, "nested deeper than 2"),
    ],
)
def test_a_violation_says_what_was_found_and_where(text, violation, shown):
    """What is no form of the subset is named with its place."""
    with pytest.raises(RemoteProtocolError) as caught:
        read_form(text, max_depth=2)

    assert violation is caught.value.violation
    assert shown in caught.value.observed


def test_depth_is_bounded_by_the_argument_alone():
    """A list deeper than the interpreter's stack is read when the caller allows it."""
    form = read_form("(" * 20_000 + ")" * 20_000, max_depth=20_000)
    depth = 0
    while form:
        (form,) = form
        depth += 1

    assert 20_000 - 1 == depth


@pytest.mark.parametrize(
    "form",
    [
        float("nan"),
        float("inf"),
        True,
        None,
        (1, False),
        Dotted((), 1),
        Dotted((1,), (2,)),
        b"bytes",
    ],
)
def test_what_no_reader_reads_is_our_mistake(form):
    """A form that would not come back as itself is refused before it is sent."""
    with pytest.raises(LocalProtocolError):
        print_form(form)


def test_properties_are_built_and_looked_up():
    """Names become keywords; the first of equal keys counts; what is absent is None."""
    message = plist(type=Keyword("EVENT"), payload=plist(exit_code=0, text="a"))

    assert '(:TYPE :EVENT :PAYLOAD (:EXIT-CODE 0 :TEXT "a"))' == print_form(message)
    assert 0 == lookup(message, "PAYLOAD", "EXIT-CODE")
    assert lookup(message, "META", "SOURCE") is None
    assert 1 == lookup(read_form("(:A 1 :A 2)"), "A")
    with pytest.raises(LocalProtocolError, match="T or NIL"):
        plist(checked=True)


@pytest.mark.parametrize("text", ["(:A)", "(a 1)", "7", "(:A 1 . :B)"])
def test_what_is_no_property_list_is_the_products_fault(text):
    """A key is looked up in a property list alone."""
    with pytest.raises(RemoteProtocolError) as caught:
        lookup(read_form(text), "A")

    assert Violation.SHAPE is caught.value.violation
