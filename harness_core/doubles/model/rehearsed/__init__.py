"""The default model: it does what a row has rehearsed, and only what the prompt lets a reader do.

It understands nothing. A row says which turns the model takes; each is taken only when the very
request gives a reader what it needs: the message whole, the target in the registry, the keys or the
tool by which an answer is wanted, the tool offered, its schema satisfied. Where one of these
is missing, it answers as a model would that does not understand, and the ledger records what it was (``LedgerEntry.missing``). A
call for which nothing was rehearsed is the harness's own fault (``LedgerEntry.unrehearsed``).

- ``_prompt.py``: a request taken apart. ``_registry.py``: the targets that it offers.
  ``_template.py``: the answer it wants, before it is filled in; ``_shape.py``: read from the prompt,
  its schema or its tools; ``_form.py``: as the subject file says it.
- ``_classifying.py``, ``_tools.py``: what is wanted, what is offered.
- ``_stage.py``: what was rehearsed. ``_player.py``: the answer. ``_shown.py``: pieces of texts in it.
"""

from __future__ import annotations

from harness_core.doubles.model._backend import Answer, Call
from harness_core.doubles.model._embeddings import embedded
from harness_core.doubles.model.rehearsed._form import Form, read_form
from harness_core.doubles.model.rehearsed._player import play
from harness_core.doubles.model.rehearsed._prompt import message_of
from harness_core.doubles.model.rehearsed._stage import Stage

__all__ = ["Form", "RehearsedBackend", "message_of", "read_form"]

#: How a command line names itself that offers tools of its own.
_CLI = "claude-cli"


class RehearsedBackend:
    """Mode ``rehearsed``: no key, no network, no model.

    Attributes:
        stage: what was rehearsed.
    """

    name = "rehearsed"
    charges = False

    def __init__(self, form: Form | None = None) -> None:
        self.stage = Stage()
        self._form = form or Form()

    async def answer(self, call: Call) -> Answer:
        """Answer one call; the same conversation always gets the same answer."""
        if call.request.dimensions:
            return embedded(call.request)
        cli = _CLI in call.headers.get("user-agent", "").lower()
        return play(call.request, self.stage, self._form, cli=cli)
