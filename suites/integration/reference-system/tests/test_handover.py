"""The gates of planner, coder and reviewer: stage by stage, all findings of the first that has any."""

import hashlib
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.episodes import AgentRole
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import Objectives
from workbench_contract.review import ProofKind
from workbench_planning.agreement import CatalogueRow
from workbench_planning.handover import Known, judge
from workbench_planning.text import MOST_FINDINGS, bounded
from workbench_planning.todo_md import Issued

ESTIMATE = "preliminary_cost_estimation.yaml"

PLAN = """\
## 1. Solution Overview

A flap throws the ball over the pit.

## 2. Parts List

| id | what | quantity | unit_cost_usd | catalogue_version |
|---|---|---|---|---|
| `base` | holds all | 1 | 12.50 | |
| `flap` | throws | 2 x | $6.00 | |
| `ISO4762-M4x20` | holds the base | 4 | 0.12 USD | 3 |

## 3. Assembly Strategy

1. Screw the flap to the base.

## 4. Cost & Weight Budget

- planner_target_max_unit_cost_usd: 45.00 USD
- planner_target_max_weight_g: 1000.5 g
- reserve: 5 USD

## 5. Risk Assessment

- The ball may miss.
"""

OBJECTIVES = {
    "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [100, 10, 20]},
    "forbid_zones": [{"name": "pit", "min_mm": [30, -10, 0], "max_mm": [50, 10, 5]}],
    "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
    "simulation_bounds": {"min_mm": [-50, -50, -10], "max_mm": [150, 50, 100]},
    "moved_object": {"label": "ball", "shape": "sphere", "size": {"radius_mm": 5}, "start_mm": [10, 0, 40]},
    "moving_parts": [],
    "constraints": {"max_unit_cost_usd": 50.10, "max_weight_g": 1200},
    "randomization": {"variant": "v1", "seeds": [0]},
}  # fmt: skip

COSTS = {
    "constraints": {
        "benchmark_max_unit_cost_usd": 50.10,
        "benchmark_max_weight_g": 1200,
        "planner_target_max_unit_cost_usd": 45,
        "planner_target_max_weight_g": 1000.5,
    },
    "manufactured_parts": [
        {"id": "base", "method": "cnc", "material": "aluminium_6061", "quantity": 1, "volume_mm3": 40000,
         "stock_mm": [50, 40, 20], "unit_cost_usd": 12.50, "unit_weight_g": 108},
        {"id": "flap", "method": "print", "material": "pla_filament", "quantity": 2, "volume_mm3": 9000,
         "layer_mm": 0.2, "infill": 0.3, "unit_cost_usd": 6, "unit_weight_g": 3.348},
    ],
    "cots_parts": [
        {"part_id": "ISO4762-M4x20", "quantity": 4, "unit_cost_usd": 0.12, "catalogue_version": 3,
         "source": "bd_warehouse"},
    ],
    "assembly": {"units": 10, "steps": []},
    "totals": {"assembly_cost_usd": 2.05, "unit_cost_usd": 27.03, "weight_g": 123.5},
}  # fmt: skip

ISSUED = (Issued(id="aa", text="Choose the motor"), Issued(id="bb", text="Check the price"))
TODO = "- [x] Choose the motor <!-- todo:aa -->\n- [-] Check the price: none <!-- todo:bb -->\n"

SCREW = CatalogueRow(
    part_id="ISO4762-M4x20",
    version=3,
    unit_cost_usd=Decimal("0.20"),
    tiers=((1, Decimal("0.20")), (100, Decimal("0.08")), (40, Decimal("0.12"))),
)
KNOWN = {
    "issued": ISSUED,
    "benchmark": Objectives.model_validate(OBJECTIVES),
    "catalogue": {SCREW.part_id: SCREW},
}


def planned(**changes):
    """A planner's files: ``plan``, ``todo``, ``objectives``, ``costs`` can be others; none leaves one out."""
    given = {"plan": PLAN, "todo": TODO, "objectives": OBJECTIVES, "costs": COSTS} | changes
    names = {
        "plan": "plan.md",
        "todo": "todo.md",
        "objectives": "objectives.yaml",
        "costs": ESTIMATE,
    }
    files = {}
    for key, value in given.items():
        if value is not None:
            text = value if isinstance(value, (str, bytes)) else json.dumps(value)
            files[names[key]] = text if isinstance(text, bytes) else text.encode()
    return files


