"""A report in formats that other tools read: CTRF for pages of CI, JUnit for all sessions in one file.

Source: CTRF, https://ctrf.io/docs/specification/root (specVersion 0.0.0).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any, Final

from harness_core.front.outcomes import Word
from harness_core.front.report._schema import Report, Test

#: How CTRF calls an ending.
_STATUS: Final = {
    Word.PASSED: "passed",
    Word.FAILED: "failed",
    Word.HARNESS: "failed",
    Word.KNOWN: "other",
    Word.NOT_RUN: "skipped",
}

#: What XML cannot hold, however it is escaped.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_ctrf(report: Report) -> dict[str, Any]:
    """The report as CTRF has it; times in milliseconds."""
    counts = Counter(_STATUS[test.word] for test in report.tests)
    began = min((session.at for session in report.sessions if session.at), default=0.0)
    ended = max((session.at + session.seconds for session in report.sessions), default=0.0)
    summary: dict[str, Any] = {
        "tests": len(report.tests),
        **{name: counts[name] for name in ("passed", "failed", "pending", "skipped", "other")},
        "start": _ms(began),
        "stop": _ms(max(began, ended)),
    }
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "generatedBy": f"staging-harness {report.harness}".strip(),
        "results": {
            "tool": {"name": "pytest"},
            "summary": summary,
            "tests": [_ctrf(report, test) for test in report.tests],
        },
    }


def _ctrf(report: Report, test: Test) -> dict[str, Any]:
    detail = report.details.get(test.id)
    bad = test.word in {Word.FAILED, Word.HARNESS}
    told = {
        "message": test.why,
        "trace": detail.text if detail is not None and bad else "",
        "start": _ms(test.at),
        "stop": _ms(test.at + test.seconds) if test.at else 0,
        "threadId": test.worker,
    }
    return {
        "name": test.id,
        "status": _STATUS[test.word],
        "duration": _ms(test.seconds),
        "rawStatus": str(test.word),
        "suite": [test.suite, test.session],
        "filePath": test.id.partition("::")[0],
        **{key: value for key, value in told.items() if value},
    }


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def to_junit(report: Report) -> str:
    """One file of all sessions, a ``<testsuite>`` each."""
    root = ET.Element("testsuites", name="staging harness")
    for session in dict.fromkeys(test.session for test in report.tests):
        ours = [test for test in report.tests if test.session == session]
        counts = Counter(test.word for test in ours)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=session,
            tests=str(len(ours)),
            failures=str(counts[Word.FAILED]),
            errors=str(counts[Word.HARNESS]),
            skipped=str(counts[Word.NOT_RUN] + counts[Word.KNOWN]),
            time=f"{sum(test.seconds for test in ours):.3f}",
        )
        for test in ours:
            _junit(suite, report, test)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _junit(suite: ET.Element, report: Report, test: Test) -> None:
    file, _, name = test.id.partition("::")
    *classes, last = name.split("::") if name else [file]
    dotted = ".".join([file.removesuffix(".py").replace("/", "."), *classes]) if name else ""
    case = ET.SubElement(
        suite, "testcase", classname=_plain(dotted), name=_plain(last), time=f"{test.seconds:.3f}"
    )
    if test.word is Word.PASSED:
        return
    tags = {Word.FAILED: "failure", Word.HARNESS: "error"}
    ended = ET.SubElement(case, tags.get(test.word, "skipped"), message=_plain(test.why))
    detail = report.details.get(test.id)
    if test.word in tags and detail is not None:
        ended.text = _plain(detail.text)
    if test.word is Word.KNOWN:
        ended.set("type", "pytest.xfail")
    if test.word is Word.HARNESS:
        marks = ET.SubElement(case, "properties")
        ET.SubElement(marks, "property", name="harness_error", value="true")


def _plain(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
