"""What a browser is given: one page, with the look of a report's.

- ``_render.py``: :func:`render_live`, :func:`render_locked`: templates, style and script, and their policy.
- ``live.html.j2``, ``live.css``: what stays; ``link.js``: token and stream; ``board.js``: parts and
  budget; ``activity.js``: what happens; ``messages.js``: what is sent, and its way; ``live.js``: all of it.

Style, lists, graphs and timelines are those of ``harness_core.front.report.page``.
Source: decision 0171.
"""

from harness_core.front.live.page._render import Page, render_live, render_locked

__all__ = ["Page", "render_live", "render_locked"]
