"""What is wrong with a model, for whoever wrote it."""

from __future__ import annotations


class ModelError(Exception):
    """The model is no model; one sentence for the agent."""
