"""Where butlers listen in a second ecosystem, and a database's address in parts: nothing is booted."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness_core.base.errors import Unavailable
from harness_core.ports import lease_port
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.addresses import database_fields, lease_ports
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.subject_file import read_subject

pytestmark = pytest.mark.aside("the suite's own words for addresses")

HERE: Final = Path(__file__).parent
ROSTER: Final = HERE.parents[1] / "roster"


@pytest.fixture
def free() -> int:
    """The number of a port that nobody holds."""
    with lease_port() as lease:
        return lease.port


def product(folder: Path, ports: str) -> Subject:
    """One whose file has these ``[ports]``."""
    text = (HERE / "subjects" / "foreign.toml").read_text()
    path = folder / "subject.toml"
    path.write_text(text.replace("switchboard = 29100", ports))
    return read_subject(path)


def test_each_next_ecosystem_has_the_next_ports(tmp_path: Path, free: int) -> None:
    """Those that it insists on move by the offset, the others are any."""
    subject = product(tmp_path, f"switchboard = {free}\noffset = 7")
    configs = read_roster(ROSTER)
    with ExitStack() as leases:
        three = [lease_ports(subject, configs, leases=leases) for _ in range(3)]

    found = [each["switchboard"].port - free for each in three]
    # Another run on this machine may have one of them.
    assert all(offset % 7 == 0 for offset in found), found
    assert sorted(set(found)) == found
    assert set(configs) == set(three[1])


def test_ports_that_may_not_move_are_refused_with_the_reason(tmp_path: Path, free: int) -> None:
    """And what was leased for the second is given back."""
    subject = product(tmp_path, f"switchboard = {free}")
    configs = read_roster(ROSTER)
    with ExitStack() as leases:
        lease_ports(subject, configs, leases=leases)
        with pytest.raises(Unavailable) as refused:
            lease_ports(subject, configs, leases=leases)

    assert f"port {free}" in str(refused.value)
    assert "[ports] offset = N" in str(refused.value)
    with ExitStack() as leases:
        assert free == lease_ports(subject, configs, leases=leases)["switchboard"].port


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://a%40b:p%2Fw@db.local:5433/x%20y?sslmode=disable",
         ("db.local", 5433, "a@b", "p/w", "x y")),
        ("postgresql://me@127.0.0.1:5432/butler_health", ("127.0.0.1", 5432, "me", "", "butler_health")),
    ],
)  # fmt: skip
def test_an_address_in_parts(url: str, parts: tuple[object, ...]) -> None:
    """Each as it is, not as it is written in a URL."""
    names = ("host", "port", "user", "password", "name")

    assert dict(zip((f"database_{name}" for name in names), parts, strict=True)) == database_fields(
        url
    )
