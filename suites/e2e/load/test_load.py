"""Load: every message that the switchboard accepted reaches its good end exactly once.

Locust drives the running ecosystem through its one real door. How long things took is reported and
never asserted; what became of each message is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from harness_core.base.bridge import Loop
from harness_core.base.errors import ChildExited, HarnessError, NotReady
from harness_core.base.evidence import Curve, Evidence, Plot, tell
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.front.pytest_plugin import add_summary
from harness_core.ports import lease_port
from harness_core.process import Child, Run
from suites.e2e.ecosystem.handle import Ecosystem, envelope
from suites.e2e.load.account import Account, Found, Sending, Timings, settle, timings_table
from suites.e2e.load.profiles import Profile, read_profiles
from suites.e2e.observe.journey import FINAL_STATES, SHORT_PATIENCE_S, targets_of
from suites.e2e.scenarios import SCENARIOS

PROFILES = read_profiles(
    Path(__file__).with_name("profiles.toml"), scenarios=[row.id for row in SCENARIOS]
)
LOCUSTFILE: Final = Path(__file__).with_name("locustfile.py")

#: One ``ingest`` or one handshake; it does no work but a row, also under load.
ANSWER_S: Final = 30.0

#: Locust's own start and end, beside the time it is given to run.
AROUND_S: Final = 60.0

pytestmark = [pytest.mark.covers("E2E-LOAD"), pytest.mark.load]


@pytest.mark.parametrize("profile", PROFILES, ids=[profile.name for profile in PROFILES])
async def test_no_message_is_lost_or_handled_twice(
    ecosystem: Ecosystem,
    profile: Profile,
    harness_run: Run,
    harness_loop: Loop,
    evidence: Evidence,
    pytestconfig: pytest.Config,
) -> None:
    """All that was accepted under load is completed, each part of it done once, none invented."""
    inbox = ecosystem.switchboard.database
    since = (await inbox.one("SELECT clock_timestamp() AS now"))["now"]
    plan = evidence.write_json("plan.json", plan_of(profile, ecosystem))
    await harness_loop.call(
        lambda: run_locust(
            harness_run,
            plan,
            evidence,
            users=profile.users,
            run_s=round(patience(profile.run_s)),
            workers=profile.workers,
        )
    )
    sendings, sent_at = read_sendings(plan.parent)

    assert sendings, f"no user sent anything: see {evidence.path}"
    processes = len(list(plan.parent.glob("sendings-*.jsonl")))

    assert processes == max(1, profile.workers), f"{processes} processes sent messages"
    requests = sorted({sending.request for sending in sendings if sending.request})
    undone = await drain(ecosystem, requests, seconds=min(profile.drain_s, SHORT_PATIENCE_S))
    found, ended = await recorded_since(ecosystem, since)
    account = settle(sendings, found)
    taken = timings(sendings, sent_at, ended)
    tell(lambda: curves_of(taken, [*sent_at.values()]))
    text = report(profile, account, sendings, taken, evidence)
    add_summary(pytestconfig, f"load: {profile.name}", text)
    await ecosystem.check_budget()

    assert not undone, f"every message is done in the end, and these are not: {undone}\n{text}"
    assert not account.problems, (
        f"what is acknowledged is kept, once: {len(account.problems)} problems\n{text}"
    )
    assert account.sent == profile.users * profile.messages_each, (
        f"{account.sent} messages were sent, the profile asks for "
        f"{profile.users * profile.messages_each}: run_s is too short\n{text}"
    )


def plan_of(profile: Profile, ecosystem: Ecosystem) -> dict[str, Any]:
    """What a Locust process needs to know."""
    prompts = {row.id: row.input_prompt for row in SCENARIOS}
    return structs.asdict(profile) | {
        "url": ecosystem.switchboard.url,
        "timeout_s": patience(ANSWER_S),
        "envelope": envelope("", trace_id="0" * 32),
        "texts": [prompts[text] for text in profile.texts],
    }


async def run_locust(
    run: Run, plan: Path, evidence: Evidence, *, users: int, run_s: int, workers: int = 0
) -> None:
    """Run Locust to its end: bounded in users and time, and gone afterwards.

    Args:
        run: the run it belongs to.
        plan: what its processes are to do.
        evidence: keeps its logs and reports.
        users: at a time.
        run_s: the longest it may send.
        workers: processes besides the master; 0 for one process.

    Raises:
        ChildExited: it ended with a status that speaks of neither success nor failed requests.
        HarnessError: there is no Locust here.
    """
    if importlib.util.find_spec("locust") is None:
        raise HarnessError(
            "load the ecosystem",
            observed="Locust is not installed in this environment",
            next_step="Run nox -s load",
        )
    common = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--loglevel", "WARNING"]
    head = [
        *common,
        *("--headless", "--only-summary", "--users", str(users)),
        *("--spawn-rate", str(users), "--run-time", f"{run_s}s"),
        *("--stop-timeout", f"{patience(ANSWER_S):.0f}", "--csv", str(evidence.path / "locust")),
        *("--html", str(evidence.path / "locust.html")),
    ]
    environment = os.environ | {
        "HARNESS_LOAD_PLAN": str(plan),
        "PYTHONPATH": str(LOCUSTFILE.parents[3]),
    }
    async with AsyncExitStack() as stack:

        async def start(name: str, argv: list[str]) -> Child:
            opened = run.child(argv, name=name, env=environment, evidence=evidence)
            return await stack.enter_async_context(opened)

        if workers:
            lease = stack.enter_context(lease_port())
            address = ["--master-bind-host", "127.0.0.1", "--master-bind-port", str(lease.port)]
            lease.hand_over()
            expected = ["--expect-workers", str(workers)]
            master = await start("locust-master", [*head, "--master", *address, *expected])
            where = ["--master-host", "127.0.0.1", "--master-port", str(lease.port)]
            for number in range(workers):
                await start(f"locust-worker-{number + 1}", [*common, "--worker", *where])
        else:
            master = await start("locust", head)
        with deadline("see Locust end", seconds=run_s + AROUND_S, tail=master.tail):
            status = await master.wait()
        # 1: some request failed, which the account lists message by message.
        if status not in {0, 1}:
            raise ChildExited("run Locust", name=master.name, returncode=status, tail=master.tail())


def read_sendings(folder: Path) -> tuple[list[Sending], dict[str, float]]:
    """Every sending of every process, and when each event was first sent (seconds since 1970)."""
    sendings, sent_at = [], {}
    for path in sorted(folder.glob("sendings-*.jsonl")):
        waiting: Counter[str] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines():
            body = json.loads(line)
            event = body["event"]
            if "sent_at" in body:
                waiting[event] += 1
                sent_at[event] = min(body["sent_at"], sent_at.get(event, body["sent_at"]))
                continue
            waiting[event] -= 1
            sendings.append(Sending(**body))
        sendings.extend(
            Sending(event=event, error="sent, and Locust was stopped before the answer")
            for event, count in waiting.items()
            if count > 0
        )
    return sendings, sent_at


async def drain(ecosystem: Ecosystem, requests: list[str], *, seconds: float) -> str:
    """Wait until every message has a final state; says which have none when the time is over."""
    inbox = ecosystem.switchboard.database
    states: dict[str, str] = {}

    async def all_final() -> bool:
        rows = await inbox.rows(
            "SELECT request_id::text AS id, lifecycle_state AS state FROM message_inbox "
            "WHERE request_id::text = ANY(%s)",
            (requests,),
        )
        states.update({str(row["id"]): str(row["state"]) for row in rows})
        return all(states.get(request) in FINAL_STATES for request in requests)

    try:
        with deadline("see every message end", seconds=seconds):
            await until(all_final)
    except NotReady:
        open_ = Counter(states.get(request, "nowhere") for request in requests)
        return f"after {seconds:g} s messages are in the states {dict(open_)}"
    return ""


async def recorded_since(
    ecosystem: Ecosystem, since: Any
) -> tuple[dict[str, Found], dict[str, float]]:
    """What the databases hold of every message since a time, and when its last session ended."""
    inbox = ecosystem.switchboard.database
    rows = await inbox.rows("SELECT * FROM message_inbox WHERE created_at >= %s", (since,))
    hops = await inbox.rows("SELECT * FROM routing_log WHERE created_at >= %s", (since,))
    sessions = [
        row
        for butler in ecosystem.butlers.values()
        for row in await butler.database.rows(
            "SELECT request_id::text AS request, success, completed_at FROM sessions "
            "WHERE started_at >= %s AND request_id IS NOT NULL",
            (since,),
        )
    ]
    found: dict[str, Found] = {}
    ended: dict[str, float] = {}
    for request in {str(row["request_id"]) for row in rows}:
        own = [row for row in rows if str(row["request_id"]) == request]
        traces = {row["trace_id"] for row in own}
        targets = Counter(targets_of(own[0]["decomposition"]))
        done = Counter(
            str(hop["target_butler"])
            for hop in hops
            if hop["trace_id"] in traces and hop["success"]
        )
        of_it = [row for row in sessions if row["request"] == request]
        found[request] = Found(
            states=tuple(str(row["lifecycle_state"]) for row in own),
            wanted=targets.total(),
            done=done.total(),
            trouble=trouble_with(of_it, targets, done),
        )
        ends = [row["completed_at"] for row in of_it if row["completed_at"] is not None]
        if ends:
            ended[request] = max(ends).timestamp()
    return found, ended


def trouble_with(
    sessions: list[Mapping[str, Any]], targets: Counter[str], done: Counter[str]
) -> str:
    """What is wrong with the sessions and hops of one message, beyond their number."""
    if targets != done:
        return f"divided among {dict(targets)}, routed to {dict(done)}"
    if any(row["completed_at"] is None or not row["success"] for row in sessions):
        return "one of its sessions failed or was left open"
    if len(sessions) != targets.total() + 1:
        return f"{len(sessions)} sessions ran, expected {targets.total() + 1}"
    return ""


def timings(
    sendings: list[Sending], sent_at: Mapping[str, float], ended: Mapping[str, float]
) -> dict[str, Timings]:
    """How long answers took, and how long messages took from being sent to their last session's end."""
    whole = {
        sending.event: (ended[sending.request] - sent_at[sending.event]) * 1000
        for sending in sendings
        if sending.request in ended
    }
    answered = tuple(sending.took_ms for sending in sendings if not sending.error)
    return {
        "ingest, to its answer": Timings(samples_ms=answered),
        "message, to its end": Timings(samples_ms=tuple(whole.values())),
    }


