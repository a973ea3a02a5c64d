"""The gate of a session's role: what it leaves is read once, judged, and kept as it was judged.

What is accepted lies beside the session's files, byte for byte, until whoever keeps hand-overs has fetched
it; what the agent does to its files meanwhile changes nothing.
"""

from __future__ import annotations

import os
import secrets
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.estimate import Estimate
from workbench_contract.events import EventKind
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import FileBytes, OpenRequest
from workbench_contract.objectives import Objectives
from workbench_contract.review import ProofKind
from workbench_foundation import faults
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning import plan_md, review_md, todo_md
from workbench_planning.handover import Known, Submission, Verdict, judge
from workbench_planning.text import bounded, sha256_of
from workbench_worker import costs, environment, planted
from workbench_worker.files_api import read_bytes
from workbench_worker.finals import is_ours
from workbench_worker.opening import benchmark_of, given_files, issued
from workbench_worker.prices import Looked
from workbench_worker.sessions import Session
from workbench_worker.snapshots import Left, design, named
from workbench_worker.surveys import Surveyed
from workbench_worker.validity import findings_against

PLANNED = (plan_md.FILE, todo_md.FILE, objectives_file.FILE, estimate_file.FILE)
_OF_BENCHMARK = (plan_md.FILE, todo_md.FILE, objectives_file.FILE)
_KEPT = "handovers"
#: The script of a design that is handed over.
_SCRIPT = "model.py"


def left_by(session: Session, opened: OpenRequest) -> Left:
    """Read what a role has to leave, at one moment as far as requests change it."""
    with session.lock:
        if opened.role is AgentRole.REVIEWER:
            return named(session, (review_md.FILE,))
        if opened.role is AgentRole.CODER:
            found = design(session)
            files = {path: data for path, data in found.files.items() if not is_ours(opened, path)}
            return Left(files=files, findings=found.findings)
        is_benchmark = opened.purpose is Purpose.BENCHMARK
        left = named(session, _OF_BENCHMARK if is_benchmark else PLANNED)
    # The environment goes on to whoever engineers in it.
    _, own = environment.disturbed(session, opened)
    return Left(files={**left.files, **own}, findings=left.findings)


def bought_in(left: Left) -> list[str]:
    """The catalogue parts that a planner's estimate names, each once; none of one that is no estimate."""
    data = left.files.get(estimate_file.FILE)
    if data is None:
        return []
    estimate, _ = estimate_file.read_estimate(data)
    bought = estimate.cots_parts if isinstance(estimate, Estimate) else []
    return list(dict.fromkeys(part.part_id for part in bought))


def judged(
    session: Session,
    opened: OpenRequest,
    left: Left,
    looked: Looked,
    surveyed: Surveyed,
) -> Verdict:
    """The verdict on what a role leaves."""
    files = planted.changed(session.id, left.files)
    known = _known(session, opened, files, looked, surveyed)
    verdict = planted.overlooked(session.id, judge(opened.role, files, known), files)
    named = {each.file for each in left.findings}
    if not named:
        return verdict
    others = [
        each for each in verdict.findings if each.stage is Stage.PRESENT and each.file not in named
    ]
    found = bounded([*left.findings, *others])
    return Verdict(findings=tuple(found), refuses_plan=verdict.refuses_plan)


def keep(session: Session, left: Left) -> str:
    """Keep what was accepted, whole; its id."""
    handover_id = str(uuid.uuid4())
    kept = session.home / _KEPT
    kept.mkdir(exist_ok=True)
    new = kept / f"new-{secrets.token_hex(8)}"
    try:
        for path, data in left.files.items():
            file = new / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        new.rename(kept / handover_id)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return handover_id


def kept(session: Session, handover_id: str) -> list[FileBytes]:
    """The files of a hand-over that was accepted."""
    folder = session.home / _KEPT / handover_id
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    found = [
        FileBytes(path=str(path.relative_to(folder)), content=path.read_bytes()) for path in paths
    ]
    if faults.on("handover-from-workspace"):
        return [
            FileBytes(path=each.path, content=read_bytes(session, each.path, most_bytes=None))
            for each in found
        ]
    return found


