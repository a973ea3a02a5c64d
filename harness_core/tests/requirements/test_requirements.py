"""The ledger of a suite: what is read, every mistake, and tests against requirements both ways."""

from pathlib import Path

import pytest

from harness_core.assurance.planted import Fault
from harness_core.assurance.requirements import (
    SourceFile,
    check_coverage,
    check_faults,
    covering_tests,
    load_ledger,
)
from harness_core.base.errors import BadInput

GOOD = """\
[ledger]
prefix = "REQ-"
faults_each = 2
[ledger.priorities]
p0 = "now"
p1 = "later"
[ledger.stand_ins]
model = "model provider"

[[requirement]]
id = "REQ-001"
title = "Doors open"
priority = "p0"
asserts = ["the door is open afterwards"]
fails = "a locked door is refused"
status = "covered"

[[requirement]]
id = "REQ-002"
title = "Doors creak"
priority = "p1"
asserts = ["it is heard"]
no_fail_path = "nothing about a creak is refused"
status = "deferred"
reason = "needs doors with hinges"
"""

TEST = '''\
import pytest

@pytest.mark.covers("REQ-001")
@pytest.mark.now
def test_doors():
    """They open."""
    assert 1 == door()
'''


def ledger_of(folder: Path, text: str = GOOD):
    """The ledger that the text is."""
    path = folder / "ledger.toml"
    path.write_text(text)
    return load_ledger(path)


def findings(folder: Path, *sources: str, ledger: str = GOOD):
    """The rules that the sources, each a test file, break."""
    files = {
        Path(f"test_{number}.py"): SourceFile.parse(text, path=f"test_{number}.py")
        for number, text in enumerate(sources)
    }
    tests = covering_tests(files)
    return [problem.rule for problem in check_coverage(tests, ledger_of(folder, ledger))]


def test_a_ledger_is_read(tmp_path):
    """Rows are what the file says, and know whether they are covered."""
    ledger = ledger_of(tmp_path)

    assert ("REQ-", 2) == (ledger.prefix, ledger.faults_each)
    assert ["REQ-001"] == [row.id for row in ledger.covered]
    assert [("REQ-002", "needs doors with hinges")] == [
        (row.id, row.reason) for row in ledger.deferred
    ]
    assert "a locked door is refused" == ledger.requirements["REQ-001"].fails


