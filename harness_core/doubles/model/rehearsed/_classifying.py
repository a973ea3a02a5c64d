"""A classifying prompt: the targets that it offers, and how it wants its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.doubles.model._request import MessagesRequest, Tool
from harness_core.doubles.model.rehearsed._form import Form
from harness_core.doubles.model.rehearsed._prompt import Prompt
from harness_core.doubles.model.rehearsed._registry import Registry, read_registry
from harness_core.doubles.model.rehearsed._shape import (
    template_of_schema,
    template_of_text,
    template_of_tool,
)
from harness_core.doubles.model.rehearsed._template import Part, Template, keys_beside_target
from harness_core.doubles.model.rehearsed._tools import tool_named

#: To the end of the clause: "no JSON comments" forbids no JSON.
_NO_JSON: Final = re.compile(
    r"\b(?:no|not|never|without)(?: any| as| in)? JSON\b(?=\s*(?:[.,;!]|$))",
    re.IGNORECASE | re.MULTILINE,
)

#: A sentence of its own: "for pains, always choose health" leaves a choice.
_ALWAYS: Final = re.compile(
    r"(?:^|(?<=[.!?]))\s*always (?:answer|reply|respond|route|choose|pick|use|name)(?: with| to)?(?: the)?"
    r"(?: \w+)?[ \"'`]+([\w-]+)[\"'`]*\s*(?:[.!]|$)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a classifying prompt wants its answer, and the targets that it offers.

    Attributes:
        registry: the targets that it offers.
        template: the answer it wants.
        tool: the tool that it wants to be called, where it does and offers it.
        missing: what the prompt lacks of what the subject says that it has.
    """

    registry: Registry
    template: Template
    tool: Tool | None = None
    missing: str = ""

    def lacks(self, parts: Sequence[Part]) -> str:
        """What a reader of the prompt lacks to choose these targets; empty for nothing."""
        if self.missing:
            return self.missing
        names = ", ".join(self.registry) or "nobody (registry empty)"
        for part in parts:
            target = str(part["target"])
            if target not in self.registry:
                return f"never named {target!r}: the registry has {names}"
            if not self.registry[target]:
                return f"names {target!r} and says nothing of it"
        return ""


def read_wanted(
    request: MessagesRequest, prompt: Prompt, form: Form, tools: Sequence[Tool]
) -> Wanted | None:
    """What a prompt wants when it classifies; ``None`` when it does not.

    Where the subject says how (``form``), its word counts; else the structure of the prompt.
    """
    registry, rest, missing = _registry(prompt, form)
    shown = template_of_text(rest)
    if request.output_schema is not None:
        shown = template_of_schema(request.output_schema) or shown
    missing = missing or _contradiction(rest, registry)
    template = form.template
    if template is not None:
        if not registry and shown is None and not prompt.placed:
            return None
        missing = missing or _unstated(template, rest, tools)
    elif shown is not None and (registry or not tools):
        template = shown
    elif registry:
        template = next(filter(None, map(template_of_tool, tools)), None)
    if template is None:
        return None
    tool = tool_named(template.tool, tools) if template.tool else None
    return Wanted(registry=registry, template=template, tool=tool, missing=missing)


def _unstated(template: Template, rest: str, tools: Sequence[Tool]) -> str:
    """What a prompt lacks of the answer that the subject says it wants; empty for nothing."""
    if template.tool:
        offers = tool_named(template.tool, tools) is not None
        return "" if offers else f"does not offer the tool {template.tool!r}"
    for key in keys_beside_target(template.value):
        if not re.search(rf"\b{re.escape(key)}\b", rest):
            return f"never names {key!r}, a key by which it wants its answer"
    return ""


def _registry(prompt: Prompt, form: Form) -> tuple[Registry, str, str]:
    """Who may be chosen, the instructions without the registry, and what is missing."""
    text = prompt.instructions
    if form.registry is None:
        return *read_registry(text), ""
    found = form.find("registry", text)
    if found is None:
        return {}, text, "has no registry where the subject file says that it stands"
    registry, _ = read_registry(found["registry"])
    return registry, text[: found.start("registry")] + text[found.end("registry") :], ""


def _contradiction(rest: str, registry: Registry) -> str:
    """What the instructions say against themselves; empty for nothing."""
    if (forbids := _NO_JSON.search(rest)) is not None and "JSON" in rest.replace(forbids[0], ""):
        return f"contradicts itself: it wants JSON, and says {forbids[0].strip()!r}"
    for always in _ALWAYS.finditer(rest):
        if len(registry) > 1 and always[1] in registry:
            return f"leaves no choice: it says {always[0].strip()!r}"
    return ""
