"""Contract 8: what is said of a provider that was passed over is of that one, and of this question.

Recorders are a stand-in for two model providers; both fail, each in a way of its own.
"""

from __future__ import annotations

import re

import pytest

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
