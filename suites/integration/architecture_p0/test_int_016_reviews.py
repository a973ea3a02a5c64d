"""INT-016: a review has an allowed decision, and evidence that its reviewer has looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.design import DesignJudged
from workbench_contract.findings import Stage
from workbench_contract.review import Proof, ProofKind

from suites.integration import reviews
from suites.integration.bundles import PLAN, Bundle, doubled, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.planners import (
    Planner,
    coder_at_work,
    expect_found,
    handover,
    reviewer_at_work,
)
from suites.integration.reviews import REFUSAL, REVIEW, front, looked_at

pytestmark = [pytest.mark.covers("INT-016"), pytest.mark.integration_p0]

_NOBODYS: Final = "0" * 64


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=planner.number, made=made, units=100)


@asynccontextmanager
async def _handed(episodes: Episodes, number: int) -> AsyncIterator[tuple[str, str]]:
    """A design, and a refusal of its plan with proof, both handed over: their ids."""
    async with coder_at_work(episodes, number=number, plan=_plan) as coder:
        script = (
            "from build123d import Box, Pos\n\n"
            f'parts = {{"block-{number}": Pos(30, 0, 5) * Box(40, 30, 10)}}\n'
        )
        judged: DesignJudged = await coder.judged(script)
        assert judged.passed, f"expected the design to pass, found {judged.findings}"
        # An empty file is absent.
        await coder.session.write(REFUSAL, " \n")
        answer = await coder.submit()
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
        design = answer.json()
        assert not design["refuses_plan"], f"a design beside an empty refusal is none: {answer}"
        refusal = {
            "reason": "No such block is worth its price.",
            "proof": [Proof(kind=ProofKind.PRICE, id=judged.price_id).model_dump(mode="json")],
        }
        unproven = {**refusal, "proof": [{"kind": "price", "id": "price-of-nobody"}]}
        await coder.session.write(REFUSAL, front(unproven))
        found = await coder.submit()
        expect_found(found, Stage.AGREE, {REFUSAL}, what="a refusal with the proof of nobody")
        await coder.session.write(REFUSAL, front(refusal))
        refused = await coder.submit()
        assert 200 == refused.status, f"expected a refusal with proof handed over, found {refused}"
        assert refused.json()["refuses_plan"], f"a refusal of the plan is a design: {refused}"
        ids = design["handover_id"], refused.json()["handover_id"]
        for each in ids:
            await handover(episodes.controller, each)
        yield ids


def _malformed(sound_one: dict[str, Any]) -> dict[str, str]:
    """Reviews that are none, each in one way."""
    evidence = sound_one["evidence"]
    seen = evidence["files_checked"][0]

    def having(**other: Any) -> str:
        return front({**sound_one, **other})

    def without(key: str) -> str:
        return front({name: value for name, value in sound_one.items() if name != key})

    def resting(**other: Any) -> str:
        return having(evidence={**evidence, **other})

    whole = front(sound_one)
    decisions = (
        "Approved",
        "APPROVED",
        "approve",
        "maybe",
        "",
        "approved ",
        None,
        True,
        ["approved"],
    )
    return {
        **{f"the decision {each!r}": having(decision=each) for each in decisions},
        **{f"no {key}": without(key) for key in sound_one},
        **{f"no {key}": resting(**{key: None}) for key in evidence},
        "evidence without images": having(evidence={"videos_viewed": [], "files_checked": [seen]}),
        "no file that was checked": resting(files_checked=[]),
        "a digest cut short": resting(files_checked=[{**seen, "sha256": seen["sha256"][:-1]}]),
        "a digest in capitals": resting(files_checked=[{**seen, "sha256": seen["sha256"].upper()}]),
        "a file without a digest": resting(files_checked=[{"path": seen["path"]}]),
        "a file as a text": resting(files_checked=[seen["path"]]),
        "an unknown key": having(score=5),
        "unknown evidence": resting(sounds_heard=[]),
        "comments as a text": having(comments="too short"),
        "a comment of nothing": having(comments=[" - "]),
        "a rejection without a comment": having(decision="rejected", comments=[]),
        "a key twice": whole.replace("decision:", "decision: rejected\ndecision:", 1),
        "a key of its evidence twice": doubled(whole, "files_checked"),
        "a tag": whole.replace("decision: approved", "decision: !!str approved"),
        "an alias": whole.replace("comments:", "more: &a []\ncomments: *a\nold:", 1),
        "a second front matter": front(
            sound_one, below=front({**sound_one, "decision": "rejected"})
        ),
        "no end": whole.replace("---\n\n# Review", "\n# Review"),
        "no front matter": "# Review\n\ndecision: approved\n",
        "front matter below a line": "\n" + whole,
        "a placeholder": having(comments=["TODO"]),
    }


def _wrong_throughout(sound_one: dict[str, Any]) -> str:
    """A review with several mistakes, none of which hides another."""
    seen = sound_one["evidence"]["files_checked"][0]
    evidence = {
        "images_viewed": "all",
        "videos_viewed": [],
        "files_checked": [{**seen, "sha256": "0"}],
    }
    return front({"decision": "rejecting", "evidence": evidence, "comments": ["TODO"], "score": 5})


async def test_int_016_decision_and_evidence(episodes: Episodes) -> None:
    """What is no review is refused and named; each decision on what it is about is kept as typed data.

    Two decisions are on a design, two on a refusal of the plan, which needs proof. The model provider is a
    stand-in: the gateway holds the models.
    """
    async with (
        _handed(episodes, 161) as (design, refusal),
        reviewer_at_work(episodes, handover_id=design) as (episode_id, session),
        reviewer_at_work(episodes, handover_id=refusal) as (_, other),
    ):
        absent = await session.post("/benchmark/submit")
        expect_found(absent, Stage.PRESENT, {REVIEW}, what="no review")
        digests = await looked_at(session, "model.py", PLAN)
        approval = reviews.review(
            Decision.APPROVED, digests, comments=("Größe und Gewicht stimmen.",)
        )
        for name, text in _malformed(approval).items():
            answer = await reviews.judged(session, text)
            expect_found(answer, Stage.VALID, {REVIEW}, what=f"a review with {name}")
        answer = await reviews.judged(session, front({**approval, "decision": "perhaps"}))
        says = ["decision", "perhaps", *Decision]
        expect_found(answer, Stage.VALID, {REVIEW}, what="an unknown decision", says=says)
        answer = await reviews.judged(session, _wrong_throughout(approval))
        says = ["decision", "files_checked[0].sha256", "images_viewed", "comments", "score"]
        what = "a review with a mistake in each of its keys"
        expect_found(answer, Stage.VALID, {REVIEW}, what=what, says=says)
        decided = [
            approval,
            reviews.review(Decision.REJECTED, digests, comments=("It ends 4 mm early.", "日本 😀")),
            reviews.review(Decision.APPROVED, digests, comments=()),
        ]
        for review in decided:
            answer = await reviews.judged(session, front(review))
            assert 200 == answer.status, f"expected the review {review} accepted, found {answer}"
        events = [each["payload"] for each in calls(await session.events(), "review_decision")]
        kept = [each for each in events if each["accepted"]]
        typed = [
            {key: each[key] for key in review} for each, review in zip(kept, decided, strict=True)
        ]
        expect_same(decided, typed, what="reviews in the events of those that were accepted")
        of_refusal = await looked_at(other, REFUSAL)
        for decision in Decision:
            on_refusal = decision.value.endswith("plan_refusal")
            for reviewer, seen, is_refusal in (
                (session, digests, False),
                (other, of_refusal, True),
            ):
                review = front(reviews.review(decision, seen, comments=("As it is said.",)))
                answer = await reviews.judged(reviewer, review)
                what = f"{decision} on a {'refusal' if is_refusal else 'design'}"
                if on_refusal == is_refusal and decision is not Decision.APPROVED:
                    mute = front(reviews.review(decision, seen, comments=()))
                    refused = await reviews.judged(reviewer, mute)
                    silent = f"{what} without a comment"
                    expect_found(refused, Stage.VALID, {REVIEW}, what=silent, says=["comments"])
                if on_refusal == is_refusal:
                    assert 200 == answer.status, f"expected {what} accepted, found {answer}"
                else:
                    fitting = [
                        each
                        for each in Decision
                        if each.value.endswith("plan_refusal") == is_refusal
                    ]
                    says = ["decision", decision, *fitting]
                    expect_found(answer, Stage.AGREE, {REVIEW}, what=what, says=says)
    listed = (await episodes.get(episode_id))["handovers"]
    assert len(decided) + 2 == len(listed), f"expected a hand-over for each review, found {listed}"


async def test_int_016_evidence_was_looked_at(episodes: Episodes) -> None:
    """Evidence is of this hand-over, in its version, once each, and was read by this reviewer.

    What another reviewer has read, and what was read before it was changed, does not count. So it is in each
    round. The model provider is a stand-in: the gateway holds the models.
    """
    async with (
        _handed(episodes, 162) as (design, _),
        reviewer_at_work(episodes, handover_id=design) as (_, one),
        reviewer_at_work(episodes, handover_id=design) as (_, other),
    ):
        digests = await looked_at(one, "model.py")
        plan = (await other.read(PLAN)).json()["sha256"]
        review = reviews.review(Decision.APPROVED, digests, comments=())
        for _ in range(2):
            answer = await reviews.judged(one, front(review))
            assert 200 == answer.status, f"expected what was read to count, found {answer}"
            for name, seen in (
                ("a file of nobody", {"nothing.py": _NOBODYS}),
                ("a path outside", {"../model.py": digests["model.py"]}),
                ("another version", {"model.py": _NOBODYS}),
                ("what it has not read", {PLAN: plan}),
                ("the review itself", {REVIEW: _NOBODYS}),
            ):
                answer = await reviews.judged(
                    one, front(reviews.review(Decision.APPROVED, seen, comments=()))
                )
                what = f"evidence of {name}"
                says = ["evidence.files_checked[0]"]
                expect_found(answer, Stage.AGREE, {REVIEW}, what=what, says=says)
        twice = reviews.review(Decision.APPROVED, digests, comments=())
        twice["evidence"]["files_checked"] *= 2
        answer = await reviews.judged(one, front(twice))
        says = ["evidence.files_checked[1]"]
        expect_found(answer, Stage.AGREE, {REVIEW}, what="a file twice", says=says)
        as_image = reviews.review(Decision.APPROVED, digests, comments=())
        as_image["evidence"]["images_viewed"] = as_image["evidence"]["files_checked"]
        answer = await reviews.judged(one, front(as_image))
        says = ["evidence.images_viewed[0]"]
        expect_found(answer, Stage.AGREE, {REVIEW}, what="a script for an image", says=says)
        every = {"nothing.py": _NOBODYS, "model.py": digests["model.py"], PLAN: plan}
        wrong = reviews.review(
            Decision.CONFIRM_PLAN_REFUSAL, every, comments=("No.",), images={"model.py": _NOBODYS}
        )
        found = expect_found(
            await reviews.judged(one, front(wrong)),
            Stage.AGREE,
            {REVIEW},
            what="evidence of which some was read, and a decision on something else",
        )
        expect_same(
            {"decision", "evidence.images_viewed[0]"}
            | {f"evidence.files_checked[{place}]" for place in (0, 2)},
            {each.where for each in found},
            what="what is wrong with a decision and its evidence, and no more",
        )
        answer = await reviews.judged(other, front(review))
        what = "evidence that another reviewer has read"
        expect_found(answer, Stage.AGREE, {REVIEW}, what=what, says=["model.py"])
        await other.write("model.py", "part = None\n")
        changed = await looked_at(other, "model.py")
        answer = await reviews.judged(
            other, front(reviews.review(Decision.REJECTED, changed, comments=("No.",)))
        )
        what = "evidence of what the reviewer wrote itself"
        expect_found(answer, Stage.AGREE, {REVIEW}, what=what, says=["model.py"])
