"""YAML as a careful reader takes it: one meaning, or a finding with the line.

The parser is libyaml by way of PyYAML, which the YAML organisation itself keeps and which gives every
node its line. (ruamel.yaml has YAML 1.2 of its own accord; it has one maintainer, keeps what round
trips need and changes its interface between minor versions.) PyYAML's ideas of what a plain scalar
means are those of YAML 1.1 and are not used: here the core schema of YAML 1.2 holds. What readers of
1.1 and 1.2 take for different things is a finding, not a choice: ``yes``, ``010``, ``1_000``, ``12:30``,
``2026-11-01``. (``1e3`` is a number here as in 1.2.)

Refused besides: a second document, directives, tags, anchors and aliases, keys that are no text or stand
twice, NaN and infinities, more than ``DEPTH`` levels or ``NODES`` values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from workbench_contract.findings import Finding
from workbench_planning.text import finding, shortened, text_of

#: Levels of lists and mappings within each other.
DEPTH = 16
#: Values of a file, keys counted.
NODES = 20_000
#: The longest number; what is longer was not measured by anybody.
NUMBER_CHARS = 40

#: From the document's root: keys and indexes.
Path = tuple[str | int, ...]

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {word: word.lower() == "true" for word in "true True TRUE false False FALSE".split()}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
#: Plain scalars that one reader takes for text and another for something else, and for what.
_AMBIGUOUS = (
    (re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"), "true, false, or text in quotes"),
    (
        re.compile(r"[-+]?0[0-9_]+(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"),
        "a number without leading zeros, or text in quotes",
    ),
    (re.compile(r"[-+]?0[xob][0-9a-fA-F_]+"), "a decimal number, or text in quotes"),
    (
        re.compile(r"[-+]?\.?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"),
        "a number without underscores, or text in quotes",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"),
        "a number, or text in quotes",
    ),
    (
        re.compile(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
            r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
            r"(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
        ),
        "a date in quotes",
    ),
)
#: What an escape can write and nobody can see: of control characters only tab and line feed are text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: A key as it stands in a path; others stand there as Python writes them.
_KEY = re.compile(r"[\w?-]{1,60}")
#: Line ends to YAML 1.1 and characters to 1.2.
_OTHER_LINE_ENDS = re.compile("[\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says, and where.

    Attributes:
        value: mappings, lists, text, numbers, booleans and none; numbers are int or finite float.
        lines: from the path of a value to its line, from 1.
    """

    value: Any
    lines: dict[Path, int] = field(repr=False)

    def where(self, path: Path) -> str:
        """A path as a finding names it, with the line of the nearest value that is there."""
        known = next(
            (
                self.lines[path[:end]]
                for end in range(len(path), -1, -1)
                if path[:end] in self.lines
            ),
            1,
        )
        return f"{dotted(path)} (line {known})" if path else f"line {known}"


