"""The model gateway: a loopback server that speaks a provider's API, counts, limits and misbehaves.

From the harness: :func:`open_gateway` starts one, ``gateway.client`` steers and reads it,
:func:`cost_summary` prints what it cost. As a process: ``python -m harness_core.doubles.model``.

- ``_gateway.py``: a gateway as a supervised child. ``_client.py``: the control API, typed.
- ``_cli.py``, ``_serve.py``: the process: arguments, socket, ready line, end.
- ``_app.py``, ``_control.py``: its routes. ``_desk.py``: where every call passes: key, faults,
  budget, backend, ledger. ``_exchange.py``: one HTTP exchange and its answer.
- ``_backend.py``: what a mode is; ``_modes.py``: which there are; ``rehearsed/``, ``_live.py``,
  ``_record.py``, ``_replay.py``: each of them. What ``rehearsed`` plays is written in
  ``harness_core.doubles.turns``.
- ``_cassette.py``: what a recording looks like; ``_normal.py``: when two requests are the same
  question; ``_nearest.py``: how two differ.
- ``_dialect.py``: the wire formats; ``_request.py``, ``_reply.py``, ``_stream.py``,
  ``_refusal.py``: the Messages API; ``_openai.py``: chat completions; ``_responses.py``,
  ``_responses_wire.py``: Responses; ``_embeddings.py``: embeddings.
- ``_ledger.py``, ``_prices.py``, ``_budget.py``: what was called, what it costs, what it may cost;
  ``_report.py``: the same for people.
- ``_faults.py``, ``_trouble.py``: trouble on request, and what it does.
"""

from harness_core.base.machine import need_extra

need_extra("gateway", action="use harness_core.doubles.model")

from harness_core.doubles.model._cli import (
    KEY_VARIABLE,
    SHORTEST_KEY,
    TOKEN_VARIABLE,
    gateway_parser,
)
from harness_core.doubles.model._client import GatewayClient
from harness_core.doubles.model._faults import Fault
from harness_core.doubles.model._gateway import Gateway, gateway_command, open_gateway
from harness_core.doubles.model._ledger import LedgerEntry, Totals
from harness_core.doubles.model._report import cost_summary, expect_rehearsed, refused_keys

__all__ = [
    "KEY_VARIABLE",
    "SHORTEST_KEY",
    "TOKEN_VARIABLE",
    "Fault",
    "Gateway",
    "GatewayClient",
    "LedgerEntry",
    "Totals",
    "cost_summary",
    "expect_rehearsed",
    "gateway_command",
    "gateway_parser",
    "open_gateway",
    "refused_keys",
]
