"""Contract 8: each language model is asked in its turn, with its own key, address, model and deadline.

Recorders are a stand-in for three model providers that differ in everything: what arrived where, with
which headers and which body, is on record. The keys are looked for wherever they could have leaked.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from harness_core.base.evidence import REDACTED
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.doubles.http import Answer, Recorded, Recorder, Rule, open_recorder
from harness_core.ports import listeners
from harness_core.process import Child, Run
from suites.daemon.daemon import Daemon, Provider, Settings
from suites.daemon.messages import ask, expect_health, expect_message, shell, user_input
from suites.daemon.vitals import below

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]

#: The first gives up soon, the others wait for what the first would not.
SOON_S: Final = 0.4
LATER_S: Final = 20.0
ANSWER_S: Final = 40.0

KEYS: Final = {
    "alpha": "zq7alphaXk41Wm",
    "beta": "vv9betaRt82Lp",
    "gamma": "hh3gammaUo57Cs",
}
MODELS: Final = {"alpha": "model-a-1", "beta": "model-b-2", "gamma": "model-c-3"}


def message(text: object, **changes: Any) -> Answer:
    """An answer of the Messages API."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return Answer(json=body | changes)


def completion(text: object) -> Answer:
    """An answer of chat completions."""
    said = {"role": "assistant", "content": text}
    return Answer(json={"id": "c", "choices": [{"index": 0, "message": said}]})


#: How each provider answers a text.
WELL: Final[dict[str, Callable[[str], Answer]]] = {
    "alpha": message,
    "beta": completion,
    "gamma": message,
}

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


@dataclass(slots=True)
class Cast:
    """Three providers, and how each of them answers now: always so, or as it is asked."""

    answers: dict[str, Answer] = field(default_factory=dict)
    recorders: tuple[Recorder, ...] = ()
    respond: dict[str, Callable[[Recorded], Answer]] = field(default_factory=dict)

    def rules(self, **paths: str) -> list[Rule]:
        """Rules for a recorder: name of a provider → path."""

        def answer(name: str) -> Callable[[Recorded], Answer]:
            return lambda request: (
                self.respond[name](request) if name in self.respond else self.answers[name]
            )

        return [
            Rule(path=path, method="POST", answer=answer(name), name=name)
            for name, path in paths.items()
        ]

    def asked(self, since: int) -> list[Recorded]:
        """What was asked since so many requests, in order of arrival."""
        requests = [request for each in self.recorders for request in each.requests]
        return sorted(requests, key=lambda request: request.arrived_at)[since:]


@pytest.fixture
async def cast(evidence) -> AsyncIterator[Cast]:
    """The providers: one alone, two at one address on paths of their own."""
    cast = Cast()
    one = open_recorder("one", evidence=evidence, rules=cast.rules(alpha="/v1/messages"))
    paths = {"beta": "/v1/chat/completions", "gamma": "/third/v1/messages"}
    two = open_recorder("two", evidence=evidence, rules=cast.rules(**paths))
    async with one as first, two as second:
        cast.recorders = (first, second)
        yield cast


@asynccontextmanager
async def asking(start, cast: Cast, order: str) -> AsyncIterator[Daemon]:
    """A daemon that asks them in this order of first letters."""
    first, second = cast.recorders
    every = {
        "a": Provider(
            name="alpha",
            shape="anthropic",
            url=first.url,
            key=KEYS["alpha"],
            model=MODELS["alpha"],
            timeout_s=patience(SOON_S),
        ),
        "b": Provider(
            name="beta",
            shape="openai",
            url=f"{second.url}/",
            key=KEYS["beta"],
            model=MODELS["beta"],
            timeout_s=patience(LATER_S),
        ),
        "g": Provider(
            name="gamma",
            shape="anthropic",
            url=f"{second.url}/third",
            key=KEYS["gamma"],
            model=MODELS["gamma"],
            timeout_s=patience(LATER_S),
        ),
    }
    async with start(Settings(providers=[every[letter] for letter in order])) as daemon:
        yield daemon