def changed(value, path, new):
    """A copy of a value with something else at a path."""
    made = json.loads(json.dumps(value))
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    at = made
    for step in steps:
        at = at[step]
    at[last] = new
    return made


def told(files, *, role=AgentRole.PLANNER, **known):
    """Stage and (file, where) of what is found."""
    verdict = judge(role, files, Known(**(KNOWN | known)))
    stages = {each.stage for each in verdict.findings}

    assert verdict.accepted == (not verdict.findings)
    assert 1 >= len(stages)
    return (
        *(each.value for each in stages),
        *((each.file, each.where) for each in verdict.findings),
    )


def test_accepted():
    """A hand-over in order is a record of every file, others of the role included."""
    files = planned() | {"notes/idea.md": b"", "sketch.py": b"x = 1\n"}
    verdict = judge(AgentRole.PLANNER, files, Known(**KNOWN))

    assert () == verdict.findings
    assert {
        path: hashlib.sha256(data).hexdigest() for path, data in files.items()
    } == verdict.record


@given(
    st.permutations(["plan.md", "todo.md", "objectives.yaml", ESTIMATE]), st.sets(st.integers(0, 3))
)
def test_order_and_absence(order, absent):
    """Whatever order files come in, exactly the absent ones are told, and nothing of the others."""
    good = planned()
    files = {name: good[name] for name in order}
    for number in absent:
        files[order[number]] = b" \n"
    expected = {(order[number], "") for number in absent}
    first, *rest = told(files) or (None,)

    assert ("present" if absent else None) == first
    assert expected == set(rest)


def test_absent_before_all_else():
    """While a file is absent nothing is said of the others, however wrong they are."""
    assert ("present", ("todo.md", "")) == told(planned(todo=None, plan="# no plan"))


def test_every_file_by_itself():
    """All that is wrong with each file is told at once."""
    files = planned(
        plan=PLAN.replace("## 5. Risk", "## 5. Risks"),
        todo=TODO.replace("[x]", "[ ]"),
        objectives=changed(OBJECTIVES, "goal_zone.max_mm.0", 500),
        costs=b"\xff",
    )

    assert (
        "valid",
        ("plan.md", "## 5. Risks Assessment (line 23)"),
        ("plan.md", "## 5. Risk Assessment"),
        ("todo.md", "line 1"),
        ("objectives.yaml", "goal_zone (line 1)"),
        (ESTIMATE, "line 1"),
    ) == told(files)


