"""The ledger of a suite: what is read, every mistake, and tests against requirements both ways."""

from pathlib import Path

import pytest

from harness_core.errors import BadInput
from harness_core.faults import Fault
from harness_core.ledger import (
    SourceFile,
    check_coverage,
    check_fault_counts,
    load_ledger,
)

GOOD = """\
[ledger]
prefix = "REQ-"
marker = "req"
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

@pytest.mark.req("REQ-001")
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
    return [problem.rule for problem in check_coverage(files, ledger_of(folder, ledger))]


def test_a_ledger_is_read(tmp_path):
    """Rows are what the file says, and know whether they are covered."""
    ledger = ledger_of(tmp_path)

    assert ("REQ-", "req", 2) == (ledger.prefix, ledger.marker, ledger.faults_each)
    assert ["REQ-001"] == [row.id for row in ledger.covered]
    assert [("REQ-002", "needs doors with hinges")] == [
        (row.id, row.reason) for row in ledger.deferred
    ]
    assert "a locked door is refused" == ledger.requirements["REQ-001"].fails


MISTAKES = {
    "gap": ("REQ-002", "REQ-003", "requirement.id", "REQ-002"),
    "twice": ('id = "REQ-002"', 'id = "REQ-001"', "id", "used once"),
    "shape": ('id = "REQ-002"', 'id = "R-2"', "id", "a string like"),
    "priority": ('priority = "p1"', 'priority = "p9"', "priority", "one of p0, p1"),
    "status": ('"deferred"', '"later"', "status", "covered or deferred"),
    "no-reason": ('reason = "needs doors with hinges"\n', "", "reason", "a reason"),
    "reason-of-a-covered-row": (
        'status = "covered"',
        'status = "covered"\nreason = "x"',
        "reason",
        "it is covered",
    ),
    "no-fail-path": ('fails = "a locked door is refused"\n', "", "fails", "no_fail_path"),
    "both": ("no_fail_path =", 'fails = "x"\nno_fail_path =', "fails", "either"),
    "no-asserts": ('asserts = ["it is heard"]\n', "", "asserts", "non-empty strings"),
    "misspelt": ('title = "Doors creak"', 'titel = "Doors creak"', "title", "non-empty"),
    "unknown-key": ("title =", "colour = 1\ntitle =", "colour", "one of the keys"),
    "order": (
        GOOD[GOOD.index("[[req") :],
        GOOD[GOOD.rindex("[[req") :] + GOOD[GOOD.index("[[req") : GOOD.rindex("[[req")],
        "requirement[0].id",
        "ids in order",
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
        ('@pytest.mark.req("REQ-001")\n', "", ["test-without-id", "id-without-test"]),
        ('("REQ-001")', '("REQ-001", "REQ-002")', ["test-without-id"]),
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


def test_a_second_test_of_an_id_is_a_finding(tmp_path):
    """Also one in another file."""
    assert ["id-covered-twice"] == findings(tmp_path, TEST, TEST)


def test_a_test_aside_needs_no_id(tmp_path):
    """What proves the suite itself says that it covers no requirement."""
    aside = '@pytest.mark.aside("why")\ndef test_other():\n    assert 1 == two()\n'

    assert [] == findings(tmp_path, f"{TEST}\n{aside}")


def fault(requirement: str) -> Fault:
    """A fault of that requirement."""
    return Fault(id="x", why="x", requirement=requirement, env={}, tests=(), says=None)


def test_a_covered_id_needs_its_faults(tmp_path):
    """Fewer planted faults than the ledger demands are a finding, at the row's own line."""
    ledger = ledger_of(tmp_path)

    (problem,) = check_fault_counts([fault("REQ-001")], ledger)
    assert ("too-few-faults", 12) == (problem.rule, problem.line)
    assert [] == list(check_fault_counts([fault("REQ-001")] * 2, ledger))


def test_a_fault_of_an_unknown_id_is_a_finding(tmp_path):
    """It would count for nothing."""
    planted = [*[fault("REQ-001")] * 2, fault("REQ-012")]

    assert ["unknown-id"] == [
        problem.rule for problem in check_fault_counts(planted, ledger_of(tmp_path))
    ]
