"""The ``harness`` command as a page: every subcommand with its arguments, options and defaults.

Written from what is declared, not from what ``--help`` prints: that depends on the terminal, and on
the releases of click and Python.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from harness_core.front.pages import markdown, table

__all__ = ["commands_here", "commands_text"]

_HEADS: Final = ("option", "default", "meaning")


def commands_text(cli: click.Group) -> str:
    """A section for each command, in the order of their names.

    Args:
        cli: the whole command tree.
    """
    return "\n".join(_sections(cli, click.Context(cli, info_name="harness")))


def commands_here() -> str:
    """The same of the command line that is running."""
    whole = click.get_current_context().find_root().command
    assert isinstance(whole, click.Group)
    return commands_text(whole)


def _sections(group: click.Group, parent: click.Context) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        context = click.Context(command, info_name=name, parent=parent)
        path = context.command_path
        yield f"## {path}\n"
        yield f"```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        yield markdown(inspect.cleandoc(command.help or "").replace("\b\n", "")) + "\n"
        options = [each for each in command.params if isinstance(each, click.Option)]
        rows = [_row(each) for each in options if not each.hidden]
        rows += _FORWARDED[path]() if path in _FORWARDED else []
        if rows:
            yield table(_HEADS, rows)
        if isinstance(command, click.Group):
            yield from _sections(command, context)


def _row(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag or option.count else f" {option.metavar or _value(option.type)}"
    default = option.default
    known = isinstance(default, str | int | float | Path) and default and not option.is_flag
    meaning = option.help or ""
    if option.multiple and "repeatable" not in meaning:
        meaning += " Repeatable."
    return f"`{names}{value}`", "required" if option.required else _code(default, known), meaning


def _value(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return kind.name.split()[0].upper()


def _code(value: object, known: object) -> str:
    return f"`{value}`" if known else ""


def _gateway() -> list[tuple[str, str, str]]:
    """The command hands its words to a process that reads them by argparse."""
    from harness_core.doubles.model import gateway_parser

    return [
        _forwarded(action)
        for action in gateway_parser()._actions  # noqa: SLF001 - argparse has no other list
        if "--help" not in action.option_strings
    ]


def _forwarded(action: argparse.Action) -> tuple[str, str, str]:
    names = ", ".join(action.option_strings)
    choices = "|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
    default = action.default
    said = (action.help or "").replace(" (default: %(default)s)", "")
    return f"`{names}{value}`", _code(default, default), said


#: Command → the rows of the options that it hands on.
_FORWARDED: Final[Mapping[str, Callable[[], list[tuple[str, str, str]]]]] = {
    "harness gateway": _gateway
}
