"""``review.md``: the decision, what it rests on, and whether that was looked at.

The decision is in the front matter (``front_matter.py``); what follows it is for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import PurePosixPath

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.findings import Finding, Stage
from workbench_contract.review import Review
from workbench_planning.front_matter import read_front_matter
from workbench_planning.schema import model_of, value_at
from workbench_planning.templates import placeholders
from workbench_planning.text import finding, shortened

FILE = "review.md"

#: Names end so where a reviewer can look at them; any file can be checked.
_SUFFIXES = {
    "images_viewed": frozenset({".png", ".jpg", ".jpeg", ".webp"}),
    "videos_viewed": frozenset({".mp4", ".webm"}),
    "files_checked": None,
}
_ON_A_REFUSAL = frozenset({ReviewDecision.CONFIRM_PLAN_REFUSAL, ReviewDecision.REJECT_PLAN_REFUSAL})


def read_review(data: bytes) -> tuple[Review | None, list[Finding]]:
    """The review, or all that is wrong with its form."""
    document, findings = read_front_matter(data, file=FILE)
    if document is None:
        return None, findings
    marks = placeholders(document, file=FILE)
    review, findings = model_of(Review, document, file=FILE)
    told = {each.where for each in marks}
    findings = [*marks, *(each for each in findings if each.where not in told)]
    decision = value_at(document.value, ("decision",))
    comments = value_at(document.value, ("comments",))
    if comments == [] and decision != ReviewDecision.APPROVED:
        expected = "at least one comment, but on an approval"
        findings.append(finding(FILE, document.where(("comments",)), "no comment", expected))
    if value_at(document.value, ("optimal",)) is True and decision != ReviewDecision.APPROVED:
        found = f"`optimal: true` beside {shortened(str(decision))}"
        findings.append(finding(FILE, document.where(("optimal",)), found, "it beside an approval alone"))
    return (None if findings else review), findings


def check_decision(review: Review, *, refusal_pending: bool) -> list[Finding]:
    """A decision is on what was handed over: a refusal of the plan, or a design."""
    if (review.decision in _ON_A_REFUSAL) == refusal_pending:
        return []
    allowed = [each for each in ReviewDecision if (each in _ON_A_REFUSAL) == refusal_pending]
    what = "a refusal of the plan" if refusal_pending else "a design"
    found = f"{review.decision.value} on {what}"
    expected = " or ".join(each.value for each in allowed)
    return [finding(FILE, "decision", found, expected, stage=Stage.AGREE)]


def check_evidence(
    review: Review, handed_over: Mapping[str, str], read: Set[tuple[str, str]]
) -> list[Finding]:
    """Evidence that is not of this hand-over, or that the reviewer has not looked at.

    Args:
        handed_over: from path to sha256, files and assets.
        read: path and sha256 of what the reviewer's session read, by its events.
    """
    findings: list[Finding] = []

    def note(where: str, found: str, expected: str) -> None:
        findings.append(finding(FILE, where, found, expected, stage=Stage.AGREE))

    for name, suffixes in _SUFFIXES.items():
        first: dict[str, int] = {}
        for index, seen in enumerate(getattr(review.evidence, name)):
            where = f"evidence.{name}[{index}]"
            path = shortened(seen.path)
            if first.setdefault(seen.path, index) != index:
                note(where, f"{path} a second time", "each file once")
            elif seen.path not in handed_over:
                note(where, path, "a file or asset of this hand-over")
            elif seen.sha256 != handed_over[seen.path]:
                found = f"{path} with sha256 {seen.sha256}"
                note(where, found, f"the sha256 handed over, {handed_over[seen.path]}")
            elif (seen.path, seen.sha256) not in read:
                note(where, f"{path}, which no event shows as read", "what this session has read")
            elif suffixes and PurePosixPath(seen.path).suffix.lower() not in suffixes:
                note(where, path, f"a file that ends in {', '.join(sorted(suffixes))}")
    return findings
