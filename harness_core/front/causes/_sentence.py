"""What a failed test says, without the code around it."""

from __future__ import annotations

import re
from typing import Any, Final

#: Of an error that says all in its text.
_KIND: Final = re.compile(r"^(?:AssertionError|Failed|(?:harness_core|suites)\.[\w.]+):[ \n]")

#: A line of what pytest shows of an error, in a report of which nothing else is left.
_SHOWN_ERROR: Final = re.compile(r"^E +(.*)$", re.MULTILINE)

#: Of a sentence: what is cut in the middle of a value is not compared with others any more.
_KEPT: Final = 4000


def said(report: Any) -> str:
    """The whole message of a failed report, of a test or of a collection, without its kind."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    if crash is None and (errors := _SHOWN_ERROR.findall(text)):
        text = "\n".join(errors[-1:])  # the error itself comes last, below the line it is about
    return without_kind(text)


def without_kind(message: str) -> str:
    """A message without the kind of an error that says all in its text."""
    return _KIND.sub("", message.strip()) or message


def first_line(report: Any) -> str:
    """The first line of it that is more than a word."""
    lines = [line.strip() for line in said(report).splitlines() if line.strip()]
    found = next((line for line in lines if " " in line), lines[0] if lines else "it says nothing")
    return found[:_KEPT]
