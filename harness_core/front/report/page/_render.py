"""A report as one page of HTML that needs nothing else: no server, no network, no other file.

What a product wrote is escaped by jinja2 where the page is made, or packed as base64 and set as text by
the page's own script. A policy in the page lets no other script run. Source: decision 0170.
"""

from __future__ import annotations

import base64
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from harness_core.front.outcomes import Cost, Word
from harness_core.front.report._schema import Cause, Detail, Report, Requirement, Test
from harness_core.front.report._sessions import LETTERS
from harness_core.front.report.page._assets import EARLY, digest, joined, ours, templates

#: The page's own script, in the order in which its parts need each other.
_SCRIPTS: Final = ("data", "list", "tests", "graph", "timeline", "parts", "test", "main")

#: What weighs most stands first.
_WORDS: Final = [Word.FAILED, Word.HARNESS, Word.KNOWN, Word.NOT_RUN, Word.PASSED]

#: Shown on the first view, of each kind.
_CAUSES: Final = 40
_RANKED: Final = 20

#: Fast enough for millions of characters, and most of what compression gives.
_LEVEL: Final = 5


def render_page(report: Report, *, at: Path) -> str:
    """The page.

    Args:
        report: what it shows.
        at: where it will lie: links to evidence are relative to that.
    """
    script = joined(f"{name}.js" for name in _SCRIPTS)
    style = joined(["style.css"])
    template = templates().from_string(joined(["report.html.j2"]))
    details, places = _packed_details(report)
    return template.render(
        **_overview(report),
        report=report,
        policy=_policy(style=style, scripts=[EARLY, script]),
        style=ours(style),
        early=ours(EARLY),
        script=ours(script),
        index=ours(_packed(_index(report, places, at=at))),  # base64
        details=ours(details),
    )


