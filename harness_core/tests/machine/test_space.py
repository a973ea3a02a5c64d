"""Where a run writes, and whether there is room: a full disk itself is met in test_full_disk.py."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness_core.base.errors import Unavailable
from harness_core.base.machine import (
    Place,
    _space,
    closed_to_others,
    is_disk_full,
    lack_of_space,
    places,
    writing,
)


def test_the_places_are_those_that_a_run_uses(tmp_path, monkeypatch):
    """Each follows the variable that moves it; a moved state directory leaves memory alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    expected = {
        "evidence": tmp_path / ".evidence",
        "runs": tmp_path / "state",
        "cache": tmp_path / "cache/staging-harness",
    }
    assert expected == {place.what: place.path for place in places()}
    assert [] == list(tmp_path.iterdir())


def test_a_closed_directory_on_the_way_is_named(tmp_path):
    """The topmost one that others may not pass; none when they may pass all."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    inner.chmod(0o711)
    inner.parent.chmod(0o700)

    found = closed_to_others(inner)

    assert found is not None
    assert found in {inner.parent, *inner.parent.parents}, f"found {found}"
    assert closed_to_others(Path("/")) is None, "others may pass the root of this machine"


def test_too_little_room_names_place_need_and_way_out(tmp_path, monkeypatch):
    """A place with less than a whole run needs is named; the others are not."""
    roomy = Place(what="evidence", path=tmp_path, needed_bytes=1, elsewhere="x")
    short = Place(what="runs", path=tmp_path / "a/b", needed_bytes=2**62, elsewhere="MOVE=DIR")
    monkeypatch.setattr(_space, "places", lambda: (roomy, short))

    reason = lack_of_space()

    assert reason.startswith("runs: ")
    assert f"free at {tmp_path}/a/b, a whole run may need 4294967296.0 GiB: free some" in reason
    assert reason.endswith("or MOVE=DIR")
    monkeypatch.setattr(_space, "places", lambda: (roomy,))
    assert "" == lack_of_space()


def test_memory_without_room_is_no_lack(monkeypatch):
    """Servers go to disk by themselves where tmpfs is small, as in many containers."""
    monkeypatch.delenv("HARNESS_STATE_DIR", raising=False)
    monkeypatch.setattr(_space, "memory_place", lambda: Path("/dev/shm/x"))
    monkeypatch.setattr(_space, "MEMORY_FREE_BYTES", 2**62)

    assert "servers in memory (not used: too little)" == places()[-1].what
    assert 0 == places()[-1].needed_bytes


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO])
def test_other_errors_pass(tmp_path, number):
    """What is no lack of room keeps its own name."""
    with pytest.raises(OSError) as caught, writing(tmp_path, what="x", elsewhere="y"):  # noqa: PT011
        raise OSError(number, "no")

    assert number == caught.value.errno
    assert not is_disk_full(caught.value)


def test_a_quota_is_not_the_disk(tmp_path):
    """A user who may write no more learns that the disk is not full."""
    with pytest.raises(Unavailable) as caught, writing(tmp_path, what="x", elsewhere="y"):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    assert "the quota of this user is used up there (" in caught.value.observed