AGREE = {
    "quantity in the plan": ({"plan": PLAN.replace("2 x", "3 x")}, {}, [("plan.md", "line 10")]),
    "quantity in words": ({"plan": PLAN.replace("2 x", "two")}, {}, [("plan.md", "line 10")]),
    "part without a row": ({"plan": PLAN.replace("| `flap` | throws | 2 x | $6.00 | |\n", "")}, {},
                           [("plan.md", "## 2. Parts List")]),
    "row without a part": ({"plan": PLAN.replace("| `flap`", "| `lid` | | | | |\n| `flap`")}, {},
                           [("plan.md", "line 10")]),
    "row twice": ({"plan": PLAN.replace("| `flap`", "| `base` | | | | |\n| `flap`")}, {}, [("plan.md", "line 10")]),
    "another id": ({"plan": PLAN.replace("`flap`", "`Flap`")}, {},
                   [("plan.md", "line 10"), ("plan.md", "## 2. Parts List")]),
    "price in the plan": ({"plan": PLAN.replace("0.12", "0.13")}, {}, [("plan.md", "line 11")]),
    "no price in the plan": ({"plan": PLAN.replace("0.12 USD", "")}, {}, [("plan.md", "line 11")]),
    "version in the plan": ({"plan": PLAN.replace("| 3 |", "| 2 |")}, {}, [("plan.md", "line 11")]),
    "price of a made part": ({"plan": PLAN.replace("$6.00", "6.01")}, {}, [("plan.md", "line 10")]),
    "no columns": ({"plan": PLAN.replace("| unit_cost_usd | catalogue_version |", "| a | b |")}, {},
                   [("plan.md", "line 11"), ("plan.md", "line 11")]),
    "cost budget": ({"plan": PLAN.replace("45.00", "45.01")}, {}, [("plan.md", "line 19")]),
    "weight budget": ({"plan": PLAN.replace("1000.5", "1000")}, {}, [("plan.md", "line 20")]),
    "no cost budget": ({"plan": PLAN.replace("planner_target_max_unit_cost_usd", "cost")}, {},
                       [("plan.md", "## 4. Cost & Weight Budget")]),
    "two cost budgets": ({"plan": PLAN.replace("reserve", "planner_target_max_unit_cost_usd")}, {},
                         [("plan.md", "## 4. Cost & Weight Budget")]),
    "caps of the estimate": ({"costs": changed(COSTS, "constraints.benchmark_max_unit_cost_usd", 60)}, {},
                             [(ESTIMATE, "constraints.benchmark_max_unit_cost_usd")]),
    "target above the objectives": (
        {"objectives": changed(OBJECTIVES, "constraints", {"max_unit_cost_usd": 44.99, "max_weight_g": 1000})}, {},
        [(ESTIMATE, "constraints.planner_target_max_unit_cost_usd"),
         (ESTIMATE, "constraints.planner_target_max_weight_g")]),
    "caps above the benchmark": ({"objectives": changed(OBJECTIVES, "constraints.max_weight_g", 1201)}, {},
                                 [("objectives.yaml", "constraints.max_weight_g")]),
    "pit moved": ({"objectives": changed(OBJECTIVES, "forbid_zones.0.max_mm.0", 49)}, {},
                  [("objectives.yaml", "forbid_zones[0].max_mm[0]")]),
    "price in the catalogue": ({}, {"catalogue": {SCREW.part_id: CatalogueRow(
        part_id=SCREW.part_id, version=3, unit_cost_usd=Decimal("0.13"))}}, [(ESTIMATE, "cots_parts[0].unit_cost_usd")]),
    "version of the catalogue": ({}, {"catalogue": {SCREW.part_id: CatalogueRow(
        part_id=SCREW.part_id, version=4, unit_cost_usd=Decimal("0.12"))}},
        [(ESTIMATE, "cots_parts[0].catalogue_version")]),
    "part that left": ({}, {"catalogue": {}}, [(ESTIMATE, "cots_parts[0].part_id")]),
    "tier of more": ({"costs": changed(COSTS, "assembly.units", 25)}, {}, [(ESTIMATE, "cots_parts[0].unit_cost_usd")]),
    "tier of fewer": ({"costs": changed(COSTS, "assembly.units", 9)}, {}, [(ESTIMATE, "cots_parts[0].unit_cost_usd")]),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREE)
def test_agree(name):
    """Files that differ from each other, the benchmark or the catalogue are told where they do."""
    files, known, expected = AGREE[name]

    assert ("agree", *expected) == told(planned(**files), **known)


LISTS = """\
- `base`: holds all
- flap: throws; quantity: 2
- `ISO4762-M4x20` holds the base
  - unit_cost_usd: 0.12
  - catalogue_version: 3; quantity: 4
"""
TABLE = """\
| what | value |
|---|---|
| planner_target_max_unit_cost_usd | 45 |
| `planner_target_max_weight_g` | 1000.50 g |
"""


def test_lists_and_tables():
    """Parts may be a list and the budget a table."""
    before, rest = PLAN.split("| id |")
    middle, after = rest[rest.index("## 3.") :].split("- planner_target_max_unit")
    plan = before + LISTS + "\n" + middle + TABLE + "\n" + after[after.index("## 5.") :]

    assert () == told(planned(plan=plan))
    assert ("agree", ("plan.md", "line 8")) == told(
        planned(plan=plan.replace("quantity: 2", "quantity: 1"))
    )