def _policy(*, style: str, scripts: Sequence[str]) -> str:
    """What the page may load: its own style and script by their digests, pictures it contains."""
    return (
        f"default-src 'none'; script-src {digest(scripts)}; style-src {digest([style])}; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )


def _packed(value: object) -> str:
    """JSON, compressed, as characters that mean nothing in HTML."""
    data = msgspec.json.encode(value, enc_hook=str)
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()


def _packed_details(report: Report) -> tuple[str, Mapping[str, tuple[int, int]]]:
    """The details of all tests one after the other, and where each stands."""
    parts: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    offset = 0
    for test, detail in report.details.items():
        text = _packed(detail)
        places[test] = (offset, len(text))
        parts.append(text)
        offset += len(text)
    return "".join(parts), places


def _index(report: Report, places: Mapping[str, tuple[int, int]], *, at: Path) -> dict[str, object]:
    """All that the page holds in memory: one line of each test, and no details."""
    folder = at.absolute().parent
    tests = []
    for test in report.tests:
        offset, size = places.get(test.id, (0, 0))
        href = _href(test, folder, report.details.get(test.id))
        tests.append({**msgspec.to_builtins(test), "offset": offset, "size": size, "href": href})
    return {
        "title": report.title,
        "tests": tests,
        "causes": report.causes,
        "plots": report.plots,
    }


def _href(test: Test, folder: Path, detail: Detail | None) -> str:
    """The folder of a test's evidence, as a link from the page; empty where it left nothing."""
    if not test.evidence or detail is None or not detail.files:
        return ""
    path = os.path.relpath(Path(test.place).absolute() / test.evidence, folder)
    return quote(path if path.startswith("..") else f"./{path}")


def _overview(report: Report) -> dict[str, Any]:
    """What the template needs, put into words."""
    counts = Counter(test.word for test in report.tests)
    sessions = report.sessions
    seconds = sum(test.seconds for test in report.tests)
    words = {test.id: test.word for test in report.tests}
    spent = _sum([test.cost for test in report.tests if test.cost is not None])
    machines = sorted({session.machine for session in sessions if session.machine})
    began = min((session.at for session in sessions if session.at), default=0.0)
    account = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
    return {
        "title": f"{_verdict(counts)} · {report.title}",
        "short": report.title if len(report.title) <= 40 else f"{len(sessions)} sessions",  # noqa: PLR2004
        "worst": next(
            (word for word in _WORDS if counts[word] and word is not Word.NOT_RUN), _WORDS[-1]
        ),
        "verdict": _verdict(counts),
        "account": account,
        "words": _WORDS,
        "columns": [word for word in _WORDS if counts[word] or word in {Word.FAILED, Word.PASSED}],
        "letters": LETTERS,
        "counts": counts,
        "total": len(report.tests),
        "keys": {test.id: number for number, test in enumerate(report.tests)},
        "word_of": words,
        "began": _moment(began) or "at an unknown time",
        "lasted": _took(sum(session.seconds for session in sessions)),
        "lasted_tests": _took(seconds),
        "machines": ", ".join(machines),
        "made": _moment(report.made_at),
        "spent": spent,
        "cut": [session for session in sessions if session.ended != "by itself"],
        "causes": list(_cause_groups(report.causes)),
        "suites": _suites(report.tests),
        "not_run": Counter(t.why for t in report.tests if t.word is Word.NOT_RUN).most_common(),
        "sessions": [
            {
                "name": session.name,
                "began": _moment(session.at),
                "took": _took(session.seconds),
                "tests": session.tests,
                "ended": session.ended,
            }
            for session in sessions
        ],
        "ledgers": list(_ledgers(report.requirements)),
        "slow": _ranked(report.tests, lambda test: test.seconds, _took),
        "dear": _ranked(
            [test for test in report.tests if test.cost and test.cost.usd],
            lambda test: test.cost.usd if test.cost else 0.0,
            lambda usd: f"${usd:.4f}",
        ),
        "flaky": _flaky(report.tests),
        "any_history": any(test.earlier for test in report.tests),
    }


def _verdict(counts: Mapping[Word, int]) -> str:
    ran = sum(counts.values()) - counts.get(Word.NOT_RUN, 0)
    failed, harness = counts.get(Word.FAILED, 0), counts.get(Word.HARNESS, 0)
    if failed:
        also = f", and the harness could not judge {harness}" if harness else ""
        return f"{failed} of {_count(ran, 'test')} failed{also}"
    if harness:
        return f"The harness could not judge {harness} of {_count(ran, 'test')}"
    if not ran:
        return "Nothing was run"
    return f"{'All ' if ran > 1 else ''}{_count(ran, 'test')} passed"


def _cause_groups(causes: Sequence[Cause]) -> Iterator[dict[str, Any]]:
    titles = {Word.FAILED: "Product failed", Word.HARNESS: "Harness could not run"}
    for word, title in titles.items():
        ours = [(number, cause) for number, cause in enumerate(causes) if cause.word is word]
        if not ours:
            continue
        tests = len({test for _, cause in ours for test in cause.tests})
        yield {
            "title": title,
            "word": word,
            "note": f"{_count(tests, 'test')}, {_count(len(ours), 'cause')}",
            "causes": [
                {**msgspec.to_builtins(cause), "word": word, "number": number}
                for number, cause in ours[:_CAUSES]
            ],
            "more": max(0, len(ours) - _CAUSES),
        }


def _suites(tests: Sequence[Test]) -> list[dict[str, Any]]:
    rows: dict[str, list[Test]] = {}
    for test in tests:
        rows.setdefault(test.suite, []).append(test)
    return [
        {
            "name": name,
            "counts": Counter(test.word for test in ours),
            "total": len(ours),
            "time": _took(sum(test.seconds for test in ours)),
        }
        for name, ours in sorted(rows.items())
    ]


def _ledgers(rows: Sequence[Requirement]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(row.suite for row in rows):
        ours = [row for row in rows if row.suite == name]
        counts = Counter(row.status for row in ours)
        yield {
            "name": name,
            "account": ", ".join(f"{count} {status}" for status, count in counts.most_common()),
            "rows": [
                {
                    **{key: getattr(row, key) for key in row.__struct_fields__},
                    "seen": sum(bool(fault.verdict) for fault in row.faults),
                    "killed": sum(fault.verdict == "killed" for fault in row.faults),
                    "counts": {Word(word): count for word, count in row.counts.items()},
                }
                for row in ours
            ],
        }


def _ranked(tests: Sequence[Test], value: Any, shown: Any) -> list[dict[str, Any]]:
    first = sorted(tests, key=value, reverse=True)[:_RANKED]
    most = value(first[0]) if first else 0
    return [
        {"test": test, "text": shown(value(test)), "share": 100 * value(test) / (most or 1)}
        for test in first
    ]


def _flaky(tests: Sequence[Test]) -> list[dict[str, Any]]:
    """Tests that passed and failed, in the runs that are kept and this one; most often first."""
    rows: list[dict[str, Any]] = []
    for test in tests:
        letters = test.earlier + LETTERS[test.word]
        ran = [letter for letter in letters if letter in "PFH"]
        bad = sum(letter != "P" for letter in ran)
        if bad and bad < len(ran):
            rows.append(
                {"test": test, "letters": letters, "note": f"{bad} of {len(ran)}", "bad": bad}
            )
    rows.sort(key=lambda row: row["bad"], reverse=True)
    return rows[: 2 * _RANKED]


def _sum(costs: Sequence[Cost]) -> dict[str, str] | None:
    if not costs:
        return None
    tokens = sum(cost.input_tokens + cost.output_tokens for cost in costs)
    return {
        "usd": f"${sum(cost.usd for cost in costs):.2f}",
        "calls": f"{sum(cost.calls for cost in costs):,}",
        "tokens": f"{tokens:,}",
    }


def _took(seconds: float) -> str:
    if seconds >= 5400:  # noqa: PLR2004
        return f"{seconds / 3600:.1f} h"
    if seconds >= 90:  # noqa: PLR2004
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
