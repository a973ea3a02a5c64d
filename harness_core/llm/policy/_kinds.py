"""What a word is a kind of: a little everyday English that no registry or schema spells out.

A reader knows that a headache is a symptom and that "bpm" speaks of a heart rate. This table says
so, and nothing else: it maps words to more general words, never to a butler, tool or parameter.
A system whose own texts use none of the general words gains nothing from it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from harness_core.llm.policy._words import stem

__all__ = ["kinds_of"]

#: General words, and behind the colon words that are kinds or parts of what they name. An
#: indented line continues the one above.
_TABLE: Final = """
symptom pain complaint health: headache migraine ache pain hurt nausea nauseous dizzy dizziness
  fever cough sore fatigue tired exhausted sick ill unwell rash itch itchy cramp insomnia vomit
  vomiting bloated congestion swollen swelling stiff chills palpitations heartburn backache
  toothache stomachache sneeze wheeze diarrhea constipation anxious anxiety allergy allergic
medication medicine drug dose health: pill tablet capsule dose dosage mg mcg ibuprofen aspirin
  paracetamol acetaminophen antibiotic antibiotics insulin vitamin prescription prescribed
  medicine medication metformin lisinopril amoxicillin antihistamine melatonin
meal food eat: breakfast lunch dinner supper brunch snack ate eat eaten oatmeal salad soup
  sandwich pizza pasta rice chicken fish fruit vegetable coffee tea calories kcal
measurement vital health reading: weight weigh weighed kg kilo pound lbs height cm pulse bpm
  heartbeat pressure mmhg systolic diastolic temperature celsius fahrenheit glucose sugar oxygen
  spo2 cholesterol bmi steps
weight mass: weigh weighed kg kilo lbs pound scale
heart rate pulse: bpm pulse heartbeat heart
blood pressure: mmhg systolic diastolic
temperature: fever celsius fahrenheit thermostat degrees warm cold hot
sleep: slept asleep nap bedtime
exercise activity workout: run running jog jogging walk walked swim swam cycling gym yoga workout
  hike steps km
contact relationship friend: friend colleague coworker neighbor neighbour boss mother father mom
  dad sister brother wife husband son daughter cousin uncle aunt partner girlfriend boyfriend
  roommate acquaintance phone email
family: mother father mom dad sister brother wife husband son daughter cousin uncle aunt
  grandmother grandfather niece nephew
important date event: birthday anniversary wedding graduation
reminder remind: remind remember forget alarm
note: remember mention likes loves prefers hates dislikes enjoys allergic favorite favourite
list item collection: shopping grocery groceries todo wishlist checklist buy
task: todo chore errand deadline
message send deliver: email sms telegram text message reply notify
interaction: met meet talked spoke visited coffee conversation chat
calendar event schedule appointment: appointment reschedule agenda invite
money finance expense: paid pay spent cost invoice bill rent salary budget dollars euros usd eur
  price
travel trip: flight hotel train airport passport luggage itinerary vacation
light lighting lamp: lamp bulb bright brightness dim
garden plant: lawn sprinkler flower tomato tomatoes hedge weed roses rose watering seeds
  irrigation mow
music audio: song playlist album radio volume
"""


@lru_cache(maxsize=1)
def _by_stem() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _TABLE.replace("\n  ", " ").strip().splitlines():
        general, words = line.split(":")
        heads = {stem(word) for word in general.split()}
        for word in words.split():
            table.setdefault(stem(word), set()).update(heads)
    return {word: frozenset(heads - {word}) for word, heads in table.items()}


def kinds_of(word_stem: str) -> frozenset[str]:
    """Stems of the more general words for a stem; empty for most words."""
    return _by_stem().get(word_stem, frozenset())
