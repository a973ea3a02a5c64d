"""What a subject says of its prompts (``[model]`` of a subject file), where that need not be guessed.

Source: docs/how-to/gateway.md, "Foreign prompts".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from harness_core.base.reading import Misfit, Table, read_toml
from harness_core.doubles.model.rehearsed._template import Template, holds_target


class Form(Table, frozen=True):
    """Where in a subject's prompts things stand, and how its classifier wants its answer.

    Attributes:
        message: what stands around ``{message}``; left out: read structurally.
        registry: what stands around ``{registry}``; left out: read structurally.
        answer: JSON text with ``{target}`` and ``{prompt}`` in it; left out: as the prompt says.
        tool: bare name of the tool it wants to be called instead of an answer.
        arguments: of that tool, with ``{target}`` and ``{prompt}``.
        servers: MCP servers whose tools may be called; empty for all that are offered.
    """

    message: str | None = None
    registry: str | None = None
    answer: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    servers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.answer is not None and self.tool is not None:
            raise Misfit("tool", expected="either answer or tool: a classifier wants one of them")
        if (self.tool is None) != (self.arguments is None):
            raise Misfit("arguments", expected="tool and its arguments, both")
        for key in ("message", "registry"):
            text, mark = getattr(self, key), f"{{{key}}}"
            if text is not None and (text.count(mark) != 1 or text.strip() == mark):
                raise Misfit(key, expected=f"what stands around it, with {mark} once")
        template = self.template
        if template is not None and not holds_target(template.value):
            key, kind = ("answer", "JSON text") if self.tool is None else ("arguments", "table")
            raise Misfit(key, expected=f"a {kind} with {{target}} in it")

    def find(self, key: str, text: str) -> re.Match[str] | None:
        """Where in a text the ``message`` or ``registry`` stands, as the group of that name."""
        before, after = (re.escape(part) for part in getattr(self, key).split(f"{{{key}}}"))
        # A message may itself hold what follows it, so it goes on to the last occurrence of that.
        inside = ".*" if key == "message" else ".*?"
        pattern = before + f"(?P<{key}>{inside})" + (after or r"\Z")
        return re.search(pattern, text, re.DOTALL)

    @property
    def template(self) -> Template | None:
        """The answer that its classifier wants; ``None``: as the prompt says."""
        if self.tool is not None:
            return Template(value=self.arguments, tool=self.tool)
        return None if self.answer is None else Template(value=_json_in(self.answer))


class _Subject(Struct):
    """A subject file, of which the other tables are for others to read."""

    model: Form = Form()


def read_form(path: Path) -> Form:
    """Read the table ``[model]`` of a TOML file; without one the form claims nothing.

    Raises:
        BadInput: the file cannot be read; else names the key.
    """
    return read_toml(path, _Subject, expected="a TOML file with [model]").model


def _json_in(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