async def expect_cascade(daemon: Daemon, cast: Cast, question: str, *, by: str, order: list[str]):
    """A question is answered by one provider after those before it, each asked as it should be."""
    since = len(cast.asked(0))
    async with daemon.connect() as connection:
        answer = await ask(connection, user_input(question), seconds=ANSWER_S)
        reply = expect_message(answer, connection)
        explanation = str(answer.get("PAYLOAD", "EXPLANATION"))
    requests = cast.asked(since)
    found = [request.rule for request in requests]

    assert found == order, f"contract 8: expected {order} to be asked in this order, found {found}"
    for request in requests:
        expect_own(request, question)
    assert f"says {by}" in reply, (
        f"contract 8: expected the answer of {by}, found {reply[:200]!r} ({explanation[:300]})"
    )
    leaked = [name for name, key in KEYS.items() if key in answer.payload]

    assert not leaked, (
        f"contract 8: a key is in no frame: expected none, found those of {leaked} in "
        f"{answer.payload[:600]}"
    )
    lost = [name for name in order if name not in explanation]

    assert not lost, f"contract 8: the explanation does not name {lost}: {explanation!r}"
    return explanation


def expect_own(request: Recorded, question: str) -> None:
    """A request bears its provider's key and model and no other's, and the whole question."""
    name = request.rule
    header = "authorization" if name == "beta" else "x-api-key"
    wanted = f"Bearer {KEYS[name]}" if name == "beta" else KEYS[name]

    assert request.header(header) == wanted, (
        f"contract 8: {name} is asked with its own key in {header}, found "
        f"{sorted(n for n, _ in request.headers)} and a key of "
        f"{[n for n, key in KEYS.items() if key in request.header(header)] or 'no one'}"
    )
    others = [key for key in KEYS.values() if key != KEYS[name]]
    whole = str(request.headers) + request.text + request.target

    assert not any(key in whole for key in others), f"contract 8: {name} got another's key"
    body = request.json()

    assert body.get("model") == MODELS[name], (
        f"contract 8: {name} is asked for its model {MODELS[name]}, found {body.get('model')!r}"
    )
    said = [each for each in body.get("messages", []) if each.get("role") == "user"]

    assert [each.get("content") for each in said] == [question], (
        f"contract 8: {name} is asked {question!r}, found {json.dumps(body)[:600]}"
    )
    assert isinstance(body.get("max_tokens"), int), (
        f"contract 8: {name} is told how much to answer, found {json.dumps(body)[:300]}"
    )
    assert "application/json" in request.header("content-type"), (
        f"contract 8: {name} is asked in JSON, found {request.header('content-type')!r}"
    )
    if name != "beta":
        assert request.header("anthropic-version"), f"contract 8: {name} is told no version"


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


def blocks(*parts: dict[str, Any], **changes: Any) -> Answer:
    """An answer of the Messages API in several blocks."""
    return message("", **({"content": list(parts)} | changes))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def completed(text: str, *, more: Iterable[dict[str, Any]] = (), **members: Any) -> Answer:
    """An answer of chat completions with members beside those that everyone sends."""
    said = {"role": "assistant", "content": text} | members
    choices = [{"index": 0, "message": said, "finish_reason": "length", "logprobs": None}]
    return Answer(
        json={
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "system_fingerprint": None,
            "usage": {"total_tokens": 2},
            "choices": [*choices, *more],
        }
    )


def _as(answer: Answer, **changes: Any) -> Answer:
    """An answer in other bytes or headers."""
    body = json.dumps(answer.json, ensure_ascii=False, indent=3)
    return replace(answer, json=None, body=changes.pop("body", body), **changes)


