"""Contract 8: each language model is asked in its turn, with its own key, address, model and deadline.

Recorders are a stand-in for three model providers.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.doubles.http import Answer, Recorded, Rule, open_recorder
from suites.daemon.asked_models import (
    ANSWER_S,
    KEYS,
    SOON_S,
    WELL,
    Cast,
    asking,
    completion,
    expect_cascade,
    expect_no_secret,
    message,
)
from suites.daemon.daemon import Provider, Settings
from suites.daemon.messages import ask, due, expect_health, expect_message, shell, user_input
from suites.daemon.waits import DUE

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]


#: Answers that are none, whatever the shape of the provider.
NONSENSE: Final = {
    "no-json": Answer(body="<html>sorry</html>"),
    "empty": Answer(body=""),
    "half": Answer(body='{"type": "message", "role": "assis'),
    "a-list": Answer(json=[]),
    "an-empty-object": Answer(json={}),
    "an-error": Answer(json={"type": "error", "error": {"type": "overloaded_error"}}),
    "of-the-user": message("x", role="user"),
    "no-message": message("x", type="completion"),
    "no-content": message("x", content=[]),
    "content-of-no-text": message("x", content=[{"type": "image", "text": "x"}]),
    "text-is-a-number": message(7),
    "text-is-nothing": message(None),
    "text-is-blank": message(" \n "),
    "no-choices": Answer(json={"choices": []}),
    "choice-without-message": Answer(json={"choices": [{"index": 0}]}),
    "choice-is-a-number": completion(7),
    "choice-is-nothing": completion(None),
    "choice-is-blank": completion(" \t"),
    "created": Answer(status=201, json=message("x").json),
    "not-modified": Answer(status=304),
    "moved": Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    "bad-request": Answer(status=400, json={"error": "bad"}),
    "unauthorized": Answer(status=401, json={"error": "wrong key"}),
    "server-error": Answer(status=503),
    "nested": Answer(body="[" * 100_000),
    "latin": Answer(body=b'{"type": "\xff"}'),
    "hangs-up": Answer(drop="unanswered"),
    "cut": Answer(drop="cut", json=message("x" * 500).json),
    "huge": message("x" * 2_000_000),
}


#: A sound answer in both shapes at once, which is none where the status says so.
_SOUND: Final = message("says who failed").json | {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "says who failed"}}]
}


STATUSES: Final = {
    f"status-{status}": Answer(status=status, json=_SOUND)
    for status in (
        *(
            300,
            301,
            302,
            303,
            305,
            307,
            308,
            399,
            400,
            402,
            403,
            404,
            405,
            406,
            408,
            409,
            410,
            413,
            415,
        ),
        *(422, 424, 425, 429, 451, 498, 499, 500, 501, 502, 503, 504, 507, 520, 529, 599),
    )
}


#: What a provider complains about with the keys in it, wherever an answer has room for words.
_COMPLAINT: Final = f"no such key: {' '.join(KEYS.values())}"


REPEATING: Final = {
    f"{name}-repeats-the-key": answer
    for name, answer in {
        "unauthorized": Answer(status=401, json={"error": {"message": _COMPLAINT}}),
        "forbidden-text": Answer(status=403, body=_COMPLAINT),
        "broken": Answer(status=500, body=_COMPLAINT),
        "moved": Answer(status=302, headers={"Location": f"http://127.0.0.1:1/{KEYS['alpha']}"}),
        "no-json": Answer(body=_COMPLAINT),
        "an-error": Answer(json={"type": "error", "error": {"message": _COMPLAINT}}),
        "as-role": message("x", role=_COMPLAINT),
        "as-type": message("x", type=_COMPLAINT),
        "as-member": Answer(json={_COMPLAINT: _COMPLAINT}),
        "in-a-header": Answer(status=400, headers={"X-Reason": _COMPLAINT}),
    }.items()
}


async def test_each_in_its_turn_with_its_own(start, cast: Cast, token: str) -> None:
    """Whoever fails, the next is asked with its own key, model and deadline; trouble is forgotten.

    Sessions alternate between those who answer; what one provider was asked no other learns.
    """
    well = {name: WELL[name](f"This says {name}: {token} naïve 日本 😀.") for name in WELL}
    fails = Answer(status=500)
    late = message("says late").json
    rows = [
        ({}, "alpha", ["alpha"]),
        ({"alpha": fails}, "beta", ["alpha", "beta"]),
        ({"alpha": fails, "beta": fails}, "gamma", ["alpha", "beta", "gamma"]),
        ({}, "alpha", ["alpha"]),
        ({"beta": fails}, "alpha", ["alpha"]),
        # Late for the first, in time for the second; hence each has a deadline of its own.
        (
            {
                "alpha": Answer(json=late, latency_s=patience(SOON_S) * 3),
                "beta": Answer(json=well["beta"].json, latency_s=patience(SOON_S) * 2),
            },
            "beta",
            ["alpha", "beta"],
        ),
        ({}, "alpha", ["alpha"]),
    ]
    async with asking(start, cast, "abg") as daemon:
        for number, (trouble, by, order) in enumerate(rows):
            cast.answers = well | trouble
            question = f"Question {number} of {token}: which river? naïve 日本 {'long ' * 50}end"
            await expect_cascade(daemon, cast, question, by=by, order=order)
        cast.answers = dict.fromkeys(WELL, fails)
        stated = daemon.subject.table("providers")["all_down"]
        async with daemon.connect() as connection:
            question = f"nobody knows {token}"
            reply = expect_message(await ask(connection, user_input(question)), connection)
            outcome = await ask(connection, shell("printenv; env"))

        assert stated in reply, f"contract 8: expected {stated!r} when all fail, found {reply!r}"
        leaked = [name for name, key in KEYS.items() if key in outcome.payload]

        assert not leaked, f"contract 8: a command sees the keys of {leaked}: {outcome.payload}"
        expect_no_secret(daemon)
        expect_health(await daemon.health())


async def test_the_order_is_the_configured_one(start, cast: Cast, token: str) -> None:
    """Neither names nor addresses decide who is asked first, but the configuration alone."""
    well = {name: WELL[name](f"This says {name}: {token}.") for name in WELL}
    async with asking(start, cast, "gba") as daemon:
        for number, failing in enumerate(["", "gamma", "gamma beta"]):
            cast.answers = well | {name: Answer(status=529) for name in failing.split()}
            order = ["gamma", "beta", "alpha"][: number + 1]
            question = f"Question {number} of {token}"
            await expect_cascade(daemon, cast, question, by=order[-1], order=order)


async def test_nobody_else_is_asked(start, cast: Cast, token: str, evidence) -> None:
    """A provider that sends its caller elsewhere has not answered; nobody there learns a key or a word."""
    well = {name: WELL[name](f"This says {name}: {token}.") for name in WELL}
    everything = [
        Rule(path="/**", method=method, answer=well["alpha"]) for method in ("POST", "GET")
    ]
    async with (
        open_recorder("stranger", evidence=evidence, rules=everything) as stranger,
        asking(start, cast, "abg") as daemon,
    ):
        for status in (301, 302, 303, 307, 308):
            moved = Answer(status=status, headers={"Location": f"{stranger.url}/v1/messages"})
            cast.answers = well | {"alpha": moved, "beta": moved}
            question = f"What of {status}, {token}?"
            order = ["alpha", "beta", "gamma"]
            await expect_cascade(daemon, cast, question, by="gamma", order=order)
        asked = [f"{each.method} {each.target}" for each in stranger.requests]

    assert not asked, (
        f"contract 8: each provider is asked at its own address: expected none at another, found {asked}"
    )


async def test_nonsense_is_no_answer(start, cast: Cast, token: str) -> None:
    """Whatever a provider answers that is no answer, the next one is asked, fifty times over."""
    well = {name: WELL[name](f"This says {name}: {token}.") for name in WELL}
    async with asking(start, cast, "abg") as daemon:
        cast.answers = well
        await expect_cascade(daemon, cast, "warm up", by="alpha", order=["alpha"])
        before = daemon.vitals()
        for name, nonsense in (NONSENSE | REPEATING | STATUSES).items():
            cast.answers = well | {"alpha": nonsense, "beta": nonsense}
            question = f"What of {name}, {token}?"
            order = ["alpha", "beta", "gamma"]
            explanation = await expect_cascade(daemon, cast, question, by="gamma", order=order)

            assert len(explanation) < 2_000, (
                f"contract 8: {name}: the explanation repeats what was answered: "
                f"{explanation[:300]!r}"
            )
        cast.answers = well
        await expect_cascade(daemon, cast, "and now", by="alpha", order=["alpha"])
        after = daemon.vitals()

        assert before.identity == after.identity, "contract 8: nonsense ended the daemon"
        assert after.descriptors <= before.descriptors + 8, (
            f"contract 8: open files grew from {before.descriptors} to {after.descriptors} over "
            f"{len(NONSENSE)} answers that were none"
        )
        expect_no_secret(daemon)


#: Questions that are asked at the same time, one to a client.
AT_ONCE: Final = 12


async def test_each_question_has_its_own_answer(start, cast: Cast, evidence, token: str) -> None:
    """Whoever asks gets the answer to what he asked, among others and after one that came too late."""

    def of(request: Recorded) -> str:
        asked = re.findall(rf"q\d+-{token}", request.text)
        return f"This is of {' and '.join(asked)}."

    async with asking(start, cast, "abg") as daemon:

        async def one(number: int) -> None:
            async with daemon.connect() as connection:
                for turn in range(3):
                    mine = f"q{number}{turn}-{token}"
                    asked = user_input(f"What of {mine}?")
                    answer = await ask(connection, asked, seconds=ANSWER_S)
                    reply = expect_message(answer, connection)

                    assert reply == f"This is of {mine}.", (
                        f"contract 8: asked of {mine}, a client is answered of that alone; found "
                        f"{reply!r}"
                    )

        cast.respond = {
            "alpha": lambda request: message(of(request)),
            "beta": lambda request: completion(of(request)),
            "gamma": lambda request: message(of(request)),
        }
        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE):
                nursery.start_soon(one, number)
        # The first comes too late with one answer; the next question is another.
        well = dict(cast.respond)
        cast.respond["alpha"] = lambda request: replace(
            message(of(request)), latency_s=patience(SOON_S) * 2
        )
        await one(AT_ONCE + 10)
        cast.respond = well
        for number in range(3):
            await one(AT_ONCE + 20 + number)


#: Questions that wait for one model at the same time.
WAITING: Final = 6


async def test_a_question_does_not_wait_for_those_of_others(start, cast: Cast, token: str) -> None:
    """However many wait for a silent model, another question is answered by the first that it is put to.

    A daemon that works at so many texts at once asks it later, and then in its time.
    """
    first, second = cast.recorders
    common = {"model": "m", "key": KEYS["alpha"]}
    order = (
        Provider(name="alpha", shape="anthropic", url=first.url, timeout_s=patience(3), **common),
        Provider(
            name="beta", shape="openai", url=f"{second.url}/", timeout_s=patience(9), **common
        ),
    )
    cast.respond = {
        "alpha": lambda request: (
            message("says alpha") if f"quick-{token}" in request.text else Answer(status=500)
        ),
        "beta": lambda request: (
            completion("says beta") if f"quick-{token}" in request.text else Answer(drop="silent")
        ),
    }

    async def wait_for_beta() -> bool:
        return len(second.requests) >= WAITING

    async with start(Settings(providers=order)) as daemon, AsyncExitStack() as stack:
        for number in range(WAITING):
            client = await stack.enter_async_context(daemon.connect())
            await client.send(user_input(f"What of slow-{number}-{token}?"))
        with trio.move_on_after(patience(3)):
            await until(wait_for_beta)
        async with daemon.connect() as quick:
            question = user_input(f"What of quick-{token}?")
            answer = await ask(quick, question, seconds=ANSWER_S)
            said = expect_message(answer, quick)

    assert "says alpha" in said, (
        f"contract 8: {WAITING} questions wait for a model that says nothing, and another is put to the "
        f"first model, which answers at once: expected its answer, found {answer.payload}"
    )


async def test_each_question_has_its_own_reasons(start, cast: Cast, token: str) -> None:
    """Who was passed over for one question is said in its answer, whatever is asked meanwhile."""
    alpha_is_passed_over, latency_s = trio.Event(), patience(2.0)

    def slowly(_request: Recorded) -> Answer:
        alpha_is_passed_over.set()
        return replace(completion("says beta"), latency_s=latency_s)

    def instead_of_beta(_request: Recorded) -> Answer:
        alpha_is_passed_over.set()
        return message("says gamma")

    cast.respond = {
        "alpha": lambda request: (
            Answer(status=500) if f"slow-{token}" in request.text else message("says alpha")
        ),
        "beta": slowly,
        "gamma": instead_of_beta,
    }
    async with (
        asking(start, cast, "abg") as daemon,
        daemon.connect() as slow,
        daemon.connect() as quick,
    ):
        await slow.send(user_input(f"What of slow-{token}?"))
        with DUE.waiting(seconds=ANSWER_S) as wait:
            with trio.move_on_after(patience(wait.seconds)):
                await alpha_is_passed_over.wait()
            wait.came = alpha_is_passed_over.is_set()
        well = await ask(quick, user_input(f"What of quick-{token}?"), seconds=ANSWER_S)
        answer = await due(slow, "the slow answer", seconds=ANSWER_S)

    assert "says beta" in expect_message(answer, slow), f"beta answers, found {answer.payload}"
    found = [str(each.get("PAYLOAD", "EXPLANATION")) for each in (answer, well)]
    assert ("alpha" in found[0], "beta" in found[1]) == (True, False), (
        f"contract 8: each answer explains who was passed over for its own question, found {found}"
    )
