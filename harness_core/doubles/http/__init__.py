"""HTTP on loopback: a client and a server, both of which record every exchange.

- ``_client.py``: :class:`HttpClient`, asks a product and keeps every exchange as evidence;
  ``_exchange.py``: one request and its answer on a connection of their own.
- ``_recorder.py``: :func:`open_recorder`, a server that records every request and answers by rules;
  what stands in for a messenger's API, a calendar, a collector of spans.
- ``_recorded.py``: :class:`Recorded`, one request as it came. ``_rules.py``: :class:`Rule` and
  :class:`Answer`, what a recorder answers, how late, or that it does not.
- ``_connection.py``: one connection of a recorder, from its first byte to its end; ``_state.py``:
  what its connections share.
- ``_watchers.py``: :func:`watching`, every request that any recorder takes; ``_onward.py``:
  :func:`sending_on`, spans among them, to a collector of the user's.
- ``_encoding.py``: bodies that arrive compressed, opened within bounds.
- ``_own_host.py``: :class:`OwnHosts`, which requests are meant for a server of ours.
  ``_misdirected.py``: :func:`misdirected`, those that a server on loopback must refuse.
- ``_probes.py``: :func:`http_answers`, :func:`sse_opens`, for stages of readiness.

h11 does the protocol, trio the sockets; nothing here but ``_onward.py`` leaves 127.0.0.1.
"""

from harness_core.doubles.http._client import HttpClient, Response, Silence, Unanswered
from harness_core.doubles.http._misdirected import Addressed, directed, misdirected
from harness_core.doubles.http._onward import check_endpoint, sending_on
from harness_core.doubles.http._own_host import OwnHosts
from harness_core.doubles.http._probes import http_answers, sse_opens
from harness_core.doubles.http._recorded import Recorded
from harness_core.doubles.http._recorder import Recorder, open_recorder
from harness_core.doubles.http._rules import Answer, Rule
from harness_core.doubles.http._watchers import watching

__all__ = [
    "Addressed",
    "Answer",
    "HttpClient",
    "OwnHosts",
    "Recorded",
    "Recorder",
    "Response",
    "Rule",
    "Silence",
    "Unanswered",
    "check_endpoint",
    "directed",
    "http_answers",
    "misdirected",
    "open_recorder",
    "sending_on",
    "sse_opens",
    "watching",
]
