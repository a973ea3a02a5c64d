"""Feedback is stored with the trace that it is about, and forwarded to Langfuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
import trio
from workbench_contract.feedback import Feedback, FeedbackRequest

from harness_core.doubles.http import Answer, Recorded, Response, Rule
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.messages import answered, sent
from suites.integration.observed import Langfuse, away, linked
from suites.integration.patience import SOON_S, eventually
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-060"), pytest.mark.integration_p1]

#: What Langfuse takes for each answer, while a score is corrected.
_SLOW_S: Final = 1.5

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"

#: What is no feedback → why.
_MALFORMED: Final = (
    ({"comment": "no score"}, "score"),
    ({"score": "much"}, "score"),
    ({"score": None}, "score"),
    ({"score": [0.5]}, "score"),
    ({"score": 0.5, "comment": 7}, "comment"),
    ({"score": 0.5, "stars": 3}, "stars"),
)


async def test_int_060_it_is_stored_and_forwarded(episodes: Episodes, langfuse: Langfuse) -> None:
    """Score and comment stand in the trace's row and arrive at Langfuse; those beside it have their own.

    What is said a second time replaces the first. The model provider and Langfuse are stand-ins.
    """
    first, second = [await _linked(episodes, "a"), await _linked(episodes, "b")]
    turn, call = (_trace(first, kind) for kind in ("model", "tool"))
    other = _trace(second, "tool")
    given = {
        turn["id"]: (0.25, "too long, in “words” of Ångström"),
        call["id"]: (1.0, None),
        other["id"]: (0.0, "wrong " * 200),
    }
    for episode, trace in ((first, turn), (first, call), (second, other)):
        await _gives(episodes, episode, trace, *given[trace["id"]])
    for trace in (turn, call, other):
        score, comment = given[trace["id"]]
        at_langfuse = await langfuse.until_scored(trace["langfuse_trace_id"], value=score)
        expect_same(comment, at_langfuse.get("comment"), what="the comment at Langfuse")
    expect_same(3, len(langfuse.scores(*_links(first, second))), what="scores at Langfuse")
    await _stand(episodes, first, {t: given[t] for t in (turn["id"], call["id"])})
    await _stand(episodes, second, {other["id"]: given[other["id"]]})

    await _gives(episodes, first, turn, 0.75, "better, on a second look")
    await langfuse.until_scored(turn["langfuse_trace_id"], value=0.75)
    scores = langfuse.scores(*_links(first, second))
    expect_same([0.0, 0.75, 1.0], sorted(s["value"] for s in scores), what="scores as they stand")
    await _gives(episodes, first, turn, 0.75, "the same score, in other words")

    async def in_other_words() -> bool:
        scores = langfuse.scores(turn["langfuse_trace_id"])
        return "the same score, in other words" in [score.get("comment") for score in scores]

    await eventually(
        in_other_words, seconds=SOON_S, expected="at Langfuse the comment of the same score anew"
    )
    again = {turn["id"]: (0.75, "the same score, in other words"), call["id"]: given[call["id"]]}
    await _stand(episodes, first, again)
    await _stand(episodes, second, {other["id"]: given[other["id"]]})
    await _gives(episodes, first, turn, 0.5, None)
    at_langfuse = await langfuse.until_scored(turn["langfuse_trace_id"], value=0.5)
    expect_same(None, at_langfuse.get("comment"), what="at Langfuse, the comment of one without")
    await _stand(episodes, first, again | {turn["id"]: (0.5, None)})


async def test_int_060_corrected_while_it_is_on_its_way(
    episodes: Episodes, langfuse: Langfuse, langfuse_service: str
) -> None:
    """What is said while the first score is being forwarded is what stands at Langfuse in the end.

    The model provider and Langfuse are stand-ins.
    """
    episode = await _linked(episodes, "a")
    trace = _trace(episode, "tool")
    with away(episodes.stack, langfuse_service, json={}, latency_s=_SLOW_S):
        async with trio.open_nursery() as nursery:
            # What it is answered may have the correction already.
            first = {"score": 0.25, "comment": "at first"}
            nursery.start_soon(_post, episodes, episode["episode_id"], trace["id"], first)

            async def under_way() -> bool:
                sent = episodes.stack.recorder(langfuse_service).matching(method="POST")
                return any("at first" in request.text for request in sent)

            await eventually(under_way, seconds=SOON_S, expected="the first score on its way")
            nursery.start_soon(_gives, episodes, episode, trace, 0.75, "corrected")
    await langfuse.until_scored(trace["langfuse_trace_id"], value=0.75)
    await _stand(episodes, episode, {trace["id"]: (0.75, "corrected")})


async def test_int_060_what_is_refused_is_nowhere(episodes: Episodes, langfuse: Langfuse) -> None:
    """For a trace that is not there, or another episode's, 404; for what is no feedback, 422.

    Nothing of it is stored or sent. The model provider and Langfuse are stand-ins.
    """
    mine, others = await _linked(episodes, "a"), await _linked(episodes, "b")
    trace = _trace(mine, "model")
    body = sent(FeedbackRequest(score=0.5, comment="well"))
    for episode_id, trace_id in (
        (mine["episode_id"], f"{trace['id']}0"),
        (others["episode_id"], trace["id"]),
        (_UNKNOWN, trace["id"]),
    ):
        expect_refused(await _post(episodes, episode_id, trace_id, body), 404)
    for malformed, says in _MALFORMED:
        answer = await _post(episodes, mine["episode_id"], trace["id"], malformed)
        expect_refused(answer, 422, says=says)
    keyless = episodes.controller.having(x_api_key=None)
    path = f"/episodes/{mine['episode_id']}/traces/{trace['id']}/feedback"
    expect_refused(await keyless.post(path, body), 401)
    for each in (mine, others):
        await _stand(episodes, each, {})
    scores = langfuse.scores(*_links(mine, others))
    assert [] == scores, f"what is refused is not forwarded: found {scores}"


async def test_int_060_a_score_that_is_refused_blocks_none_behind_it(
    breakable: Episodes, langfuse_service: str
) -> None:
    """Langfuse refuses one score for as long as it likes: what is said of others arrives, when it is back.

    The model provider and Langfuse are stand-ins.
    """
    stack = breakable.stack
    recorder = stack.recorder(langfuse_service)
    langfuse = Langfuse(recorder)
    word = f"refused-{new_token()}"
    first, second = await _linked(breakable, "a"), await _linked(breakable, "b")
    one, other = _trace(first, "tool"), _trace(second, "tool")

    def answer(request: Recorded) -> Answer:
        return Answer(status=400) if word.encode() in request.body else Answer(json={})

    with away(stack, langfuse_service):
        for episode, trace, score, comment in (
            (first, one, 0.125, word),
            (second, other, 0.875, "behind it"),
        ):
            body = {"score": score, "comment": comment}
            await _post(breakable, episode["episode_id"], trace["id"], body)
        refusing = Rule(method="POST", answer=answer)
        recorder.add_rule(refusing)
    try:
        async with stack.outage("controller", "kill"):
            pass
        await langfuse.until_scored(other["langfuse_trace_id"], value=0.875)
        scores = langfuse.scores(one["langfuse_trace_id"])
        assert [] == scores, f"a score that Langfuse refuses is none that it has: found {scores}"
    finally:
        recorder.remove_rule(refusing)
    await langfuse.until_scored(one["langfuse_trace_id"], value=0.125)


async def test_int_060_langfuse_away(breakable: Episodes, langfuse_service: str) -> None:
    """While Langfuse is away, feedback on what it knows is kept, and there when it is back.

    On what it does not know yet there is 400, and nothing is stored; once it knows, it is taken. The model
    provider and Langfuse are stand-ins.
    """
    stack, controller = breakable.stack, breakable.controller
    langfuse = Langfuse(stack.recorder(langfuse_service))
    known = await _linked(breakable, "a")
    trace = _trace(known, "tool")
    with away(stack, langfuse_service):
        answers = [
            await _post(breakable, known["episode_id"], trace["id"], {"score": s, "comment": c})
            for s, c in ((0.125, "first"), (0.625, "second"))
        ]
        taken = [answer.status for answer in answers]
        assert all(status in {200, 202} or status >= 500 for status in taken), (
            f"feedback is kept or refused in words while Langfuse is away: found {answers}"
        )
        await _stand(breakable, known, {trace["id"]: (0.625, "second")})
        unknown = await breakable.run(new_token(), use("execute", command="true"))
        late = _trace(unknown, "model")
        answer = await _post(breakable, unknown["episode_id"], late["id"], {"score": 0.5})
        if late["langfuse_trace_id"] is None:
            expect_refused(answer, 400, says="langfuse_trace_id")
            await _stand(breakable, unknown, {})
        async with stack.outage("controller", "kill"):
            pass
    await langfuse.until_scored(trace["langfuse_trace_id"], value=0.625)
    expect_same(
        ["second"],
        [score.get("comment") for score in langfuse.scores(*_links(known))],
        what="comments at Langfuse, as they stand",
    )
    unknown = await linked(breakable, unknown["episode_id"])
    await _gives(breakable, unknown, _trace(unknown, "model"), 0.5, None)
    healthy = await controller.get("/health")
    assert 200 == healthy.status, f"expected the controller healthy, found {healthy}"


@pytest.mark.covers("INT-059", "INT-060")
async def test_int_060_without_keys(without_langfuse: tuple[Episodes, Langfuse]) -> None:
    """A stack that has no keys to Langfuse runs episodes as ever, tells it nothing, and no row claims a trace.

    It refuses feedback with 503, says so, and stores nothing. The model provider and Langfuse are stand-ins.
    """
    episodes, langfuse = without_langfuse
    episode = await episodes.run(new_token(), use("execute", command="true"))
    trace = _trace(episode, "model")
    answer = await _post(episodes, episode["episode_id"], trace["id"], {"score": 0.5})
    later = await episodes.get(episode["episode_id"])

    expect_refused(answer, 503, says="langfuse")
    await _stand(episodes, later, {})
    claimed = [each["langfuse_trace_id"] for each in later["traces"] if each["langfuse_trace_id"]]
    assert [] == claimed, f"without keys no row claims a trace: found {claimed}"
    asked = [f"{each.method} {each.path}" for each in langfuse.recorder.requests]
    assert [] == asked, f"without keys nothing is sent to Langfuse: found {asked[:5]}"


async def _linked(episodes: Episodes, name: str) -> dict[str, Any]:
    """An episode that is over, with a call of a tool, and known to Langfuse."""
    path = f"assets/{name}.md"
    episode = await episodes.run(new_token(), use("fs_write", path=path, content=name))
    return await linked(episodes, episode["episode_id"])


def _trace(episode: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The first trace of a kind."""
    found: dict[str, Any] = next(each for each in episode["traces"] if each["kind"] == kind)
    return found