def dotted(path: Path) -> str:
    """``forbid_zones[2].min_mm`` for the keys and indexes of a path."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{shortened(step)}]"
    return text if len(text) <= 120 else f"{text[:117]}..."


def read_yaml(
    data: bytes, *, file: str, with_gaps: bool = False
) -> tuple[Document | None, list[Finding]]:
    """A file of one YAML document.

    Args:
        data: the whole file.
        file: its name, for findings.
        with_gaps: give the document beside findings about scalars alone; nothing stands in their places.
    """
    text, findings = text_of(data, file=file)
    if text is None:
        return None, findings
    return read_text(text, file=file, with_gaps=with_gaps)


def read_text(
    text: str, *, file: str, first_line: int = 1, with_gaps: bool = False
) -> tuple[Document | None, list[Finding]]:
    """One YAML document that stands in a file from ``first_line`` on."""
    reading = _Reading(file, first_line)
    if other := _OTHER_LINE_ENDS.search(text):
        line = text.count("\n", 0, other.start())
        found = f"U+{ord(other[0]):04X}, a line end to some readers only"
        reading.note(line, found, "no such character")
        return None, reading.findings
    try:
        value = reading.stream(yaml.parse(text, Loader=yaml.CSafeLoader))
    except _Stop:
        return None, reading.findings
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "what is no YAML"
        reading.note(mark.line if mark else 0, f"what cannot be read: {said}", "YAML")
        return None, reading.findings
    except yaml.YAMLError as error:
        # The parser's own reader: a character that YAML does not have.
        offset = getattr(error, "position", 0)
        line = text.encode()[:offset].count(b"\n")
        found = f"what cannot be read: {getattr(error, 'reason', 'a character')}"
        reading.note(line, found, "printable characters alone")
        return None, reading.findings
    if len(reading.findings) > (reading.gaps if with_gaps else 0):
        return None, reading.findings
    return Document(value=value, lines=reading.lines), reading.findings


class _Stop(Exception):
    """Nothing that follows can be read."""


class _Reading:
    """From the parser's events to values; ambiguous values are noted and reading goes on."""

    def __init__(self, file: str, first_line: int) -> None:
        self.file = file
        self.first_line = first_line
        self.findings: list[Finding] = []
        self.lines: dict[Path, int] = {}
        self.nodes = 0
        self.gaps = 0

    def note(self, line: int, found: str, expected: str, *, path: Path = ()) -> None:
        """Remember a finding; ``line`` counts from 0, as the parser's marks do."""
        at = f"line {line + self.first_line}"
        where = f"{dotted(path)} ({at})" if path else at
        self.findings.append(finding(self.file, where, found, expected))

    def stream(self, events: Iterator[Any]) -> Any:
        """The one document of a stream."""
        value = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                line = _line(event)
                if documents > 1:
                    self.note(line, "a second document", "one document alone")
                    raise _Stop
                if event.version or event.tags:
                    self.note(line, "a directive (%YAML or %TAG)", "none: leave it out")
                value = self.node(next(events), events, ())
        return value

    def node(self, event: Any, events: Iterator[Any], path: Path) -> Any:
        """The value that begins with an event."""
        line = _line(event)
        self.nodes += 1
        if self.nodes > NODES:
            self.note(line, f"more than {NODES} values", "fewer of them", path=path)
            raise _Stop
        if len(path) > DEPTH:
            self.note(line, f"more than {DEPTH} levels of lists and mappings", "fewer of them")
            raise _Stop
        # Simple keys come with the path of their mapping, whose line is known by then.
        self.lines.setdefault(path, line + self.first_line)
        if isinstance(event, yaml.AliasEvent):
            found = f"an alias, *{shortened(event.anchor)[1:-1]}"
            self.note(line, found, "the value itself, written out", path=path)
            return None
        if event.anchor is not None:
            found = f"an anchor, &{shortened(event.anchor)[1:-1]}"
            self.note(line, found, "none: leave it out", path=path)
        if event.tag is not None:
            found = f"a tag, {shortened(event.tag)}"
            self.note(line, found, "none: leave it out", path=path)
        if isinstance(event, yaml.ScalarEvent):
            if control := _CONTROL.search(event.value):
                found = f"the character U+{ord(control[0]):04X}"
                self.note(line, found, "text without control characters", path=path)
                return None
            return event.value if event.style else self.plain(event.value, line, path)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self.node(event, events, (*path, len(items))))
            return items
        return self.mapping(events, path)

    def mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        """The pairs of a mapping; of a key that stands twice the first is kept."""
        pairs: dict[str, Any] = {}
        first: dict[str, int] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            line = _line(event)
            before = len(self.findings)
            simple = isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent))
            key = self.node(event, events, path if simple else (*path, "?"))
            if not isinstance(key, str):
                if len(self.findings) == before:
                    found = f"the key {shortened(key)}"
                    self.note(line, found, "a key that is text", path=path)
                self.node(next(events), events, (*path, "?"))
                continue
            at = (*path, key)
            value = self.node(next(events), events, at)
            if key in pairs:
                found = f"the key a second time; it stands in line {first[key]}"
                self.note(line, found, "each key once", path=at)
                continue
            first[key] = line + self.first_line
            # A value may begin below its key; who looks for it looks for the key.
            self.lines[at] = line + self.first_line
            pairs[key] = value
        return pairs

    def gap(self, line: int, found: str, expected: str, path: Path) -> None:
        """Remember a scalar that stands for nothing."""
        self.note(line, found, expected, path=path)
        self.gaps += 1

    def plain(self, text: str, line: int, path: Path) -> Any:
        """What a scalar without quotes means."""
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _NOT_FINITE.fullmatch(text):
            self.gap(line, text, "a finite number", path)
            return None
        if len(text) > NUMBER_CHARS:
            if _numeric(text):
                found = f"a number of {len(text)} characters"
                self.gap(line, found, f"at most {NUMBER_CHARS} characters", path)
                return None
            return text
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            if math.isfinite(number := float(text)):
                return number
            self.gap(line, f"{text}, a number too large", "a finite number", path)
            return None
        for pattern, instead in _AMBIGUOUS:
            if pattern.fullmatch(text):
                found = f"{text}, which readers of YAML understand in two ways"
                self.gap(line, found, instead, path)
                return None
        return text


def _line(event: Any) -> int:
    """Where an event begins, from 0."""
    return int(event.start_mark.line)


def _numeric(text: str) -> bool:
    """Whether a long text is made of what numbers are made of."""
    return set(text) <= set("0123456789+-.eE_") and not set(text).isdisjoint("0123456789")
