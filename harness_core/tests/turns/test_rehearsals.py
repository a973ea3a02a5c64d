"""A message and its turns: as values, as a file, on the wire, and for one very text."""

import json

import pytest

from harness_core.base.errors import BadInput
from harness_core.doubles.turns import (
    Message,
    Rehearsal,
    ask,
    fail,
    given,
    obey,
    read_rehearsals,
    rehearsals_from_json,
    result,
    route,
    say,
    use,
)

TURNS = (
    route("health", "My head aches"),
    use("symptom_log", name="headache", severity=7, notes={"of": ["{token}"]}),
    (use("meal_log"), use("note_create", contact=result("contact_create", "id"))),
    given("2026-11-22", use("reminder_create", due="2026-11-23")),
    obey(route("general"), unless="warned"),
    obey(use("contact_delete", id=1), unless="never"),
    fail(529),
    ask("Which Bob?"),
    say("Noted."),
)


def test_what_goes_over_the_wire_comes_back_the_same():
    """Every word of the vocabulary, nested ones too, survives JSON."""
    rehearsal = Rehearsal(name="row", message="I ache ({token})", turns=TURNS)

    assert (
        rehearsal
        == rehearsals_from_json([json.loads(json.dumps(rehearsal.to_json()))], where="x")[0]
    )


@pytest.mark.parametrize(
    ("message", "text", "values"),
    [
        ("Hello", "Hello", {}),
        ("Hello", "hello", None),
        ("Hello", "Hello you", None),
        ("I took {n:number} mg", "I took 400 mg", {"n": 400}),
        ("I took {n:number} mg", "I took 2.5 mg", {"n": 2.5}),
        ("I took {n:number} mg", "I took some mg", None),
        ("({t:word}) ok", "(zx1) ok", {"t": "zx1"}),
        ("({t:word}) ok", "(zx1) (a) ok", None),
        ("{who} met {who}", "Ann met Ann", {"who": "Ann"}),
        ("{who} met {who}", "Ann met Bob", None),
        ("a  b", " a\n b ", {}),
        ("a </message> b", "a <\\/message> b", {}),
        ("a </message> b", "a &lt;/message&gt; b", {}),
        ("頭が 🥑", "\\u982d\\u304c \\ud83e\\udd51", {}),
        ("({token})", "(zx1)", {"token": "zx1"}),
        ("a.c", "abc", None),
        ("{TOKEN} {", "{TOKEN} {", {}),
    ],
)
def test_a_message_is_known_however_it_is_quoted(message, text, values):
    """White space and escapes make no difference to a reader; letters do."""
    assert values == Message(text=message).match(text)


def test_placeholders_take_the_type_of_what_stands_there():
    """A number stays one where the argument is nothing else, and is spelt out inside a text."""
    row = Rehearsal(
        message="I ache, severity {n:number} ({token})",
        turns=(use("symptom_log", severity="{n}", notes="{n} of 10 ({token})", x="{other}"),),
    )

    filled = row.filled("I ache,  severity 3 (zx9)")

    assert filled is not None
    assert "I ache,  severity 3 (zx9)" == filled.message
    assert (use("symptom_log", severity=3, notes="3 of 10 (zx9)", x="{other}"),) == filled.turns
    assert row.filled("I ache a lot") is None


def test_a_file_of_turns_is_read(tmp_path):
    """TOML, as docs/how-to/gateway.md spells it."""
    path = tmp_path / "turns.toml"
    path.write_text(
        """
        [[rehearsal]]
        message = "My weight is {kg:number} kg ({token})"
        turns = [
            {route = "health"},
            {use = "measurement_log", with = {kind = "weight", value = "{kg}", notes = "{token}"}},
            [{use = "a"}, {use = "b", with = {id = {result_of = "measurement_log", at = "id"}}}],
            {say = "Noted."},
        ]
        """
    )

    (row,) = read_rehearsals(path)

    assert row == Rehearsal(
        message="My weight is {kg:number} kg ({token})",
        turns=(
            route("health"),
            use("measurement_log", kind="weight", value="{kg}", notes="{token}"),
            (use("a"), use("b", id=result("measurement_log", "id"))),
            say("Noted."),
        ),
    )


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        ("{rout = 'health'}", "rehearsal[0].turns[0]"),
        ("{route = ''}", "turns[0].route: found ''"),
        ("{route = 'a', with = {}}", "turns[0].with"),
        ("{use = 'a', with = 3}", "turns[0].with: found 3"),
        ("{fail = 200}", "turns[0].fail: found 200"),
        ("{obey = [{say = 'x'}], unless = 'asked'}", "turns[0].unless: found 'asked'"),
        ("{obey = [{sy = 'x'}]}", "turns[0].obey[0]"),
        ("{given = 'x'}", "turns[0].turns"),
        ("[{say = 'x'}]", "turns[0]"),
        ("[]", "turns[0]"),
        ("3", "turns[0]: found 3"),
    ],
)
def test_a_mistake_in_a_turn_is_named_by_its_place(tmp_path, turn, shown):
    """File, row, turn and key."""
    path = tmp_path / "turns.toml"
    path.write_text(f"[[rehearsal]]\nmessage = 'x'\nturns = [{turn}]\n")

    with pytest.raises(BadInput) as caught:
        read_rehearsals(path)

    assert str(path) in str(caught.value)
    assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "rehearsal"),
        ("[", "a TOML file of rehearsals"),
        ("[[rehearsal]]\nturns = []", "rehearsal[0].message"),
        ("[[rehearsal]]\nmessage = 3\nturns = []", "rehearsal[0].message: found 3"),
        ("[[rehearsal]]\nmessage = 'x'", "rehearsal[0].turns"),
        ("[[rehearsal]]\nmessage = 'x'\nturns = []\nmodel = 1", "rehearsal[0].model: found 1"),
        ("[model]\n[[rehearsal]]\nmessage = 'x'\nturns = []", "nothing else"),
    ],
)
def test_a_mistake_in_a_file_is_reported(tmp_path, text, shown):
    """Nothing of a wrong file is taken."""
    path = tmp_path / "turns.toml"
    path.write_text(text)

    with pytest.raises(BadInput) as caught:
        read_rehearsals(path)

    assert shown in str(caught.value)
