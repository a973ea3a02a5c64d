"""A page of a living system, for ``harness up --ui``: its parts, what happens, messages on their way.

The page is a process of its own beside what is held: it asks the control socket as another terminal
does, and reads the evidence. What hangs, leaks or dies in it disturbs nothing else.

- ``_open.py``: :func:`open_page`, starts it; ``__main__.py``: the process. ``_spans.py``: spans that
  plain recorders are sent.
- ``_guard.py``: whom it answers. ``_app.py``: what it answers. ``_stream.py``: one client that listens.
- ``_board.py``: what is known now, renewed while anyone looks; ``_asking.py``: the control socket;
  ``_memory.py``: memory of processes; ``_travel.py``: messages that were sent.
- ``_feed.py``: what happened last; ``_tail.py``: files as they grow.
- ``page``: what a browser is given.

Source: decision 0171.
"""

from harness_core.base.machine import need_extra

need_extra("ui", action="serve the page of what is held", instead="leave out --ui")

from harness_core.front.live._open import open_page

__all__ = ["open_page"]
