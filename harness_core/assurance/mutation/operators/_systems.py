"""What systems of several processes get wrong: errors, locks, transactions, retries, clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import libcst as cst

from harness_core.assurance.mutation.operators._change import (
    Change,
    Site,
    keyword_of,
    name_of,
    names_of,
    operator,
    without,
)

_LOCK: Final = re.compile(r"lock|mutex|semaphore|limiter|alone|exclusive", re.IGNORECASE)
_TRANSACTION: Final = re.compile(r"transaction|begin|savepoint|atomic", re.IGNORECASE)
_ATTEMPTS: Final = re.compile(r"attempts?|retr(y|ies)|tries", re.IGNORECASE)

#: The first argument is seconds.
_LIMITS: Final = frozenset({"move_on_after", "fail_after", "timeout", "settimeout", "alarm"})
#: The second one is.
_WAITS: Final = frozenset({"wait_for"})


@operator("error-swallowed", cst.ExceptHandler)
def swallowed(node: cst.ExceptHandler, site: Site) -> Iterator[Change]:
    """A caught error has no consequence."""
    yield from _emptied(node.body, site, "a caught error is swallowed")


@operator("handler-narrowed", cst.ExceptHandler)
def narrowed(node: cst.ExceptHandler, site: Site) -> Iterator[Change]:
    """An error is not caught any more."""
    kinds = node.type
    if isinstance(kinds, cst.Tuple):
        for place, element in enumerate(kinds.elements):
            rest = [each for number, each in enumerate(kinds.elements) if number != place]
            text = "".join(f"{site.text(each.value)}, " for each in rest)
            yield _type_as(node, f"({text.strip()})", site, site.text(element.value))
    elif kinds is not None:
        yield _type_as(node, "()", site, site.text(kinds))


def _type_as(node: cst.ExceptHandler, text: str, site: Site, lost: str) -> Change:
    kinds = node.type
    assert kinds is not None, "a handler of everything has no type"
    start, end = site.start(kinds), site.end(kinds)
    if isinstance(kinds, cst.Tuple) and not kinds.lpar:
        return Change(start, end, text, f"{lost} is not caught")
    if isinstance(kinds, cst.Tuple):  # its parentheses are not part of its span
        text = text[1:-1] or ""
    return Change(start, end, text, f"{lost} is not caught")


@operator("finally-skipped", cst.Finally)
def finallies(node: cst.Finally, site: Site) -> Iterator[Change]:
    """What must happen in any case does not."""
    yield from _emptied(node.body, site, "finally is skipped")


@operator("lock-narrowed", cst.With)
def locks(node: cst.With, site: Site) -> Iterator[Change]:
    """The lock is taken and given back before what it is for."""
    if any(map(_LOCK.search, _items(node))) and all(item.asname is None for item in node.items):
        start, end = site.header(node, node.body)
        header = site.between(start, end)
        text = f"{header} pass\n{site.indent(start)}if True:"
        yield Change(start, end, text, "the lock is given back before what it is for")


@operator("transaction-left-out", cst.With)
def transactions(node: cst.With, site: Site) -> Iterator[Change]:
    """What belongs together is not done together."""
    if any(map(_TRANSACTION.search, _items(node))) and all(
        item.asname is None for item in node.items
    ):
        start, end = site.header(node, node.body)
        yield Change(start, end, "if True:", "there is no transaction")


@operator("retry-doubled", cst.For)
def retries(node: cst.For, site: Site) -> Iterator[Change]:
    """Twice as many attempts."""
    is_range = isinstance(node.iter, cst.Call) and name_of(node.iter) == "range"
    if is_range and isinstance(node.iter, cst.Call) and _ATTEMPTS.search(site.text(node.target)):
        last = node.iter.args[min(1, len(node.iter.args) - 1)].value
        yield site.replaced(last, f"({site.text(last)}) * 2", "twice as many attempts")


@operator("retry-doubled", cst.Assign, cst.AnnAssign)
def attempts(node: cst.Assign | cst.AnnAssign, site: Site) -> Iterator[Change]:
    """The same where their number has a name."""
    target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
    value = node.value
    if isinstance(value, cst.Integer) and _ATTEMPTS.search(site.text(target)):
        number = str(value.evaluated_value * 2 or 1)
        yield site.replaced(value, number, "twice as many attempts")


@operator("timeout-removed", cst.Call)
def timeouts(node: cst.Call, site: Site) -> Iterator[Change]:
    """It waits for ever."""
    name = name_of(node)
    endless = {"settimeout": "None", "timeout": "None", "alarm": "0"}.get(name, 'float("inf")')
    if name in _LIMITS and node.args and not keyword_of(node.args[0]):
        yield site.replaced(node.args[0].value, endless, "there is no time limit")
    if name in _WAITS and len(node.args) > 1 and not keyword_of(node.args[1]):
        yield site.replaced(node.args[1].value, "None", "there is no time limit")
    for argument in node.args:
        if keyword_of(argument) in {"timeout", "timeout_s"} and name_of(argument.value) != "None":
            yield site.replaced(argument.value, "None", "there is no time limit")


@operator("timezone-dropped", cst.Call)
def timezones(node: cst.Call, site: Site) -> Iterator[Change]:
    """A time of no zone."""
    name = name_of(node)
    if name in {"now", "fromtimestamp"} and "datetime" in names_of(node):
        zone = len(node.args) - 1
        if zone >= (1 if name == "fromtimestamp" else 0):
            yield without(node, zone, site, "the time has no zone")
        return
    if name == "astimezone" and isinstance(node.func, cst.Attribute):
        at = site.end(node.func.value)
        if site.source[at : at + 1] == b".":
            yield Change(at, site.end(node), "", "the time stays in its zone")
    for place, argument in enumerate(node.args):
        if keyword_of(argument) in {"tz", "tzinfo"}:
            yield without(node, place, site, "the time has no zone")


@operator("sort-reversed", cst.Call)
def sorts(node: cst.Call, site: Site) -> Iterator[Change]:
    """The other way round."""
    name = name_of(node)
    if name == "reversed" and isinstance(node.func, cst.Name) and node.args:
        yield site.replaced(node, f"list({site.text(node.args[0].value)})", "it is not reversed")
    if name not in {"sorted", "sort"}:
        return
    for place, argument in enumerate(node.args):
        if keyword_of(argument) == "reverse":
            yield without(node, place, site, "the order is the other way round")
            return
    end = site.end(node) - 1
    comma = ", " if node.args else ""
    if node.args and site.between(site.end(node.args[-1]), end).strip() == ",":
        comma = " "
    yield Change(end, end, f"{comma}reverse=True", "the order is the other way round")


@operator("deadline-removed", cst.With)
def deadlines(node: cst.With, site: Site) -> Iterator[Change]:
    """A deadline or a scope around something is not there."""
    names = {name_of(item.item) for item in node.items}
    if names & _LIMITS and all(item.asname is None for item in node.items):
        start, end = site.header(node, node.body)
        yield Change(start, end, "if True:", "there is no deadline around it")


def _items(node: cst.With) -> list[str]:
    return [name for item in node.items for name in names_of(item.item)]


def _emptied(body: cst.BaseSuite, site: Site, what: str) -> Iterator[Change]:
    if not isinstance(body, cst.IndentedBlock):
        return
    first, last = body.body[0], body.body[-1]
    text = site.between(site.start(first), site.end(last))
    if text.strip() not in {"pass", "...", "raise"}:
        yield Change(site.start(first), site.end(last), "pass", what)