MISTAKES = {
    "gap": ("REQ-002", "REQ-003", "requirement[1].id", "expected REQ-002"),
    "width": ('id = "REQ-002"', 'id = "REQ-02"', "requirement[1].id", "expected REQ-002"),
    "not-numbered": ('id = "REQ-002"', 'id = "REQ-CREAK"', "requirement[1].id", "without a gap"),
    "twice": ('id = "REQ-002"', 'id = "REQ-001"', "id", "used once"),
    "shape": ('id = "REQ-002"', 'id = "R-2"', "id", "a text like"),
    "priority": ('priority = "p1"', 'priority = "p9"', "priority", "one of p0, p1"),
    "no-reason": ('reason = "needs doors with hinges"\n', "", "reason", "a reason"),
    "reason-of-a-covered-row": (
        'status = "covered"',
        'status = "covered"\nreason = "needs time"',
        "reason",
        "found 'needs time', expected none: the row is covered. Remove it, or set the status of",
    ),
    "reason-left-behind": (
        '"deferred"',
        '"covered"',
        "requirement[1](REQ-002).reason",
        "Remove it",
    ),
    "no-fail-path": ('fails = "a locked door is refused"\n', "", "fails", "no_fail_path"),
    "both": ("no_fail_path =", 'fails = "x"\nno_fail_path =', "fails", "either"),
    "whole-of-nothing": ("faults_each", 'whole = ["p7"]\nfaults_each', "whole", "out of p0, p1"),
    "whole-and-deferred": (
        "faults_each",
        'whole = ["p1"]\nfaults_each',
        "requirement[1](REQ-002).status",
        "covered: p1 is shown whole",
    ),
    "allowed-rule": (
        "[ledger.stand_ins]",
        '[ledger.allowed]\nsleep = "tired"\n[ledger.stand_ins]',
        "allowed",
        "rules out of driver, fake-client",
    ),
    "order": (
        GOOD[GOOD.index("[[req") :],
        GOOD[GOOD.rindex("[[req") :] + GOOD[GOOD.index("[[req") : GOOD.rindex("[[req")],
        "requirement[0].id",
        "expected REQ-001",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_ledger_is_one_error(name, tmp_path):
    """It names the file, the row and the key."""
    old, new, key, says = MISTAKES[name]

    with pytest.raises(BadInput) as error:
        ledger_of(tmp_path, GOOD.replace(old, new, 1))

    assert error.value.key.endswith(key)
    assert says in str(error.value)
    assert "ledger.toml" in str(error.value)


def test_a_covered_id_with_its_test_is_in_order(tmp_path):
    """Nothing is found where ledger and tests agree."""
    assert [] == findings(tmp_path, TEST)


def test_a_module_mark_counts_as_priority(tmp_path):
    """``pytestmark`` marks every test of its file."""
    text = TEST.replace("@pytest.mark.now\n", "")

    assert [] == findings(tmp_path, f"{text}\npytestmark = [pytest.mark.now]\n")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (TEST, "", ["id-without-test"]),
        ('@pytest.mark.covers("REQ-001")\n', "", ["test-without-id", "id-without-test"]),
        ("covers(", "covers.x(", ["test-without-id", "id-without-test"]),
        ('("REQ-001")', "", ["unknown-id", "id-without-test"]),
        ('("REQ-001")', '("REQ-001", "REQ-002")', ["id-deferred", "priority"]),
        ('("REQ-001")', '("REQ-009")', ["unknown-id", "id-without-test"]),
        ('("REQ-001")', "(SOME)", ["unknown-id", "id-without-test"]),
        ('("REQ-001")', '("REQ-002")', ["id-deferred", "priority", "id-without-test"]),
        ("mark.now", "mark.later", ["priority"]),
        ("@pytest.mark.now\n", "", ["priority"]),
        ("@pytest.mark.now", "@pytest.mark.now\n@pytest.mark.later", ["priority"]),
    ],
)
def test_a_disagreement_is_a_finding(old, new, rule, tmp_path):
    """A test without id, an id without test, a deferred id with one, a wrong priority."""
    assert old in TEST
    assert rule == findings(tmp_path, TEST.replace(old, new, 1))


def test_an_id_may_have_several_tests(tmp_path):
    """Also in another file."""
    assert [] == findings(tmp_path, TEST, TEST)


def test_a_test_may_cover_several_ids(tmp_path):
    """It carries the priority of each."""
    ledger = GOOD.replace('"deferred"', '"covered"').replace(
        'reason = "needs doors with hinges"\n', ""
    )
    both = TEST.replace('("REQ-001")', '("REQ-001", "REQ-002")')
    marked = both.replace("@pytest.mark.now", "@pytest.mark.now\n@pytest.mark.later")

    assert ["priority"] == findings(tmp_path, both, ledger=ledger)
    assert [] == findings(tmp_path, marked, ledger=ledger)


NEAREST = """\
import pytest
pytestmark = [pytest.mark.now, pytest.mark.covers("REQ-001")]

def test_of_the_file(): assert 1 == one()

@pytest.mark.covers("REQ-009")
def test_of_its_own(): assert 1 == one()

@pytest.mark.aside("shows the helper")
def test_beside(): assert 1 == one()

@pytest.mark.covers("REQ-008")
class TestDoors:
    def test_of_the_class(self): assert 1 == one()

    @pytest.mark.covers("REQ-001")
    def test_again(self): assert 1 == one()
"""


def test_the_nearest_mark_counts():
    """That of the test before that of its class, before that of its file."""
    files = {Path("test_x.py"): SourceFile.parse(NEAREST, path="test_x.py")}

    assert {
        "test_x.py::test_of_the_file": (("REQ-001",), ()),
        "test_x.py::test_of_its_own": (("REQ-009",), ()),
        "test_x.py::test_beside": ((), ("shows the helper",)),
        "test_x.py::TestDoors::test_of_the_class": (("REQ-008",), ()),
        "test_x.py::TestDoors::test_again": (("REQ-001",), ()),
    } == {test.nodeid: (test.ids, test.aside) for test in covering_tests(files)}