#: Sound answers in every shape: who gives it, the answer, and texts that its reply holds in this order.
SHAPED: Final[dict[str, tuple[str, Answer, tuple[str, ...]]]] = {
    "two-texts": ("alpha", blocks(_text("one, "), _text("two.")), ("one,", "two.")),
    "many-texts": (
        "alpha",
        blocks(*(_text(f"part {n};\n") for n in range(40))),
        tuple(f"part {n};" for n in range(40)),
    ),
    "thoughts-before": (
        "alpha",
        blocks({"type": "thinking", "thinking": "hm", "signature": "s"}, _text("said")),
        ("said",),
    ),
    "a-tool-between": (
        "alpha",
        blocks(
            _text("before "),
            {"type": "tool_use", "id": "t", "name": "n", "input": {"text": "x"}},
            _text("behind"),
        ),
        ("before", "behind"),
    ),
    "an-unknown-block": ("alpha", blocks({"type": "news", "of": [1]}, _text("said")), ("said",)),
    "an-empty-text-first": ("alpha", blocks(_text(""), _text("said")), ("said",)),
    "cited": ("alpha", blocks(_text("said") | {"citations": [{"cited_text": "x"}]}), ("said",)),
    "stopped-at-its-length": ("alpha", message("said", stop_reason="max_tokens"), ("said",)),
    "stopped-at-a-word": (
        "alpha",
        message("said", stop_reason="stop_sequence", stop_sequence="x"),
        ("said",),
    ),
    "without-what-is-not-needed": (
        "alpha",
        Answer(json={"type": "message", "role": "assistant", "content": [_text("said")]}),
        ("said",),
    ),
    "members-of-its-own": ("alpha", message("said", news={"a": [1]}, error=None), ("said",)),
    "of-blanks-within": ("alpha", message("a\n\n  b\t\tc"), ("a\n\n  b\t\tc",)),
    "of-quotes": ("alpha", message('"q" \\ (:x "y") #.z ;'), ('"q" \\ (:x "y") #.z ;',)),
    "of-every-script": ("alpha", message("é日😀\u202eא\x00\x7f."), ("é日😀\u202eא",)),
    "in-raw-utf-8": ("alpha", _as(message("é日😀 said")), ("é日😀 said",)),
    "in-another-type": (
        "alpha",
        _as(message("said"), headers={"Content-Type": "application/json; charset=utf-8"}),
        ("said",),
    ),
    "of-a-type-unsaid": ("alpha", _as(message("said")), ("said",)),
    **{
        f"of-parentheses-{number}": ("alpha", message(text), (text,))
        for number, text in enumerate(
            ("(as I said)", "(1 2 3)", "(said", "(a . b)", '("said" "so")')
        )
    },
    "long": ("alpha", message("x" * 200_000 + " end"), ("x" * 1000 + " end",)),
    "of-half-a-letter": (
        "alpha",
        _as(message("said"), body=json.dumps(message("a \ud83d said").json)),
        ("a", "said"),
    ),
    "of-the-other-half": (
        "alpha",
        _as(message(""), body=json.dumps(message("b \udc00 said").json)),
        ("b", "said"),
    ),
    "choices": (
        "beta",
        completed("the first", more=[{"index": 1, "message": {"content": "the other"}}]),
        ("the first",),
    ),
    "no-refusal": ("beta", completed("said", refusal=None, tool_calls=None), ("said",)),
    "other-members": ("beta", completed("said", audio=None, annotations=[]), ("said",)),
    "choice-of-half-a-letter": (
        "beta",
        _as(completion(""), body=json.dumps(completion("c \udfff said").json)),
        ("c", "said"),
    ),
    "choice-in-raw-utf-8": ("beta", _as(completion("é日😀 said")), ("é日😀 said",)),
    "choice-long": ("beta", completion("y" * 200_000 + " end"), ("y" * 1000 + " end",)),
    "choice-of-lines": ("beta", completion("a\n\n  b\r\nc"), ("a\n\n  b\r\nc",)),
}


async def test_a_sound_answer_arrives_whole_in_every_shape(start, cast: Cast, token: str) -> None:
    """What a provider may answer reaches the client: all of its texts, in their order, of any letters."""
    async with asking(start, cast, "abg") as daemon, daemon.connect() as connection:
        for name, (by, answer, texts) in SHAPED.items():
            cast.answers = {"alpha": Answer(status=500), "gamma": message("says gamma"), by: answer}
            cast.answers.setdefault("beta", completion("says beta"))
            since = len(cast.asked(0))
            asked = user_input(f"What of {name}, {token}?")
            reply = expect_message(await ask(connection, asked, seconds=ANSWER_S), connection)
            last = [request.rule for request in cast.asked(since)][-1:]

            assert last == [by], (
                f"contract 8: {name}: {by} has answered, and no other is asked: expected {by} to be "
                f"the last, found {last}, which says {reply[:200]!r}"
            )
            at = 0
            for text in texts:
                found = reply.find(text, at)

                assert found >= 0, (
                    f"contract 8: {name}: every text of an answer is in the reply, in its order: "
                    f"expected {text[-100:]!r} in {reply[at : at + 300]!r}"
                )
                at = found + len(text)
        expect_health(await daemon.health())


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


