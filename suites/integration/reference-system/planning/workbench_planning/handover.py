"""The gate of each role: what it hands over, judged stage by stage.

Every stage says *all* that it finds; the first that finds something is the last. A hand-over without
findings is a record: the sha256 of every file, as the next role will have it.

- planner: plan, list, objectives, estimate; of a benchmark no estimate.
- coder: the list and the design, or a refusal of the plan instead; what the planner handed over is as it was.
  Of a benchmark the design is the environment's geometry; whoever engineers in it leaves it as it was.
- reviewer: the review.

Price and simulation are asked of whoever can run them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.estimate import Estimate
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import GEOMETRY
from workbench_contract.objectives import Objectives
from workbench_contract.review import PlanRefusal, ProofKind, Review
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning import plan_md, refusal_md, review_md, todo_md
from workbench_planning.agreement import CatalogueRow, disagreements
from workbench_planning.environment import belongs
from workbench_planning.plan_md import Plan
from workbench_planning.text import bounded, finding, is_absent, sha256_of
from workbench_planning.todo_md import Issued

_PLANNED = (plan_md.FILE, todo_md.FILE, objectives_file.FILE, estimate_file.FILE)
#: Nothing of an environment is paid for.
_OF_BENCHMARK = (plan_md.FILE, todo_md.FILE, objectives_file.FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is handed over, as far as it was read.

    Attributes:
        files: path to bytes, all of them.
    """

    role: AgentRole
    files: Mapping[str, bytes]
    plan: Plan | None = None
    objectives: Objectives | None = None
    estimate: Estimate | None = None
    review: Review | None = None
    refusal: PlanRefusal | None = None


#: A stage that somebody else runs.
Check = Callable[[Submission], Sequence[Finding]]


