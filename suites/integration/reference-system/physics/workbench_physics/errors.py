"""What cannot be simulated."""

from __future__ import annotations


class SceneError(Exception):
    """The scene is none; one sentence for whoever made it."""
