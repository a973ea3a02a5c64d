"""``plan_refusal.md``: why a coder cannot carry out the plan, and what proves it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from workbench_contract.findings import Finding, Stage
from workbench_contract.review import PlanRefusal, ProofKind
from workbench_planning.front_matter import read_front_matter
from workbench_planning.schema import model_of
from workbench_planning.templates import placeholders
from workbench_planning.text import finding, shortened

FILE = "plan_refusal.md"


def read_refusal(data: bytes) -> tuple[PlanRefusal | None, list[Finding]]:
    """The refusal, or all that is wrong with its form."""
    document, findings = read_front_matter(data, file=FILE)
    if document is None:
        return None, findings
    marks = placeholders(document, file=FILE)
    refusal, findings = model_of(PlanRefusal, document, file=FILE)
    told = {each.where for each in marks}
    findings = [*marks, *(each for each in findings if each.where not in told)]
    return (None if findings else refusal), findings


def check_proof(refusal: PlanRefusal, ids: Mapping[ProofKind, Set[str]]) -> list[Finding]:
    """Proof that is none of this episode.

    Args:
        ids: of the simulations and pricings of this episode.
    """
    findings = []
    for index, proof in enumerate(refusal.proof):
        if proof.id not in ids.get(proof.kind, frozenset()):
            found = f"the {proof.kind.value} {shortened(proof.id)}"
            expected = f"the id of a {proof.kind.value} of this episode"
            where = f"proof[{index}].id"
            findings.append(finding(FILE, where, found, expected, stage=Stage.AGREE))
    return findings
