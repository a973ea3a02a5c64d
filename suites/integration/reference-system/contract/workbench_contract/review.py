"""Front matter of ``review.md`` and ``plan_refusal.md``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from workbench_contract.artifact import Artifact, Name, Sha256
from workbench_contract.benchmark import ReviewDecision
from workbench_contract.files import PATH_CHARS


def _says_something(text: str) -> str:
    if not any(each.isalnum() for each in text):
        raise ValueError("text that says something")
    return text


#: What a person or a model says to another.
Said = Annotated[str, Field(max_length=10_000), AfterValidator(_says_something)]


class Seen(Artifact):
    """A file of the hand-over, as the reviewer saw it."""

    path: str = Field(min_length=1, max_length=PATH_CHARS)
    sha256: Sha256


class ReviewEvidence(Artifact):
    """What the reviewer looked at; all three have to be said, a list may be empty."""

    images_viewed: list[Seen] = Field(max_length=500)
    videos_viewed: list[Seen] = Field(max_length=500)
    files_checked: list[Seen] = Field(min_length=1, max_length=500)


class Review(Artifact):
    """The front matter of ``review.md``.

    Attributes:
        comments: none only of an approval (judged by the gate).
        optimal: of an approval alone (judged by the gate): no design that is materially cheaper is expected.
    """

    decision: Annotated[ReviewDecision, Field(strict=False)]
    evidence: ReviewEvidence
    comments: list[Said] = Field(max_length=200)
    optimal: bool = False


class ProofKind(StrEnum):
    SIMULATION = "simulation"
    PRICE = "price"


class Proof(Artifact):
    """A simulation or a pricing of this episode that shows that the plan cannot be carried out."""

    kind: Annotated[ProofKind, Field(strict=False)]
    id: Name


class PlanRefusal(Artifact):
    """The front matter of ``plan_refusal.md``."""

    reason: Said
    proof: list[Proof] = Field(min_length=1, max_length=50)
