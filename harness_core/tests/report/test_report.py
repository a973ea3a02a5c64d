"""A report as data: what is read of the evidence that runs leave, also of runs that were killed."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness_core.base.evidence import Link, Message, Moment, forget_story, story
from harness_core.base.evidence import tell as have_told
from harness_core.front.outcomes import Word
from harness_core.front.report import build_report
from harness_core.front.report._said import expected_and_found
from harness_core.front.report._schema import Report
from harness_core.front.report._stamps import stamp_of
from harness_core.tests.report.made import (
    AT,
    Made,
    journey,
    run_of_everything,
    schema_text,
    span,
    stamp,
    tell,
)


@pytest.fixture
def place(tmp_path):
    """Where the evidence of a run lies."""
    return tmp_path / ".evidence"


def test_sessions_of_several_machines_are_one_report(tmp_path):
    """What one machine skipped and another ran is what it was there; what both ran is its worst."""
    one, two = Made(tmp_path / "one"), Made(tmp_path / "two")
    for made, words in (
        (one, (Word.NOT_RUN, Word.PASSED, Word.PASSED)),
        (two, (Word.PASSED, Word.FAILED, Word.NOT_RUN)),
    ):
        for name, word in zip("abc", words, strict=True):
            made.test(
                f"suites/demo/test_it.py::test_{name}", word, said="a sentence" if word else ""
            )
        made.session("demo", machine=made.folder.name)

    report = build_report([one.folder, two.folder], root=tmp_path)

    found = {test.id[-1]: (str(test.word), test.machine) for test in report.tests}
    assert {"a": ("passed", "two"), "b": ("failed", "two"), "c": ("passed", "one")} == found
    assert [("demo", "one"), ("demo", "two")] == [(s.name, s.machine) for s in report.sessions]


def test_a_run_that_was_killed_says_so(place, tmp_path):
    """Its tests are those that ended, and it names what was under way; a cut last row is left out."""
    made = Made(place)
    made.test("suites/demo/test_it.py::test_a")
    path = made.session("demo", finished=False, under_way="suites/demo/test_it.py::test_b")
    with path.open("ab") as file:
        file.write(b'{"row":"ended","test":"suites/demo/te')

    [session] = build_report([place], root=tmp_path).sessions

    assert ("killed", 1) == (session.ended, session.tests)
    assert ("suites/demo/test_it.py::test_b",) == session.under_way


def test_a_junit_file_alone_is_a_report(place, tmp_path):
    """Of an earlier harness, or another pytest, there are endings and sentences."""
    (tmp_path / "suites/demo").mkdir(parents=True)
    (tmp_path / "suites/demo/test_it.py").touch()
    (place / "reports").mkdir(parents=True)
    (place / "reports/demo.xml").write_text(
        '<testsuites><testsuite time="4" timestamp="2026-11-26T09:00:00+00:00" hostname="vm">'
        '<testcase classname="suites.demo.test_it" name="test_a" time="2">'
        '<failure message="AssertionError: a reply is due: expected one, found none">x</failure>'
        "</testcase></testsuite></testsuites>"
    )

    report = build_report([place], root=tmp_path)

    [test] = report.tests
    assert ("suites/demo/test_it.py::test_a", Word.FAILED) == (test.id, test.word)
    detail = report.details[test.id]
    assert ("one", "none") == (detail.expected, detail.found)
    assert "nox -s demo -- suites/demo/test_it.py::test_a" == detail.rerun
    assert ("vm", AT) == (report.sessions[0].machine, report.sessions[0].at)


def test_what_happened_is_on_one_clock(place, tmp_path):
    """Spans, turns, calls, rows and log lines of a failure are in the order in which they happened."""
    made = Made(place)
    test = journey(made)
    made.session("e2e")

    detail = build_report([place], root=tmp_path).details[test]

    events = detail.events
    assert sorted(event.at_ms for event in events) == [event.at_ms for event in events]
    assert {"test", "span", "turn", "call", "row", "log"} == {event.what for event in events}
    # A process that names itself otherwise in its spans has one lane with its log.
    assert {"test", "model", "switchboard", "general"} == set(detail.lanes)
    assert [
        b"the prompt lacks" in bytes(event.data) for event in events if event.what == "turn"
    ] == [
        False,
        True,
    ]
    errors = [event.text for event in events if event.level == "error" and event.what == "log"]
    assert 1 == len(errors)
    ours = [event for event in events if event.message == 0]
    assert {"span", "turn", "log", "row"} == {event.what for event in ours}, (
        "by the names it carries"
    )
    broken = [(link.source, link.target) for link in detail.links if link.state == "broken"]
    assert [("switchboard", "general")] == broken


def test_a_run_holds_what_belongs_to_its_tests(place, tmp_path):
    """What a process of the run wrote belongs to the test of that worker and time, and to no other."""
    made = Made(place)
    for number in range(3):
        made.test(f"suites/demo/test_it.py::test_{number}", worker=f"gw{number % 2}", seconds=1.0)
    made.session("demo")
    for worker in ("gw0", "gw1"):
        run = made.evidence.child(f"_run{worker}")
        for number in range(3):
            at = AT + number + 0.5
            run.append("shop.log", f"{stamp(at)} info {worker} {number}")
            run.append_json("spans.jsonl", span("the-shop", f"sell {worker} {number}", at, 0.01))

    details = build_report([place], root=tmp_path).details

    for number in range(3):
        texts = [
            event.text for event in details[f"suites/demo/test_it.py::test_{number}"].events[1:]
        ]
        worker = f"gw{number % 2}"
        assert sorted([f"sell {worker} {number}", f"info {worker} {number}"]) == sorted(texts)


def test_files_of_an_earlier_run_are_of_another_test(place, tmp_path):
    """Evidence that was there before a test began is none of its own."""
    import os

    made = Made(place)
    kept = made.test("suites/demo/test_it.py::test_a", Word.FAILED, said="it is wrong")
    for name in ("new.log", "old.log"):
        path = kept.write_text(name, f"{stamp(AT + 0.1)} info {name}\n")
        os.utime(path, (AT - 500, AT - 500) if name == "old.log" else None)
    made.session("demo")

    detail = build_report([place], root=tmp_path).details["suites/demo/test_it.py::test_a"]

    assert ["new.log"] == [file.path for file in detail.files]
    assert 1 == len([event for event in detail.events if event.what == "log"])


def test_history_costs_and_causes(place, tmp_path):
    """What is kept of earlier runs, what the models cost, and few causes of many failures."""
    ids = run_of_everything(place)

    report = build_report([place], root=tmp_path)

    tests = {test.id: test for test in report.tests}
    assert "PFPP" == tests["suites/e2e/test_scenario_runner.py::test_scenario[row-3]"].earlier
    cost = tests[ids["journey"]].cost
    assert cost is not None
    assert 0.0042 == cost.usd
    assert {"failed": 3, "harness could not run": 1} == {
        str(word): sum(len(c.tests) for c in report.causes if c.word is word)
        for word in (Word.FAILED, Word.HARNESS)
    }


def test_json_is_the_documented_shape(place, tmp_path):
    """``--json`` prints what the schema describes, of which a reader in any language makes the same."""
    run_of_everything(place)
    words = ["report", "--json", "--ctrf", "ctrf.json", "--junit", "all.xml", str(place)]
    done = subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", *words],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    read = msgspec.json.decode(done.stdout, type=Report)

    assert 1 == read.schema
    assert 47 == len(read.tests)
    ctrf = json.loads((tmp_path / "ctrf.json").read_text())
    assert (47, 4) == (ctrf["results"]["summary"]["tests"], ctrf["results"]["summary"]["failed"])
    again = build_report([tmp_path / "all.xml"], root=tmp_path)
    assert {"failed": 3, "harness could not run": 1, "known": 1, "not run": 1, "passed": 41} == {
        str(word): sum(test.word is word for test in again.tests) for word in Word
    }


def test_a_place_without_a_report_is_refused(harness_refuses, tmp_path):
    """An empty folder has nothing to show, and the error says what was looked for."""
    refused = harness_refuses(build_report, [tmp_path], root=tmp_path)

    assert "expected a JUnit file, or a folder with reports/" in refused


@pytest.fixture
def harness_refuses():
    """The text of the error that a call ends with."""
    from harness_core.base.errors import BadInput

    def refused(call, *args, **kwargs):
        with pytest.raises(BadInput) as caught:
            call(*args, **kwargs)
        return str(caught.value)

    return refused


@pytest.mark.parametrize(
    ("said", "both"),
    [
        ("a reply is due: expected one, found none", ("one", "none")),
        (
            "expected health, found that sessions ran on general",
            ("health", "sessions ran on general"),
        ),
        ("2 inbox rows instead of one", ("one", "2 inbox rows")),
        (
            "env 'TOKEN': expected 'a, b', found 'a' (says the scenario)",
            ("'a, b'", "'a' (says the scenario)"),
        ),
        ("assert [1] == [2]", ("[1]", "[2]")),
        ("it says nothing of either", ("", "")),
    ],
)
def test_expected_beside_found(said, both):
    """A sentence that names both is taken apart; another is left whole."""
    assert both == expected_and_found(said)


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-26T09:00:00.500Z info",
        "2026-11-26 09:00:00.500 UTC [7] LOG: x",
        '{"time": "2026-11-26T10:00:00.500+01:00", "level": "info"}',
        "time=2026-11-26T09:00:00,500+0000 level=WARN",
    ],
)
def test_times_of_logs(line):
    """The moment at the front of a line is read, however it is spelled."""
    assert AT + 0.5 == stamp_of(line)


def test_a_line_without_a_time_has_none():
    """What only looks like one is none."""
    assert (None, None) == (stamp_of("9999-99-99T99:99:99Z"), stamp_of("no time"))


def test_a_story_is_rendered_when_asked_for():
    """A teller that fails is a row of the story, and the rows of the others are there."""
    forget_story()
    have_told(lambda: [Message(id="1", text="hello")])
    have_told(lambda: 1 / 0)
    have_told(lambda: [Link(message="1", source="a", target="b")])

    rows = story()
    forget_story()

    assert ["Message", "Message", "Link"] == [type(row).__name__ for row in rows]
    assert "ZeroDivisionError" in rows[1].text
    assert () == story()


def test_rows_of_other_kinds_are_left_out(place, tmp_path):
    """Lines that are no rows, and rows of what nobody knows, hide nothing else."""
    made = Made(place)
    kept = made.test("suites/demo/test_it.py::test_a", Word.FAILED, said="it is wrong")
    for line in ("no json", "[1]", '{"arrived_at": 7}', '{"span_id": "x", "start_ns": "y"}', "{}"):
        kept.append("odd.jsonl", line)
    kept.append("story.jsonl", '{"tells": "something else"}')
    kept.append_json("odd.jsonl", span("shop", "sell", AT + 0.2, 0.1))
    made.session("demo")

    events = build_report([place], root=tmp_path).details["suites/demo/test_it.py::test_a"].events

    assert ["test", "span"] == [event.what for event in events]


def test_moments_that_a_test_tells_are_events(place, tmp_path):
    """What a suite knows itself, rows of a database say, stands on the same clock."""
    made = Made(place)
    kept = made.test("suites/demo/test_it.py::test_a", Word.FAILED, said="it is wrong")
    tell(
        kept,
        Moment(at=AT + 0.25, lane="inbox", what="row", text="one row", took_s=0.5, data={"id": 1}),
    )
    made.session("demo")

    detail = build_report([place], root=tmp_path).details["suites/demo/test_it.py::test_a"]

    assert (250.0, 500.0, "row", {"id": 1}) == (
        detail.events[1].at_ms,
        detail.events[1].took_ms,
        detail.events[1].what,
        detail.events[1].data,
    )
    assert "inbox" == detail.lanes[detail.events[1].lane]


def test_the_schema_is_the_one_that_is_documented():
    """docs/reference/report.schema.json is made of the types; after a change: python -m harness_core.tests.report.made."""
    path = Path(__file__).parents[3] / "docs" / "reference" / "report.schema.json"

    assert schema_text() == path.read_text()