@pytest.mark.parametrize(
    ("mark", "found"),
    [
        ('aside("why")', []),
        ("aside", ["test-without-id"]),
        ("aside()", ["test-without-id"]),
        ('aside(" ")', ["test-without-id"]),
        ('aside("why")\n@pytest.mark.covers("REQ-001")', ["test-without-id"]),
    ],
)
def test_a_test_aside_says_why(mark, found, tmp_path):
    """What proves the suite itself covers no requirement, and has a reason."""
    aside = f"@pytest.mark.{mark}\ndef test_other():\n    assert 1 == two()\n"

    assert found == findings(tmp_path, f"{TEST}\n{aside}")


WORDS = """\
[ledger]
prefix = "DOOR-"
[[requirement]]
id = "DOOR-OPEN"
title = "Doors open"
asserts = ["the door is open afterwards"]
fails = "a locked door is refused"
status = "covered"
"""


def test_a_ledger_without_numbers_and_priorities(tmp_path):
    """Ids are words, and tests carry no mark of a priority."""
    text = TEST.replace("REQ-001", "DOOR-OPEN").replace("@pytest.mark.now\n", "")

    assert [] == findings(tmp_path, text, ledger=WORDS)
    assert ["DOOR-OPEN"] == list(ledger_of(tmp_path, WORDS).requirements)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["1-OPEN", "1-SHUT", "2", "3-A", "3-B"], ""),
        (["2-OPEN"], "DOOR-1"),
        (["1-OPEN", "3-SHUT"], "DOOR-2"),
        (["1-OPEN", "2", "1-SHUT"], "DOOR-3"),
    ],
)
def test_a_number_may_have_several_rows(ids, expected, tmp_path):
    """``DOOR-1-OPEN`` and ``DOOR-1-SHUT`` are of contract 1; no contract is left out."""
    head, row = WORDS.split("[[requirement]]")
    rows = [f"[[requirement]]{row.replace('DOOR-OPEN', f'DOOR-{each}')}" for each in ids]
    text = "".join([head, *rows])
    if not expected:
        assert [f"DOOR-{each}" for each in ids] == list(ledger_of(tmp_path, text).requirements)
        return
    with pytest.raises(BadInput) as error:
        ledger_of(tmp_path, text)

    assert error.value.expected.startswith(f"{expected}:")


def fault(requirement: str, test: str = "test_x.py::test_doors[a]") -> Fault:
    """A fault of that requirement."""
    return Fault(id="x", why="x", requirement=requirement, env={}, tests=(test,), says=None)


@pytest.fixture
def tests():
    """One test, which covers REQ-001."""
    return covering_tests({Path("test_x.py"): SourceFile.parse(TEST, path="test_x.py")})


def test_a_covered_id_needs_its_faults(tests, tmp_path):
    """Fewer planted faults than the ledger demands are a finding, at the row's own line."""
    ledger = ledger_of(tmp_path)

    (problem,) = check_faults([fault("REQ-001")], tests, ledger)
    assert ("too-few-faults", 11) == (problem.rule, problem.line)
    assert [] == list(check_faults([fault("REQ-001")] * 2, tests, ledger))


def test_a_fault_of_an_unknown_id_is_a_finding(tests, tmp_path):
    """It would count for nothing."""
    planted = [*[fault("REQ-001")] * 2, fault("REQ-012")]

    assert ["unknown-id"] == [
        problem.rule for problem in check_faults(planted, tests, ledger_of(tmp_path))
    ]


def test_a_fault_turns_a_test_of_its_requirement_red(tests, tmp_path):
    """One that only turns others red shows nothing of that requirement."""
    planted = [*[fault("REQ-001")] * 2, fault("REQ-001", "test_x.py::test_windows")]

    assert ["fault-elsewhere"] == [
        problem.rule for problem in check_faults(planted, tests, ledger_of(tmp_path))
    ]
