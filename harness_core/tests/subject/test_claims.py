"""What a subject file may claim is what its suite declares; what a claim needs must be in the file."""

import pytest

from harness_core.base.errors import BadInput
from harness_core.system.claims import missing_keys
from harness_core.system.staging import subject_of
from harness_core.system.suites import load_suite

SUITE = """
[suite]
name = "demo"
summary = "s"
group = "test"
subject = "subject.toml"
[[session]]
name = "demo"
summary = "s"
[[capability]]
name = "echo"
demands = "It says what it is told."
shown_by = ["test_demo.py::test_echo"]
needs = ["texts.echo"]
[[capability]]
name = "route.v1"
demands = "It routes."
shown_by = ["test_demo.py::test_route"]
"""

TEXTS = '[texts]\necho = "say {text}"\n'


@pytest.fixture
def claim(tmp_path):
    """Reads a subject file that claims what it is given."""
    folder = tmp_path / "suites" / "demo"
    folder.mkdir(parents=True)
    for name, text in {"suite.toml": SUITE, "test_demo.py": "", "subject.toml": ""}.items():
        (folder / name).write_text(text)

    def claiming(names: list[str], more: str = ""):
        path = tmp_path / "mine.toml"
        path.write_text(f'[subject]\nname = "x"\nargv = ["x"]\ncapabilities = {names}\n{more}')
        return subject_of(load_suite(folder), path, root=tmp_path)

    return claiming


def test_what_is_declared_may_be_claimed(claim):
    """With the keys that tests of it read."""
    subject = claim(["echo", "route.v1"], TEXTS)

    assert {"echo", "route.v1"} == subject.capabilities


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "ecko",
            "found 'ecko', expected a [[capability]] of suites/demo/suite.toml: echo, route.v1",
        ),
        ("ecko", "Did you mean echo?"),
        ("route.v2", "Did you mean route.v1?"),
    ],
)
def test_what_no_suite_declares_is_refused(claim, tmp_path, name, says):
    """Misspelt, it would skip every test of the right one."""
    with pytest.raises(BadInput) as refused:
        claim([name], TEXTS)

    assert (str(tmp_path / "mine.toml"), "subject.capabilities") == (
        refused.value.where,
        refused.value.key,
    )
    assert says in str(refused.value)


@pytest.mark.parametrize("more", ["", "[texts]\n"])
def test_a_claim_without_its_keys_is_refused(claim, more):
    """Every test of it would be an error of the harness."""
    with pytest.raises(BadInput, match="since the capability 'echo' is claimed") as refused:
        claim(["echo"], more)

    assert "texts.echo" == refused.value.key


def test_what_is_not_claimed_needs_nothing(claim, tmp_path):
    """What it would need is known all the same, for whoever tries it."""
    subject = claim(["route.v1"])
    echo, route = load_suite(tmp_path / "suites" / "demo").capabilities

    assert ["texts.echo"] == missing_keys(subject, echo)
    assert [] == missing_keys(subject, route)
