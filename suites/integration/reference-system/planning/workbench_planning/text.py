"""Bytes of a file to text, and how findings show text; what the text means is for the readers.

A file that is not UTF-8, begins with a byte order mark, holds U+0000 or is longer than
``FILE_BYTES`` is a finding, whatever it is for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from workbench_contract.findings import Finding, Stage

#: The longest file that is read; the longest plan seen was a tenth of it.
FILE_BYTES = 256 * 1024
#: The most findings of one answer.
MOST_FINDINGS = 200
#: What a finding shows of a long value.
SHOWN_CHARS = 80

_BOM = b"\xef\xbb\xbf"


def shortened(value: object) -> str:
    """A value on one line, as Python writes it, its middle left out where it is long."""
    # The repr of a long text would be made whole first.
    if isinstance(value, str) and len(value) > 2 * SHOWN_CHARS:
        value = value[:SHOWN_CHARS] + value[-SHOWN_CHARS:]
    text = repr(value)
    if len(text) <= SHOWN_CHARS:
        return text
    half = (SHOWN_CHARS - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def finding(
    file: str, where: str, found: str, expected: str, *, stage: Stage = Stage.VALID
) -> Finding:
    """A finding of a reader; most are of the stage in which each file is looked at by itself."""
    return Finding(stage=stage, file=file, where=where, found=found, expected=expected)


def bounded(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of one stage as they are answered: of more than ``MOST_FINDINGS`` the last says how many."""
    if len(findings) <= MOST_FINDINGS:
        return list(findings)
    kept = list(findings[: MOST_FINDINGS - 1])
    found = f"{len(findings) - len(kept)} more findings"
    return [*kept, finding("", "", found, "all of them corrected", stage=findings[0].stage)]


def sha256_of(data: bytes) -> str:
    """The digest by which a hand-over knows a file."""
    return hashlib.sha256(data).hexdigest()


def is_absent(data: bytes | None) -> bool:
    """Whether a file is as good as not there: missing, empty, or nothing but white space."""
    if data is None:
        return True
    if len(data) > FILE_BYTES:
        return False
    return not data.decode("utf-8", "replace").lstrip("\ufeff").strip()


def text_of(data: bytes, *, file: str) -> tuple[str | None, list[Finding]]:
    """The text of a file, its line ends all ``\\n``.

    Args:
        data: the whole file.
        file: its name, for findings.
    """
    if len(data) > FILE_BYTES:
        size = f"a file of {len(data)} bytes"
        return None, [finding(file, "", size, f"at most {FILE_BYTES} bytes")]
    findings = []
    if data.startswith(_BOM):
        found = "a byte order mark at the start"
        findings.append(finding(file, "line 1", found, "UTF-8 without one: leave it out"))
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x}, which is no UTF-8, at offset {error.start}"
        line = data.count(b"\n", 0, error.start) + 1
        return None, [*findings, finding(file, f"line {line}", found, "a file in UTF-8")]
    if "\0" in text:
        where = f"line {text.count(chr(10), 0, text.index(chr(0))) + 1}"
        findings.append(finding(file, where, "U+0000", "text without it: leave it out"))
    if findings:
        return None, findings
    return text.replace("\r\n", "\n").replace("\r", "\n"), []
