"""A page with blocks that are written from what is declared: found, written, held.

<!-- written by `harness docs`: suite.toml -->

…

<!-- to here -->

What stands outside of such marks is written by hand and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.base.reading import did_you_mean, read_text

__all__ = ["END", "Blocks", "begin", "blocks_in", "page_text"]

END: Final = "<!-- to here -->"

_BEGIN: Final = re.compile(r"(?m)^<!-- written by `harness docs`: (.+) -->$")

#: What a block is called → what stands in it.
Blocks = Mapping[str, Callable[[], str]]


def begin(name: str) -> str:
    """The mark at which a block begins."""
    return f"<!-- written by `harness docs`: {name} -->"


def blocks_in(text: str) -> list[str]:
    """What the blocks of a page are called."""
    return _BEGIN.findall(text)


def page_text(path: Path, blocks: Blocks) -> str:
    """A page as it must be.

    Args:
        path: the file.
        blocks: all that there are.

    Raises:
        BadInput: a mark names no block, or a block has no end.
    """
    text = read_text(path, expected="a page")
    parts = _BEGIN.split(text)
    written = [parts[0]]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        _, ended, after = body.partition(END)
        if not ended:
            raise BadInput(path, key=begin(name), found="no end", expected=END)
        if name not in blocks:
            raise BadInput(
                path,
                key=begin(name),
                found=name,
                expected=f"one of {', '.join(blocks)}",
                next_step=did_you_mean(name, blocks),
            )
        written.append(f"{begin(name)}\n\n{blocks[name]()}\n{END}{after}")
    return "".join(written)
