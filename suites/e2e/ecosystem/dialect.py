"""How a product says what the contract says: calls by other names, in other forms, refused in other words.

A test speaks the contract; what stands in the subject file is put between it and the product. A place of a
call that the product has not can be left out of its template: a test that changes just that place is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness_core.base import limits
from harness_core.front.skips import not_run
from harness_core.ports import Stage
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.ecosystem.subject_file import Phrased, tables_of
from suites.e2e.ecosystem.tools import Tools

__all__ = ["Dialect", "Phrase", "Refusal", "SpokenTools", "dialect_of"]

#: Table of the subject file → tool of the contract.
_TOOLS: Final = {"ingest": "ingest", "route": "route.execute", "notify": "notify"}

_PLACE: Final = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)*)\}")


class _LeftOut:
    """A place of the contract that this call does not fill."""


_LEFT_OUT: Final = _LeftOut()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that says no without being an error of the protocol.

    Attributes:
        key: of the answer.
        values: what it says then; empty: anything but nothing.
    """

    key: str = ""
    values: tuple[str, ...] = ()

    def says(self, answer: object) -> bool:
        """Whether an answer is one."""
        if not self.key or not isinstance(answer, Mapping):
            return False
        found = _at(answer, self.key)
        if self.values:
            return found in self.values
        return found not in (_LEFT_OUT, None, "", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """One call of the contract, in the product's words.

    Attributes:
        tool: its name there; empty: the same.
        arguments: its arguments: ``{payload.raw}`` stands for that place of the contract's, whole when
            nothing is beside it. Empty: the contract's own.
        answer: key of the contract's answer → where it stands in the product's.
        values: key of the contract's answer → the product's value → the contract's.
    """

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def names(self, path: Sequence[str]) -> tuple[str, ...]:
        """What the product may call a place of the contract's call: the contract's name, and its own."""
        asked = ".".join(path)
        own = (
            key
            for keys, place in _places(self.arguments)
            if place == asked or asked.startswith(f"{place}.") or place.startswith(f"{asked}.")
            for key in keys
        )
        return (path[-1], *own)

    def said(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A call of the contract as the product has it."""
        if not self.arguments:
            return dict(arguments)
        made = _filled(self.arguments, arguments)
        assert isinstance(made, dict)
        return made

    def understood(self, value: object) -> object:
        """An answer of the product as the contract has it; its other keys stay."""
        if not isinstance(value, Mapping):
            return value
        found = dict(value)
        for ours, theirs in self.answer.items():
            at = _at(value, theirs)
            if not isinstance(at, _LeftOut):
                found[ours] = at
        for key, values in self.values.items():
            if key in found:
                found[key] = values.get(str(found[key]), found[key])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """All that a product says otherwise.

    Attributes:
        phrases: by the contract's tool.
        refusal: when an answer is a refusal.
    """

    phrases: Mapping[str, Phrase] = field(default_factory=dict)
    refusal: Refusal = Refusal()

    def need_difference(
        self,
        tool: str,
        valid: Mapping[str, Any],
        changed: Mapping[str, Any],
        *,
        path: Sequence[str],
    ) -> None:
        """A change that the product is never told cannot be refused by it: the test is not run.

        Args:
            tool: of the contract.
            valid: a call of it.
            changed: the same, changed.
            path: where.
        """
        phrase = self.phrases.get(tool, Phrase())
        if phrase.said(valid) == phrase.said(changed):
            not_run("subject", f"its {phrase.tool or tool} has no place for {'.'.join(path)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenTools:
    """Tools of a product with a dialect."""

    tools: Tools
    dialect: Dialect

    @property
    def url(self) -> str:
        """Where they are."""
        return self.tools.url

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seconds: float = limits.MCP_CALL_S,
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """Call one tool of the contract."""
        phrase = self.dialect.phrases.get(tool, Phrase())
        answer = await self.tools.call(
            phrase.tool or tool,
            phrase.said(arguments or {}),
            seconds=seconds,
            headers=headers,
        )
        if self.dialect.refusal.says(answer.value):
            return replace(answer, is_error=True)
        return replace(answer, value=phrase.understood(answer.value))

    async def list(self) -> dict[str, Mapping[str, Any]]:
        """The tools, by the contract's names where it has them."""
        ours = {phrase.tool: tool for tool, phrase in self.dialect.phrases.items() if phrase.tool}
        return {ours.get(name, name): schema for name, schema in (await self.tools.list()).items()}

    def protocol_stage(self, *, seconds: float) -> Stage:
        """When calls can be made."""
        return self.tools.protocol_stage(seconds=seconds)


def dialect_of(subject: Subject) -> Dialect:
    """What a subject file says of its calls."""
    tables = tables_of(subject)
    phrases = {
        tool: Phrase(
            tool=table.tool, arguments=table.arguments, answer=table.answer, values=table.values
        )
        for name, tool in _TOOLS.items()
        if (table := getattr(tables, name)) != Phrased()
    }
    refusal = tables.refusal
    return Dialect(
        phrases=phrases,
        refusal=Refusal(key=refusal.key, values=refusal.values) if refusal else Refusal(),
    )


def _filled(template: Any, call: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        made = {key: _filled(value, call) for key, value in template.items()}
        return {key: value for key, value in made.items() if not isinstance(value, _LeftOut)}
    if isinstance(template, list):
        items = [_filled(value, call) for value in template]
        return [value for value in items if not isinstance(value, _LeftOut)]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template)
    if whole:
        return _at(call, whole[1])
    return _PLACE.sub(lambda found: _text(_at(call, found[1])), template)


def _text(value: object) -> str:
    return "" if isinstance(value, _LeftOut) or value is None else str(value)


def _at(value: object, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _LEFT_OUT
        value = value[key]
    return value


def _places(template: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The keys under which each place of the contract's call stands in a template."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from _places(value, (*keys, key))
    elif isinstance(template, list):
        for value in template:
            yield from _places(value, keys)
    elif isinstance(template, str):
        for found in _PLACE.finditer(template):
            yield keys, found[1]