def _links(*episodes: Mapping[str, Any]) -> set[str]:
    return {trace["langfuse_trace_id"] for each in episodes for trace in each["traces"]}


async def _post(
    episodes: Episodes, episode_id: str, trace_id: str, body: Mapping[str, Any]
) -> Response:
    return await episodes.controller.post(
        f"/episodes/{episode_id}/traces/{trace_id}/feedback", dict(body)
    )


async def _gives(
    episodes: Episodes,
    episode: Mapping[str, Any],
    trace: Mapping[str, Any],
    score: float,
    comment: str | None,
) -> None:
    """Feedback is taken, and answered as it stands."""
    body = sent(FeedbackRequest(score=score, comment=comment))
    answer = await _post(episodes, episode["episode_id"], trace["id"], body)

    assert 200 == answer.status, f"expected the feedback to be taken with 200, found {answer}"
    found = answered(answer, Feedback)
    expect_same((score, comment), (found.score, found.comment), what="feedback as answered")


async def _stand(
    episodes: Episodes,
    episode: Mapping[str, Any],
    expected: Mapping[str, tuple[float, str | None]],
) -> None:
    """The traces of an episode have this feedback, and no other has any."""
    found = {
        trace["id"]: (trace["feedback_score"], trace["feedback_comment"])
        for trace in (await episodes.get(episode["episode_id"]))["traces"]
    }
    wanted = {trace_id: expected.get(trace_id, (None, None)) for trace_id in found}
    expect_same(wanted, found, what="feedback in the rows of the traces")