async def test_what_is_secret_in_an_address_is_shown_nowhere(start, evidence, token: str) -> None:
    """A password or a token in the address of a provider is in no frame, log or error."""
    secrets = ("pp4passWq81Zd", "tt6tokenLm27Bv")
    async with open_recorder("secretive", evidence=evidence) as there:
        places = (
            f"http://u:{secrets[0]}@127.0.0.1:1/{secrets[1]}",
            f"http://u:{secrets[0]}@127.0.0.1:{there.port}/{secrets[1]}",
        )
        order = [
            Provider(
                name=name, shape=shape, url=url, key=KEYS["alpha"], model="m", timeout_s=LATER_S
            )
            for name, shape, url in zip(
                ("alpha", "beta"), ("anthropic", "openai"), places, strict=True
            )
        ]
        async with start(Settings(providers=order)) as daemon, daemon.connect() as connection:
            said: dict[str, str] = {}
            for number in range(2):
                answer = await ask(connection, user_input(f"{number} {token}"), seconds=ANSWER_S)
                expect_message(answer, connection)
                said[f"answer {number}"] = answer.payload
            health = await daemon.health()
            expect_health(health)
            said["its health"] = health.payload
            asked = len(there.requests)
            said["its log"] = daemon.child.log.read_text(encoding="utf-8", errors="replace")
    leaked = [f"{where}: {line}" for where, text in said.items() for line in shown(text, secrets)]

    assert asked >= 1, f"contract 8: the provider that is there is asked, found {said}"
    assert not leaked, "contract 8: a secret is shown nowhere, found:\n" + "\n".join(leaked)


#: Keys that no HTTP header can carry, as they are pasted or read from a file: what is around and
#: within a real one.
UNSENDABLE: Final = {
    "a newline behind": "{}{}\n",
    "a newline before": "\n{}{}",
    "a carriage return behind": "{}{}\r\n",
    "a newline within": "{}\n{}",
    "a letter of Latin-1": "{}é{}",
    "a letter of no European alphabet": "{}日{}",
    "a control character": "{}\x01{}",
}


@asynccontextmanager
async def started(daemon: Daemon, settings: Settings) -> AsyncIterator[bool]:
    """Another life of a daemon, with other settings; whether it started with them."""
    daemon.settings = settings
    try:
        await daemon.restart()
    except AssertionError as error:
        if error.__cause__ is None:
            raise
        yield False
    else:
        yield True


def shown(text: str, secrets: Iterable[str]) -> list[str]:
    """The lines of a text that hold a secret, or of which the harness has blotted one out."""
    words = (*secrets, REDACTED)
    return [line[:300] for line in text.splitlines() if any(word in line for word in words)]


async def test_a_key_that_cannot_be_sent_is_shown_nowhere(start, cast: Cast, token: str) -> None:
    """A key that no header can carry is in no frame, log or error.

    It is refused at the start, or its provider is passed over or asked with what is sound of it.
    """
    cast.answers = {name: WELL[name](f"This says {name}: {token}.") for name in WELL}
    leaked: list[str] = []
    async with asking(start, cast, "abg") as daemon:
        sound = daemon.settings
        for what, spelled in UNSENDABLE.items():
            halves = {name: (key[:7], key[7:]) for name, key in KEYS.items()}
            providers = [
                each
                if each.name == "gamma"
                else replace(each, key=spelled.format(*halves[each.name]))
                for each in sound.providers
            ]
            secrets = [*halves["alpha"], *halves["beta"]]
            async with started(daemon, replace(sound, providers=providers)) as runs:
                if runs:
                    async with daemon.connect() as connection:
                        question = user_input(f"What of {what}, {token}?")
                        answer = await ask(connection, question, seconds=ANSWER_S)
                        reply = expect_message(answer, connection)

                    assert any(f"says {name}" in reply for name in WELL), (
                        f"contract 8: {what} in a key: expected the provider to be passed over, "
                        f"found {reply[:200]!r} ({answer.payload[:400]})"
                    )
                    leaked += [f"{what}: {line}" for line in shown(answer.payload, secrets)]
                log = daemon.child.log.read_text(encoding="utf-8", errors="replace")
                leaked += [f"{what}: {line}" for line in shown(log, secrets)]
        async with started(daemon, sound) as runs:
            assert runs, "contract 1: a sound configuration after others is started with"

    assert not leaked, "contract 8: a key is shown nowhere, found:\n" + "\n".join(leaked)


