"""The scenarios: one row is one message and everything that must follow from it.

Add a row and it runs: ``test_scenario_runner.py`` makes a test of each. ``{token}`` stands for an
unguessable word of the run, so that the row found is the row this very message caused.
"""

from __future__ import annotations

from typing import Final

from harness_core.db import Contains
from harness_core.scenario import GOLDEN, DbAssertion, E2EScenario

__all__ = ["SCENARIOS"]

SCENARIOS: Final = (
    E2EScenario(
        id="health-symptom-log",
        description="Log a headache symptom with severity",
        input_prompt="I have a bad headache, severity 7 ({token})",
        expected_butler="health",
        expected_tool_calls=["symptom_log"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="symptoms",
                where={"name": "headache", "notes": Contains("{token}")},
                column_checks={"severity": 7},
            )
        ],
        expected_output=GOLDEN,
        tags=("health", "symptom"),
    ),
    E2EScenario(
        id="health-weight-log",
        description="A measurement with its unit",
        input_prompt="My weight this morning is 72.5 kg ({token})",
        expected_butler="health",
        expected_tool_calls=["health.measurement_log"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="measurements",
                where={"kind": "weight", "notes": Contains("{token}")},
                column_checks={"value": 72.5, "unit": "kg"},
            )
        ],
        tags=("health", "measurement"),
    ),
    E2EScenario(
        id="health-blood-pressure-log",
        description="A measurement of two numbers",
        input_prompt="My blood pressure is 128/83 ({token})",
        expected_butler="health",
        expected_tool_calls=["measurement_log"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="measurements",
                where={"kind": "blood_pressure", "notes": Contains("{token}")},
                column_checks={"value": 128, "value2": 83},
            )
        ],
        tags=("health", "measurement"),
    ),
    E2EScenario(
        id="health-medication-dose",
        description="A dose of a medicine, in two tables",
        input_prompt="I took 400 mg of ibuprofen ({token})",
        expected_butler="health",
        expected_tool_calls=["medication_log_dose"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="medication_doses",
                where={"notes": Contains("{token}")},
                column_checks={"dosage": Contains("400 mg")},
            ),
            DbAssertion(butler="health", table="medications", where={"name": "ibuprofen"}),
        ],
        tags=("health", "medication"),
    ),
    E2EScenario(
        id="health-meal-log",
        description="A meal, with its kind taken from the message",
        input_prompt="For lunch I ate rice with lentils, 550 calories ({token})",
        expected_butler="health",
        expected_tool_calls=["meal_log"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="meals",
                where={"description": Contains("{token}")},
                column_checks={"kind": "lunch", "calories": 550},
            )
        ],
        tags=("health", "meal"),
    ),
    E2EScenario(
        id="relationship-contact-create",
        description="A new contact with an address that only this run knows",
        input_prompt="Add a contact: Maria Stone, email {token}@example.com",
        expected_butler="relationship",
        expected_tool_calls=["contact_create"],
        db_assertions=[
            DbAssertion(
                butler="relationship",
                table="contacts",
                where={"email": "{token}@example.com"},
                column_checks={"name": "Maria Stone"},
            )
        ],
        tags=("relationship", "contact"),
    ),
    E2EScenario(
        id="relationship-note-create",
        description="A note about a person, with the contact made on the way",
        input_prompt="Note about Peter: he is allergic to peanuts ({token})",
        expected_butler="relationship",
        expected_tool_calls=["note_create"],
        db_assertions=[
            DbAssertion(
                butler="relationship",
                table="notes",
                where={"body": Contains("{token}")},
                column_checks={"body": Contains("peanuts")},
            ),
            DbAssertion(butler="relationship", table="contacts", where={"name": "Peter"}),
        ],
        tags=("relationship", "note"),
    ),
    E2EScenario(
        id="relationship-reminder-create",
        description="A reminder to call somebody",
        input_prompt="Remind me to call Alice about {token} tomorrow",
        expected_butler="relationship",
        expected_tool_calls=["reminder_create"],
        db_assertions=[
            DbAssertion(
                butler="relationship",
                table="reminders",
                where={"message": Contains("{token}")},
                column_checks={"done": False},
            )
        ],
        expected_output=GOLDEN,
        tags=("relationship", "reminder"),
    ),
    E2EScenario(
        id="relationship-birthday-add",
        description="A yearly date of a person, who becomes a contact on the way",
        input_prompt="The birthday of Nora {token} is on 1990-03-14",
        expected_butler="relationship",
        expected_tool_calls=["important_date_add"],
        db_assertions=[
            DbAssertion(
                butler="relationship",
                table="important_dates",
                where={"label": "birthday", "year": 1990},
                column_checks={"month": 3, "day": 14},
            ),
            # Whether the strange word belongs to the name is the model's to decide.
            DbAssertion(butler="relationship", table="contacts", where={"name": Contains("Nora")}),
        ],
        tags=("relationship", "date"),
    ),
    E2EScenario(
        id="general-book-to-list",
        description="A thing put into a collection, which is made on the way",
        input_prompt='Add "Dune {token}" to my list of books',
        expected_butler="general",
        expected_tool_calls=["entity_create"],
        db_assertions=[
            DbAssertion(butler="general", table="entities", where={"name": Contains("{token}")}),
            DbAssertion(butler="general", table="collections", where={"name": "books"}),
        ],
        expected_output=GOLDEN,
        tags=("general", "collection"),
    ),
    E2EScenario(
        id="general-shopping-item",
        description="An item on the shopping list",
        input_prompt='Put "oat milk {token}" on the shopping list',
        expected_butler="general",
        expected_tool_calls=["general.entity_create"],
        db_assertions=[
            DbAssertion(
                butler="general", table="entities", where={"name": Contains("oat milk {token}")}
            ),
            DbAssertion(butler="general", table="collections", where={"name": "shopping"}),
        ],
        tags=("general", "collection"),
    ),
    E2EScenario(
        id="two-domains-headache-and-reminder",
        description="One message for two butlers: each gets its part, and only its part",
        input_prompt=(
            "I have a headache, severity 4 ({token}). Also remind me to call Bob about {token}"
        ),
        expected_butler=("health", "relationship"),
        expected_tool_calls=["health.symptom_log", "relationship.reminder_create"],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="symptoms",
                where={"name": "headache", "notes": Contains("{token}")},
                column_checks={"severity": 4},
            ),
            DbAssertion(
                butler="relationship", table="reminders", where={"message": Contains("{token}")}
            ),
            DbAssertion(
                butler="relationship",
                table="reminders",
                where={"message": Contains("headache")},
                count=0,
            ),
        ],
        expected_output=GOLDEN,
        tags=("multi-domain",),
    ),
    E2EScenario(
        id="three-domains-weight-contact-film",
        description="One message for three butlers",
        input_prompt=(
            "My weight is 71 kg ({token}). Add a contact: Emil Berg, email {token}@example.org. "
            'Add "Solaris {token}" to my list of films'
        ),
        expected_butler=("health", "relationship", "general"),
        expected_tool_calls=[
            "health.measurement_log",
            "relationship.contact_create",
            "general.entity_create",
        ],
        db_assertions=[
            DbAssertion(
                butler="health",
                table="measurements",
                where={"kind": "weight", "notes": Contains("{token}")},
                column_checks={"value": 71},
            ),
            DbAssertion(
                butler="relationship", table="contacts", where={"email": "{token}@example.org"}
            ),
            DbAssertion(butler="general", table="entities", where={"name": Contains("{token}")}),
        ],
        tags=("multi-domain",),
    ),
)
