"""Every change of one file, with where it is and which lines must run for it to matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from harness_core.assurance.mutation.operators._change import (
    OPERATORS,
    Change,
    Site,
    name_of,
)
from harness_core.assurance.mutation.operators._never import Never

#: The function of what stands in none.
MODULE = "<module>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One change of a file.

    Attributes:
        operator: its name.
        function: the qualified name of the function around it; ``<module>`` for none.
        occurrence: which of this operator in this function, from 0.
        change: what is replaced by what.
        line: where it is, from 1.
        first, last: the lines of which one must run for the change to matter.
        at_import: they run when the module is imported.
    """

    operator: str
    function: str
    occurrence: int
    change: Change
    line: int
    first: int
    last: int
    at_import: bool


def walk(
    source: bytes,
    *,
    switches: Iterable[str] = (),
    required: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[Found]:
    """Every change of a file, in the order of its text.

    Args:
        source: the file.
        switches: names of modules whose functions switch planted faults on.
        required: by the name of a function or class, the arguments it cannot do without.

    Raises:
        libcst.ParserSyntaxError: it is no Python.
    """
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    spans = wrapper.resolve(ByteSpanPositionProvider)
    never = Never(frozenset(switches))
    visitor = _Visitor(source, spans, never, required or {})
    wrapper.module.visit(visitor)
    yield from visitor.found


def required_of(sources: Iterable[bytes]) -> dict[str, frozenset[str]]:
    """For each function and class of a product, the arguments that it cannot do without.

    Two of the same name are taken together: a change that any of them cannot bear is not made.
    """
    required: dict[str, set[str]] = {}
    for source in sources:
        for node in _definitions(cst.parse_module(source)):
            if isinstance(node, cst.FunctionDef):
                parameters = (*node.params.params, *node.params.kwonly_params)
                needed = {each.name.value for each in parameters if each.default is None}
            else:
                needed = set(_fields_of(node))
            required.setdefault(node.name.value, set()).update(needed)
    return {name: frozenset(needed) for name, needed in required.items()}


def _definitions(node: cst.CSTNode) -> Iterator[cst.FunctionDef | cst.ClassDef]:
    for child in node.children:
        if isinstance(child, cst.FunctionDef | cst.ClassDef):
            yield child
        if isinstance(child, cst.BaseStatement | cst.BaseSuite):
            yield from _definitions(child)


def _fields_of(node: cst.ClassDef) -> Iterator[str]:
    """Annotated names of a class without a value, and what its constructor needs."""
    for line in node.body.body:
        if isinstance(line, cst.SimpleStatementLine):
            for each in line.body:
                if isinstance(each, cst.AnnAssign) and each.value is None:
                    yield name_of(each.target)
        elif isinstance(line, cst.FunctionDef) and line.name.value == "__init__":
            parameters = (*line.params.params, *line.params.kwonly_params)
            yield from (each.name.value for each in parameters if each.default is None)


class _Visitor(cst.CSTVisitor):
    def __init__(
        self,
        source: bytes,
        spans: Mapping[cst.CSTNode, CodeSpan],
        never: Never,
        required: Mapping[str, frozenset[str]],
    ) -> None:
        super().__init__()
        self.found: list[Found] = []
        self._source = source
        self._spans = spans
        self._never = never
        self._required = required
        self._above: list[cst.CSTNode] = []
        self._counted: Counter[tuple[str, str]] = Counter()
        self._seen: set[tuple[int, int, str]] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        parent = self._above[-1] if self._above else None
        if self._never.skips(node, parent):
            # libcst leaves what it did not enter, too.
            self._above.append(node)
            return False
        site = Site(
            source=self._source,
            spans=self._spans,
            parents=tuple(reversed(self._above)),
            required=self._required,
        )
        operators = () if self._never.is_decided(node) else OPERATORS.get(type(node), ())
        for name, function in operators:
            for change in function(node, site):
                self._take(name, change, node, site)
        self._above.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:  # noqa: ARG002 - libcst's own name
        self._above.pop()

    def _take(self, name: str, change: Change, node: cst.CSTNode, site: Site) -> None:
        key = (change.start, change.end, change.text)
        if key in self._seen or site.between(change.start, change.end) == change.text:
            return
        self._seen.add(key)
        functions = [each for each in site.parents if isinstance(each, cst.FunctionDef)]
        function = self._qualified(site) or MODULE
        first, last = self._lines(node, change, site)
        self.found.append(
            Found(
                operator=name,
                function=function,
                occurrence=self._counted[function, name],
                change=change,
                line=site.line(change.start),
                first=first,
                last=last,
                at_import=not functions,
            )
        )
        self._counted[function, name] += 1

    def _qualified(self, site: Site) -> str:
        kinds = cst.FunctionDef | cst.ClassDef
        return ".".join(
            each.name.value for each in reversed(site.parents) if isinstance(each, kinds)
        )

    def _lines(self, node: cst.CSTNode, change: Change, site: Site) -> tuple[int, int]:
        """A default matters when its function runs; anything else when its statement does."""
        chain = (node, *site.parents)
        for each in chain:
            if isinstance(each, cst.Param | cst.Parameters):
                function = next((up for up in chain if isinstance(up, cst.FunctionDef)), None)
                if function is not None:
                    body = function.body
                    return site.line(site.start(body.body[0])), site.line(site.end(body))
            if isinstance(each, cst.SimpleStatementLine):
                return site.line(site.start(each)), site.line(site.end(each))
            if isinstance(each, cst.BaseCompoundStatement | cst.ExceptHandler):
                break
        return site.line(change.start), site.line(change.end)
