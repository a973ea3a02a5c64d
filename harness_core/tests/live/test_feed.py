"""What the page remembers of what happens: bounded, in order, and honest about what is gone."""

import json
from pathlib import Path

import pytest

from harness_core.front.live._feed import KEPT, Feed
from harness_core.front.live._tail import Tails
from harness_core.front.report import Witness


def witness(at, text="x", data=None):
    """A line of a log."""
    return Witness(at, 0.0, "lane", "log", text, "", Path("lane.log"), text, data)


def test_a_feed_is_read_from_any_place():
    """In the order of time of what was seen together, some at a time."""
    feed = Feed()
    feed.add([witness(2.0, "b"), witness(1.0, "a")])
    events, missed = feed.after(0)

    assert ["a", "b"] == [json.loads(event.row)[5] for event in events]
    assert (["b"], 0) == ([json.loads(event.row)[5] for event in feed.after(1)[0]], missed)
    assert ((), 0) == feed.after(2)


def test_what_has_left_a_feed_is_counted_for_whoever_comes_late():
    """It keeps no more than its bound, whoever reads how slowly."""
    feed = Feed()
    for at in range(KEPT + 50):
        feed.add([witness(float(at))])
    events, missed = feed.after(10)

    assert KEPT == len(feed.events)
    assert 40 == missed
    assert 51 == events[0].number
    assert None is feed.numbered(50)
    assert 51 == feed.numbered(51).number


def test_a_flood_is_cut_and_counted():
    """Of what comes at once, the last is kept."""
    feed = Feed()

    assert 500 == feed.add(witness(float(at), str(at)) for at in range(1500))
    assert "1499" == json.loads(feed.events[-1].row)[5]


def test_events_of_a_message_are_found_by_its_names():
    """Wherever in a line a name stands; an empty name is none."""
    feed = Feed()
    feed.add([witness(1.0, "order 77aa begins"), witness(2.0, "other")])

    assert [1] == feed.holding(["77aa", ""])


@pytest.fixture
def folder(tmp_path):
    """A folder of evidence."""
    return tmp_path


def texts(tails):
    """What is new."""
    return [each.text for each in tails.new()]


def test_a_log_is_read_as_it_grows(folder):
    """A line is shown when it is whole; a new file from its beginning, rows as what they are."""
    log, tails = folder / "a.log", Tails(folder)
    log.write_text("one\ntw")
    assert ["one"] == texts(tails)
    with log.open("a") as file:
        file.write("o\n")
    (folder / "spans.jsonl").write_text(
        json.dumps({"span_id": "1", "start_ns": 5, "end_ns": 6, "name": "work", "service": "s"})
        + "\n"
    )
    assert {"two", "work"} == set(texts(tails))
    assert [] == texts(tails)


def test_more_than_anyone_reads_is_left_out_and_said(folder):
    """Of a log that grows by megabytes between two looks, the end is read."""
    log, tails = folder / "a.log", Tails(folder)
    log.write_text("first\n")
    assert ["first"] == texts(tails)
    with log.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(200_000))
    found = texts(tails)

    assert "bytes are not shown here" in found[0]
    assert "line 199999" == found[-1]
    assert sum(map(len, found)) < 300_000


def test_a_line_without_an_end_fills_no_memory(folder):
    """It is never kept whole, and what comes after it is read."""
    log, tails = folder / "a.log", Tails(folder)
    log.write_text("")
    assert [] == texts(tails)
    for _ in range(8):
        with log.open("a") as file:
            file.write("x" * 200_000)
        texts(tails)
    with log.open("a") as file:
        file.write("\nafter\n")

    assert "after" == texts(tails)[-1]
    assert max(len(place.rest) for place in tails._places.values()) < 300_000


def test_a_file_that_begins_anew_is_read_anew(folder):
    """One that was made shorter is another."""
    log, tails = folder / "a.log", Tails(folder)
    log.write_text("a long first line\n")
    texts(tails)
    log.write_text("new\n")

    assert ["new"] == texts(tails)


def test_the_page_tells_nothing_of_itself(folder):
    """Its own log is left out."""
    (folder / "page.log").write_text("mine\n")

    assert [] == texts(Tails(folder, leave_out=frozenset({"page.log"})))
