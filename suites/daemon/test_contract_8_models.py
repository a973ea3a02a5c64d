"""Contract 8, language models: asked in their order; one that is late, failing or wrong is passed over.

The harness's model gateway is a stand-in for each model provider, asked by two names in two shapes:
a real one fails, hangs and answers nonsense when it likes. Its ledger, which the daemon cannot write,
records who was asked, when, and what came of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault, Gateway, GatewayClient, LedgerEntry, open_gateway
from harness_core.front.budget import llm_budget_usd
from harness_core.front.skips import not_run
from suites.daemon.canary import open_canary
from suites.daemon.confinement import confinement
from suites.daemon.daemon import Absent, Daemon, Provider, Settings, open_daemon
from suites.daemon.messages import ask, due, expect_health, expect_message, say, user_input
from suites.daemon.wire import Connection, Message

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]

#: The daemon's timeout of a provider, on a machine with nothing else to do: a gateway that is well
#: answers in milliseconds.
PROVIDER_S = 1.0

#: Longer than that on any machine.
LATE_S = 60.0

ANSWER_S = 15.0

FIRST, SECOND = "model-of-the-first", "model-of-the-second"

#: Something that no skill knows.
QUESTION = "Which river is the longest of {}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A daemon whose language models are a gateway's.

    Attributes:
        daemon: the daemon.
        gateway: what it asks, as FIRST by the Messages API and as SECOND by chat completions.
    """

    daemon: Daemon
    gateway: Gateway

    @property
    def client(self) -> GatewayClient:
        """The gateway's control."""
        return self.gateway.client


def providers(gateway: Gateway) -> tuple[Provider, ...]:
    """Two names of one gateway, each with a shape and a model of its own."""
    return (
        Provider(
            name="first",
            shape="anthropic",
            url=gateway.url,
            key=gateway.api_key,
            model=FIRST,
            timeout_s=patience(PROVIDER_S),
        ),
        Provider(
            name="second",
            shape="openai",
            url=gateway.url,
            key=gateway.api_key,
            model=SECOND,
            timeout_s=patience(PROVIDER_S),
        ),
    )


@asynccontextmanager
async def opening(run, subject, evidence) -> AsyncIterator[Asked]:
    """The gateway, and a daemon that asks it."""
    async with open_gateway(run, evidence=evidence.child("daemon-gateway")) as gateway:
        settings = Settings(providers=providers(gateway))
        async with open_daemon(
            run, subject, evidence=evidence, name="asking", settings=settings
        ) as daemon:
            yield Asked(daemon=daemon, gateway=gateway)


@pytest.fixture(scope="session")
def asked(harness_loop: Loop, harness_run, run_evidence, subject) -> Iterator[Asked]:
    """A daemon with two language models."""
    if "providers" not in subject.capabilities:
        # What is made for several tests is made before the mark of the first is looked at.
        not_run("subject", f"{subject.name} lists no capability 'providers' in {subject.path.name}")
    with ExitStack() as stack:
        try:
            asked = stack.enter_context(
                harness_loop.hold(opening(harness_run, subject, run_evidence))
            )
        except AssertionError as error:
            asked = cast("Asked", Absent(error))
        yield asked


@asynccontextmanager
async def trouble(asked: Asked, *faults: Fault) -> AsyncIterator[None]:
    """Faults of the providers for the block, and none of an earlier test."""
    await asked.client.clear()
    for fault in faults:
        await asked.client.add_fault(fault)
    try:
        yield
    finally:
        await asked.client.clear()


async def calls(asked: Asked, *, since: int) -> list[LedgerEntry]:
    """The calls for an answer since a mark, in order of arrival."""
    entries = await asked.client.ledger(since=since)
    return [entry for entry in entries if entry.kind != "count_tokens"]


def order(entries: list[LedgerEntry]) -> list[str]:
    """Which models were asked, first to last."""
    return [entry.model for entry in entries]