def test_what_a_plan_need_not_say():
    """Quantities, and prices of parts that are made, may be left out."""
    for said in ("| 2 x | $6.00 |", "| 4 | 0.12 USD |"):
        left = said.replace("2 x", "").replace("$6.00", "").replace("| 4 |", "| |")

        assert () == told(planned(plan=PLAN.replace(said, left)))


def test_benchmark_planner():
    """Who makes the objectives is held to no other ones."""
    objectives = changed(OBJECTIVES, "goal_zone.max_mm.0", 99)

    assert () == told(planned(objectives=objectives), benchmark=None)


def test_price_and_simulation():
    """Price comes before simulation, which is not begun while price finds something."""
    asked = []

    def stage(name, findings):
        def check(submission):
            asked.append((name, submission.estimate.totals.weight_g))
            return findings

        return check

    one = Finding(stage=Stage.VALID, file=ESTIMATE, where="totals", found="51 USD", expected="50")
    both = {"price": stage("price", []), "simulate": stage("simulate", [one])}

    assert () == told(planned(), price=stage("price", []), simulate=stage("simulate", []))
    assert ("simulate", (ESTIMATE, "totals")) == told(planned(), **both)
    asked.clear()
    assert ("price", (ESTIMATE, "totals")) == told(
        planned(), **both | {"price": stage("price", [one])}
    )
    assert [("price", 123.5)] == asked
    asked.clear()
    assert "present" == told(planned(plan=None), **both)[0]
    assert [] == asked


def test_warnings():
    """No room to build is a warning of a hand-over that is accepted."""
    objectives = changed(OBJECTIVES, "build_zone", {"min_mm": [32, -5, 0], "max_mm": [48, 5, 4]})
    verdict = judge(
        AgentRole.PLANNER, planned(objectives=objectives), Known(**KNOWN | {"benchmark": None})
    )

    assert verdict.accepted
    assert ["build_zone"] == [each.where for each in verdict.warnings]


def test_many_findings():
    """An answer is bounded, and says how many findings it leaves out."""
    todo = "- [?] x\n" * 1_000 + TODO
    verdict = judge(AgentRole.PLANNER, planned(todo=todo), Known(**KNOWN))
    # A box that is none, and an entry before the issued ones.
    rest = 2 * 1_000 - (MOST_FINDINGS - 1)

    assert MOST_FINDINGS == len(verdict.findings)
    assert f"{rest} more findings" == verdict.findings[-1].found


def test_bounded():
    """Exactly as many findings as fit are told whole."""
    one = Finding(stage=Stage.AGREE, file="plan.md", where="line 1", found="a", expected="b")

    assert [one] * MOST_FINDINGS == bounded([one] * MOST_FINDINGS)
    *kept, last = bounded([one] * (MOST_FINDINGS + 1))
    assert [one] * (MOST_FINDINGS - 1) == kept
    assert (Stage.AGREE, "2 more findings") == (last.stage, last.found)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


DESIGN = {"model.py": b"part = 1\n", "todo.md": TODO.encode(), "plan.md": PLAN.encode()}
REFUSAL = "---\nreason: It cannot lift.\nproof:\n- {kind: price, id: p1}\n---\n"
CODER = {
    "design": (DESIGN, {}, ()),
    "no design": (DESIGN | {"model.py": b"\n"}, {}, ("present", ("model.py", ""))),
    "other design files": (DESIGN, {"design_files": ("a.py", "model.py")}, ("present", ("a.py", ""))),
    "open list": (DESIGN | {"todo.md": TODO.replace("[x]", "[ ]").encode()}, {}, ("valid", ("todo.md", "line 1"))),
    "plan unchanged": (DESIGN, {"unchanged": {"plan.md": digest(PLAN)}}, ()),
    "plan changed": (DESIGN | {"plan.md": b"other"}, {"unchanged": {"plan.md": digest(PLAN)}},
                     ("agree", ("plan.md", ""))),
    "plan emptied": (DESIGN | {"plan.md": b""}, {"unchanged": {"plan.md": digest(PLAN)}}, ("agree", ("plan.md", ""))),
    "environment gone": (DESIGN, {"unchanged": {"environment.step": digest("x")}},
                         ("agree", ("environment.step", ""))),
    "refusal": ({"plan_refusal.md": REFUSAL.encode()}, {"proof_ids": {ProofKind.PRICE: {"p1"}}}, ()),
    "refusal and design": (DESIGN | {"plan_refusal.md": REFUSAL.encode()},
                           {"proof_ids": {ProofKind.PRICE: {"p1"}}}, ()),
    "refusal without proof": ({"plan_refusal.md": REFUSAL.encode()}, {}, ("agree", ("plan_refusal.md", "proof[0].id"))),
    "refusal that is none": ({"plan_refusal.md": b"no"}, {}, ("valid", ("plan_refusal.md", "line 1"))),
    "empty refusal": ({"plan_refusal.md": b" "}, {}, ("present", ("todo.md", ""), ("model.py", ""))),
}  # fmt: skip