def _known(
    session: Session,
    opened: OpenRequest,
    files: Mapping[str, bytes],
    looked: Looked,
    surveyed: Surveyed,
) -> Known:
    given = given_files(opened.given)
    engineers = opened.purpose is Purpose.ENGINEERING
    benchmark = benchmark_of(opened) if opened.role is AgentRole.PLANNER and engineers else None
    if faults.on("benchmark-of-agent"):
        benchmark = None
    objectives, _ = objectives_file.read_objectives(benchmark) if benchmark else (None, [])
    is_coder = opened.role is AgentRole.CODER
    return Known(
        purpose=opened.purpose,
        issued=planted.issued(session.id, issued(opened), files),
        benchmark=objectives,
        catalogue=looked.rows(),
        # The list is the one file of a hand-over that goes on.
        unchanged=_unchanged(opened) if is_coder else {},
        handed_over=given,
        read=planted.read(given, _read_by(session))
        if opened.role is AgentRole.REVIEWER
        else frozenset(),
        proof_ids=_proof_of(session) if is_coder else {},
        refusal_pending=opened.given is not None and opened.given.refuses_plan,
        environment=partial(_environment, session, opened),
        price=_stage_of_price(session, opened, objectives, looked, surveyed),
    )


def _unchanged(opened: OpenRequest) -> dict[str, str]:
    """What a coder hands on as it was: all that was handed over but the list, and why it is asked again."""
    fixed = {path: sha for path, sha in given_files(opened.given).items() if path != todo_md.FILE}
    return fixed | {each.path: sha256_of(each.content) for each in opened.context}


def _environment(session: Session, opened: OpenRequest, submission: Submission) -> Sequence[Finding]:
    """Whether the environment is as it was handed over; a reviewer hands nothing of it on."""
    if submission.role is AgentRole.REVIEWER:
        return ()
    findings, _ = environment.disturbed(session, opened)
    # What is handed over was read a moment before that look.
    return findings or environment.disturbed_in(session, opened, submission.files)


def _stage_of_price(
    session: Session,
    opened: OpenRequest,
    objectives: Objectives | None,
    looked: Looked,
    surveyed: Surveyed,
) -> Callable[[Submission], Sequence[Finding]]:
    if opened.role is AgentRole.CODER and opened.purpose is Purpose.BENCHMARK:
        return lambda _: surveyed.findings
    if opened.role is AgentRole.CODER and estimate_file.FILE in given_files(opened.given):
        return partial(_designed, session)
    return partial(_priced, session.id, objectives, looked)


def _designed(session: Session, _: Submission) -> Sequence[Finding]:
    """The stage of price of a design: it has passed, as it is now."""
    if faults.on("submit-unvalidated"):
        return ()
    return findings_against(session, _SCRIPT)


def _priced(
    session_id: str, benchmark: Objectives | None, looked: Looked, submission: Submission
) -> Sequence[Finding]:
    """The stage of price of a planner's hand-over: computed anew, whatever was priced before."""
    if submission.estimate is None:
        return ()
    caps = benchmark or submission.objectives
    found = costs.computed(submission.estimate, looked, benchmark=caps, session_id=session_id)
    return found.findings


def _read_by(session: Session) -> frozenset[tuple[str, str]]:
    """Path and sha256 of what a session has read, by its events."""
    return frozenset(
        (os.path.normpath(event.payload["arguments"]["path"]), event.payload["sha256"])
        for event in session.events.all(EventKind.TOOL_CALL)
        if event.payload["tool"] in ("fs_read", "fs_view") and event.payload["ok"]
    )


def _proof_of(session: Session) -> dict[ProofKind, frozenset[str]]:
    """The simulations and pricings that a session has a result of, by its events."""
    simulated = session.events.all(EventKind.SIMULATION_RESULT)
    priced = session.events.all(EventKind.PRICING)
    return planted.proof(
        {
            ProofKind.SIMULATION: frozenset(event.payload["job_id"] for event in simulated),
            ProofKind.PRICE: frozenset(event.payload["price_id"] for event in priced),
        }
    )