async def test_the_first_is_asked_first(asked: Asked, token: str) -> None:
    """When the first provider answers, its answer is the daemon's and no other is asked."""
    mark = await asked.client.mark()
    answer = Fault(kind="answer", model=FIRST, text=f"The first says {token}.")
    async with trouble(asked, answer), asked.daemon.connect() as connection:
        reply = await say(connection, QUESTION.format("all"), seconds=ANSWER_S)

        assert token in reply, f"contract 8: {reply!r}\n{connection.transcript}"

    entries = await calls(asked, since=mark)

    assert [FIRST] == order(entries), "contract 8: more than the first was asked"
    assert "messages" == entries[0].kind, "not asked by the Messages API"


async def test_the_question_reaches_the_model(asked: Asked, token: str) -> None:
    """The user's own words are what the model is asked."""
    mark = await asked.client.mark()
    async with trouble(asked), asked.daemon.connect() as connection:
        await say(connection, QUESTION.format(token), seconds=ANSWER_S)
    entries = await calls(asked, since=mark)

    assert token in entries[0].prompt, f"contract 8: the prompt ends {entries[0].prompt!r}"


async def test_long_words_arrive_whole(asked: Asked, token: str) -> None:
    """A long question reaches the model to its last word, and so does a long answer the client."""
    question = QUESTION.format("all, " * 400 + token)
    text = f"It begins {'and goes on ' * 300}and ends, says {token}."
    answer = Fault(kind="answer", model=FIRST, contains=token, text=text)
    async with trouble(asked, answer), asked.daemon.connect() as connection:
        reply = await say(connection, question, seconds=ANSWER_S)

        assert text in reply, f"contract 8: {reply!r}\n{connection.transcript}"


#: Ways in which the first provider is no use, and whether asking it again would be wrong.
TROUBLE = {
    "status-500": Fault(kind="status", status=500, model=FIRST, times=9),
    "status-529": Fault(kind="status", status=529, model=FIRST, times=9),
    "status-429": Fault(kind="status", status=429, model=FIRST, times=9),
    "status-401": Fault(kind="status", status=401, model=FIRST, times=9),
    "hangs": Fault(kind="hang", model=FIRST, times=9),
    "late": Fault(kind="latency", latency_s=LATE_S, model=FIRST, times=9),
    "malformed": Fault(kind="malformed", model=FIRST, times=9),
    "cut": Fault(kind="cut", after_events=0, model=FIRST, times=9),
    "endless": Fault(kind="endless", model=FIRST, times=9),
    "says-nothing": Fault(kind="answer", text="", model=FIRST, times=9),
}


@pytest.mark.parametrize("fault", TROUBLE.values(), ids=TROUBLE)
async def test_a_provider_in_trouble_is_passed_over(asked: Asked, fault: Fault, token: str) -> None:
    """The second provider answers in the first one's place, and the explanation does not hide it."""
    mark = await asked.client.mark()
    second = Fault(kind="answer", model=SECOND, text=f"The second says {token}.")
    async with trouble(asked, fault, second), asked.daemon.connect() as connection:
        answer = await ask(connection, user_input(QUESTION.format("all")), seconds=ANSWER_S)
        reply = expect_message(answer, connection)
        models = order(await calls(asked, since=mark))

        assert token in reply, (
            f"contract 8: the second provider was not used (asked: {models}): {reply!r}\n"
            f"{connection.transcript}"
        )
        explanation = answer.get("PAYLOAD", "EXPLANATION")

        assert "first" in str(explanation), (
            f"the explanation does not name the one that failed: {explanation!r}"
        )
    assert FIRST == models[0], f"contract 8: asked in the order {models}"
    assert SECOND == models[-1], f"contract 8: asked in the order {models}"
    assert 1 == models.count(SECOND), f"the second was asked more than once: {models}"


async def test_the_second_speaks_chat_completions(asked: Asked, token: str) -> None:
    """The second provider is asked in its own shape, with the key it was given."""
    mark = await asked.client.mark()
    second = Fault(kind="answer", model=SECOND, text=token)
    async with (
        trouble(asked, TROUBLE["status-500"], second),
        asked.daemon.connect() as connection,
    ):
        found = (await say(connection, QUESTION.format("all"), seconds=ANSWER_S)).strip()

        assert token == found, (
            f"contract 8: the answer of the second provider, whole: expected {token!r}, found {found!r}"
        )
    last = (await calls(asked, since=mark))[-1]

    assert ("chat_completions", 200) == (last.kind, last.status), (
        "contract 8: the last call by kind and status: expected "
        + repr(("chat_completions", 200))
        + ", found "
        + repr((last.kind, last.status))
    )


