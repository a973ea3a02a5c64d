"""A change of one place, the place as an operator sees it, and the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import libcst as cst
from libcst.metadata import CodeSpan


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of a file that something else takes the place of.

    Attributes:
        start, end: of the piece, in bytes.
        text: what takes its place.
        what: what is wrong then, in a few words.
    """

    start: int
    end: int
    text: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A node with what is around it.

    Attributes:
        source: the file.
        spans: where each node is.
        parents: of the node, the nearest first.
        required: by the name of a function or class, the arguments it cannot do without.
    """

    source: bytes
    spans: Mapping[cst.CSTNode, CodeSpan]
    parents: Sequence[cst.CSTNode]
    required: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def parent(self) -> cst.CSTNode:
        """The node around it."""
        return self.parents[0]

    def start(self, node: cst.CSTNode) -> int:
        """Where a node begins, without the parentheses around it."""
        return self.spans[node].start

    def end(self, node: cst.CSTNode) -> int:
        """Where it ends."""
        span = self.spans[node]
        return span.start + span.length

    def text(self, node: cst.CSTNode) -> str:
        """Its source."""
        return self.between(self.start(node), self.end(node))

    def between(self, start: int, end: int) -> str:
        """The source from one byte to another."""
        return self.source[start:end].decode()

    def line(self, place: int) -> int:
        """The number of the line that a byte is in, from 1."""
        return self.source.count(b"\n", 0, place) + 1

    def indent(self, place: int) -> str:
        """The white space that the line of a byte begins with."""
        begin = self.source.rfind(b"\n", 0, place) + 1
        line = self.source[begin:place].decode()
        return line[: len(line) - len(line.lstrip())]

    def replaced(self, node: cst.CSTNode, text: str, what: str) -> Change:
        """The change that puts a text in the place of a node."""
        return Change(self.start(node), self.end(node), text, what)

    def header(self, node: cst.CSTNode, body: cst.BaseSuite) -> tuple[int, int]:
        """From the first byte of a compound statement to its colon, which is included."""
        first = self.start(body)
        return self.start(node), self.source.rindex(b":", self.start(node), max(first, 0) + 1) + 1


N = TypeVar("N", bound=cst.CSTNode)

#: Finds the changes that one operator makes of one node.
Operator: TypeAlias = Callable[[Any, Site], Iterator[Change]]

#: By the kind of node, the operators for it, with their names.
OPERATORS: Final[dict[type[cst.CSTNode], list[tuple[str, Operator]]]] = {}


def operator(name: str, *kinds: type[cst.CSTNode]) -> Callable[[Operator], Operator]:
    """Enter a function in the table.

    Args:
        name: of the operator; part of the ids of its mutants.
        kinds: the nodes that it is shown.
    """

    def enter(function: Operator) -> Operator:
        for kind in kinds:
            OPERATORS.setdefault(kind, []).append((name, function))
        return function

    return enter


def name_of(node: cst.CSTNode) -> str:
    """The last name of what is called or read: ``execute`` of ``self.db.execute``; empty for none."""
    if isinstance(node, cst.Call):
        return name_of(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def names_of(node: cst.CSTNode) -> list[str]:
    """All of them, the last first: ``execute``, ``db``, ``self``."""
    if isinstance(node, cst.Call):
        return names_of(node.func)
    if isinstance(node, cst.Attribute):
        return [node.attr.value, *names_of(node.value)]
    return [node.value] if isinstance(node, cst.Name) else []


def keyword_of(argument: cst.Arg) -> str:
    """The keyword of an argument; empty for a positional one."""
    return argument.keyword.value if argument.keyword is not None else ""


def without(call: cst.Call, dropped: int, site: Site, what: str) -> Change:
    """The call without one of its arguments."""
    arguments = call.args
    if dropped + 1 < len(arguments):
        start, end = site.start(arguments[dropped]), site.start(arguments[dropped + 1])
    elif dropped:
        start, end = site.end(arguments[dropped - 1]), site.end(arguments[dropped])
        # A span does not say whether the comma is in it.
        between = site.between(start, site.start(arguments[dropped]))
        if "," not in between:
            return Change(site.start(arguments[dropped]), end, "", what)
    else:
        start, end = site.start(arguments[0]), site.end(arguments[0])
        trailing = site.source[end : end + 1]
        end += 1 if trailing == b"," else 0
    return Change(start, end, "", what)
