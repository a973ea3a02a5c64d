"""What cannot be shown."""

from __future__ import annotations


class RenderError(Exception):
    """There is no picture of it; one sentence that says why."""
