"""Generated histories of episodes: submitted, released, interrupted, with outages between.

A small model knows how each may end. At the end of a history every episode has ended so, by every
route the same; what was acknowledged is there once, and what was refused never happened.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from harness_core.assertions.exploring import Explore, Machine
from harness_core.doubles.http import Response, Silence, Unanswered
from harness_core.doubles.turns import Turn, fail, say, use
from suites.integration.comparing import consecutive, expect_same, in_order, utc
from suites.integration.episodes import FINAL, Episodes, calls, new_token
from suites.integration.patience import EPISODE_S, SOON_S, eventually
from suites.integration.refusals import expect_refused

#: More would make a history long, and no other.
_MOST: Final = 5

#: What is taken away, and how; what hangs is as likely as what is gone.
_OUTAGES: Final = tuple(
    (service, how)
    for service in ("temporal", "postgres", "minio", "worker", "controller", "controller-worker")
    for how in ("stop", "kill", "pause")
    # A controller that hangs answers nothing: each request costs what a client's patience is.
    if (service, how) != ("controller", "pause")
)

#: What an agent does: by itself to an end, to one when it is let go, or to none.
_KINDS: Final = ("says", "keeps", "waits", "waits and keeps", "is refused", "is refused late")

#: Text that a row can hold.
_TEXT: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)


@dataclasses.dataclass(slots=True, kw_only=True)
class _Followed:
    """An episode that was accepted, as the model knows it.

    Attributes:
        accepted: the answer.
        kept: path → content of what it leaves when it completes.
        released: its command was let go, or it has none.
        asked: its interruption was accepted.
        sure: it was accepted while its command could not end by itself.
        troubled: something was away while it was under way.
    """

    token: str
    kind: str
    accepted: dict[str, Any]
    given: dict[str, Any]
    kept: dict[str, str]
    released: bool
    asked: bool = False
    sure: bool = False
    troubled: bool = False

    @property
    def identity(self) -> str:
        return str(self.accepted["episode_id"])

    def ends(self) -> set[str]:
        """The statuses that it may end with."""
        if self.sure and not self.troubled:
            return {"interrupted"}
        own = "failed" if self.kind.startswith("is refused") else "completed"
        ends = {own} | ({"interrupted"} if self.asked else set())
        return ends | ({"failed"} if self.troubled else set())


class HistoryMachine(Machine):
    """Episodes of one history, with names that no other one has."""

    def __init__(self, episodes: Episodes) -> None:
        super().__init__()
        self.episodes = episodes
        self.followed: list[_Followed] = []
        self.refused: list[str] = []
        self.unknown: list[str] = []
        self.outages = 0

    # --- rules ----------------------------------------------------------------------------------

    @initialize(kind=st.sampled_from(_KINDS))
    def begin(self, kind: str) -> None:
        """The first one."""
        self.wait_for(self._submit, kind, {"seed": 7})

    @precondition(lambda self: len(self.followed) < _MOST)
    @rule(kind=st.sampled_from(_KINDS), seed=st.integers(0, 2**31 - 1), variant=_TEXT)
    def submit(self, kind: str, seed: int, variant: str) -> None:
        """One more episode; it is accepted."""
        given = {"seed": seed, "variant": variant, "metadata": {"of": kind, variant: [seed]}}
        self.wait_for(self._submit, kind, given)

    @precondition(lambda self: len(self.followed) < _MOST - 1)
    @rule(kinds=st.lists(st.sampled_from(_KINDS), min_size=1, max_size=3), refused=st.booleans())
    def submit_batch(self, kinds: list[str], refused: bool) -> None:  # noqa: FBT001 - drawn
        """Several at once: all of them, or none when one is malformed."""
        self.wait_for(self._submit_batch, kinds, refused=refused)

    @precondition(lambda self: self._held())
    @rule(number=st.integers(0, _MOST - 1))
    def release(self, number: int) -> None:
        """The command of one that waits may end."""
        held = self._held()
        each = held[number % len(held)]
        each.released = True
        self.wait_for(self.episodes.release, each.accepted["session_id"])

    @precondition(lambda self: self.followed)
    @rule(number=st.integers(0, _MOST - 1))
    def interrupt(self, number: int) -> None:
        """One of them, wherever it is; one that has ended is refused."""
        self.wait_for(self._interrupt, self.followed[number % len(self.followed)])

    @precondition(lambda self: [each for each in self.followed if each.released])
    @rule(number=st.integers(0, _MOST - 1))
    def see_the_end(self, number: int) -> None:
        """One that nothing holds ends as it may."""
        ready = [each for each in self.followed if each.released]
        self.wait_for(self._end, ready[number % len(ready)])

    @precondition(lambda self: self.outages == 0)
    @rule(
        which=st.sampled_from(_OUTAGES),
        kind=st.sampled_from(_KINDS),
        number=st.integers(-_MOST, _MOST - 1),
    )
    def outage(self, which: tuple[str, str], kind: str, number: int) -> None:
        """Something is away while one is submitted and, for a number from 0 on, one interrupted."""
        self.outages += 1
        self.wait_for(self._outage, *which, kind, number)

    def teardown(self) -> None:
        """Everything that was begun ends, and all that is on record agrees about it."""
        self.wait_for(self._is_consistent)

    # --- what they do ---------------------------------------------------------------------------

    def _held(self) -> list[_Followed]:
        return [each for each in self.followed if not each.released]

    async def _rehearsed(self, kind: str) -> tuple[str, dict[str, str]]:
        """A token whose episode does that, and what it leaves."""
        token = new_token()
        kept = {"a report.md": f"of {token}", "deep/ü.txt": ""} if "keeps" in kind else {}
        keeping = [
            use("fs_write", path=f"assets/{path}", content=text) for path, text in kept.items()
        ]
        begin: list[Turn] = [use("fs_write", path="ran.txt", content=token)]
        if "waits" in kind:
            begin.append(self.episodes.waiting())
        if kind == "is refused":
            begin = [fail(400)]
        if kind == "is refused late":
            begin.append(fail(403))
        if kind == "says":
            begin = [say("There is nothing to do.")]
        await self.episodes.rehearse(token, *begin, *keeping)
        return token, kept

    def _follow(
        self, token: str, kind: str, kept: dict[str, str], accepted: Any, given: dict[str, Any]
    ) -> _Followed:
        released = "waits" not in kind
        followed = _Followed(
            token=token, kind=kind, accepted=accepted, given=given, kept=kept, released=released
        )
        self.followed.append(followed)
        return followed

    async def _submit(self, kind: str, given: dict[str, Any]) -> None:
        token, kept = await self._rehearsed(kind)
        self._follow(token, kind, kept, await self.episodes.submit(token, **given), given)

    async def _submit_batch(self, kinds: list[str], *, refused: bool) -> None:
        made = [(kind, *await self._rehearsed(kind)) for kind in kinds]
        bodies: list[dict[str, Any]] = [
            {"task": f"Make the part {token}.", "seed": number}
            for number, (_, token, _) in enumerate(made)
        ]
        if refused:
            bodies.append({"task": ""})
            self.refused += [token for _, token, _ in made]
        answer = await self.episodes.controller.post("/episodes/batch", {"episodes": bodies})
        if refused:
            expect_refused(answer, 400, 422)
            return
        assert 202 == answer.status, f"expected the batch to be accepted, found {answer}"
        answered = answer.json()["episodes"]
        assert len(made) == len(answered), f"expected {len(made)} episodes, found {answer}"
        for (kind, token, kept), accepted, body in zip(made, answered, bodies, strict=True):
            self._follow(token, kind, kept, accepted, {"seed": body["seed"]})

    async def _interrupt(self, each: _Followed) -> None:
        before = await self.episodes.get(each.identity)
        answer = await self.episodes.interrupt(each.identity)
        if before["status"] in FINAL:
            expect_refused(answer, 409)
        else:
            may_end = each.released or each.asked or each.troubled
            self._was_asked(each, answer, also=(409,) if may_end else ())

    def _was_asked(self, each: _Followed, answer: Response, *, also: tuple[int, ...]) -> None:
        if answer.status != 202:
            assert also, f"expected an interruption of what cannot end by itself, found {answer}"
            expect_refused(answer, *also)
            return
        each.asked = True
        if not each.released:
            each.sure = each.released = True

    async def _end(self, each: _Followed) -> dict[str, Any]:
        async def ended() -> dict[str, Any] | None:
            found = await self.episodes.get(each.identity)
            return found if found["status"] in FINAL else None

        expected = f"the episode {each.identity}, which {each.kind}, to end"
        found: dict[str, Any] = await eventually(ended, seconds=EPISODE_S, expected=expected)
        assert found["status"] in each.ends(), (
            f"expected an episode that {each.kind} to be {' or '.join(sorted(each.ends()))}, found "
            f"{found['status']}: {found['reason']}"
        )
        return found

    async def _outage(self, service: str, how: str, kind: str, number: int) -> None:
        for each in self.followed:
            each.troubled = True
        token, kept = await self._rehearsed(kind)
        async with self.episodes.stack.outage(service, how):
            try:
                answer = await self.episodes.ask(token)
            except Unanswered as unanswered:
                (self.refused if unanswered.how is Silence.REFUSED else self.unknown).append(token)
            else:
                if answer.status == 202:
                    self._follow(token, kind, kept, answer.json(), {}).troubled = True
                else:
                    expect_refused(answer, 500, 502, 503, 504)
                    self.refused.append(token)
            if 0 <= number and self.followed:
                await self._interrupt_if_it_can(self.followed[number % len(self.followed)])

    async def _interrupt_if_it_can(self, each: _Followed) -> None:
        try:
            answer = await self.episodes.interrupt(each.identity)
        except Unanswered:
            # It may have been taken all the same.
            each.asked = True
            each.released = True
            await self._let_go(each)
            return
        self._was_asked(each, answer, also=(409, 500, 502, 503, 504))

    async def _let_go(self, each: _Followed) -> None:
        try:
            await self.episodes.release(each.accepted["session_id"])
        except Unanswered:
            each.released = False

    # --- what must hold at the end --------------------------------------------------------------

    async def _is_consistent(self) -> None:
        for each in self._held():
            await self.episodes.release(each.accepted["session_id"])
        ended = [(each, await self._end(each)) for each in self.followed]
        keys: list[str] = []
        for each, episode in ended:
            await self._is_on_record(each, episode)
            keys += await self._is_kept(each, episode)
        assert len(keys) == len(set(keys)), f"two assets have one object: {keys}"
        listed = await self._listed()
        for each, episode in ended:
            row = listed.pop(each.token, None)
            assert row is not None, f"the list lacks the episode {each.identity}"
            expect_same(row, {key: episode[key] for key in row}, what="the list beside the episode")
        for token, row in listed.items():
            assert token in {*self.refused, *self.unknown}, (
                f"an episode that was never submitted: {row}"
            )
            if token in self.refused:
                await self._never_ran(row)

    async def _is_on_record(self, each: _Followed, episode: dict[str, Any]) -> None:
        """Its steps are a life, each an event as well; the worker's record is here, whole."""
        expect_same(each.given, {key: episode[key] for key in each.given}, what="what it was given")
        rows = episode["transitions"]
        steps = [row["to_status"] for row in rows]
        lives = (["queued"], ["queued", "running"])
        assert steps[:-1] in lives, f"no life of an episode: {steps}"
        assert episode["status"] == steps[-1], (
            f"its last step is {steps[-1]}, it {episode['status']}"
        )
        consecutive((row["ordinal"] for row in rows), what="ordinals of the steps")
        in_order((utc(row["at"], what="time of a step") for row in rows), what="times of the steps")
        record = await self.episodes.record(episode["session_id"])
        events = await self.episodes.until_events(episode["episode_id"], self._awaited(record))
        told = [event["payload"]["to_status"] for event in calls(events, "workflow_transition")]
        expect_same(steps, told, what="steps beside their events")
        for source in ("worker", "controller"):
            found = [event for event in events if event["source"] == source]
            consecutive((event["seq"] for event in found), what=f"seq of the events of {source}")
        count = len([event for event in events if event["source"] == "worker"])
        for mine, theirs in zip(record[:count], _of_worker(events), strict=False):
            same = ("seq", "kind", "payload", "episode_id", "trace_id", "session_id")
            expect_same(
                {key: mine[key] for key in same},
                {key: theirs[key] for key in same},
                what="a line of events.jsonl beside the controller's",
            )
        if each.kind != "says":
            ran = "ran.txt" in await self.episodes.session(episode["session_id"]).files()
            assert ran or episode["status"] != "completed", (
                f"it completed and did nothing: {episode}"
            )

    def _awaited(self, record: list[dict[str, Any]]) -> int:
        """How many events of the worker the controller must have: those of the agent's own calls."""
        last = [line["seq"] for line in record if line["episode_id"] and not _is_ours(line)]
        return max(last, default=0)

    async def _is_kept(self, each: _Followed, episode: dict[str, Any]) -> list[str]:
        """Every uploaded row has its object, and a completed episode all that it left; the keys."""
        rows = {row["path"]: row for row in episode["assets"]}
        if episode["status"] == "completed":
            expect_same(sorted(each.kept), sorted(rows), what="what a completed episode leaves")
        uploaded = [row for row in rows.values() if row["status"] == "uploaded"]
        for row in uploaded:
            found = await self.episodes.stored(row)
            content = each.kept[row["path"]].encode()
            assert content == found.body, f"expected {content!r} in the store, found {found.body!r}"
        events = calls(await self.episodes.events(episode["episode_id"]), "asset_uploaded")
        told = sorted(event["payload"]["path"] for event in events)
        expect_same(
            sorted(row["path"] for row in uploaded), told, what="uploads beside their events"
        )
        return [row["key"] for row in uploaded]

    async def _listed(self) -> dict[str, dict[str, Any]]:
        """Token → row, of all that are on record of this history."""
        tokens = [each.token for each in self.followed] + self.refused + self.unknown
        answer = await self.episodes.controller.get("/episodes", params={"limit": 500})
        assert 200 == answer.status, f"expected a list of episodes, found {answer}"
        found: dict[str, dict[str, Any]] = {}
        for row in answer.json()["episodes"]:
            for token in tokens:
                if token in row["task"]:
                    assert token not in found, f"one submission is there twice: {row}"
                    found[token] = row
        return found

    async def _never_ran(self, row: dict[str, Any]) -> None:
        """A submission that was refused may be on record as failed; nothing was done for it."""

        async def ended() -> bool:
            return (await self.episodes.get(row["episode_id"]))["status"] in FINAL

        await eventually(ended, seconds=SOON_S, expected=f"what was refused to end: {row}")
        episode = await self.episodes.get(row["episode_id"])
        steps = [step["to_status"] for step in episode["transitions"]]
        assert "running" not in steps, f"an episode that was refused was run: {steps}"
        assert episode["status"] in {"failed", "cancelled"}, f"refused, and yet {episode['status']}"
        files = await self.episodes.session(row["session_id"]).files()
        assert "ran.txt" not in files, "the agent of an episode that was refused has worked"


def _of_worker(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["source"] == "worker"]


def _is_ours(line: dict[str, Any]) -> bool:
    """Whether a call is one of the test's own, which may come after the last look at a session."""
    payload = line["payload"]
    return payload.get("tool") in {"fs_ls", "fs_read"} or "go-on" in str(payload.get("arguments"))


@pytest.mark.explore
@pytest.mark.aside("explores: what it finds becomes a row's test")
async def test_histories_are_consistent(explore: Explore, breakable: Episodes) -> None:
    """Whatever is submitted, released, interrupted and taken away: all records agree at the end.

    The model provider is a stand-in: the gateway does the turns.
    """
    await explore(lambda: HistoryMachine(breakable), steps=12)