@pytest.mark.parametrize("name", CODER)
def test_coder(name):
    """A coder leaves a design, or a refusal with proof, and the plan as it was."""
    files, known, expected = CODER[name]

    assert expected == told(files, role=AgentRole.CODER, **known)
    assert (
        name.startswith(("refusal",))
        == judge(AgentRole.CODER, files, Known(**KNOWN | known)).refuses_plan
    )


def test_refusal_is_not_priced():
    """A refused plan is neither priced nor simulated; a design is."""
    one = Finding(stage=Stage.PRICE, file="model.py", where="", found="51 USD", expected="50")
    known = {"price": lambda _: [one], "proof_ids": {ProofKind.PRICE: {"p1"}}}

    assert () == told({"plan_refusal.md": REFUSAL.encode()}, role=AgentRole.CODER, **known)
    assert ("price", ("model.py", "")) == told(DESIGN, role=AgentRole.CODER, **known)


REVIEW = f"""\
---
decision: rejected
evidence:
  images_viewed: []
  videos_viewed: []
  files_checked: [{{path: model.py, sha256: {digest("part = 1")[:1]}{digest("part = 1")[1:]}}}]
comments: [Too short.]
---
"""
HANDED = {"model.py": digest("part = 1")}
REVIEWER = {
    "review": ({"review.md": REVIEW.encode()}, {}, ()),
    "no review": ({}, {}, ("present", ("review.md", ""))),
    "unread": ({"review.md": REVIEW.encode()}, {"read": set()}, ("agree", ("review.md", "evidence.files_checked[0]"))),
    "on a refusal": ({"review.md": REVIEW.encode()}, {"refusal_pending": True}, ("agree", ("review.md", "decision"))),
    "no decision": ({"review.md": REVIEW.replace("decision: rejected\n", "").encode()}, {},
                    ("valid", ("review.md", "decision (line 2)"))),
}  # fmt: skip


@pytest.mark.parametrize("name", REVIEWER)
def test_reviewer(name):
    """A reviewer leaves a review of what was handed over and read; nothing is priced for it."""
    files, known, expected = REVIEWER[name]
    known = {"handed_over": HANDED, "read": set(HANDED.items())} | known
    known["price"] = lambda _: pytest.fail("a review has no price")

    assert expected == told(files, role=AgentRole.REVIEWER, **known)


_BYTES = st.sampled_from([b"", b"x", b"\xff", b"a: [", PLAN.encode(), TODO.encode(), json.dumps(OBJECTIVES).encode(),
                          json.dumps(COSTS).encode(), REVIEW.encode(), REFUSAL.encode(), b"\0", b"---\n"])  # fmt: skip
_NAMES = st.sampled_from(
    ["plan.md", "todo.md", "objectives.yaml", ESTIMATE, "review.md", "plan_refusal.md", "model.py"]
)


@given(
    st.sampled_from(list(AgentRole)),
    st.dictionaries(_NAMES, _BYTES | st.binary(max_size=20), max_size=7),
)
def test_any_files(role, files):
    """No files raise: there is a record of all of them, or findings of one stage."""
    verdict = judge(role, files, Known(**KNOWN))

    assert bool(verdict.findings) == (verdict.record is None)
    assert verdict.record is None or set(files) == set(verdict.record)
