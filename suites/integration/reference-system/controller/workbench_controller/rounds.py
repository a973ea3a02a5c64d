"""What a role that is asked once more starts from: what it left, and what was said about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import asyncpg

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.episodes import AgentRole
from workbench_contract.handover import CONTEXT, FileBytes
from workbench_contract.renders import FINAL
from workbench_controller.handovers import content_of
from workbench_foundation import faults
from workbench_planning import package, refusal_md, review_md, todo_md
from workbench_planning.environment import belongs

#: What of a hand-over says why somebody is asked once more.
_SAYING = (review_md.FILE, refusal_md.FILE)

#: Of it in a prompt; the files have all of it.
_TOLD_CHARS = 8_000

_MEANING = {
    ReviewDecision.REJECTED: "The reviewer has rejected your design",
    ReviewDecision.CONFIRM_PLAN_REFUSAL: "The coder refused your plan, and the reviewer confirms that",
    ReviewDecision.REJECT_PLAN_REFUSAL: "You refused the plan, and the reviewer does not agree",
}


def resumed(
    role: AgentRole, left: Sequence[FileBytes], *, fixed: Collection[str]
) -> list[FileBytes]:
    """Of what a role left in an earlier round, what it goes on from.

    A planner's list is issued anew; a coder's refusal and the context of that round are over.

    Args:
        fixed: paths that it is given, and leaves as they are; of a coder's its list is no such one.
    """
    kept = []
    for each in left:
        over = each.path in _SAYING or each.path.startswith(f"{CONTEXT}/")
        given = each.path in fixed and each.path != todo_md.FILE
        if role is AgentRole.PLANNER:
            # Objectives that were given may have been made stricter.
            over = each.path == todo_md.FILE or belongs(each.path)
            given = False
        # Made anew by the worker for each hand-over.
        made = each.path.startswith(f"{FINAL}/") or package.belongs(each.path)
        if not over and not given and not made:
            kept.append(each)
    return kept


async def context_of(pool: asyncpg.Pool, handover_ids: Sequence[str]) -> list[FileBytes]:
    """The review, and the refusal that it is about, as files."""
    if faults.on("flow-context-withheld"):
        return []
    return [
        FileBytes(path=f"{CONTEXT}/{path}", content=data)
        for path, data in await _saying(pool, handover_ids)
    ]


async def told_by(pool: asyncpg.Pool, handover_ids: Sequence[str]) -> str:
    """The same in words, for the prompt."""
    if faults.on("flow-context-withheld"):
        return ""
    lines: list[str] = []
    # The latest first: the review, then the refusal that it is about.
    for path, data in reversed(await _saying(pool, handover_ids)):
        if path == refusal_md.FILE:
            refusal, _ = refusal_md.read_refusal(data)
            if refusal is not None:
                proof = ", ".join(f"{each.kind} {each.id}" for each in refusal.proof)
                lines.append(f"The refusal of the plan says: {refusal.reason} Proof: {proof}.")
            continue
        review, _ = review_md.read_review(data)
        if review is not None:
            lines.append(f"{_MEANING.get(review.decision, 'The reviewer has decided')}:")
            said = review.comments[:1] if faults.on("first-comment-alone") else review.comments
            lines += [f"- {comment}" for comment in said]
    if lines:
        lines.append(f"All of it is in {CONTEXT}/, which stays as it is; what you left is in place.")
    text = "\n".join(lines)
    return text if len(text) <= _TOLD_CHARS else f"{text[:_TOLD_CHARS]}… The rest is in {CONTEXT}/."


async def _saying(
    pool: asyncpg.Pool, handover_ids: Sequence[str]
) -> list[tuple[str, bytes]]:
    found = []
    for handover_id in handover_ids:
        for path in _SAYING:
            data = await content_of(pool, handover_id, path)
            if data is not None:
                found.append((path, data))
    return found
