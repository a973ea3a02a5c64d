"""Contract 8: what is said of a provider that was passed over is of that one, and of this question.

Recorders are a stand-in for model providers, each of which fails in a way of its own.
"""

from __future__ import annotations

import re
import signal
from contextlib import suppress

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.doubles.http import Answer, Recorded, Rule, open_recorder
from suites.daemon.daemon import Provider, Settings
from suites.daemon.messages import ask, expect_message, user_input
from suites.daemon.vitals import settled

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]

#: Statuses with which the first and the second fail, question by question; 200 is an answer.
STATUSES = ((418, 503), (503, 418), (429, 200), (507, 451), (200, 451), (451, 507))

ANSWER_S = 40.0
SETTLE_S = 10.0


async def test_each_reason_is_its_own(start, evidence, token: str) -> None:
    """Whoever fails is named with why it failed this time, first to last, and leaves nothing open.

    A daemon that names no statuses says nothing wrong of them.
    """
    now = (0, 0)

    def of(number: int):
        def answer(_request: Recorded) -> Answer:
            said = {"role": "assistant", "content": f"says {number}"}
            body = {"choices": [{"index": 0, "message": said}]}
            return Answer(status=now[number], json=body)

        return answer

    rules = [Rule(path=f"/{n}/v1/chat/completions", method="POST", answer=of(n)) for n in (0, 1)]
    async with open_recorder("failing", evidence=evidence, rules=rules) as there:
        order = tuple(
            Provider(
                name=name,
                shape="openai",
                url=f"{there.url}/{number}",
                key=f"k{number}",
                model="m",
                timeout_s=patience(20),
            )
            for number, name in enumerate(("alpha", "beta"))
        )
        async with start(Settings(providers=order)) as daemon, daemon.connect() as connection:
            asked = user_input(f"warm up {token}")
            now = (200, 200)
            await ask(connection, asked, seconds=ANSWER_S)
            before = daemon.vitals()
            for turn in range(2):
                for number, now in enumerate(STATUSES):
                    question = user_input(f"Which river {turn}-{number}, {token}?")
                    answer = await ask(connection, question, seconds=ANSWER_S)
                    expect_message(answer, connection)
                    explanation = str(answer.get("PAYLOAD", "EXPLANATION"))
                    failed = [status for status in now[: 1 + (now[0] != 200)] if status != 200]
                    every = {status for row in STATUSES for status in row} - {200}
                    found = [
                        int(word)
                        for word in re.findall(r"(?<!\d)\d{3}(?!\d)", explanation)
                        if int(word) in every
                    ]

                    assert found in ([], failed), (
                        f"contract 8: question {number}: alpha answers {now[0]}, beta {now[1]}: expected "
                        f"the reasons {failed} in this order, found {found} in {explanation!r}"
                    )
            await settled(daemon.pid, descriptors=before.descriptors + 2, seconds=SETTLE_S)


#: The first may take so long for its whole answer; it sends a byte of it every so often.
WHOLE_S = 0.5
BYTE_S = 0.1


async def test_an_answer_that_drips_is_late(start, evidence, token: str) -> None:
    """The deadline of a provider is for its whole answer, not for each byte of it."""

    async def drip(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(65536)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"
            await stream.send_all(head)
            hung_up = False
            while not hung_up:
                await stream.send_all(b" ")
                with trio.move_on_after(BYTE_S):
                    hung_up = await stream.receive_some(1) == b""

    said = {"role": "assistant", "content": f"says beta {token}"}
    answer = Answer(json={"choices": [{"index": 0, "message": said}]})
    rules = [Rule(path="/v1/chat/completions", method="POST", answer=answer)]
    async with (
        open_recorder("in-time", evidence=evidence, rules=rules) as there,
        trio.open_nursery() as nursery,
    ):
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, drip, [listener])
        port = listener.socket.getsockname()[1]
        order = tuple(
            Provider(name=name, shape="openai", url=url, key="k", model="m", timeout_s=seconds)
            for name, url, seconds in (
                ("alpha", f"http://127.0.0.1:{port}", WHOLE_S),
                ("beta", there.url, patience(20)),
            )
        )
        async with start(Settings(providers=order)) as daemon, daemon.connect() as connection:
            for turn in range(2):
                question = user_input(f"Which river, {turn} {token}?")
                reply = None
                with trio.move_on_after(patience(ANSWER_S / 2)):
                    answered = await ask(connection, question, seconds=ANSWER_S)
                    reply = expect_message(answered, connection)

                assert reply is not None, (
                    f"contract 8: a provider that has {WHOLE_S:g} s and sends a byte every {BYTE_S:g} s is "
                    f"passed over: expected the answer of the next, found none in {ANSWER_S / 2:g} s"
                )
                assert token in reply, (
                    f"contract 8: the next provider answers in its place, found {reply!r}"
                )
        nursery.cancel_scope.cancel()


@pytest.mark.covers("CONTRACT-1-STOP")
async def test_a_stop_does_not_wait_for_a_model(start, evidence, token: str) -> None:
    """Asked to stop while a provider says nothing, the daemon ends as at any other time."""
    asked = trio.Event()

    def nothing(_request: Recorded) -> Answer:
        asked.set()
        return Answer(drop="silent")

    rules = [Rule(path="/**", method="POST", answer=nothing)]
    async with open_recorder("silent", evidence=evidence, rules=rules) as there:
        slow = Provider(
            name="alpha", shape="openai", url=there.url, key="k", model="m", timeout_s=600
        )
        async with start(Settings(providers=(slow,))) as daemon, daemon.connect() as connection:
            await connection.send(user_input(f"Which river, {token}?"))
            with trio.move_on_after(patience(ANSWER_S)):
                await asked.wait()
            assert asked.is_set(), "contract 8: the provider is asked"
            daemon.signal(signal.SIGTERM)
            with trio.move_on_after(patience(daemon.stop_s)):
                await daemon.child.wait()
            assert 0 == daemon.child.returncode, (
                f"contract 1: expected a clean end within {daemon.stop_s:g} s while a model is asked, "
                f"found status {daemon.child.returncode}"
            )
