"""A classifying prompt: whom it offers, and how it wants to be told who was chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.doubles.model._request import MessagesRequest, Tool
from harness_core.doubles.model.rehearsed._form import Form
from harness_core.doubles.model.rehearsed._prompt import Prompt
from harness_core.doubles.model.rehearsed._registry import Entry, read_registry
from harness_core.doubles.model.rehearsed._shape import (
    TARGET_WORDS,
    read_template,
    template_of_schema,
    words_of,
)
from harness_core.doubles.model.rehearsed._template import Part, keys_beside_target
from harness_core.doubles.model.rehearsed._tools import bare, offered
from harness_core.doubles.turns import Route

#: Words in the names of tools that hand a message over.
_HANDOVER_WORDS: Final = frozenset(
    ["route", "dispatch", "delegate", "assign", "handoff", "hand", "forward", "send"]
)

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

_TEXT_WORDS: Final = frozenset(
    ["prompt", "text", "message", "input", "request", "instruction", "task", "segment"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a classifying prompt wants its answer, and whom it offers.

    Attributes:
        template: the JSON answer it wants, or the arguments of ``tool``.
        tool: the tool that it wants to be called; empty for an answer.
        missing: what the prompt lacks of what the subject says that it has.
    """

    entries: tuple[Entry, ...]
    template: Any
    tool: str = ""
    missing: str = ""

    def lacks(self, parts: Sequence[Part]) -> str:
        """What a reader of the prompt lacks to choose these targets; empty for nothing."""
        if self.missing:
            return self.missing
        known = {entry.name: entry for entry in self.entries}
        names = ", ".join(known) or "nobody (registry empty)"
        for part in parts:
            if part.target not in known:
                return f"never named {part.target!r}: the registry has {names}"
            if not known[part.target].said:
                return f"names {part.target!r} and says nothing of it"
        return ""


def read_wanted(
    request: MessagesRequest, prompt: Prompt, form: Form, *, cli: bool
) -> Wanted | None:
    """What a prompt wants when it classifies; ``None`` when it does not.

    Where the subject says how (``form``), its word counts; else the structure of the prompt.
    """
    tools = offered(request, cli=cli, servers=form.servers)
    entries, rest, missing = _registry(prompt, form)
    missing = missing or _contradiction(rest, entries)
    template = read_template(rest)
    if request.output_schema is not None:
        template = template_of_schema(request.output_schema) or template
    if form.tool is not None or form.answer is not None:
        if entries or template is not None or prompt.placed:
            return _as_stated(form, entries, rest, tools, missing=missing)
        return None
    if template is not None and (entries or not tools):
        return Wanted(entries=entries, template=template, missing=missing)
    for tool in tools:
        if (arguments := _handover(tool, entries)) is not None:
            return Wanted(entries=entries, template=arguments, tool=tool.name, missing=missing)
    return None


def _as_stated(
    form: Form, entries: tuple[Entry, ...], rest: str, tools: Sequence[Tool], *, missing: str
) -> Wanted:
    """What the subject says that its classifier wants, and what of that the prompt lacks."""
    if form.tool is not None:
        name = next((tool.name for tool in tools if bare(tool.name) == form.tool), form.tool)
        if name not in {tool.name for tool in tools}:
            missing = missing or f"does not offer the tool {form.tool!r}"
        return Wanted(entries=entries, template=form.arguments, tool=name, missing=missing)
    for key in keys_beside_target(form.template):
        if not re.search(rf"\b{re.escape(key)}\b", rest):
            missing = missing or f"never names {key!r}, a key by which it wants its answer"
    return Wanted(entries=entries, template=form.template, missing=missing)


def parts_of(message: str, routes: Sequence[Route]) -> tuple[Part, ...]:
    """Each route with its part of the message, and where in it that begins."""
    return tuple(
        Part(
            target=route.target,
            text=route.prompt or message,
            start=max(message.find(route.prompt), 0) if route.prompt else 0,
        )
        for route in routes
    )


def _registry(prompt: Prompt, form: Form) -> tuple[tuple[Entry, ...], str, str]:
    """Who may be chosen, the instructions without the registry, and what is missing."""
    text = prompt.instructions
    if form.registry is None:
        return *read_registry(text), ""
    found = form.find("registry", text)
    if found is None:
        return (), text, "has no registry where the subject file says that it stands"
    entries, _ = read_registry(found["registry"])
    return entries, text[: found.start("registry")] + text[found.end("registry") :], ""


def _contradiction(rest: str, entries: Sequence[Entry]) -> str:
    """What the instructions say against themselves; empty for nothing."""
    if (forbids := _NO_JSON.search(rest)) is not None and "JSON" in rest.replace(forbids[0], ""):
        return f"contradicts itself: it wants JSON, and says {forbids[0].strip()!r}"
    for always in _ALWAYS.finditer(rest):
        if len(entries) > 1 and always[1] in {entry.name for entry in entries}:
            return f"leaves no choice: it says {always[0].strip()!r}"
    return ""


def _handover(tool: Tool, entries: Sequence[Entry]) -> dict[str, str] | None:
    """The arguments of a tool that reads like one that hands over: a target, and a text."""
    properties: Mapping[str, Any] = tool.input_schema.get("properties") or {}
    target = next((key for key in properties if words_of(key) & TARGET_WORDS), "")
    text = next((key for key in properties if words_of(key) & _TEXT_WORDS), "")
    if not entries or not target or not text or not words_of(bare(tool.name)) & _HANDOVER_WORDS:
        return None
    return {target: "{target}", text: "{prompt}"}
