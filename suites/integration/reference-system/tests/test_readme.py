"""The examples of planning/README.md are hand-overs that its gates accept."""

from decimal import Decimal
from pathlib import Path

from workbench_contract.episodes import AgentRole
from workbench_contract.review import ProofKind
from workbench_planning.agreement import CatalogueRow
from workbench_planning.handover import Known, judge
from workbench_planning.todo_md import Issued

README = Path(__file__).parents[1] / "planning" / "README.md"


def examples():
    """The fenced examples, by the file name that stands behind the language."""
    found = {}
    for number, piece in enumerate(README.read_text(encoding="utf-8").split("\n```")):
        head, _, body = piece.partition("\n")
        if number % 2:
            found[head.split()[1]] = (body + "\n").encode()
    return found


FILES = examples()
ISSUED = (
    Issued(id="aa", text="Choose the motor"),
    Issued(id="bb", text="Check the spring"),
)
SCREW = CatalogueRow(part_id="ISO4762-M4x20", version=1, unit_cost_usd=Decimal("0.12"))


def test_planner():
    """The four files of a planner are one hand-over."""
    names = ("plan.md", "todo.md", "objectives.yaml", "preliminary_cost_estimation.yaml")
    known = Known(issued=ISSUED, catalogue={SCREW.part_id: SCREW})
    verdict = judge(AgentRole.PLANNER, {name: FILES[name] for name in names}, known)

    assert ((), ()) == (verdict.findings, verdict.warnings)
    assert verdict.accepted


def test_coder():
    """The refusal is one, with the proof that it names."""
    ids = {ProofKind.SIMULATION: {"simulation-7"}, ProofKind.PRICE: {"price-2"}}
    files = {"plan_refusal.md": FILES["plan_refusal.md"]}
    verdict = judge(AgentRole.CODER, files, Known(proof_ids=ids))

    assert () == verdict.findings
    assert verdict.refuses_plan


def test_reviewer():
    """The review is one of what was handed over and read."""
    handed = {"model.py": "1" * 64, "renders/front.png": "2" * 64}
    known = Known(handed_over=handed, read=set(handed.items()))
    verdict = judge(AgentRole.REVIEWER, {"review.md": FILES["review.md"]}, known)

    assert () == verdict.findings
    assert verdict.accepted
