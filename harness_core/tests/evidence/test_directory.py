"""What a test leaves for its reader: files in one place, redacted, and the text that points there."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness_core.base.evidence import Redactor, failure_text, open_evidence
from harness_core.base.evidence._directory import safe_name


@dataclasses.dataclass
class Row:
    """What a test may have at hand."""

    name: str
    at: datetime


@pytest.fixture
def evidence(tmp_path: Path):
    """A directory that knows one secret."""
    redactor = Redactor()
    redactor.add("hunter2-hunter2")
    return open_evidence(tmp_path / "evidence", redactor=redactor)


def test_text_is_redacted_when_written(evidence):
    """No file ever holds a secret, however it was written."""
    written = [
        evidence.write_text("a.txt", "my hunter2-hunter2"),
        evidence.write_json("b.json", {"k": ["hunter2-hunter2"]}),
        evidence.append("c.log", "hunter2-hunter2\n"),
        evidence.append_json("d.jsonl", {"k": "hunter2-hunter2"}),
        evidence.child("sub").write_text("e.txt", "hunter2-hunter2"),
    ]

    for path in written:
        text = path.read_text(encoding="utf-8")
        assert "hunter2" not in text
        assert "[redacted]" in text


def test_what_is_no_text_is_kept_as_it_is(evidence):
    """A picture has the same bytes, whatever stands in them."""
    data = bytes(range(256)) + b"sk-ant-harness-secret"

    assert data == evidence.keep("views/one.png", data).read_bytes()
    assert data[:9] == evidence.keep("views/one.png", data[:9]).read_bytes()
    with pytest.raises(ValueError, match="outside"):
        evidence.keep("../one.png", data)


def test_appended_lines_stay_lines(evidence):
    """Each appended line ends once, whatever it came with."""
    evidence.append("log", "one")
    path = evidence.append("log", "two\n")

    assert "one\ntwo\n" == path.read_text(encoding="utf-8")


def test_json_of_what_tests_have_at_hand(evidence):
    """Dataclasses become objects; what JSON does not know becomes its text."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    path = evidence.write_json("row.json", {"row": Row("x", at), "path": Path("/a"), "set": {1}})

    expected = {"row": {"name": "x", "at": str(at)}, "path": "/a", "set": "{1}"}
    assert expected == json.loads(path.read_text(encoding="utf-8"))


def test_text_that_is_no_unicode_is_written_all_the_same(evidence):
    """Evidence is wanted most when something is broken; a lone surrogate does not stop it."""
    path = evidence.write_text("a.txt", "bad \udcff")
    evidence.append("a.txt", "worse \udc80")

    assert "bad \\udcffworse \\udc80\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["../out", "/etc/out", "", "a/../../out", "link/out"])
def test_writing_outside_is_refused(evidence, tmp_path, name):
    """A name that leads out of the directory, by a link too, is refused and nothing is written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (evidence.path / "link").symlink_to(outside)

    for write in (evidence.write_text, evidence.append):
        with pytest.raises(ValueError, match="lies outside"):
            write(name, "x")
    assert [] == list(outside.iterdir())
    assert not (tmp_path / "out").exists()


def test_wipe_empties_only_when_asked(tmp_path):
    """A directory keeps what it has unless it is opened to be wiped."""
    open_evidence(tmp_path / "e").write_text("old", "x")

    assert (open_evidence(tmp_path / "e").path / "old").exists()
    assert [] == list(open_evidence(tmp_path / "e", wipe=True).path.iterdir())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("test_a[x/y]", "test_a[x-y]"),
        ("a" * 200, "a" * 201),
        ("..", "."),
        ("test_a[ü]", "test_a[ö]"),
        ("/", "//"),
    ],
)
def test_two_names_never_share_a_directory(evidence, first, second):
    """Names that differ only in what a file system cannot take get directories of their own."""
    paths = [evidence.child(name).path for name in (first, second)]

    assert paths[0] != paths[1]
    assert all(path.parent == evidence.path for path in paths)


def test_plain_names_stay_as_they_are():
    """A name that a file system takes is the directory's name, so people find it."""
    assert "test_scenario[health-symptom-log]" == safe_name("test_scenario[health-symptom-log]")


def test_failure_text_says_where_and_how_to_rerun(evidence):
    """The closing lines name the directory, its files with sizes, what was kept, and the rerun."""
    evidence.write_text("b.log", "12345")
    evidence.child("db").write_text("a.json", "{}")

    text = failure_text(
        evidence=evidence.path, rerun="pytest 'x::y'", kept=["postgresql://h/clone"]
    )

    assert [
        f"evidence: {evidence.path}",
        "  b.log (5 B)",
        "  db/a.json (2 B)",
        "kept: postgresql://h/clone",
        "rerun: pytest 'x::y'",
    ] == text.splitlines()


def test_failure_text_of_many_files_is_a_screenful(evidence):
    """Beyond twenty files the rest is counted."""
    for number in range(25):
        evidence.write_text(f"{number:02}", "")

    lines = failure_text(evidence=evidence.path, rerun="x").splitlines()

    assert 23 == len(lines)
    assert "  … and 5 more" == lines[-2]


def test_failure_text_without_a_directory(tmp_path):
    """A test that never got to write still shows how to rerun it."""
    text = failure_text(evidence=tmp_path / "missing", rerun="x")

    assert f"evidence: {tmp_path / 'missing'}\nrerun: x" == text
