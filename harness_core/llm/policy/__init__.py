"""The offline policy: a deterministic reader of prompts that stands where a model would.

It reads what a model would read and answers from what it finds there: the registry, the schemas,
the message. It knows no system, and a prompt that lacks something breaks its answer as it would
break a model's. It is not a model. All of it is pure functions of the request and the clock.

- ``_prompt.py``: a request taken apart into instructions, message, time and history.
- ``_classification.py``: who handles a message (``_registry.py``, ``_shape.py``: what is on
  offer, and the JSON that is demanded).
- ``_tools.py``: which tools a message asks for; ``_verbs.py``: what kind of act each is.
- ``_arguments.py``: arguments from the message by the parameter's schema (``_parameters.py``),
  with ``_quantities.py``, ``_when.py`` and ``_phrases.py`` for numbers, dates and words.
- ``_answering.py``: the answer, turn by turn.
- ``_words.py``, ``_kinds.py``, ``_pieces.py``, ``_scoring.py``: words, what they are kinds of,
  pieces of a message, and overlap. ``_languages.py``: everyday words that are not English;
  ``_pronouns.py``: what "it" stands for; ``_steering.py``: what tries to give the reader orders.
"""

from harness_core.llm.policy._answering import respond
from harness_core.llm.policy._classification import Segment, assign, classify
from harness_core.llm.policy._prompt import Prompt, message_of, read_prompt
from harness_core.llm.policy._registry import Entry, read_registry

__all__ = [
    "Entry",
    "Prompt",
    "Segment",
    "assign",
    "classify",
    "message_of",
    "read_prompt",
    "read_registry",
    "respond",
]
