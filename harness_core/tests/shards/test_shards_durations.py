"""The file of durations: what a run measured is in it, what it did not run stays, what is old goes."""

import json
from datetime import date

import pytest

from harness_core.assurance.shards import (
    Shard,
    merge_durations,
    part_of,
    read_durations,
    update_durations,
)
from harness_core.base.errors import BadInput

DAY = date(2026, 3, 1)


def test_a_file_that_is_not_there_is_empty(tmp_path):
    """The first run has nothing to go by."""
    durations = read_durations(tmp_path / "none.json")

    assert ({}, 1, 0.0) == (durations.seconds, durations.workers, durations.total_s)


def test_a_run_updates_what_it_ran(tmp_path):
    """Measured again is replaced, not run stays, and the total counts the workers."""
    path = tmp_path / "new" / "e2e.json"
    update_durations(path, {"a": 4.0, "b": 2.0}, workers=1, today=DAY)
    update_durations(path, {"a": 6.0, "c": 2.0}, workers=2, today=DAY)

    durations = read_durations(path)

    assert {"a": 6.0, "b": 2.0, "c": 2.0} == durations.seconds
    assert 5.0 == durations.total_s
    assert [path] == list(path.parent.iterdir())


def test_what_was_not_measured_for_a_month_goes(tmp_path):
    """A test that was renamed does not count for ever."""
    path = tmp_path / "e2e.json"
    update_durations(path, {"renamed": 1.0}, workers=1, today=DAY)
    update_durations(path, {"kept": 1.0}, workers=1, today=date(2026, 3, 31))
    assert {"renamed", "kept"} == set(read_durations(path).seconds)

    update_durations(path, {"new": 1.0}, workers=1, today=date(2026, 4, 1))

    assert {"kept", "new"} == set(read_durations(path).seconds)


def test_what_shards_measured_is_merged(tmp_path):
    """Each shard wrote a file of its own; of a name that two measured, the newest counts."""
    kept, left = tmp_path / "kept", tmp_path / "left"
    update_durations(kept / "e2e.json", {"a": 1.0, "b": 1.0, "c": 1.0}, workers=1, today=DAY)
    update_durations(kept / "core.json", {"x": 1.0}, workers=1, today=DAY)
    later = date(2026, 3, 2)
    first = part_of(left / "e2e.json", Shard(1, 2))
    update_durations(first, {"a": 5.0, "c": 9.0}, workers=2, today=later)
    update_durations(part_of(left / "e2e.json", Shard(2, 2)), {"b": 7.0}, workers=2, today=later)
    update_durations(left / "parity.json", {"p": 1.0}, workers=1, today=later)

    written = merge_durations(kept, left, today=later)

    assert "e2e.1-of-2.json" == first.name
    assert [kept / "e2e.json", kept / "parity.json"] == sorted(written)
    assert {"a": 5.0, "b": 7.0, "c": 9.0} == read_durations(kept / "e2e.json").seconds
    assert 2 == read_durations(kept / "e2e.json").workers
    assert {"x": 1.0} == read_durations(kept / "core.json").seconds
    assert {"core.json", "e2e.json", "parity.json"} == {path.name for path in kept.iterdir()}


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"workers": 1}',
        '{"workers": 0, "seconds": {}}',
        '{"workers": 1, "seconds": {"a": 1}}',
        '{"workers": 1, "seconds": {"a": [-1, "2026-03-01"]}}',
        '{"workers": 1, "seconds": {"a": [1, "yesterday"]}}',
        json.dumps({"workers": 1, "seconds": {"a": [float("inf"), "2026-03-01"]}}),
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path, text):
    """A cache that holds something else is an error that names the file."""
    path = tmp_path / "e2e.json"
    path.write_text(text)

    with pytest.raises(BadInput) as caught:
        read_durations(path)

    assert str(path) == caught.value.where
