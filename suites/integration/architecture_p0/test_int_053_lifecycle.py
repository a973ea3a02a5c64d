"""The life of an episode is on record, and Temporal knows the same."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import trio
from workbench_contract.batches import BatchAccepted, BatchRequest
from workbench_contract.episodes import EpisodeRequest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import fail, use
from suites.integration.comparing import consecutive, expect_same, expect_unchanged, in_order, utc
from suites.integration.episodes import FINAL, Episodes, calls, new_token, steps_of_episode
from suites.integration.messages import answered, sent
from suites.integration.patience import COMMAND_S, SOON_S, by_a_stack, eventually
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session
from suites.integration.temporal_view import closed_workflow, describe_workflow, end_workflow

#: What episodes are given besides their tasks; no two are alike in anything.
_GIVEN: Final = (
    {
        "role": "planner",
        "seed": 2**31 - 1,
        "variant": "Träger/π " + "v" * 60,
        "metadata": {"größe": [1, 2.5, None, True], "nested": {"": {"emoji": "😀\u2028"}}},
    },
    {"role": "reviewer", "seed": 1, "variant": "v", "metadata": {"backslash": "\\u0000", "n": "0"}},
)


#: A provider that refuses is asked again, and not for ever.
_MOST_ASKED: Final = 12

_STATUSES: Final = ("queued", "running", *sorted(FINAL))


#: What commands say around one that waits, and how many calls are on record when that has ended.
_WORDS: Final = ("one", "two", "three")


_BEFORE: Final = 3


#: From the end of a call to its row: a moment, and less than an outage that ends an episode.
_ROW_S: Final = 3.0


#: Ends when it is let go, and says how often.
_WAITS_AND_SAYS: Final = (
    "touch begun; until [ -e go-on ]; do sleep 0.05; done; echo again >> again.txt; touch whole"
)


#: More than a prompt keeps that is cut somewhere, with characters of one to four bytes.
_LONG_TASK: Final = 'Prüfe 日 😀 \\u0000 "quoted" {braces}\n' * 180


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_the_life_of_a_workflow_is_recorded(episodes: Episodes) -> None:
    """Each step of an episode is a row and an event with its own time and the workflow's ids.

    Temporal knows the same workflow, with the same end. An episode that fails has a failed step with
    the reason, and no completed one. The model provider is a stand-in: the gateway does
    the turns of the first episode, and refuses the second one.
    """
    began = datetime.now(UTC)
    token, refused = new_token(), new_token()
    task = f"{token}\n{_LONG_TASK}"
    await episodes.rehearse(
        token,
        use("fs_write", path="a.txt", content="x"),
        use("fs_read", path="missing.txt"),
        task=task,
    )
    await episodes.rehearse(refused, episodes.waiting(), fail(400))
    gateway = episodes.stack.gateway.client
    busy = Fault(kind="status", status=429, times=1, contains=token)
    async with gateway.fault(busy) as number:
        accepted = [
            await episodes.submit(token, task=task, **_GIVEN[0]),
            await episodes.submit(refused, **_GIVEN[1]),
        ]
        good = await episodes.until(accepted[0]["episode_id"], "completed")
        met = await gateway.fault_met(number)
    await episodes.begun(accepted[1]["session_id"])
    while_running = await episodes.get(accepted[1]["episode_id"])
    running = await _page(episodes, status="running", limit=500)
    seen_running = await describe_workflow(episodes.stack, accepted[1]["workflow_id"])
    await episodes.release(accepted[1]["session_id"])
    bad = await episodes.until(accepted[1]["episode_id"], "failed")
    ended = datetime.now(UTC)

    assert 1 == met, f"expected the model to be busy once, found it {met} times"
    turns, often = await episodes.asked(token), await episodes.asked(refused)
    assert 4 == turns, f"expected 3 turns, one of them twice, found the model asked {turns} times"
    assert 2 <= often <= _MOST_ASKED, f"a refusal of the provider is asked for {often} times"
    assert seen_running is not None, "Temporal has no workflow of an episode that runs"
    assert "running" == seen_running.status, f"Temporal has {seen_running} of one that runs"
    listed = {row["episode_id"]: row["status"] for row in running}
    wanted = {**listed, while_running["episode_id"]: "running"}
    expect_same(wanted, listed, what="those listed as running, one of them our own")
    assert set(listed.values()) == {"running"}, f"listed as running, and are not: {listed}"
    assert "running" == while_running["status"], f"expected it running, found {while_running}"
    expect_same(
        ["queued", "running"], steps_of_episode(while_running), what="steps of one that runs"
    )
    expect_same(
        ["queued", "running", "completed"], steps_of_episode(good), what="steps of the good one"
    )
    expect_same(["queued", "running", "failed"], steps_of_episode(bad), what="steps of the bad one")
    assert "400" in bad["reason"] or "planted by the harness" in bad["reason"], (
        f"expected the provider's refusal as the reason, found {bad['reason']!r}"
    )
    for episode, end, given in zip((good, bad), ("completed", "failed"), _GIVEN, strict=True):
        assert end == episode["status"], f"expected it {end}, found {episode['status']}"
        last = episode["transitions"][-1]["reason"]
        assert last == episode["reason"], f"its last step says {last!r}, it {episode['reason']!r}"
        expect_same(given, {key: episode[key] for key in given}, what="what it was submitted with")
        await _is_consistent(episodes, episode, began=began, ended=ended)
        seen = await closed_workflow(episodes.stack, episode["workflow_id"])

        assert end == seen.status, f"Temporal has {seen}, the episode is {end}"
        named = {step["run_id"] for step in episode["transitions"][1:]} | {episode["run_id"]}
        assert {seen.run_id} == named, f"Temporal ran {seen.run_id}, the episode names {named}"
    assert task == good["task"], "the task is not the one that was submitted"
    _is_traced(good, [("fs_write", True), ("fs_read", False)], began=began, ended=ended)
    models = [trace["ok"] for trace in bad["traces"] if trace["kind"] == "model"]
    expect_same(
        [True, False], models, what="turns of the one that was refused: whether each was answered"
    )
    for submitted, episode in zip(accepted, (good, bad), strict=True):
        ids = {key: submitted[key] for key in submitted if key != "status"}
        expect_same(ids, {key: episode[key] for key in ids}, what="ids of the answer of 202")
    await _is_listed(episodes, good, bad)


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_what_ends_at_temporal_ends_here(episodes: Episodes) -> None:
    """A workflow that an operator cancels or terminates at Temporal leaves a cancelled episode.

    It says why, its command has ended, it is no success, and it can fail to be interrupted: 409. The
    model provider is a stand-in: the gateway does the turns.
    """
    tokens = {how: new_token() for how in ("cancel", "terminate")}
    command = "touch begun; while :; do echo {token} >> beats; sleep 0.05; done"
    for token in tokens.values():
        doing = command.format(token=token)
        await episodes.rehearse(token, use("execute", command=doing, timeout_s=COMMAND_S))
    accepted = {how: await episodes.submit(token) for how, token in tokens.items()}
    runs: dict[str, str] = {}
    for how, episode in accepted.items():
        await episodes.begun(episode["session_id"])
        runs[how] = (await episodes.get(episode["episode_id"]))["run_id"]
        await end_workflow(episodes.stack, episode["workflow_id"], how)
    for how, submitted in accepted.items():
        episode = await episodes.until(submitted["episode_id"], "cancelled")
        seen = await closed_workflow(episodes.stack, submitted["workflow_id"])
        again = await episodes.controller.post(f"/episodes/{submitted['episode_id']}/interrupt")

        steps = ["queued", "running", "cancelled"]
        expect_same(steps, steps_of_episode(episode), what=f"steps after {how} at Temporal")
        assert runs[how], f"expected the run id of an episode that runs, found {runs}"
        expect_same(runs[how], episode["run_id"], what=f"run id after {how} at Temporal")
        assert episode["reason"], f"it was ended by {how} at Temporal, and does not say why"
        ends = {"cancel": "canceled", "terminate": "terminated"}
        assert ends[how] == seen.status, f"after {how}, Temporal has {seen}"
        expect_refused(again, 409)
        await episodes.until_still(submitted["session_id"])
        now = await episodes.get(submitted["episode_id"])
        expect_unchanged(episode, now, what=f"an episode after its end by {how} at Temporal")


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_the_same_work_again_is_another_run(episodes: Episodes) -> None:
    """The same task with the same seed, one after the other and twice in a batch, is four runs.

    Each has ids of its own by which its rows, events and workflow are told apart. The model provider is a
    stand-in: the gateway does the turns.
    """
    token = new_token()
    await episodes.rehearse(token, use("fs_write", path="again.txt", content=token))
    request = {"seed": 53, "variant": "the same"}
    found = [await episodes.run_submitted(token, **request) for _ in range(2)]
    body = EpisodeRequest(task=found[0]["task"], role=found[0]["role"], **request)
    batch = sent(BatchRequest(episodes=[body, body]))
    answer = await episodes.controller.post("/episodes/batch", batch)
    assert 202 == answer.status, f"expected a batch of the same work twice, found {answer}"
    made = [each.episode_id for each in answered(answer, BatchAccepted).episodes]
    found += [await episodes.until(episode_id, "completed") for episode_id in made]
    for name in ("episode_id", "session_id", "trace_id", "workflow_id", "run_id"):
        ids = [episode[name] for episode in found]
        assert len(set(ids)) == len(found), (
            f"expected {len(found)} runs of the same work to have a {name} each, found {ids}"
        )
    for episode in found:
        traces = {event["trace_id"] for event in await episodes.events(episode["episode_id"])}
        expect_same({episode["trace_id"]}, traces, what="trace ids of the events of one run")


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_what_temporal_has_forgotten_ends_here(episodes: Episodes) -> None:
    """An episode whose workflow is deleted at Temporal is no success, says why, and leaves no command.

    So it is of one that has taken longer than it may. The model provider is a stand-in: the gateway does the
    turns.
    """
    accepted = {}
    for how in ("delete", "outlast"):
        token = new_token()
        doing = f"touch begun; while :; do echo {token} >> beats; sleep 0.05; done"
        await episodes.rehearse(token, use("execute", command=doing, timeout_s=COMMAND_S))
        accepted[how] = await episodes.submit(token)
    for how, each in accepted.items():
        await episodes.begun(each["session_id"])
        await end_workflow(episodes.stack, each["workflow_id"], how)
    for how, each in accepted.items():
        episode = await episodes.until(each["episode_id"], "failed", "cancelled")
        again = await episodes.controller.post(f"/episodes/{each['episode_id']}/interrupt")

        steps = ["queued", "running", episode["status"]]
        expect_same(steps, steps_of_episode(episode), what=f"steps after {how} at Temporal")
        assert episode["reason"], f"it was ended by {how} at Temporal, and does not say why"
        expect_refused(again, 409)
        await episodes.until_still(each["session_id"])
        seen = await describe_workflow(episodes.stack, each["workflow_id"])
        assert seen is None or seen.status != "running", f"its workflow was begun again: {seen}"


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_what_temporal_forgot_while_nobody_looked_ends_here(
    breakable: Episodes,
) -> None:
    """A workflow that is deleted while the controller is away is missed when it is back: its episode ends.

    So is its command; another episode, which Temporal still knows, goes on and completes. The model
    provider is a stand-in: the gateway does the turns.
    """
    gone, kept = new_token(), new_token()
    doing = f"touch begun; while :; do echo {gone} >> beats; sleep 0.05; done"
    await breakable.rehearse(gone, use("execute", command=doing, timeout_s=COMMAND_S))
    await breakable.rehearse(kept, breakable.waiting(), use("fs_ls"))
    accepted = [await breakable.submit(token) for token in (gone, kept)]
    for each in accepted:
        await breakable.begun(each["session_id"])
    async with breakable.stack.outage("controller", "stop"):
        await end_workflow(breakable.stack, accepted[0]["workflow_id"], "delete")
        seen = await describe_workflow(breakable.stack, accepted[0]["workflow_id"])
        assert seen is None or seen.status != "running", f"the harness has not deleted it: {seen}"
    episode = await breakable.until(accepted[0]["episode_id"], "failed", "cancelled")
    await breakable.release(accepted[1]["session_id"])
    other = await breakable.until(accepted[1]["episode_id"], "completed")

    steps = ["queued", "running", episode["status"]]
    expect_same(
        steps, steps_of_episode(episode), what="steps of one that Temporal does not know any more"
    )
    assert episode["reason"], (
        f"Temporal does not know its workflow, and it does not say so: {episode}"
    )
    await breakable.until_still(accepted[0]["session_id"])
    expect_same(
        ["queued", "running", "completed"], steps_of_episode(other), what="steps of the other one"
    )


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_what_is_on_record_is_not_done_again(breakable: Episodes) -> None:
    """An episode goes on where it was when its worker of Temporal was killed: each step is one row.

    It is killed when a call is done and on record, and Temporal does not know yet. That call may be
    carried out once more, and stays one call on record; those before it are not. An episode that
    fails instead has done nothing twice either. The model provider is a stand-in: the gateway does
    the turns.
    """
    began, token = datetime.now(UTC), new_token()
    one, two, three = (use("execute", command=f"echo {word} >> said.txt") for word in _WORDS)
    part = use("fs_write", path="assets/part.txt", content=token)
    waits = use("execute", command=_WAITS_AND_SAYS, timeout_s=COMMAND_S)
    await breakable.rehearse(token, one, (part, waits), (two, three))
    accepted = await breakable.submit(token)
    session, stack = breakable.session(accepted["session_id"]), breakable.stack
    await breakable.begun(session.id)

    async def is_on_record() -> bool:
        return len(_tools(await breakable.get(accepted["episode_id"]))) == _BEFORE

    async with stack.outage("temporal", "kill"):
        await breakable.release(session.id)
        # It may be that nothing comes on record without Temporal.
        with trio.move_on_after(by_a_stack(_ROW_S)):
            await eventually(is_on_record, seconds=SOON_S, expected="the call that ended on record")
        await stack.kill("controller-worker")
        await stack.start("temporal")
        await stack.start("controller-worker")
    episode = await breakable.until(accepted["episode_id"], "completed", "failed")
    completed = episode["status"] == "completed"
    await _is_consistent(breakable, episode, began=began, ended=datetime.now(UTC))
    consecutive((each["ordinal"] for each in episode["traces"]), what="ordinals of the traces")
    names = ["execute", "fs_write", "execute", "execute", "execute"]
    tools = _tools(episode)
    expect_same(names[: None if completed else len(tools)], tools, what="tools that were called")
    turns = len([trace for trace in episode["traces"] if trace["kind"] == "model"])
    asked = await breakable.asked(token)
    # One that failed may have failed while the model was asked.
    assert turns == asked or not completed, f"{turns} turns on record, the model was asked {asked}"
    record = await breakable.record(session.id)
    said = await _lines(session, "said.txt")
    expect_same(list(_WORDS)[: None if completed else len(said)], said, what="what commands did")
    done = [str(each["payload"].get("arguments")) for each in calls(record, "tool_call")]
    for text in (*(f"echo {word} " for word in said), "assets/part.txt"):
        times = len([each for each in done if text in each])
        assert times == 1, f"expected one event of {text!r}, found {times}: it was done again"
    again = await _lines(session, "again.txt")
    assert len(again) <= 2, f"a call that was retried once was carried out {len(again)} times"
    _is_kept_once(episode, await breakable.events(episode["episode_id"]), completed=completed)


def _tools(episode: dict[str, Any]) -> list[str]:
    return [trace["name"] for trace in episode["traces"] if trace["kind"] == "tool"]


async def _lines(session: Session, path: str) -> list[str]:
    answer = await session.read(path)
    assert answer.status == 200, f"expected {path}, which a command has made, found {answer}"
    return str(answer.json()["content"]).splitlines()


def _is_kept_once(
    episode: dict[str, Any], events: list[dict[str, Any]], *, completed: bool
) -> None:
    paths = [row["path"] for row in episode["assets"]]
    uploaded = [event["payload"]["path"] for event in calls(events, "asset_uploaded")]
    expected = ["part.txt"] if completed else paths[:1]
    expect_same(expected, paths, what="assets on record")
    expect_same(expected, uploaded, what="uploads of assets")


async def _is_consistent(
    episodes: Episodes, episode: dict[str, Any], *, began: datetime, ended: datetime
) -> None:
    """Rows in order of time, each with the workflow and a reason, and each an event as well."""
    rows = episode["transitions"]
    times = [utc(row["at"], what=f"time of step {row['ordinal']}") for row in rows]
    own = {name: utc(episode[name], what=name) for name in ("created_at", "updated_at")}

    befores = [row["from_status"] for row in rows]
    expect_same([None, *steps_of_episode(episode)[:-1]], befores, what="from_status of the steps")
    consecutive((row["ordinal"] for row in rows), what="ordinals of the steps")
    in_order([began, *times, ended], what="times of the steps, between the test's own")
    assert len(times) == len(set(times)), f"two steps have one time: {times}"
    in_order([began, own["created_at"], times[1]], what="created_at beside the steps")
    in_order([times[-1], own["updated_at"], ended], what="updated_at beside the last step")
    workflows = {row["workflow_id"] for row in rows}
    assert {episode["workflow_id"]} == workflows, f"the steps name other workflows: {workflows}"
    assert all(row["reason"] for row in rows), f"steps without a reason: {rows}"
    recorded = calls(await episodes.events(episode["episode_id"]), "workflow_transition")
    for row, event in itertools.zip_longest(rows, recorded):
        assert row is not None, f"an event without a row: {event}"
        assert event is not None, f"a row without an event: {row}"
        same = ("from_status", "to_status", "reason", "workflow_id", "run_id")
        payload = event["payload"]

        expect_same(
            {key: row[key] for key in same},
            {key: payload[key] for key in same},
            what=f"step {row['ordinal']} beside its event",
        )
        at, told = utc(row["at"], what="at"), utc(event["time"], what="time of its event")
        assert at == told, f"step {row['ordinal']} was at {at}, its event says {told}"
        ids = [(each["episode_id"], each["trace_id"]) for each in (episode, event)]
        assert ids[0] == ids[1], f"expected the event of a step of {ids[0]}, found {ids[1]}"


def _is_traced(
    episode: dict[str, Any],
    used: list[tuple[str, bool]],
    *,
    began: datetime,
    ended: datetime,
) -> None:
    """Each turn of the model and each call of a tool is a trace, in order, with its outcome."""
    traces = episode["traces"]
    tools = [(trace["name"], trace["ok"]) for trace in traces if trace["kind"] == "tool"]
    models = [trace for trace in traces if trace["kind"] == "model"]

    expect_same(used, tools, what="tools that were called, and whether each was carried out")
    assert len(used) + 1 == len(models), f"expected {len(used) + 1} model turns, found {models}"
    consecutive((trace["ordinal"] for trace in traces), what="ordinals of the traces")
    assert len({trace["id"] for trace in traces}) == len(traces), f"ids of traces: {traces}"
    times = [
        utc(trace[name], what=f"{name} of {trace['id']}")
        for trace in traces
        for name in ("started_at", "finished_at")
    ]
    in_order([began, *times, ended], what="times of the traces, one after another")


async def _is_listed(episodes: Episodes, *expected: dict[str, Any]) -> None:
    """The list has each episode once, under its own status alone, as it is by itself."""
    # Episodes of other tests may still be on their way to their end.
    running = ("queued", "running")
    await eventually(
        lambda: _none_of(episodes, *running), seconds=SOON_S, expected="every episode to end"
    )
    everything = await _pages(episodes, limit=500)
    in_pages = await _pages(episodes, limit=7)
    identities = [row["episode_id"] for row in everything]

    assert len(identities) == len(set(identities)), "the list has an episode twice"
    expect_same(everything, in_pages, what="the list in pages of 7 beside the same in one")
    made = [utc(row["created_at"], what="created_at") for row in everything]
    in_order(reversed(made), what="the list, latest first")
    by_status = {status: await _pages(episodes, status=status, limit=500) for status in _STATUSES}
    for status, rows in by_status.items():
        wanted = [row["episode_id"] for row in everything if row["status"] == status]
        found = [row["episode_id"] for row in rows]
        expect_same(wanted, found, what=f"episodes listed as {status}")
    for episode in expected:
        row = next((each for each in everything if each["episode_id"] == episode["episode_id"]), {})

        expect_same(row, {key: episode[key] for key in row}, what="the list beside the episode")
        assert row, f"the list lacks episode {episode['episode_id']}"


async def _none_of(episodes: Episodes, *statuses: str) -> bool:
    return not [row for each in statuses for row in await _page(episodes, status=each, limit=9)]


async def _page(episodes: Episodes, **query: str | int) -> list[dict[str, Any]]:
    answer = await episodes.controller.get("/episodes", params=query)

    assert 200 == answer.status, f"expected a page of episodes, found {answer}"
    found: list[dict[str, Any]] = answer.json()["episodes"]
    return found


async def _pages(episodes: Episodes, *, limit: int, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        asked = {**query, "limit": limit, "offset": len(found)}
        answer = await episodes.controller.get("/episodes", params=asked)

        assert 200 == answer.status, f"expected a page of episodes, found {answer}"
        page = answer.json()
        assert len(page["episodes"]) <= limit, f"expected {limit} at most, found {answer}"
        found.extend(page["episodes"])
        if not page["episodes"] or len(found) >= page["total"]:
            total = page["total"]
            assert total == len(found), f"expected {total} with {query}, found {len(found)}"
            return found
