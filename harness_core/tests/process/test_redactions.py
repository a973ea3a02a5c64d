"""A leak that the log does not show is on record all the same."""

from harness_core.base.evidence import Redactor
from harness_core.process import RedactedLine, redacted_lines
from harness_core.process._output import OutputLog

SECRET = "tr0ub4dor-and-3"


def written(path, *chunks: str) -> tuple[RedactedLine, ...]:
    """What is on record of an output that came in these pieces."""
    redactor = Redactor()
    redactor.add(SECRET, "line one\nline two")
    output = OutputLog(path, redactor=redactor)
    for chunk in chunks:
        output.feed(chunk.encode())
    output.close()
    return redacted_lines(path)


def test_clean_output_leaves_no_record(tmp_path):
    """Nothing was replaced: no line, no file."""
    assert () == written(tmp_path / "x.log", "hello\n[redacted]\n", "bye")
    assert ["x.log"] == [path.name for path in tmp_path.iterdir()]


def test_each_redacted_line_is_recorded_once(tmp_path):
    """Known secrets are counted, a line that looks like holding one counts none; the place is right."""
    log = tmp_path / "x.log"
    lines = written(
        log, "fine\n", f"a {SECRET[:5]}", f"{SECRET[5:]} b {SECRET}\nfi", "ne\npassword=hunter22\n"
    )
    content = log.read_bytes()

    assert [(2, "a [redacted] b [redacted]"), (0, "password=[redacted]")] == [
        (line.known, line.text) for line in lines
    ]
    assert [True, True] == [content[line.offset :].startswith(line.text.encode()) for line in lines]
    assert SECRET.encode() not in content
    assert SECRET not in (tmp_path / "x.redactions.jsonl").read_text()


def test_a_secret_of_several_lines_counts(tmp_path):
    """Where lines went with the secret, the whole text is one record."""
    (line,) = written(tmp_path / "x.log", "before\nline one\nline two\nafter\n")

    assert 1 == line.known
    assert "line one" not in line.text


def test_the_last_line_without_an_end_is_recorded_too(tmp_path):
    """A child that ends in the middle of its line has leaked as well."""
    (line,) = written(tmp_path / "x.log", f"dying with {SECRET}")

    assert "dying with [redacted]" == line.text