def _nothing(_: Submission) -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the controller knows, and the agent cannot change.

    Attributes:
        purpose: what the role works at.
        issued: the mandatory entries of the list.
        benchmark: the objectives that an engineer was given.
        catalogue: rows of the parts that the files may name, by part id.
        design_files: what a coder has to leave.
        unchanged: path to sha256 of what this role was handed and hands on as it was, but for the
            environment.
        environment: whether that is as it was handed over.
        handed_over: path to sha256 of what a reviewer judges.
        read: path and sha256 of what this session read, by its events.
        proof_ids: of the simulations and pricings of this episode.
        refusal_pending: the reviewer judges a refusal of the plan.
        price: the stage of price, weight and zone.
        simulate: the last stage.
    """

    purpose: Purpose = Purpose.ENGINEERING
    issued: tuple[Issued, ...] = ()
    benchmark: Objectives | None = None
    catalogue: Mapping[str, CatalogueRow] = field(default_factory=dict)
    design_files: tuple[str, ...] = ("model.py",)
    unchanged: Mapping[str, str] = field(default_factory=dict)
    handed_over: Mapping[str, str] = field(default_factory=dict)
    read: Set[tuple[str, str]] = frozenset()
    proof_ids: Mapping[ProofKind, Set[str]] = field(default_factory=dict)
    refusal_pending: bool = False
    environment: Check = _nothing
    price: Check = _nothing
    simulate: Check = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a hand-over is accepted.

    Attributes:
        findings: all of one stage, in the order of the files.
        warnings: what is allowed and probably not meant.
        record: path to sha256 of every file; none of a hand-over that is refused.
        refuses_plan: a coder hands over a refusal of the plan, and no design.
    """

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    record: Mapping[str, str] | None = None
    refuses_plan: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the next role has something to start from."""
        return self.record is not None


def judge(role: AgentRole, files: Mapping[str, bytes], known: Known) -> Verdict:
    """Judge a hand-over; the order in which files came does not matter.

    Args:
        role: who hands over.
        files: path to bytes, all that the role leaves.
        known: what the controller knows.
    """
    refuses = role is AgentRole.CODER and not is_absent(files.get(refusal_md.FILE))
    required = _required(role, known, refuses=refuses)
    absent = [name for name in required if is_absent(files.get(name))]
    if absent:
        return _refused([absent_file(name, files) for name in absent], refuses)
    submission, findings = _read(role, required, files, known)
    if findings:
        return _refused(findings, refuses)
    findings = [
        *_unchanged(files, known),
        *known.environment(submission),
        *_agree(submission, known),
    ]
    if findings:
        return _refused(findings, refuses)
    # Nothing of a refused plan is priced, and reviews have nothing to price.
    if not refuses and role is not AgentRole.REVIEWER:
        for stage, check in ((Stage.PRICE, known.price), (Stage.SIMULATE, known.simulate)):
            if found := check(submission):
                told = [each.model_copy(update={"stage": stage}) for each in found]
                return _refused(told, refuses)
    warnings = objectives_file.warnings_of(submission.objectives) if submission.objectives else []
    return Verdict(
        findings=(),
        warnings=tuple(warnings),
        record={path: sha256_of(files[path]) for path in sorted(files)},
        refuses_plan=refuses,
    )


def _required(role: AgentRole, known: Known, *, refuses: bool) -> tuple[str, ...]:
    is_benchmark = known.purpose is Purpose.BENCHMARK
    if role is AgentRole.PLANNER:
        return _OF_BENCHMARK if is_benchmark else _PLANNED
    if role is AgentRole.REVIEWER:
        return (review_md.FILE,)
    if refuses:
        return (refusal_md.FILE,)
    return (todo_md.FILE, *((GEOMETRY,) if is_benchmark else known.design_files))


def absent_file(name: str, files: Mapping[str, bytes]) -> Finding:
    """A file that is not there, or has nothing in it."""
    found = "an empty file" if name in files else "no such file"
    return finding(name, "", found, "the file, with what it is for", stage=Stage.PRESENT)


def _read(
    role: AgentRole, required: Sequence[str], files: Mapping[str, bytes], known: Known
) -> tuple[Submission, list[Finding]]:
    """Each required file by itself; other files are the role's own."""
    findings: list[Finding] = []
    plan, objectives, estimate, review, refusal = None, None, None, None, None
    for name in required:
        data = files[name]
        found: list[Finding] = []
        if name == plan_md.FILE:
            plan, found = plan_md.read_plan(data)
        elif name == todo_md.FILE:
            _, found = todo_md.read_todo(data, known.issued, submitted=True)
        elif name == objectives_file.FILE:
            objectives, found = objectives_file.read_objectives(data)
        elif name == estimate_file.FILE:
            estimate, found = estimate_file.read_estimate(data)
        elif name == review_md.FILE:
            review, found = review_md.read_review(data)
        elif name == refusal_md.FILE:
            refusal, found = refusal_md.read_refusal(data)
        findings += found
    submission = Submission(
        role=role,
        files=files,
        plan=plan,
        objectives=objectives,
        estimate=estimate,
        review=review,
        refusal=refusal,
    )
    return submission, findings


def _unchanged(files: Mapping[str, bytes], known: Known) -> list[Finding]:
    """What was handed to this role is as it was."""
    findings = []
    for path, digest in known.unchanged.items():
        data = files.get(path)
        if belongs(path):
            continue
        if data is None or sha256_of(data) != digest:
            found = "no such file" if data is None else f"bytes with sha256 {sha256_of(data)}"
            expected = f"the file as it was handed over, sha256 {digest}"
            findings.append(finding(path, "", found, expected, stage=Stage.AGREE))
    return findings


def _agree(submission: Submission, known: Known) -> list[Finding]:
    """The files among each other, and with what the controller knows."""
    findings: list[Finding] = []
    if submission.plan and submission.estimate and submission.objectives:
        findings += disagreements(
            plan=submission.plan,
            estimate=submission.estimate,
            objectives=submission.objectives,
            benchmark=known.benchmark,
            catalogue=known.catalogue,
        )
    if submission.review:
        findings += review_md.check_decision(
            submission.review, refusal_pending=known.refusal_pending
        )
        findings += review_md.check_evidence(submission.review, known.handed_over, known.read)
    if submission.refusal:
        findings += refusal_md.check_proof(submission.refusal, known.proof_ids)
    return findings


def _refused(findings: Sequence[Finding], refuses: bool) -> Verdict:
    return Verdict(findings=tuple(bounded(findings)), refuses_plan=refuses)