def misspelled(variable: str) -> list[str]:
    """The name of a variable with a letter too many in each of its words, or one missing at its end."""
    words = variable.split("_")
    plural = ["_".join([*words[:n], f"{word}S", *words[n + 1 :]]) for n, word in enumerate(words)]
    return [*plural, variable[:-1], variable.replace("_", "__", 1)]


async def test_a_misplaced_key_is_shown_nowhere(start, run) -> None:
    """A key in a variable whose name is misspelled, or in one beside its own, is in no error."""
    async with start() as daemon:
        await expect_unshown(daemon, run, KEYS["alpha"])
        expect_health(await daemon.health())


async def expect_unshown(daemon: Daemon, run: Run, secret: str) -> None:
    """A key in a variable of nearly the right name is in nothing that a start prints."""
    table = daemon.subject.table("providers")
    holders = [
        daemon.fill(name, NAME="ALPHA", name="alpha")
        for name, value in table["each"].items()
        if "{key}" in value
    ]
    tried = [{name: secret} for holder in holders for name in misspelled(holder)]
    sound = {
        "name": "alpha",
        "NAME": "ALPHA",
        "shape": "anthropic",
        "url": "http://127.0.0.1:9",
        "key": "k",
        "model": "m",
        "timeout_s": "5",
    }
    each = {daemon.fill(k, **sound): daemon.fill(v, **sound) for k, v in table["each"].items()}
    order = {daemon.fill(k): daemon.fill(v, names="alpha") for k, v in table["env"].items()}
    # In the place of each of its neighbours: alone, behind what belongs there, and before it.
    tried += [
        {**order, **each, name: text}
        for name, own in (order | each).items()
        if name not in holders
        for text in (secret, f"{own}{secret}", f"{secret}{own}", f"{own} {secret}", f" {secret}")
    ]
    leaked: list[str] = []
    waiting = iter(tried)

    async def one(client: str) -> None:
        for number, variables in enumerate(waiting):
            argv = daemon.subject.command(port=0, **daemon.places())
            environment = daemon.environment() | variables
            name = f"misplaced-{client}-{number}"
            async with run.child(argv, name=name, env=environment, cwd=daemon.home) as child:

                async def told(child=child) -> bool:
                    return child.returncode is not None or listens(child)

                with trio.move_on_after(patience(ANSWER_S)):
                    await until(told)
            text = child.log.read_text(encoding="utf-8", errors="replace")
            holding = [name for name, value in variables.items() if secret in value]
            leaked.extend(f"{' '.join(holding)}: {line}" for line in shown(text, [secret]))

    async with trio.open_nursery() as nursery:
        for client in "ab":
            nursery.start_soon(one, client)

    assert not leaked, "contract 8: a key is in no error, found:\n" + "\n".join(leaked)


def listens(child: Child) -> bool:
    """Whether a process or one of those below it listens."""
    ours = {child.pid, *below(child.pid)}
    return any(row.pid in ours for row in listeners())


def expect_no_secret(daemon: Daemon) -> None:
    """No key is in the daemon's log, its files, or the command line of any of its processes."""
    log = daemon.child.log.read_text(encoding="utf-8", errors="replace")
    places = {"its log": log, **files_of(daemon.home)}
    for pid in (daemon.pid, *below(daemon.pid)):
        places[f"the command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_text()
    leaked = [
        f"the key of {name} in {place}"
        for name, key in KEYS.items()
        for place, text in places.items()
        if key in text
    ]
    # What is shaped like a secret, the harness blots out of the log it keeps.
    if REDACTED in log:
        leaked += [line for line in log.splitlines() if REDACTED in line][:3]

    assert not leaked, f"contract 8: secrets have leaked: {leaked}"


def files_of(home: Path) -> dict[str, str]:
    """The text of every file below a home."""
    return {
        str(path): path.read_text(encoding="utf-8", errors="replace")
        for path in home.rglob("*")
        if path.is_file()
    }