ALL_DOWN = {
    "status": (Fault(kind="status", status=500, times=20),),
    "timeouts": (Fault(kind="hang", times=20),),
    "nonsense": (Fault(kind="malformed", times=20),),
}


def expect_failed_cascade(answer: Message, connection: Connection, *, stated: str) -> None:
    """The answer says in the stated words that no provider answered, and explains which failed."""
    reply = expect_message(answer, connection)

    assert reply.startswith(stated), f"contract 8: {reply!r} does not say {stated!r}"
    explanation = str(answer.get("PAYLOAD", "EXPLANATION"))

    assert "first" in explanation, (
        f"contract 8: the explanation names the first provider, found {explanation!r}"
    )
    assert "second" in explanation, (
        f"contract 8: the explanation names the second provider, found {explanation!r}"
    )


@pytest.mark.parametrize("faults", ALL_DOWN.values(), ids=ALL_DOWN)
async def test_all_down_is_stated(asked: Asked, faults: tuple[Fault, ...]) -> None:
    """When no provider answers, the user gets the words that the daemon states, and it lives on."""
    mark = await asked.client.mark()
    stated = asked.daemon.subject.table("providers")["all_down"]
    async with trouble(asked, *faults), asked.daemon.connect() as connection:
        answer = await ask(connection, user_input(QUESTION.format("all")), seconds=ANSWER_S)
        expect_failed_cascade(answer, connection, stated=stated)
    models = order(await calls(asked, since=mark))

    assert {FIRST, SECOND} == set(models), f"contract 8: not all were asked: {models}"
    expect_health(await asked.daemon.health())


async def test_trouble_is_not_remembered(asked: Asked, token: str) -> None:
    """A provider that failed is asked first again as soon as it works."""
    async with trouble(asked, TROUBLE["status-500"]), asked.daemon.connect() as connection:
        await say(connection, QUESTION.format("all"), seconds=ANSWER_S)
    mark = await asked.client.mark()
    well = Fault(kind="answer", model=FIRST, text=token)
    async with trouble(asked, well), asked.daemon.connect() as connection:
        found = await say(connection, QUESTION.format("all"), seconds=ANSWER_S)

        assert token in found, (
            f"contract 8: the answer of the provider that works again: expected {token!r}, found {found!r}"
        )
    found = order(await calls(asked, since=mark))

    assert [FIRST] == found, (
        f"contract 8: trouble is not remembered: who was asked: expected {[FIRST]!r}, found {found!r}"
    )


async def test_a_model_at_work_holds_up_no_other_client(asked: Asked) -> None:
    """While a model takes its time for one client, health and other clients are answered.

    Shown by the order of answers: a daemon that waits for the model answers the others after it.
    """
    mark = await asked.client.mark()
    answered: list[str] = []

    async def asked_first() -> bool:
        return bool(await calls(asked, since=mark))

    async with (
        trouble(asked, Fault(kind="hang", times=20)),
        asked.daemon.connect() as waiting,
        asked.daemon.connect() as other,
        trio.open_nursery() as nursery,
    ):

        async def wait_for_the_model() -> None:
            await due(waiting, "the answer when all have timed out", seconds=ANSWER_S)
            answered.append("the model's client")

        await waiting.send(user_input(QUESTION.format("all")))
        nursery.start_soon(wait_for_the_model)
        with deadline("see the model asked", seconds=ANSWER_S):
            await until(asked_first)
        expect_health(await asked.daemon.health())
        answered.append("health")
        expect_message(await ask(other, user_input("ping"), seconds=ANSWER_S), other)
        answered.append("another client")

    assert ["health", "another client", "the model's client"] == answered, (
        f"contract 8: a model at work holds up others; answered in the order {answered}"
    )


