"""The page and its policy: no script but its own, no address but its own server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness_core.front.report.page._assets import EARLY, digest, joined, ours, templates

__all__ = ["Page", "render_live", "render_locked"]

#: Of the report, in the order in which its parts need each other; then our own.
_THEIRS: Final = ("data.js", "list.js", "graph.js", "timeline.js")
_OURS: Final = ("link.js", "board.js", "activity.js", "messages.js", "live.js")


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        html: all of it.
        policy: what it may load (CSP).
    """

    html: str
    policy: str


def render_live(*, title: str) -> Page:
    """The page of a system.

    Args:
        title: the name of its suite.
    """
    script = f"{joined(_THEIRS)}\n{joined(_OURS, package=__package__)}"
    return _rendered("live.html.j2", script, title=title)


def render_locked() -> Page:
    """The page of one who has no token, or had it and loads the page again."""
    return _rendered("locked.html.j2", joined(["locked.js"], package=__package__), title="locked")


def _rendered(template: str, script: str, *, title: str) -> Page:
    style = f"{joined(['style.css'])}\n{joined(['live.css'], package=__package__)}"
    html = (
        templates()
        .from_string(joined([template], package=__package__))
        .render(
            title=title,
            style=ours(style),
            early=ours(EARLY),
            script=ours(script),
        )
    )
    # What elements are given by script (`style.height`) is no style in markup and needs no leave.
    policy = (
        f"default-src 'none'; script-src {digest([EARLY, script])}; style-src {digest([style])}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(html, policy)
