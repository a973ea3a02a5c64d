"""What does a shell make of this text? Asked of a real parser, `shfmt` (mvdan.cc/sh).

Its tree has a named node for everything Bash can write; the dispatcher refuses a node that it has
no rule for, so an unforeseen construct is refused as well.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio

from sexpd.shell.verdict import Refused

PARSE_S = 5.0
Node = dict[str, Any]

# Every key of a node that the dispatcher looks at, refuses, or may leave out of account. A later
# parser may say with a new key what must not be overheard, so a tree with another one is refused.
_KEYS = frozenset(
    """All Append Args Array Assigns Background Backquotes Body Bracket Case Cmd Comments Cond Coproc
    Do Dollar Else Esac Excl Exp Exprs Hash Hdoc In Index Items Lbrace Left Length Let Loop Lparen N
    Naked Name Negated Op Orig Param Parens Parts Paren Pattern Patterns Position PosixFormat Post
    Rbrace Redirs Repl Right Rparen RsrvWord Select Semicolon Short Slice Stmt Stmts Text Then Time
    Type Until Value Variant With Word X Y
    Col End Line Offset Pos ValueEnd""".split()
)


def parser() -> str | None:
    """The path of the parser's binary, which is installed beside this interpreter."""
    beside = Path(sys.executable).parent / "shfmt"
    return str(beside) if beside.is_file() else shutil.which("shfmt")


async def parse(command: str, *, limit_chars: int, dialect: str = "bash") -> Node:
    """The tree of a command.

    Args:
        command: the text.
        limit_chars: the longest text that is looked at.
        dialect: "bash" or "posix".

    Raises:
        Refused: it has none, or finding out would cost too much.
    """
    if len(command) > limit_chars:
        raise Refused(f"it has {len(command)} characters, the limit is {limit_chars}")
    for char in command:
        if not (char.isprintable() or char in "\n\t"):
            raise Refused(f"it has the control character {char!r}, which shells read differently")
    binary = parser()
    if binary is None:
        raise Refused("the shell parser is not installed, so nothing can be judged")
    try:
        with trio.move_on_after(PARSE_S) as scope:
            done = await trio.run_process(
                [binary, f"-ln={dialect}", "--to-json"],
                stdin=command.encode("utf-8", errors="replace"),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env={},
            )
    except OSError as error:
        raise Refused(f"the shell parser cannot be started: {error}") from error
    if scope.cancelled_caught:
        raise Refused(f"the shell parser took longer than {PARSE_S:g} s")
    return _tree(done)


def _tree(done: subprocess.CompletedProcess[bytes]) -> Node:
    if done.returncode:
        errors = done.stderr.decode("utf-8", errors="replace").strip().replace("<standard input>:", "")
        raise Refused(f"it cannot be parsed: {errors[:300]}")
    try:
        tree = json.loads(done.stdout)
    except (ValueError, RecursionError) as error:
        raise Refused("it is nested too deeply to be judged") from error
    if not isinstance(tree, dict) or tree.get("Type") != "File":
        raise Refused("the shell parser answered something else than a tree")
    for node in nodes(tree):
        for key in node.keys() - _KEYS:
            if not key.endswith("Pos"):
                raise Refused(f"its tree says {key}, for which there is no rule")
    return tree


def nodes(tree: Any) -> list[Node]:
    """Every node of a tree, in no order."""
    found: list[Node] = []
    todo = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            found.append(item)
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return found
