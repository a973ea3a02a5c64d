"""What is left out, returned otherwise, or done in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from harness_core.assurance.mutation.operators._change import Change, Site, name_of, operator

#: What makes something last.
_COMMITS: Final = frozenset({"commit", "fsync", "flush", "sync", "savepoint"})


@operator("commit-left-out", cst.Expr)
def commits(node: cst.Expr, site: Site) -> Iterator[Change]:
    """What was done is not made to last."""
    if called_of(node) in _COMMITS:
        yield site.replaced(node, "pass", f"{called_of(node)}() left out")


@operator("statement-removed", cst.Expr)
def calls(node: cst.Expr, site: Site) -> Iterator[Change]:
    """A call for its effect is left out."""
    call = node.value.expression if isinstance(node.value, cst.Await) else node.value
    if isinstance(call, cst.Call) and called_of(node) not in _COMMITS:
        yield site.replaced(node, "pass", f"{called_of(node) or 'the call'}() left out")


@operator("statement-removed", cst.Assign, cst.AnnAssign, cst.AugAssign)
def assignments(node: cst.Assign | cst.AnnAssign | cst.AugAssign, site: Site) -> Iterator[Change]:
    """What is kept for later is not; a local name would be missed at once."""
    targets = (
        [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
    )
    if isinstance(node, cst.AnnAssign) and (node.value is None or _in_init(site)):
        return
    if isinstance(node, cst.Assign) and _in_init(site):
        return
    if isinstance(node, cst.AugAssign) or all(
        isinstance(target, cst.Attribute | cst.Subscript) for target in targets
    ):
        yield site.replaced(node, "pass", f"{site.text(targets[0])} is not set")


@operator("check-left-out", cst.Raise)
def raises(node: cst.Raise, site: Site) -> Iterator[Change]:
    """What was refused is accepted."""
    yield site.replaced(node, "pass", "the error is not raised")


@operator("statement-removed", cst.Continue, cst.Break, cst.Del)
def jumps(node: cst.Continue | cst.Break | cst.Del, site: Site) -> Iterator[Change]:
    """It goes on where it would not."""
    yield site.replaced(node, "pass", f"{site.text(node)} left out")


@operator("return-value", cst.Return)
def returned(node: cst.Return, site: Site) -> Iterator[Change]:
    """Nothing comes back."""
    if node.value is None or name_of(node.value) in {"None", "True", "False"}:
        return
    start = site.start(node) + len(b"return")
    yield Change(start, _line_end(node, site), " None", "None is returned")


@operator("order-swapped", cst.SimpleStatementLine)
def ordered(node: cst.SimpleStatementLine, site: Site) -> Iterator[Change]:
    """What is awaited is done after what follows it."""
    block = site.parent
    if not isinstance(block, cst.IndentedBlock) or not _is_call(node):
        return
    place = block.body.index(node)
    if place + 1 >= len(block.body):
        return
    following = block.body[place + 1]
    if not isinstance(following, cst.SimpleStatementLine) or not _is_call(following):
        return
    one, two = site.text(node), site.text(following)
    awaited = isinstance(node.body[0], cst.Expr) and isinstance(node.body[0].value, cst.Await)
    if awaited and one != two:
        between = site.between(site.end(node), site.start(following))
        yield Change(
            site.start(node),
            site.end(following),
            f"{two}{between}{one}",
            f"{called_of(node.body[0])}() is done after {called_of(following.body[0])}()",
        )


def called_of(node: cst.CSTNode) -> str:
    """The name of what a statement calls, awaited or not; empty for none."""
    if not isinstance(node, cst.Expr):
        return ""
    call = node.value.expression if isinstance(node.value, cst.Await) else node.value
    return name_of(call) if isinstance(call, cst.Call) else ""


def _is_call(line: cst.SimpleStatementLine) -> bool:
    return len(line.body) == 1 and bool(called_of(line.body[0]))


def _in_init(site: Site) -> bool:
    """Without what a constructor sets, the first use of the object ends in an AttributeError."""
    for node in site.parents:
        if isinstance(node, cst.FunctionDef):
            return node.name.value in {"__init__", "__post_init__", "__new__"}
    return False


def _line_end(node: cst.Return, site: Site) -> int:
    """The end of a return, with the parentheses around its value."""
    return site.end(node)