def curves_of(taken: Mapping[str, Timings], sent_at: Sequence[float]) -> list[Plot]:
    """How long answers took by share of them, and how many messages were sent each second."""
    shares = [*range(2, 100, 2), 99, 100]
    latency = [
        Curve(name=name, points=tuple((float(share), of.at(share)) for share in shares))
        for name, of in taken.items()
        if of.samples_ms
    ]
    first = min(sent_at, default=0.0)
    seconds = Counter(int(at - first) for at in sent_at)
    points = tuple((float(at), float(seconds[at])) for at in range(max(seconds, default=0) + 1))
    return [
        Plot(title="time by share of them", x="percent", y="ms", curves=tuple(latency)),
        Plot(
            title="messages sent",
            x="s since the first",
            y="per second",
            curves=(Curve(name="sent", points=points),),
            style="step",
        ),
    ]


def report(
    profile: Profile,
    account: Account,
    sendings: list[Sending],
    taken: Mapping[str, Timings],
    evidence: Evidence,
) -> str:
    """The run in a few lines, also as evidence."""
    whole = taken["message, to its end"]
    slowest_s = whole.at(100) / 1000 if whole.samples_ms else 0.0
    head = (
        f"{profile.name}: {profile.users} users, {account.sent} messages, {account.resent} sent "
        f"again, {account.accepted} accepted, {len(account.problems)} problems; the last message "
        f"took {slowest_s:.1f} s"
    )
    lines = [head, timings_table(taken), *account.problems[:20]]
    evidence.write_json(
        "report.json",
        {
            "profile": profile,
            "account": account,
            "timings": {name: of.as_json() for name, of in taken.items()},
            "sendings": sendings,
        },
    )
    evidence.write_text("report.txt", "\n".join(lines) + "\n")
    return "\n".join([*lines, f"evidence: {evidence.path}"])