#: How else a model may write what it proposes.
PROPOSED = (
    '\n\t(:ACTION :EXECUTE :CMD "{command}")\n',
    '(:action :execute :cmd "{command}")',
    '(:CMD "{command}" :ACTION :EXECUTE)',
    '( :ACTION\n:EXECUTE :TARGET :SHELL\n:CMD "{command}" )',
    '(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:ACTION :EXECUTE :CMD "{command}"))',
    '```\n(:ACTION :EXECUTE :CMD "{command}")\n```',
    '(:ACTION :EXECUTE :CMD "{command}")\nThis tidies up.',
    'I run (:ACTION :EXECUTE :CMD "{command}").',
)


@pytest.mark.covers("CONTRACT-5-DANGEROUS")
@pytest.mark.requires("confinement")
@pytest.mark.capability("model-commands")
async def test_what_a_model_proposes_is_judged(run, subject, evidence, token: str) -> None:
    """A command that a model proposes goes through the dispatcher like any other, and runs if it may."""
    async with open_gateway(run, evidence=evidence) as gateway:
        settings = Settings(providers=providers(gateway), confinement=confinement())
        async with open_daemon(run, subject, evidence=evidence, settings=settings) as daemon:
            canary = open_canary(daemon.home, root=daemon.root, give=confinement().give)
            command = f"rm -rf {canary.inside}"
            form = f'(:ACTION :EXECUTE :CMD "{command}")'
            await gateway.client.add_fault(Fault(kind="answer", text=form, model=FIRST))
            async with daemon.connect() as connection:
                answer = await ask(connection, user_input("tidy up"), seconds=ANSWER_S)

                assert [] == canary.changes(), f"contract 5: a model's {command!r} ran"
                assert "blocked" in answer.payload.lower(), (
                    f"contract 5: a model's command is refused as blocked, found {answer.payload}"
                )
                for number, spelling in enumerate(PROPOSED):
                    harm = spelling.format(
                        command=f"echo {number}; unlink {canary.inside}/file.txt"
                    )
                    await gateway.client.add_fault(Fault(kind="answer", text=harm, model=FIRST))
                    await say(connection, f"tidy up {number}", seconds=ANSWER_S)

                    assert [] == canary.changes(), f"contract 5: a model's {harm!r} ran"
                for command, expected in (
                    (f"echo {token}-$((6 * 7))", f"{token}-42"),
                    ("pwd", str(daemon.root)),
                    (f"echo '   <{token} > '; echo", f"   <{token} > "),
                ):
                    form = f'(:ACTION :EXECUTE :CMD "{command}")'
                    await gateway.client.add_fault(Fault(kind="answer", text=form, model=FIRST))
                    found = await say(connection, "what is it", seconds=ANSWER_S)

                    assert expected in found, (
                        f"contract 5: a safe command that a model proposes runs, and its output is "
                        f"the answer: expected {expected!r}, found {found!r}"
                    )


@pytest.mark.aside("a check of the way to a real provider; the cascade is shown by the others")
@pytest.mark.requires("live-llm")
async def test_a_real_provider_answers(run, subject, evidence, pytestconfig) -> None:
    """With a key at hand the cascade works with the real provider, within the suite's budget."""
    live = open_gateway(
        run,
        mode="live",
        evidence=evidence,
        budget_usd=llm_budget_usd(pytestconfig, Path(__file__).parent),
        upstream=pytestconfig.getoption("--llm-upstream"),
    )
    async with live as gateway:
        real = Provider(
            name="first",
            shape="anthropic",
            url=gateway.url,
            key=gateway.api_key,
            timeout_s=60,
        )
        settings = Settings(providers=(real,))
        async with (
            open_daemon(run, subject, evidence=evidence, settings=settings) as daemon,
            daemon.connect() as connection,
        ):
            reply = await say(connection, "Answer with the one word: river", seconds=90)
        entries = await gateway.client.ledger()

    assert "river" in reply.lower(), (
        f"contract 8: the real provider answers what was asked, found {reply!r}"
    )
    assert [200] == [entry.status for entry in entries], (
        f"contract 8: one call to the real provider, by status: expected {[200]!r}, "
        f"found {[entry.status for entry in entries]!r}"
    )
    assert entries[0].charged, "the call did not reach the provider"
