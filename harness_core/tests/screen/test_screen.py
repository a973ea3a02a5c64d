"""What a command shows: to a terminal in its width and colours, to anything else as plain lines."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from harness_core.base.screen import columns, plain, progress, show, stacked, tinted

LONG = "a reason of many words " * 20


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """One of 60 columns."""
    for name, value in {"COLUMNS": "60", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_columns_stand_below_one_another() -> None:
    """Left or flush right as asked, several lines in a cell, nothing at the end of a line."""
    rows = [("a", "7", "one\ntwo"), ("bcd", "11", "")]
    shown = plain(
        stacked("title", stacked(columns(rows, heads=("x", "n", "why"), right=[1]), indent=2))
    )

    assert [
        "title",
        "  x     n  why",
        "  a     7  one",
        "           two",
        "  bcd  11",
    ] == shown.splitlines()


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"])
def test_without_a_terminal_lines_are_plain_and_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """No control characters, no wrapping: in the log of CI, too, which may ask for colours."""
    monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("COLUMNS", "20")
    show(columns([(tinted("failed", good=False), LONG)]))
    show(columns([("on stderr",)]), err=True)
    with progress("work") as (say, count):
        say(LONG)
        count(1, 2)
    said = capsys.readouterr()

    assert [f"failed  {LONG.rstrip()}", LONG] == said.out.splitlines()
    assert "on stderr\n" == said.err


def test_a_terminal_wraps_inside_the_column_and_colours(terminal: Terminal) -> None:
    """What does not fit goes on below, and no character of it is lost."""
    with redirect_stdout(terminal):
        show(columns([(tinted("failed", good=False), LONG)]))
    lines = terminal.getvalue().splitlines()

    assert "\x1b[31mfailed" in lines[0]
    assert all(line.startswith("        ") for line in lines[1:])
    assert LONG.split() == [word for line in lines for word in line.split()][1:]


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/]", ":smile:", "[link=http://a]b[/link]"])
def test_what_a_subject_says_is_no_markup(terminal: Terminal, text: str) -> None:
    """A name with brackets is shown with its brackets."""
    with redirect_stdout(terminal):
        show(stacked(text, columns([(text,)], heads=(text,))))

    assert 3 == terminal.getvalue().count(text)
    assert [text] * 3 == plain(stacked(text, columns([(text,)], heads=(text,)))).splitlines()


def test_what_a_subject_says_moves_no_cursor(terminal: Terminal) -> None:
    """Escapes, returns and bells are left out of a cell."""
    with redirect_stdout(terminal):
        show(columns([("a\x1b[2Jb\rc\x07d",)]))

    assert "a [2Jb c d" == terminal.getvalue().strip()


def test_progress_keeps_its_lines_above_the_bar(terminal: Terminal) -> None:
    """Every line that is said stays; the bar shows how far it is and is gone no later than the block."""
    with redirect_stdout(terminal), progress("work") as (say, count):
        say("[1/2] first: killed")
        count(2, 2)
    shown = terminal.getvalue()

    assert shown.index("[1/2] first: killed") < shown.rindex("work")
    assert "2/2" in shown
    assert shown.rstrip().endswith("\x1b[?25h")
