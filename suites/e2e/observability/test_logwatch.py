"""Which lines count as errors, and whose they are: the rules by which a log fails a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.base.evidence import Redactor
from harness_core.process import OutputLog
from suites.e2e.observe.logs import ErrorLine, blamed, error_lines, leaked_lines, mark_logs

pytestmark = pytest.mark.aside("the suite's own reading of logs; what it finds fails every test")

OWN = "01a1fb5a-4a00-79ac-88eb-d38c783ffc19"
EARLIER = "2d4ba420e2afc9d8bd3a4e0cee5b8bcc"
STRANGER = "01a1fb5a-0000-79ac-88eb-d38c783ffc19"


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("2026-11-20T23:00:00.000Z error switchboard inbox.errored x=1", True),
        ("2026-11-20 23:00:00,123 ERROR butlers.core: it broke", True),
        ("[ERROR] it broke", True),
        ("ERROR:root:it broke", True),
        ("CRITICAL it broke", True),
        ('{"time": 1, "level": "error", "event": "it broke"}', True),
        ("time=1 level=ERROR msg=broke", True),
        ("Traceback (most recent call last):", True),
        ("2026-11-20T23:00:00.000Z info health session.failed error=refused", False),
        ("2026-11-20T23:00:00.000Z info health dispatched outcome=internal_error", False),
        ('2026-11-20T23:00:00.000Z warning health library message="an error occurred"', False),
        ("info health I have no error at all", False),
        ('{"level": "info", "error": "none"}', False),
        ("errors=0", False),
        ("\x1b[2m23:00:00\x1b[0m \x1b[1m\x1b[31mERROR\x1b[0m \x1b[1mit broke\x1b[0m", True),
        ("\x1b[32minfo\x1b[39m: error handling is on", False),
        ("2026-11-20 23:00:00 [error    ] it broke          key=1", True),
        ('{"level":50,"time":1,"msg":"it broke"}', True),
        ('{"level":30,"time":1,"msg":"ERROR is a word"}', False),
        ('{"log": {"severity": "CRITICAL"}, "message": "it broke"}', True),
        ("GET /error HTTP/1.1 404", False),
        ("GET http://127.0.0.1:80/error?level=1", False),
        ("2026-11-20 INFO error handling is on", False),
        ("No error was found", False),
        ("Uncaught TypeError: it broke", True),
    ],
)
def test_which_lines_count(tmp_path: Path, line: str, *, counts: bool) -> None:
    """The level of a line counts, in whatever way it is written; the word in its text does not."""
    log = tmp_path / "health.log"
    log.write_text(f"{line}\n")

    assert counts == bool(error_lines([log], {})), line


@pytest.mark.parametrize(
    ("line", "counts"),
    [("E1120 it broke", True), ("\x1b[1mE1120 so\x1b[0m", True), ("ERROR", False)],
)
def test_a_product_says_what_an_error_is(tmp_path: Path, line: str, *, counts: bool) -> None:
    """Where the subject file has a pattern, nothing else counts but a traceback."""
    log = tmp_path / "health.log"
    log.write_text(f"{line}\n")

    assert counts == bool(error_lines([log], {}, pattern=r"^E\d{4} ")), line


def test_only_what_came_since_the_mark_counts(tmp_path: Path) -> None:
    """Lines before the mark are another test's; a log that is new counts from its beginning."""
    old, new = tmp_path / "health.log", tmp_path / "health-2.log"
    old.write_text("ERROR before\n")
    mark = mark_logs([old, new])
    with old.open("a") as file:
        file.write("ERROR after\n")
    new.write_text("ERROR in the next life\n")

    until = mark_logs([old, new])
    with old.open("a") as file:
        file.write("ERROR later\n")

    assert ["ERROR after", "ERROR in the next life"] == [
        line.text for line in error_lines([old, new], mark, until=until)
    ]


def test_a_secret_that_was_redacted_counts(tmp_path: Path) -> None:
    """The log shows no secret; that it needed redaction is found all the same, once."""
    log = tmp_path / "health.log"
    redactor = Redactor()
    redactor.add("hunter2-and-more")
    output = OutputLog(log, redactor=redactor)
    output.feed(b"before hunter2-and-more\n")
    mark = mark_logs([log])
    output.feed(b"url postgresql://me:looks-secret@host/x\nafter hunter2-and-more\n")
    output.close()

    assert ["a secret was logged: after [redacted]"] == [
        line.text for line in leaked_lines([log], mark)
    ]


def test_a_traceback_is_shown_with_its_end(tmp_path: Path) -> None:
    """What was raised stands in the last line of a traceback, and that is what a reader needs."""
    log = tmp_path / "health.log"
    log.write_text("Traceback (most recent call last):\n  File x\nKeyError: 'y'\n")
    (line,) = error_lines([log], {})

    assert line.traceback
    assert line.text.endswith("KeyError: 'y'")


def line(text: str, *, traceback: bool = False, ids: tuple[str, ...] = ()) -> ErrorLine:
    """A line that was found."""
    return ErrorLine(log="health", text=text, traceback=traceback, ids=frozenset(ids))


@pytest.mark.parametrize(
    ("found", "options", "counts"),
    [
        (line("ERROR"), {}, True),
        (line("ERROR", ids=(OWN,)), {}, True),
        (line("ERROR", ids=(EARLIER,)), {}, False),
        (line("ERROR", ids=(OWN, EARLIER)), {}, True),
        (line("ERROR", ids=(STRANGER,)), {}, True),
        (line("ERROR inbox.errored"), {"expected": ["inbox\\.errored"]}, False),
        (line("ERROR other"), {"expected": ["inbox\\.errored"]}, True),
        (line("ERROR"), {"disturbs": True}, False),
        (line("Traceback", traceback=True), {"disturbs": True}, True),
        (line("Traceback KeyError", traceback=True), {"expected": ["KeyError"]}, False),
    ],
)
def test_whose_they_are(found: ErrorLine, options: dict, *, counts: bool) -> None:
    """A line that names a message is its sender's; any other is the running test's; some are expected."""
    rules = {
        "own": frozenset({OWN}),
        "others": frozenset({EARLIER}),
        "expected": [],
        "disturbs": False,
    }

    assert ((found,) if counts else ()) == blamed([found], **(rules | options))
