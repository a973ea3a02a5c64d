"""What becomes of a child's output: complete in the log, bounded in memory, no secret in either."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_core.base import limits
from harness_core.base.evidence import Redactor
from harness_core.process._output import OutputLog

SECRET = "tr0ub4dor-and-3-ünïcode"


@pytest.fixture
def redactor() -> Redactor:
    """A redactor that knows one secret."""
    made = Redactor()
    made.add(SECRET)
    return made


def written(path: Path, redactor: Redactor, chunks: list[bytes]) -> OutputLog:
    """An output that got these chunks and was closed."""
    output = OutputLog(path, redactor=redactor)
    for chunk in chunks:
        output.feed(chunk)
    output.close()
    return output


LINES = st.lists(
    st.sampled_from(
        [
            "plain text",
            "",
            f"login with {SECRET} now",
            "Authorization: Bearer abcdefgh12345678",
            'config {"password": "hunter two, three", "port": 1}',
            "url postgres://user:pa55word@db/x",
            "ünïcode ← →",
            "carriage return\r",
        ]
    ),
    max_size=50,
)


@settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=LINES, ended=st.booleans(), data=st.data())
def test_log_does_not_depend_on_how_the_output_was_cut(tmp_path, redactor, lines, ended, data):
    """However reads cut lines, secrets and characters, log and tail are those of the whole."""
    text = "\n".join(lines) + ("\n" if ended else "")
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=20)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    output = written(tmp_path / "log", redactor, chunks)

    clean = redactor.redact(text)
    assert clean == (tmp_path / "log").read_bytes().decode()
    shown = [line.rstrip("\r") for line in clean.split("\n")]
    shown = shown if shown[-1] else shown[:-1]
    assert tuple(shown[-limits.TAIL_LINES :]) == output.tail()
    assert SECRET not in clean


@settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    before=st.integers(0, 60_000),
    chunk=st.integers(1_000, 70_000),
    secret=st.sampled_from([SECRET, "sk-ant-api03-abcdefgh12345", "api_key=abcdefgh12345"]),
)
def test_secret_in_an_endless_line_is_never_cut_in_two(tmp_path, redactor, before, chunk, secret):
    """Of a line too long to keep, parts are written early, but no part of a secret."""
    raw = ("x " * before + secret + " y" * 40_000).encode()
    chunks = [raw[at : at + chunk] for at in range(0, len(raw), chunk)]

    written(tmp_path / "log", redactor, chunks)

    assert redactor.redact(raw.decode()) == (tmp_path / "log").read_text(encoding="utf-8")


def test_endless_line_is_written_while_it_comes(tmp_path, redactor):
    """A line without end goes to the log as it grows; memory holds the bounded front of it."""
    output = OutputLog(tmp_path / "log", redactor=redactor)
    for _ in range(50):
        output.feed(b"x" * 65_536)

    held = len(output._rest) + len(output._front)
    assert held < 200_000
    assert (tmp_path / "log").stat().st_size > 50 * 65_536 - 200_000

    output.feed(b"\nnext\n")
    output.close()
    first, last = output.tail()
    assert 50 * 65_536 + len("\nnext\n") == (tmp_path / "log").stat().st_size
    assert (
        "x" * limits.LINE_BYTES + f"… ({50 * 65_536 - limits.LINE_BYTES} characters more)" == first
    )
    assert "next" == last


def test_secret_longer_than_what_is_held_back(tmp_path):
    """A known secret of any length is replaced whole in a line of any length."""
    secret = "".join(f"{number:x}." for number in range(10_000))
    redactor = Redactor()
    redactor.add(secret)
    raw = ("a" * 30_000 + secret + "b" * 30_000).encode()

    written(tmp_path / "log", redactor, [raw[at : at + 5000] for at in range(0, len(raw), 5000)])

    expected = "a" * 30_000 + "[redacted]" + "b" * 30_000
    assert expected == (tmp_path / "log").read_text(encoding="utf-8")


def test_invalid_utf8_is_replaced_and_a_cut_character_is_not(tmp_path, redactor):
    """Bytes that are no text become the replacement character; a character cut by a read does not."""
    output = written(tmp_path / "log", redactor, [b"a\xff\xc3", b"\xa4b\n\xe2\x82", b""])

    assert ("a�äb", "�") == output.tail()


def test_flood_passes_through_without_piling_up(tmp_path, redactor):
    """Tens of megabytes of lines take seconds at most and leave the last lines in memory."""
    line = b"2026-01-01 12:00:00 INFO request handled in 12 ms, input_tokens=12\n"
    output = OutputLog(tmp_path / "log", redactor=redactor)
    began = time.monotonic()
    for number in range(300):
        output.feed(line * 1000 + b"end %d\n" % number)
    output.close()

    assert time.monotonic() - began < 10  # 0.7 s on a free machine
    assert 300 * 1000 * len(line) < (tmp_path / "log").stat().st_size
    assert "end 299" == output.tail()[-1]
    assert limits.TAIL_LINES == len(output.tail())


def test_a_bounded_log_keeps_its_front_and_its_end(tmp_path, redactor):
    """Past the limit only the last lines are kept; the log says how much is left out."""
    output = OutputLog(tmp_path / "log", redactor=redactor, limit_bytes=10)
    for number in range(100):
        output.feed(b"line %d\n" % number)
    during = (tmp_path / "log").read_text()
    output.close()
    output.close()

    assert "line 0\nlin" == during
    last = "".join(f"line {number}\n" for number in range(100 - limits.TAIL_LINES, 100))
    note = "\n… (780 bytes more; the last lines of them:)\n"
    assert during + note + last == (tmp_path / "log").read_text()


def test_watchers_see_every_line_redacted(tmp_path, redactor):
    """Whoever watches gets each line once, in order, without its end or a secret."""
    output = OutputLog(tmp_path / "log", redactor=redactor)
    seen: list[str] = []
    output.on_line(seen.append)
    output.feed(b"".join(b"line %d\r\n" % number for number in range(100)))
    output.feed(f"with {SECRET}".encode())
    output.close()

    assert [*(f"line {number}" for number in range(100)), "with [redacted]"] == seen


def test_log_survives_the_loss_of_its_directory(tmp_path, redactor):
    """When the evidence directory is emptied, output goes on to the tail without an error."""
    folder = tmp_path / "folder"
    folder.mkdir()
    output = OutputLog(folder / "log", redactor=redactor)
    output.feed(b"one\n")
    (folder / "log").unlink()
    folder.rmdir()
    output.feed(b"two\n")
    output.close()

    assert ("one", "two") == output.tail()
