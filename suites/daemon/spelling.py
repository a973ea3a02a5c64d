"""S-expressions of every kind as Hypothesis makes them, and the many ways to spell each one.

What a form means is known before it is spelled, so no reader is needed to judge what comes back but
the client's own.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Final

from hypothesis import strategies as st

from suites.daemon.wire import Dotted, Form, Keyword, Quoted, Symbol, print_form

__all__ = ["TEXTS", "canonical", "forms", "spelled"]

#: Letters with one upper-case form of one letter: what Unicode makes of others, languages dispute.
_LETTERS: Final = "abzABZ019-+*/<>=!?%&$_~^.ÄäЖжΩωçÇ日本語"

TEXTS: Final = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t"),
    max_size=24,
) | st.text("()'\"|\\;#.: aÄ日😀\nntrbfvxu0", max_size=12)

_NAMES: Final = st.text(_LETTERS, min_size=1, max_size=10) | st.text(
    "aZ .:|\\;()'\"#,`Ж", min_size=1, max_size=6
)

_NUMBERS: Final = (
    st.integers(min_value=-(10**40), max_value=10**40)
    | st.sampled_from([0, -1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**18])
    | st.fractions(max_denominator=10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.5, 1e16, 1e22, 1e300, 5e-324, 0.1, 1.0, 123456789.125])
)

# A symbol may have no name, ``||``; a keyword that is nothing but its colon is no name to some.
_SYMBOLS: Final = _NAMES.map(Symbol) | st.just(Symbol(""))

_ATOMS: Final = _NUMBERS | TEXTS | _SYMBOLS | _NAMES.map(Keyword) | st.just(())


def _branches(forms: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    tails = _NUMBERS | TEXTS | _SYMBOLS | _NAMES.map(Keyword)
    return (
        st.lists(forms, max_size=5).map(tuple)
        | st.builds(Dotted, st.lists(forms, min_size=1, max_size=3).map(tuple), tails)
        | st.builds(Quoted, forms)
    )


_FORMS: Final = st.recursive(_ATOMS, _branches, max_leaves=16)


@st.composite
def forms(draw: st.DrawFn) -> Form:
    """Any form; by a name, for what the strategies come to is too long to be shown."""
    return draw(_FORMS)


def canonical(form: Form) -> str:
    """One text for each meaning, by which two forms are compared: 1 is not 1.0, 'A is (QUOTE A)."""
    return print_form(_unquoted(form))


def _unquoted(form: Form) -> Form:
    if isinstance(form, Quoted):
        return (Symbol("QUOTE"), _unquoted(form.form))
    if isinstance(form, tuple):
        return tuple(map(_unquoted, form))
    if isinstance(form, Dotted):
        items, tail = tuple(map(_unquoted, form.items)), _unquoted(form.tail)
        return (*items, *tail) if isinstance(tail, tuple) else Dotted(items, tail)
    return form


def spelled(form: Form, dice: random.Random) -> str:  # noqa: PLR0911 - one return for each kind
    """A form as some client may write it, in any case, with any space, comment and escape.

    Args:
        form: what is meant.
        dice: how it is written.
    """
    match form:
        case tuple():
            return _list(form, None, dice)
        case Dotted():
            return _list(form.items, form.tail, dice)
        case Quoted():
            inner = spelled(form.form, dice)
            return f"'{inner}" if dice.random() < 0.5 else f"({_cased('quote', dice)} {inner})"
        case str():
            return _string(form, dice)
        case Keyword() | Symbol():
            return _name(form, dice)
        case int():
            return dice.choice([f"{form}", f"{form}.", f"{form:+}", f"{form:+}."])
        case Fraction():
            return dice.choice([f"{form}", f"{form.numerator * 3}/{form.denominator * 3}"])
        case _:
            return print_form(form)


def _list(items: tuple[Form, ...], tail: Form | None, dice: random.Random) -> str:
    if not items:
        return dice.choice(["()", "NIL", "nil", "Nil", "( )"])
    texts = [spelled(item, dice) for item in items]
    if tail is None and len(items) > 1 and dice.random() < 0.2:
        # (A B C) is (A . (B C)), and (A B . (C . NIL)).
        cut = dice.randrange(1, len(items))
        texts[cut:] = [".", _list(items[cut:], None, dice)]
    elif tail is not None:
        texts += [".", spelled(tail, dice)]
    elif dice.random() < 0.1:
        texts += [".", "NIL"]
    return "(" + _gap(dice) + "".join(text + _space(dice) for text in texts) + ")"


def _space(dice: random.Random) -> str:
    return dice.choice([" ", " ", "  ", "\n", "\t", "\r\n", "\f", ' ; note ) " |\n'])


def _gap(dice: random.Random) -> str:
    return dice.choice(["", "", " ", "\n", ";(\n"])


def _string(text: str, dice: random.Random) -> str:
    escaped = [
        "\\" + character if character in '"\\' or dice.random() < 0.2 else character
        for character in text
    ]
    return '"' + "".join(escaped) + '"'


def _name(name: Keyword | Symbol, dice: random.Random) -> str:
    text = print_form(name)
    if "|" in text or "\\" in text:
        return text
    colon = ":" if isinstance(name, Keyword) else ""
    bare = text.removeprefix(colon)
    if colon and dice.random() < 0.2:
        return f":|{bare}|"
    return colon + _cased(bare, dice)


def _cased(name: str, dice: random.Random) -> str:
    """Each letter in either case: a reader makes them upper case."""
    return "".join(
        letter.lower() if letter.lower().upper() == letter and dice.random() < 0.5 else letter
        for letter in name
    )
