"""Load in an open loop: ramps with a knee, saturation, and a soak of as long as a run says.

How fast anything was is reported and never asserted; what became of each message is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assertions import new_token
from harness_core.base.bridge import Loop
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.front.pytest_plugin import add_summary
from harness_core.process import Run
from suites.e2e.ecosystem.handle import Ecosystem, envelope
from suites.e2e.load.account import (
    Account,
    Sending,
    Step,
    Timings,
    knee,
    settle,
    steps_table,
    timings_table,
)
from suites.e2e.load.profiles import Ramp, read_ramps
from suites.e2e.load.test_load import (
    ANSWER_S,
    drain,
    read_sendings,
    recorded_since,
    run_locust,
    timings,
)
from suites.e2e.observe.expect_broken_journey import expect_no_open_session
from suites.e2e.scenarios import SCENARIOS
from suites.e2e.worlds.vitals import expect_no_growth, read_vitals

RAMPS = read_ramps(
    Path(__file__).with_name("profiles.toml"), scenarios=[row.id for row in SCENARIOS]
)

#: How long a soak goes on, in seconds, when it is not to be as long as its row says.
SOAK_VARIABLE: Final = "HARNESS_SOAK_S"

#: Messages after which a butler has loaded and cached what it loads and caches at the first use.
WARM_UP: Final = 6

#: What the pools of a butler may have grown by since: connections to its database, workers.
POOLS: Final = 6

pytestmark = [pytest.mark.covers("E2E-LOAD"), pytest.mark.load]


@pytest.mark.parametrize(
    "ramp",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.soak] if each.soak else [])
        for each in RAMPS
    ],
)
async def test_no_message_is_lost_whatever_the_rate(
    ecosystem: Ecosystem,
    ramp: Ramp,
    harness_run: Run,
    harness_loop: Loop,
    evidence: Evidence,
    pytestconfig: pytest.Config,
) -> None:
    """What is accepted is done once at any rate, for any time; afterwards no butler holds more."""
    step_s = soak_seconds(ramp)
    await warm_up(ecosystem, ramp)
    before = {name: await read_vitals(butler) for name, butler in ecosystem.butlers.items()}
    inbox = ecosystem.switchboard.database
    since = (await inbox.one("SELECT clock_timestamp() AS now"))["now"]
    plan = evidence.write_json("plan.json", plan_of(ramp, ecosystem, step_s=step_s))
    whole_s = step_s * len(ramp.rates_per_s)
    await harness_loop.call(
        lambda: run_locust(
            harness_run, plan, evidence, users=1, run_s=round(whole_s + 4 * patience(ANSWER_S))
        )
    )
    sendings, sent_at = read_sendings(plan.parent)

    assert sendings, f"no message was sent: see {evidence.path}"
    requests = sorted({sending.request for sending in sendings if sending.request})
    undone = await drain(ecosystem, requests, seconds=ramp.drain_s)
    found, ended = await recorded_since(ecosystem, since)
    account = settle(sendings, found)
    steps = steps_of(ramp, plan.parent, sendings, ended, step_s=step_s)
    text = report(ramp, account, steps, timings(sendings, sent_at, ended), evidence)
    add_summary(pytestconfig, f"load: {ramp.name}", text)
    await ecosystem.check_budget()
    wanted = len(arrivals_of(ramp, step_s=step_s))

    assert not undone, f"every message is done in the end, and these are not: {undone}\n{text}"
    assert not account.problems, (
        f"what is acknowledged is kept, once: {len(account.problems)} problems\n{text}"
    )
    assert account.sent == wanted, (
        f"{account.sent} messages were sent, the row asks for {wanted}\n{text}"
    )
    for name, butler in ecosystem.butlers.items():
        await expect_no_open_session(butler)
        await expect_no_growth(
            butler, before[name], after=f"{account.sent} messages ({ramp.name})", spare=POOLS
        )


def soak_seconds(ramp: Ramp) -> int:
    """How long each step goes on: as the row says, or as the run says of a soak.

    Raises:
        BadInput: the variable holds no number of seconds.
    """
    given = os.environ.get(SOAK_VARIABLE, "")
    if not ramp.soak or not given:
        return ramp.step_s
    if not given.isdecimal() or not 1 <= int(given) <= 86_400:
        raise BadInput(SOAK_VARIABLE, found=given, expected="whole seconds from 1 to 86400")
    return int(given)


def arrivals_of(ramp: Ramp, *, step_s: int) -> list[tuple[float, int]]:
    """When each message is due, in seconds from the start, and the step that it belongs to."""
    return [
        (number * step_s + one / rate, number)
        for number, rate in enumerate(ramp.rates_per_s)
        for one in range(max(1, round(rate * step_s)))
    ]


def plan_of(ramp: Ramp, ecosystem: Ecosystem, *, step_s: int) -> dict[str, Any]:
    """What the Locust process needs to know."""
    prompts = {row.id: row.input_prompt for row in SCENARIOS}
    return {
        "arrivals": arrivals_of(ramp, step_s=step_s),
        "resend_every": ramp.resend_every,
        "url": ecosystem.switchboard.url,
        "timeout_s": patience(ANSWER_S),
        "envelope": envelope("", trace_id="0" * 32),
        "texts": [prompts[text] for text in ramp.texts],
    }


async def warm_up(ecosystem: Ecosystem, ramp: Ramp) -> None:
    """Some messages first, so that what is counted before is what a butler in use holds."""
    prompts = {row.id: row for row in SCENARIOS}
    requests = []
    for number in range(WARM_UP):
        text = prompts[ramp.texts[number % len(ramp.texts)]].input_prompt
        sent = await ecosystem.send(text.replace("{token}", new_token()))
        requests.append(sent.request_id)
    undone = await drain(ecosystem, requests, seconds=ramp.drain_s)

    assert not undone, f"the first messages of all did not end: {undone}"


def steps_of(
    ramp: Ramp,
    folder: Path,
    sendings: list[Sending],
    ended: Mapping[str, float],
    *,
    step_s: int,
) -> list[Step]:
    """What each rate brought, by the times that sender and rows have."""
    lines = [
        json.loads(line)
        for path in sorted(folder.glob("sendings-*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    sent = {line["event"]: line for line in reversed(lines) if "step" in line}
    request = {sending.event: sending.request for sending in sendings if sending.request}
    ends = {event: ended[request[event]] for event in sent if request.get(event) in ended}
    began = min((line["due_at"] for line in sent.values()), default=0.0)
    found = []
    for number, rate in enumerate(ramp.rates_per_s):
        opens, closes = began + number * step_s, began + (number + 1) * step_s
        own = {event for event, line in sent.items() if line["step"] == number}
        found.append(
            Step(
                rate_per_s=rate,
                sent=len(own),
                finished=sum(opens <= end < closes for end in ends.values()),
                backlog=sum(
                    line["sent_at"] < closes and ends.get(event, closes) >= closes
                    for event, line in sent.items()
                ),
                late_ms=max(
                    ((sent[event]["sent_at"] - sent[event]["due_at"]) * 1000 for event in own),
                    default=0.0,
                ),
                ingest=Timings(
                    samples_ms=tuple(
                        each.took_ms for each in sendings if each.event in own and not each.error
                    )
                ),
                whole=Timings(
                    samples_ms=tuple(
                        (ends[event] - sent[event]["sent_at"]) * 1000 for event in own & ends.keys()
                    )
                ),
            )
        )
    return found


def report(
    ramp: Ramp,
    account: Account,
    steps: list[Step],
    taken: Mapping[str, Timings],
    evidence: Evidence,
) -> str:
    """The run in a few lines, also as evidence."""
    head = (
        f"{ramp.name}: {account.sent} messages, {account.resent} sent again, {account.accepted} "
        f"accepted, {len(account.problems)} problems"
    )
    lines = [
        head,
        f"knee: {knee(steps)}",
        steps_table(steps),
        timings_table(taken),
        *account.problems[:20],
    ]
    evidence.write_json("report.json", {"ramp": ramp, "account": account, "steps": steps})
    evidence.write_text("report.txt", "\n".join(lines) + "\n")
    return "\n".join([*lines, f"evidence: {evidence.path}"])
