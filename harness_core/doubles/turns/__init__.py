"""What a rehearsed model does: the turns of a row, in a small vocabulary.

- ``_turns.py``: the vocabulary: :func:`route`, :func:`use`, :func:`say`, :func:`ask`,
  :func:`obey`, :func:`given`, :func:`fail`, :func:`result`.
- ``_rehearsal.py``: a message and its turns, also as a file and on the wire.
- ``_message.py``: when a text is a message of a rehearsal, and which of its words fill the turns.

Played by the model gateway (``harness_core/doubles/model/rehearsed``), which does a turn only when the prompt
of the very request gives a reader what the turn needs. Written down in docs/how-to/gateway.md.
"""

from harness_core.doubles.turns._message import Message, as_read, fill_in, with_kinds
from harness_core.doubles.turns._rehearsal import (
    Rehearsal,
    RehearsalsFile,
    read_rehearsals,
    rehearsals_from_json,
)
from harness_core.doubles.turns._turns import (
    Ask,
    Fail,
    Given,
    Obey,
    ResultOf,
    Route,
    Say,
    Turn,
    Use,
    ask,
    fail,
    given,
    is_turn,
    obey,
    result,
    route,
    say,
    use,
)

__all__ = [
    "Ask",
    "Fail",
    "Given",
    "Message",
    "Obey",
    "Rehearsal",
    "RehearsalsFile",
    "ResultOf",
    "Route",
    "Say",
    "Turn",
    "Use",
    "as_read",
    "ask",
    "fail",
    "fill_in",
    "given",
    "is_turn",
    "obey",
    "read_rehearsals",
    "rehearsals_from_json",
    "result",
    "route",
    "say",
    "use",
    "with_kinds",
]
