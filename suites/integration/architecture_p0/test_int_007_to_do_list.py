"""INT-007: a to-do list keeps every entry that was issued, and nothing of it is open at submission."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from workbench_contract.findings import Stage
from workbench_contract.todo import IssuedEntry

from suites.integration.bundles import TODO
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work
from suites.integration.sampling import for_all

pytestmark = [pytest.mark.covers("INT-007"), pytest.mark.integration_p0]

_LINE: Final = re.compile(r"- \[ \] (?P<text>\S.*\S) <!-- todo:(?P<id>[A-Za-z0-9_-]+) -->")


def _issued(planner: Planner) -> list[IssuedEntry]:
    """The entries of a list as it was issued: every line of it that is one."""
    lines = [line for line in planner.issued.split("\n") if line and not line.startswith("#")]
    seen = [_LINE.fullmatch(line) for line in lines]

    assert all(seen), f"expected issued entries with boxes, texts and ids, found {planner.issued!r}"
    return [IssuedEntry(id=each["id"], text=each["text"]) for each in seen if each]


def _line(entry: IssuedEntry, box: str = "x", more: str = "") -> str:
    return f"- [{box}] {entry.text}{more} <!-- todo:{entry.id} -->"


async def _judged(planner: Planner, lines: Sequence[str]) -> Any:
    await planner.leave({TODO: "# To do\n\n" + "\n".join(lines) + "\n"})
    return await planner.submit()


async def test_int_007_edits_of_the_list(episodes: Episodes) -> None:
    """By edits entries are ticked, skipped with a reason and followed by new ones; all else is refused.

    What was issued is what the controller answers. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=121, seed=121) as planner:
        entries = _issued(planner)
        kept = (await episodes.get(planner.episode_id))["todo"]
        expect_same([each.model_dump() for each in entries], kept, what="the list as it was issued")
        assert len(entries) >= 3, f"expected an issued list of several entries, found {entries}"
        ids = {each.id for each in entries}
        assert len(entries) == len(ids), f"expected an id for each entry, found {entries}"
        await planner.leave(planner.sound().files() | {TODO: planner.issued})
        answer = await planner.submit()
        expect_found(answer, Stage.VALID, {TODO}, what="a list as it was issued", says=["line 3"])
        for place, each in enumerate(entries):
            new = _line(each) if place else _line(each, "-", ": there is nothing to read")
            edited = await planner.session.post(
                "/fs/edit", path=TODO, old=_line(each, " "), new=new
            )
            assert 200 == edited.status, f"expected the entry to be edited, found {edited}"
        expect_accepted(await planner.submit(), "a list that was ticked and skipped by edits")
        ticked = [_line(each) for each in entries]
        first, second, *rest = entries
        for name, lines in _sound_lists(ticked, first, second).items():
            expect_accepted(await _judged(planner, lines), f"a list: {name}")
        for name, lines in _wrong_lists(ticked, first, second, rest[-1]).items():
            expect_found(await _judged(planner, lines), Stage.VALID, {TODO}, what=f"a list: {name}")
        shorter = [line for line in ticked if second.id not in line]
        answer = await _judged(planner, shorter)
        what = "a list without its second entry"
        expect_found(answer, Stage.VALID, {TODO}, what=what, says=[second.id, second.text])


def _sound_lists(
    ticked: Sequence[str], first: IssuedEntry, second: IssuedEntry
) -> dict[str, list[str]]:
    skipped = [f"{_line(first, '-', reason)}" for reason in _REASONS]
    return {
        "all ticked": [*ticked],
        "new entries below": [*ticked, "- [x] Weigh the flap", "  - [x] Twice, ünï 日 😀"],
        "new entries between": [ticked[0], "- [-] Weigh it: it is light", *ticked[1:]],
        "headings and blank lines": ["## Now", "", ticked[0], "", "### Later", *ticked[1:]],
        "a new entry of an issued text": [*ticked, f"- [x] {second.text}"],
        **{f"skipped {line!r}": [line, *ticked[1:]] for line in skipped},
    }


_REASONS: Final = (
    ": none is needed",
    " - none is needed",
    " \u2013 none",
    " — none",
    " (none is needed)",
)


def _wrong_lists(
    ticked: Sequence[str], first: IssuedEntry, second: IssuedEntry, last: IssuedEntry
) -> dict[str, list[str]]:
    rest = list(ticked[1:])
    boxes = {f"the box {box!r}": [_line(first, box), *rest] for box in _BOXES}
    texts = {
        f"the text {text!r}": [_line(first).replace(first.text, text), *rest] for text in _TEXTS
    }
    return {
        **boxes,
        **texts,
        "nothing of it": ["", "# Done"],
        "the first deleted": rest,
        "the last deleted": list(ticked[:-1]),
        "without its id": [f"- [x] {first.text}", *rest],
        "another id": [_line(first).replace(first.id, "deadbeef"), *rest],
        "the id of another entry": [_line(first).replace(first.id, second.id), *rest],
        "given twice": [*ticked, ticked[0]],
        "in another order": [ticked[1], ticked[0], *ticked[2:]],
        "the last one first": [ticked[-1], *ticked[:-1]],
        "skipped without a reason": [_line(first, "-"), *rest],
        "skipped with an empty reason": [_line(first, "-", ": "), *rest],
        "skipped with signs for a reason": [_line(first, "-", ": ..."), *rest],
        "reworded and skipped": [_line(first, "-", " not: none").replace("Read", "Skip"), *rest],
        "in a fence": ["```", *ticked, "```"],
        "in a comment": ["<!--", *ticked, "-->"],
        "a new entry before": ["- [x] Weigh the flap", *ticked],
        "a new entry that is open": [*ticked, "- [ ] Weigh the flap"],
        "a new entry skipped without a reason": [*ticked, "- [-] Weigh the flap"],
        "prose": [*ticked, "All of this is done."],
        "a bullet of another kind": [ticked[0].replace("- [", "* [", 1), *rest],
        "indented": [ticked[0], "  " + ticked[1], *ticked[2:]],
        "open among ticked": [*ticked[:-1], _line(last, " ")],
    }


