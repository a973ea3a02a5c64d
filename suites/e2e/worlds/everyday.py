"""Messages that many tests send in passing, and what the model does for each.

A test whose subject is the model's answer says it itself: ``ecosystem.send(text, model=[…])``.
"""

from __future__ import annotations

from typing import Final

from harness_core.assertions import TOKEN_FIELD
from harness_core.doubles.turns import Rehearsal, Turn, route, say, use
from suites.e2e.scenarios import SCENARIOS

__all__ = ["EVERYDAY", "REHEARSALS", "turns_for"]


def _row(message: str, *turns: Turn) -> Rehearsal:
    return Rehearsal(message=message, turns=turns)


_SYMPTOM: Final = use("symptom_log", name="{symptom}", severity="{n}", notes="{token}")
_REMINDER: Final = use("reminder_create", message="call {who} about {what}", contact_name="{who}")

#: The more special ones first.
EVERYDAY: Final = (
    _row(
        "I have a bad {symptom:word}, severity {n:number} ({token:word})", route("health"), _SYMPTOM
    ),
    _row("I have a {symptom}, severity {n:number} ({token:word})", route("health"), _SYMPTOM),
    _row("Log that I have a {symptom}, severity {n:number} ({token:word})", _SYMPTOM),
    *(
        _row(
            f"My weight is {{kg:number}} kg{day} ({{token:word}})",
            route("health"),
            use("measurement_log", kind="weight", value="{kg}", unit="kg", notes="{token}"),
        )
        for day in ("", " today")
    ),
    _row(
        "Add a contact: {who}, email {mail:word}",
        route("relationship"),
        use("contact_create", name="{who}", email="{mail}"),
    ),
    _row(
        "My pulse is {bpm:number} bpm ({token:word})",
        route("health"),
        use("measurement_log", kind="heart_rate", value="{bpm}", unit="bpm", notes="{token}"),
    ),
    _row(
        "I took {dosage} of {medicine:word} ({token:word})",
        route("health"),
        use("medication_log_dose", name="{medicine}", dosage="{dosage}", notes="{token}"),
    ),
    _row(
        'Put "{thing}" on the {list:word} list',
        route("general"),
        use("entity_create", collection="{list}", name="{thing}"),
    ),
    _row(
        "Add {thing:word} to my list of {list:word}",
        route("general"),
        use("entity_create", collection="{list}", name="{thing}"),
    ),
    _row("Remind me to call {who} about {what:word}", route("relationship"), _REMINDER),
    _row(
        "Note about {who}: {note}",
        route("relationship"),
        use("note_create", contact_name="{who}", body="{note}"),
    ),
    # Words that ask for nothing: a session that only has to begin and to end.
    *(
        _row(f"{words} {{who:word}}", say("Very well."))
        for words in ("say", "Say hello to", "Hold on for", "Please look after")
    ),
    _row("look at the {what} {token:word}", say("It is a day.")),
    _row(
        "I have a {symptom}, severity {n:number} ({token:word}). "
        "Also remind me to call {who} about {what:word}",
        route("health", "I have a {symptom}, severity {n} ({token})."),
        _SYMPTOM,
        route("relationship", "Also remind me to call {who} about {what}"),
        _REMINDER,
    ),
)


#: What a whole suite of them needs: the scenarios too, with ``{token}`` for any word. Last the most
#: special ones, since the latest counts.
REHEARSALS: Final = (
    *reversed(EVERYDAY),
    *(
        Rehearsal(name=row.id, message=row.input_prompt, turns=tuple(row.model))
        for row in SCENARIOS
        if row.input_prompt != TOKEN_FIELD  # it would be every message
    ),
)


def turns_for(text: str) -> Rehearsal | None:
    """The rehearsal of one very text; ``None`` when it is no everyday one."""
    return next((filled for row in EVERYDAY if (filled := row.filled(text)) is not None), None)
