"""What no operator is shown: what no test of a system could notice, and switches of planted faults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import libcst as cst

from harness_core.assurance.mutation.operators._change import name_of, names_of

#: Modules, loggers and functions by which a product writes its log.
_LOGS: Final = re.compile(r"_*(log|logger|logging)", re.IGNORECASE)

_DUNDERS: Final = frozenset({"__all__", "__slots__", "__version__", "__author__"})

#: A variable that switches planted faults on, as reference systems have it.
_SWITCH: Final = re.compile(r"[\"'][A-Z][A-Z0-9_]*_FAULTS?[\"']")

_KINDS: Final = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Assert)
_TEXTS: Final = (cst.SimpleString, cst.ConcatenatedString)


def is_fault_module(source: str) -> bool:
    """Whether a file is the one that reads the switch of planted faults."""
    return re.search(rf"^\w+(: \w+)? = {_SWITCH.pattern}$", source, re.MULTILINE) is not None


@dataclass(frozen=True, slots=True)
class Never:
    """The rule for one product.

    Attributes:
        switches: names by which its files know the module of planted faults.
    """

    switches: frozenset[str] = frozenset()

    def skips(self, node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
        """Whether a node and all that is in it is left as it is."""
        if isinstance(node, _KINDS):
            return True
        if isinstance(node, cst.Expr):
            value = node.value
            return isinstance(value, _TEXTS) or self._is_log(value) or self.is_switch(value)
        if isinstance(node, cst.Assign):
            named = any(name_of(target.target) in _DUNDERS for target in node.targets)
            return named or self._lists_faults(node.value)
        if isinstance(node, cst.If):
            return _is_guard(node.test)
        if isinstance(node, cst.Call | cst.UnaryOperation | cst.BooleanOperation):
            return self._is_log(node) or self.value_of(node) is not None
        return self._is_planted(node, parent)

    def _is_planted(self, node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
        """Whether it runs under a planted fault alone."""
        if not isinstance(parent, cst.If | cst.IfExp):
            return False
        value = self.value_of(parent.test)
        return value is not None and node is (parent.orelse if value else parent.body)

    def is_decided(self, node: cst.CSTNode) -> bool:
        """Whether it branches on nothing but planted faults; what is in its branches may be changed."""
        return isinstance(node, cst.If | cst.IfExp) and self.value_of(node.test) is not None

    def is_switch(self, node: cst.CSTNode) -> bool:
        """Whether it asks if a fault is planted."""
        return isinstance(node, cst.Call) and bool(self.switches.intersection(names_of(node)))

    def _lists_faults(self, node: cst.CSTNode) -> bool:
        """Whether it goes through the planted faults, e.g. to sort their names."""
        if isinstance(node, cst.CompFor) and self.is_switch(node.iter):
            return True
        return any(map(self._lists_faults, node.children))

    def value_of(self, test: cst.BaseExpression) -> bool | None:
        """What a condition is when no fault is planted; ``None`` when that does not decide it."""
        if self.is_switch(test):
            return False
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            value = self.value_of(test.expression)
            return None if value is None else not value
        if isinstance(test, cst.BooleanOperation):
            decides = isinstance(test.operator, cst.Or)
            values = [self.value_of(test.left), self.value_of(test.right)]
            if decides in values:
                return decides
            return None if None in values else not decides
        return None

    @staticmethod
    def _is_log(node: cst.CSTNode) -> bool:
        call = node.expression if isinstance(node, cst.Await) else node
        return isinstance(call, cst.Call) and any(map(_LOGS.fullmatch, names_of(call)))


def _is_guard(test: cst.BaseExpression) -> bool:
    """``TYPE_CHECKING``, or ``__name__ == "__main__"``."""
    if isinstance(test, cst.Comparison):
        return name_of(test.left) == "__name__"
    return name_of(test) == "TYPE_CHECKING"
