"""The files that say what is tested, with every mistake that a hurry makes: none boots anything."""

import shutil
import tomllib
from pathlib import Path

import pytest

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.base.errors import BadInput
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.subject_file import read_subject
from suites.e2e.load.profiles import read_profiles
from suites.e2e.scenarios import SCENARIOS

HERE = Path(__file__).parent
ROSTER = HERE.parents[1] / "roster"

pytestmark = pytest.mark.aside("reads files of the suite")


@pytest.mark.parametrize(
    "path",
    [*HERE.glob("reference-system/subject*.toml"), *HERE.glob("subjects/*.toml")],
    ids=lambda path: path.name,
)
def test_subject_file(path, tmp_path):
    """Every table, key and kind of value that an adapter reads; variables are the product's."""
    copy = tmp_path / path.name

    assert 15 < check_reader(
        lambda: read_subject(copy),
        copy,
        content=tomllib.loads(path.read_text()),
        write=to_toml,
        named_by_the_author=("env.*", "*.env.*", "*.*.env.*", "knobs.*.*", "ports.switchboard"),
    )


@pytest.mark.parametrize("name", [path.parent.name for path in ROSTER.glob("*/butler.toml")])
def test_butler(name, tmp_path):
    """What the harness reads of it; the rest is the product's to check."""
    roster = tmp_path / "roster"
    shutil.copytree(ROSTER, roster)
    path = roster / name / "butler.toml"

    assert 10 < check_reader(
        lambda: read_roster(roster),
        path,
        content=tomllib.loads(path.read_text()),
        write=to_toml,
        named_by_the_author=("modules.*", "butler.db"),  # no word of two letters is nearly another
        left_to_others=(
            "butler.runtime",
            "butler.route",
            "butler.scheduler",
            "butler.switchboard",
            "butler.core_tools",
            "modules.*.*",
        ),
    )


def test_load_profiles(tmp_path):
    """Every row has every key."""
    path = tmp_path / "profiles.toml"
    ids = [row.id for row in SCENARIOS]

    assert 60 < check_reader(
        lambda: read_profiles(path, scenarios=ids),
        path,
        content=tomllib.loads((HERE / "load" / "profiles.toml").read_text()),
        write=to_toml,
    )


def test_a_knob_that_no_test_knows_is_refused(tmp_path):
    """It would turn nothing, and the tests that need the right one would be skipped."""
    text = (HERE / "reference-system" / "subject.toml").read_text()
    path = tmp_path / "subject.toml"
    path.write_text(text.replace("[knobs.lease_s]", "[knobs.leasse_s]"))

    with pytest.raises(BadInput, match="Did you mean lease_s") as refused:
        read_subject(path)

    assert (str(path), "knobs.leasse_s") == (refused.value.where, refused.value.key)


@pytest.mark.parametrize(
    ("file", "right", "wrong", "key"),
    [
        ("foreign.toml", 'source = "lease"', 'source = "any"', "ports.source"),
        ("foreign.toml", "switchboard = 29100", "switchboard = 0", "ports.switchboard"),
        ("foreign.toml", "switchboard = 29100", "offset = 0", "ports.offset"),
        ("foreign.toml", "switchboard = 29100", 'offset = "100"', "ports.offset"),
        ("foreign.toml", 'call = "http://', 'call = "/', "tools.call"),
        ("foreign.toml", 'transport = "http"', 'transport = "grpc"', "tools.transport"),
        ("subject.toml", 'table = "ticks"', 'table = "the ticks"', "heartbeat.ticks.table"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(tmp_path, file, right, wrong, key):
    """A port, a URL, a name of a table: of the right kind, and of no use."""
    (source,) = [*HERE.glob(f"reference-system/{file}"), *HERE.glob(f"subjects/{file}")]
    path = tmp_path / file
    path.write_text(source.read_text().replace(right, wrong))

    with pytest.raises(BadInput) as refused:
        read_subject(path)

    assert (str(path), key) == (refused.value.where, refused.value.key)


def test_ports_of_a_product_that_is_not_told_them_stay(tmp_path):
    """An offset would move nothing."""
    text = (HERE / "subjects" / "foreign.toml").read_text().replace("{port}", "9", 1)
    path = tmp_path / "subject.toml"
    path.write_text(text.replace("switchboard = 29100", "offset = 100"))

    with pytest.raises(BadInput, match=r"argv or \[env\] to say \{port\}") as refused:
        read_subject(path)

    assert "ports.offset" == refused.value.key
