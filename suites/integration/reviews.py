"""Reviews and refusals of plans, by the models of the contract, as those who write them leave them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml
from workbench_contract.benchmark import ReviewDecision
from workbench_contract.review import PlanRefusal, Proof, ProofKind, Review, ReviewEvidence, Seen

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from suites.integration.sessions import Session

__all__ = ["REFUSAL", "REVIEW", "decided", "front", "judged", "looked_at", "refusal", "review"]

REVIEW: Final = "review.md"
REFUSAL: Final = "plan_refusal.md"

_VERDICT_S: Final = 30.0


def front(value: Mapping[str, Any], *, below: str = "\n# Review\n\nIt is sound.\n") -> str:
    """A file with this front matter."""
    # Each value for itself: an alias is no review.
    separate = json.loads(json.dumps(value))
    return f"---\n{yaml.safe_dump(separate, allow_unicode=True)}---\n{below}"


def review(
    decision: ReviewDecision,
    digests: Mapping[str, str],
    *,
    comments: Sequence[str],
    images: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A review that rests on some files and images, path to sha256; ``more`` are other fields of it."""
    seen = [Seen(path=path, sha256=digest) for path, digest in digests.items()]
    viewed = [Seen(path=path, sha256=digest) for path, digest in (images or {}).items()]
    evidence = ReviewEvidence(images_viewed=viewed, videos_viewed=[], files_checked=seen)
    made = Review(decision=decision, evidence=evidence, comments=list(comments), **more)
    # What may be left out is left out, as those do who know nothing of it.
    return made.model_dump(mode="json", exclude_unset=True)


def refusal(reason: str, *proof: tuple[ProofKind, str]) -> str:
    """A refusal of a plan."""
    proven = [Proof(kind=kind, id=name) for kind, name in proof]
    made = PlanRefusal(reason=reason, proof=proven)
    return front(made.model_dump(mode="json"), below="")


async def looked_at(session: Session, *paths: str) -> dict[str, str]:
    """Read files of a reviewer's session: their digests."""
    found = {}
    for path in paths:
        answer = await session.read(path)

        assert 200 == answer.status, f"expected the reviewer to read {path}, found {answer}"
        found[path] = answer.json()["sha256"]
    return found


async def judged(session: Session, text: str) -> Response:
    """Leave a review and hand it over; the answer, whatever it is."""
    await session.write(REVIEW, text)
    return await session.post("/benchmark/submit", seconds=patience(_VERDICT_S))


async def decided(
    session: Session, decision: ReviewDecision, *comments: str, paths: Sequence[str], **more: Any
) -> str:
    """Look at files and decide, which must be accepted; the id of the hand-over."""
    digests = await looked_at(session, *paths)
    answer = await judged(session, front(review(decision, digests, comments=comments, **more)))

    assert 200 == answer.status, f"expected {decision} to be accepted, found {answer}"
    handover_id: str = answer.json()["handover_id"]
    return handover_id
