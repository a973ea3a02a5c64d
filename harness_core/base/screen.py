"""What a command shows to people: tables and progress by rich, plain where there is no terminal.

A terminal gives its width and its colours. A file, a pipe or the log of a CI run gets lines as long
as they are, without control characters. Nothing is read as markup: names and reasons come from
subjects. rich is imported when something is shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    Line: TypeAlias = Text
    Cell: TypeAlias = str | Text
    Shown: TypeAlias = RenderableType

#: Wider than any line: of a table for no terminal nothing is wrapped.
_ENDLESS: Final = 1_000_000

#: A person sees that it lives, and nothing takes time from what is measured.
_FOOT_PER_S: Final = 4


def columns(
    rows: Iterable[Sequence[Cell]], *, heads: Sequence[str] = (), right: Collection[int] = ()
) -> Table:
    """A table without lines.

    Args:
        rows: its cells; one may have several lines.
        heads: of the columns; none when left out.
        right: the numbers of the columns that are set flush right, from 0.
    """
    from rich.table import Table

    table = Table(*heads, box=None, show_header=bool(heads), padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows:
        table.add_row(*map(_text, row))
    for number, column in enumerate(table.columns):
        column.justify = "right" if number in right else "left"
    return table


def stacked(*parts: Shown | str, indent: int = 0) -> Shown:
    """One below the other, ``indent`` columns to the right."""
    from rich.console import Group
    from rich.padding import Padding

    group = Group(*(_text(part) if isinstance(part, str) else part for part in parts))
    return Padding(group, (0, 0, 0, indent), expand=False)


def tinted(text: str, *, good: bool) -> Text:
    """A word that stands out: green or red where there are colours."""
    return _text(text, style="green" if good else "red")


def line(*parts: tuple[str, str]) -> Text:
    """One line that is cut where the terminal ends: texts, each with its style."""
    from rich.text import Text

    made = Text(no_wrap=True, overflow="ellipsis")
    for text, style in parts:
        made.append_text(_text(text, style=style))
    return made


def show(what: Shown, *, err: bool = False) -> None:
    """Print to stdout or stderr: for a terminal as it can, else plain."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        _console(stream).print(what)
    else:
        _write(plain(what), stream)


def plain(what: Shown) -> str:
    """The text of it, with lines as long as they are."""
    lines = StringIO()
    _console(lines, force_terminal=False, no_color=True, width=_ENDLESS).print(what)
    return "\n".join(line.rstrip() for line in lines.getvalue().splitlines())


@contextmanager
def progress(title: str) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """A bar at the foot of the terminal for as long as the block runs; elsewhere nothing but lines.

    Yields:
        What is called with a line that stays, and with how much is done of how much.
    """
    if not sys.stdout.isatty():
        yield lambda line: _write(line, sys.stdout), lambda _done, _of: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description}", markup=False)
    parts = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Once a second: a person reads it, and each refresh takes time from what is measured.
    with Progress(*parts, console=_console(sys.stdout), refresh_per_second=1) as bar:
        task = bar.add_task(title, total=None)
        yield (
            lambda line: bar.console.print(_text(line), soft_wrap=True),
            lambda done, of: bar.update(task, completed=done, total=of),
        )


class Foot:
    """A few lines at the foot of a terminal; what is written goes above them.

    The cursor is never hidden, and the lines are gone once it has stopped: a process that is killed
    leaves them, and nothing that its shell would have to put right.

    Args:
        descriptor: of the terminal; a copy of it is written to, whatever becomes of the descriptor.
        lines: what stands there; asked for a few times a second, from a thread.
    """

    def __init__(self, descriptor: int, lines: Callable[[], Sequence[Text]]) -> None:
        from rich.console import Console, Group
        from rich.live import Live

        class Visible(Console):
            def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002, FBT001, FBT002
                return False

        self._file = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")
        self._console = Visible(file=self._file, markup=False, emoji=False, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=lambda: Group(*lines()),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=_FOOT_PER_S,
        )
        self._rest = ""

    def start(self) -> None:
        """Show it."""
        self._live.start()

    def write(self, text: str) -> None:
        """Print text, with colours as ANSI has them, above it: whole lines, the rest once it is one."""
        from rich.text import Text

        *lines, self._rest = (self._rest + text).split("\n")
        self._rest = self._rest.rpartition("\r")[2]
        for line in lines:
            shown = Text.from_ansi(line.rpartition("\r")[2])
            self._console.print(shown, soft_wrap=True)

    def stop(self) -> None:
        """Take it away; a line that was begun is printed."""
        if self._file.closed:
            return
        if self._rest:
            self.write("\n")
        self._live.stop()
        self._file.close()


def bar(done: int, of: int, *, width: int) -> Text:
    """How much is done, as a line of ``width`` cells."""
    from rich.text import Text

    full = width * min(done, of) // (of or 1)
    return Text().append("━" * full, style="green").append("━" * (width - full), "bright_black")


def _write(text: str, stream: IO[str]) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def _console(stream: IO[str], **settings: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False, **settings)


def _text(cell: Cell, *, style: str = "") -> Text:
    """Text as it is, without what would move a cursor or change a colour."""
    from rich.text import Text

    if isinstance(cell, Text):
        return cell
    shown = "".join(each if each.isprintable() or each == "\n" else " " for each in cell)
    return Text(shown, style=style)
