"""One page of HTML that needs nothing else (extra ``report``).

- ``_render.py``: :func:`render_page`; what jinja2 escapes, what is packed, and the page's policy.
- ``_assets.py``: style, script and templates; the live page has them too.
- ``report.html.j2``: what can be read without script; ``style.css``.
- ``data.js``, ``list.js``, ``tests.js``, ``test.js``, ``graph.js``, ``timeline.js``, ``parts.js``, ``main.js``:
  the script, one after the other in one module.

Source: decision 0170.
"""

from harness_core.base.machine import need_extra

need_extra("report", action="draw the page of a report", instead="use --json")

from harness_core.front.report.page._render import render_page

__all__ = ["render_page"]
