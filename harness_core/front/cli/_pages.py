"""``harness docs``: the pages that are written from what the code declares."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness_core.front.cli._tree import root_option


@click.command()
@root_option
def docs(root: Path) -> None:
    """Write the blocks of docs/**/*.md that are declared elsewhere: keys, commands, fixtures.

    A block stands between two marks; what is written by hand, outside of them, stays.
    """
    from harness_core.front.cli._commands import commands_here
    from harness_core.front.pages import pages_of

    for path, text in pages_of(root, {"commands": commands_here}).items():
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            click.echo(f"wrote {os.path.relpath(path)}")