_BOXES: Final = ("X", "/", "?", "", "  ", "x ", "✓", "х", "xx", "[x]")  # noqa: RUF001 - a Cyrillic x
_TEXTS: Final = ("", "read the task", "Something else", "Read")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """What becomes of one issued entry, and whether it may.

    Attributes:
        lines: makes the lines in its place.
    """

    name: str
    allowed: bool


_EDITS: Final = (
    *(_Edit(name=name, allowed=True) for name in ("tick", "skip", "tick and add", "skip and add")),
    *(
        _Edit(name=name, allowed=False)
        for name in ("open", "skip bare", "delete", "twice", "reword")
    ),
)


def _lines(entry: IssuedEntry, edit: _Edit) -> list[str]:
    made = {
        "tick": [_line(entry)],
        "skip": [_line(entry, "-", ": not needed")],
        "tick and add": [_line(entry), "  - [x] and this"],
        "skip and add": [_line(entry, "-", " (not needed)"), "- [-] this: neither"],
        "open": [_line(entry, " ")],
        "skip bare": [_line(entry, "-")],
        "delete": [],
        "twice": [_line(entry)] * 2,
        "reword": [_line(entry, more=" soon")],
    }
    return made[edit.name]


async def test_int_007_generated_edits(episodes: Episodes) -> None:
    """Of any edits of the entries, in any order, exactly those that the contract allows are accepted.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=122, seed=122) as planner:
        entries = _issued(planner)
        await planner.leave(planner.sound().files())
        count = len(entries)

        async def check(drawn: tuple[list[_Edit], list[int]]) -> None:
            edits, order = drawn
            lines = [line for place in order for line in _lines(entries[place], edits[place])]
            there = [place for place in order if edits[place].name != "delete"]
            allowed = all(edit.allowed for edit in edits) and there == sorted(there)
            answer = await _judged(planner, lines)
            what = f"a list of {lines}"
            if allowed:
                expect_accepted(answer, what)
            else:
                expect_found(answer, Stage.VALID, {TODO}, what=what)

        good = st.sampled_from([edit for edit in _EDITS if edit.allowed])
        some = st.lists(st.sampled_from(_EDITS), min_size=count, max_size=count)
        one = st.builds(
            lambda edits, place, bad: [bad if n == place else each for n, each in enumerate(edits)],
            st.lists(good, min_size=count, max_size=count),
            st.integers(0, count - 1),
            st.sampled_from(_EDITS),
        )
        orders = st.just(list(range(count))) | st.permutations(range(count))
        await for_all(st.tuples(one | some, orders), check, most=70)


async def test_int_007_the_list_is_not_what_the_file_says(episodes: Episodes) -> None:
    """What was issued stays so in each round and for whoever goes on; each episode has its own entries.

    An entry that was deleted is asked for again however often it is submitted without. Whoever starts from
    the hand-over may not delete of it either. The model provider is a stand-in: the gateway does the turns.
    """
    async with (
        planner_at_work(episodes, number=123, seed=5) as planner,
        planner_at_work(episodes, number=124, seed=5) as other,
    ):
        entries = _issued(planner)
        strangers = {each.id for each in _issued(other)} & {each.id for each in entries}
        assert not strangers, f"two episodes with the same task have entries in common: {strangers}"
        await planner.leave(planner.sound().files())
        shorter = [_line(each) for each in entries[:-1]]
        for round_ in (1, 2, 3):
            answer = await _judged(planner, shorter)
            what = f"a list without its last entry, round {round_}"
            expect_found(answer, Stage.VALID, {TODO}, what=what, says=[entries[-1].id])
        answer = await _judged(planner, [_line(each) for each in _issued(other)])
        found = expect_found(answer, Stage.VALID, {TODO}, what="the list of another episode")
        wanted = len(entries) + len(_issued(other))
        assert len(found) >= wanted, f"expected {wanted} findings or more, found {found}"
        accepted = expect_accepted(await _judged(planner, [*map(_line, entries)]), "its own list")
    token = new_token()
    coder = await episodes.run(token, handover_id=accepted.handover_id)
    kept = [IssuedEntry.model_validate(each) for each in coder["todo"]]
    expect_same(entries, kept, what="the list of whoever starts from the hand-over")
    session = episodes.session(coder["session_id"])
    await session.write("model.py", "part = 1\n")
    await session.write(TODO, "\n".join([*map(_line, entries[1:]), ""]))
    answer = await session.post("/benchmark/submit")
    expect_found(answer, Stage.VALID, {TODO}, what="a coder's list without its first entry")
