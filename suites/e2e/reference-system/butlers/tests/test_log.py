"""Secrets stand in no line, however a line quotes, cuts or joins what it is given."""

import json
from urllib.parse import quote

import pytest
from butlers.log import Log

AWKWARD = 'pass"word\\with $ü'


def written(capsys: pytest.CaptureFixture[str], *secrets: str, **fields: object) -> str:
    """The line that a log with these secrets writes."""
    log = Log("x")
    log.hide(*secrets)
    log.info("event", **fields)
    return capsys.readouterr().err


@pytest.mark.parametrize("around", ["{}", "the key {} may not", '"{}"', "a={}"])
def test_a_secret_that_needs_quotes_is_hidden(
    capsys: pytest.CaptureFixture[str], around: str
) -> None:
    line = written(capsys, AWKWARD, error=around.format(AWKWARD))

    assert "word" not in line
    assert "***" in line


@pytest.mark.parametrize(
    "spelling", [json.dumps(AWKWARD), json.dumps(AWKWARD, ensure_ascii=False), quote(AWKWARD, safe="")]
)
def test_a_secret_that_others_have_quoted_is_hidden(spelling: str) -> None:
    log = Log("x")
    log.hide(AWKWARD)

    assert "word" not in log.redact(f"{{'key': {spelling}}}")


@pytest.mark.parametrize("secrets", [("abcdef", "abcdefghij"), ("abcdefghij", "abcdef")])
def test_of_two_secrets_the_longer_leaves_no_rest(secrets: tuple[str, str]) -> None:
    log = Log("x")
    log.hide(*secrets)

    assert log.redact("to abcdefghij and abcdef.") == "to *** and ***."


def test_secrets_that_overlap_leave_no_rest() -> None:
    log = Log("x")
    log.hide("abcdef", "efghij")

    assert log.redact("to abcdefghij.") == "to ***."


def test_a_secret_at_the_end_of_what_is_shown_leaves_no_beginning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = written(capsys, "abcdefghij", error="x" * 495 + "abcdefghij")

    assert "abcde" not in line
