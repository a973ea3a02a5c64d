"""INT-006: a plan has its five sections, each once, in order, each with what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import strategies as st
from workbench_contract.findings import Stage

from suites.integration.bundles import PLAN, Bundle
from suites.integration.episodes import Episodes
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work
from suites.integration.sampling import for_all

pytestmark = [pytest.mark.covers("INT-006"), pytest.mark.integration_p0]

_HEADINGS: Final = (
    "1. Solution Overview",
    "2. Parts List",
    "3. Assembly Strategy",
    "4. Cost & Weight Budget",
    "5. Risk Assessment",
)

#: Plans that say the same in another way: what is replaced, and by what.
_SOUND: Final = {
    "underlined": ("## 1. Solution Overview\n", "1\\. Solution Overview\n---\n"),
    "closed": ("## 2. Parts List\n", "## 2. Parts List ##\n"),
    "indented": ("## 3. Assembly Strategy\n", "   ##   3. Assembly Strategy  \n"),
    "escaped": ("## 4. Cost & Weight Budget\n", "## 4. Cost &amp; Weight Budget\n"),
    "level 3 inside": ("1. Press the flap", "### In detail\n\n1. Press the flap"),
    "a heading in a fence": ("A flap throws", "```\n## 2. Parts List\n```\n\nA flap throws"),
    "a heading in tildes": ("A flap throws", "~~~markdown\n## Not a heading\n~~~\n\nA flap throws"),
    "a heading in indented code": ("A flap throws", "    ## Not a heading\n\nA flap throws"),
    "a heading in a comment": ("A flap throws", "<!--\n## Not a heading\n-->\n\nA flap throws"),
    "a heading in a quote": ("A flap throws", "> ## Not a heading\n\nA flap throws"),
    "a heading in a list": ("- The ball may miss", "- ## Not a heading\n- The ball may miss"),
    "no heading": ("A flap throws", "##2. Parts List is no heading, nor is\n\\## this.\n\nA flap throws"),
    "numbered by brackets": ("1. Press the flap", "1) Press the flap"),
    "risks in a table": ("- The ball may miss: the flap is adjustable.", "| risk |\n|---|\n| it misses |"),
    "what stands before": ("# Plan", "Of the summer, ünï 日 😀.\n\n# Plan"),
}  # fmt: skip

#: Plans with one mistake: what is replaced, by what, and what the findings name.
_WRONG: Final = {
    "renamed": ("## 1. Solution Overview", "## 1. Overview", ["1. Solution Overview"]),
    "without its number": ("## 2. Parts List", "## Parts List", ["2. Parts List"]),
    "another number": ("## 3. Assembly Strategy", "## 6. Assembly Strategy", ["3. Assembly Strategy"]),
    "another case": ("## 5. Risk Assessment", "## 5. Risk assessment", ["5. Risk Assessment"]),
    "and": ("## 4. Cost & Weight Budget", "## 4. Cost and Weight Budget", ["4. Cost & Weight Budget"]),
    "level 3": ("## 2. Parts List", "### 2. Parts List", ["2. Parts List"]),
    "level 1": ("## 2. Parts List", "# 2. Parts List", ["2. Parts List"]),
    "no space": ("## 2. Parts List", "##2. Parts List", ["2. Parts List"]),
    "as HTML": ("## 2. Parts List", "<h2>2. Parts List</h2>", ["2. Parts List"]),
    "in bold": ("## 2. Parts List", "**2. Parts List**", ["2. Parts List"]),
    "in a fence": ("## 2. Parts List\n", "```\n## 2. Parts List\n```\n", ["2. Parts List"]),
    "in a fence that never ends": ("## 4. Cost & Weight", "```\n\n## 4. Cost & Weight", ["4. Cost & Weight Budget", "5. Risk Assessment"]),
    "in a comment": ("## 5. Risk Assessment\n", "<!--\n## 5. Risk Assessment\n-->\n", ["5. Risk Assessment"]),
    "in a quote": ("## 5. Risk Assessment\n", "> ## 5. Risk Assessment\n", ["5. Risk Assessment"]),
    "wide digits": ("## 1. Solution Overview", "## \uff11. Solution Overview", ["1. Solution Overview"]),
    "a space that is none": ("## 2. Parts List", "## 2.\u00a0Parts List", ["2. Parts List"]),
    "a letter that looks alike": ("## 2. Parts List", "## 2. P\u0430rts List", ["2. Parts List"]),
    "doubled": ("# Plan", "## 5. Risk Assessment\n\n- None.\n\n# Plan", ["5. Risk Assessment"]),
    "one more": ("## 5. Risk Assessment", "## 6. Appendix\n\nMore.\n\n## 5. Risk Assessment", ["6. Appendix"]),
    "underlined one more": ("1. Press the flap", "Press it\n---\n\n1. Press the flap", ["Press it"]),
    "an empty overview": ("A flap throws the ball over the pit; design", "<!-- design", ["1. Solution Overview"]),
    "parts as prose": ("| id | what | quantity | unit_cost_usd | catalogue_version |\n|---|---|---|---|---|\n", "", ["2. Parts List"]),
    "parts in a fence": ("\n| id | what", "\n```\n| id | what", ["2. Parts List"]),
    "steps as bullets": ("1. Press the flap onto the shaft.\n2. Screw", "- Press the flap onto the shaft.\n- Screw", ["3. Assembly Strategy"]),
    "steps as prose": ("1. Press the flap onto the shaft.\n2. Screw", "First press the flap onto the shaft, then screw", ["3. Assembly Strategy"]),
    "risks as prose": ("- The ball may miss", "The ball may miss", ["5. Risk Assessment"]),
    "risks in a table of a header": ("- The ball may miss: the flap is adjustable.", "| risk |\n|---|", ["5. Risk Assessment"]),
    "risks in a table of an empty row": ("- The ball may miss: the flap is adjustable.", "| risk |\n|---|\n| |", ["5. Risk Assessment"]),
    "risks in a list of empty entries": ("- The ball may miss: the flap is adjustable.", "-\n-", ["5. Risk Assessment"]),
    "steps in empty entries": ("1. Press the flap onto the shaft.\n2. Screw the base down", "1.\n2.", ["3. Assembly Strategy"]),
    "a placeholder": ("- The ball may miss: the flap is adjustable.", "- TODO", ["TODO"]),
}  # fmt: skip


#: What a section may hold, and the places of the sections that need something else.
_HELD: Final = {
    "prose alone": ("Of this there is much to say.", (1, 2, 3, 4)),
    "bullets alone": ("- one: this\n- two: that", (0, 2)),
    "a numbered list alone": ("1. one: this\n2. two: that", (0,)),
    "a table alone": ("| a | b |\n|---|---|\n| one | this |", (0, 2)),
    "nothing": ("", (0, 1, 2, 3, 4)),
    "a table of a header": ("| a | b |\n|---|---|", (0, 1, 2, 3, 4)),
    "a list of empty entries": ("-\n-\n\n1.\n2.", (0, 1, 2, 3, 4)),
    "code alone": ("```\n1. one\n```", (0, 1, 2, 3, 4)),
    "a comment alone": ("<!--\nOf this:\n\n1. one\n-->", (0, 1, 2, 3, 4)),
    "a heading alone": ("### 1. More of this", (0, 1, 2, 3, 4)),
}

#: Where a plan may leave what is still to be written: what is replaced, by what, and what is named.
_UNWRITTEN: Final = (
    ("A flap throws", "Fill in\n\nA flap throws", "Fill in"),
    ("` | made | 1 | ", "` | <what it is> | 1 | ", "<what it is>"),
    ("1. Press the flap onto the shaft.", "1. FIXME", "FIXME"),
    ("2. Screw the base down.", "2. Screw it\n   - TBD", "TBD"),
    ("- The ball may miss: the flap is adjustable.", "- ???", "???"),
)


def _changed(planner: Planner, text: str, other: str) -> Bundle:
    bundle = planner.sound()
    found = text.replace("design", f"design-{planner.number}")
    return bundle.planned(found, other.replace("design", f"design-{planner.number}"))


async def test_int_006_the_five_sections(episodes: Episodes) -> None:
    """The five headings in order pass, however Markdown writes them; what only looks so is refused.

    The finding names the heading. The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=111) as planner:
        template = (await planner.session.read(PLAN)).json()["content"]
        begins = [
            line.removeprefix("## ") for line in template.split("\n") if line.startswith("## ")
        ]
        assert begins == list(_HEADINGS), (
            f"a planner starts from a plan with the five headings: expected {list(_HEADINGS)}, found "
            f"{template!r}"
        )
        answer = await planner.judged(planner.sound().replaced(plan=template))
        expect_found(answer, Stage.VALID, {PLAN}, what="the template of the plan", says=[])
        for name, (text, other) in _SOUND.items():
            answer = await planner.judged(_changed(planner, text, other))
            expect_accepted(answer, f"a plan: {name}")
        for name, (text, other, named) in _WRONG.items():
            answer = await planner.judged(_changed(planner, text, other))
            expect_found(answer, Stage.VALID, {PLAN}, what=f"a plan: {name}", says=named)
        plan = planner.sound().plan
        prose = plan.replace("\n- planner", "\nplanner")
        answer = await planner.judged(planner.sound().replaced(plan=prose))
        says = ["4. Cost & Weight Budget"]
        expect_found(answer, Stage.VALID, {PLAN}, what="a plan: budget as prose", says=says)
        await _each_section_holds_what_it_is_for(planner)
        for ends in ("\r\n", "\r"):
            # The file API keeps them as they are.
            bundle = planner.sound().replaced(plan=plan.replace("\n", ends))
            expect_accepted(await planner.judged(bundle), f"a plan whose lines end in {ends!r}")


async def _each_section_holds_what_it_is_for(planner: Planner) -> None:
    """All sections that hold something else are named, and no other; so is each placeholder, wherever it is."""
    bundle = planner.sound()
    before, sections = _sections(bundle.plan)
    for name, (content, wrong) in _HELD.items():
        made = [
            f"## {_HEADINGS[place]}\n\n{content}\n\n" if place in wrong else section
            for place, section in enumerate(sections)
        ]
        answer = await planner.judged(bundle.replaced(plan=before + "".join(made)))
        says = [_HEADINGS[place] for place in wrong]
        what = f"a plan with {name} in {says}"
        found = expect_found(answer, Stage.VALID, {PLAN}, what=what, says=says)
        others = [
            each
            for each in found
            if any(title in each.where for title in _HEADINGS if title not in says)
        ]
        assert not others, f"sections that hold what they are for are refused of {what}: {others}"
    plan = bundle.plan
    for text, other, _ in _UNWRITTEN:
        plan = plan.replace(text, other, 1)
    answer = await planner.judged(bundle.replaced(plan=plan))
    says = [named for *_, named in _UNWRITTEN]
    what = "a plan with placeholders in its prose, table and lists"
    expect_found(answer, Stage.VALID, {PLAN}, what=what, says=says)


async def test_int_006_parts_in_a_list(episodes: Episodes) -> None:
    """Parts stand in a list as well as in a table, and are held against the estimate there too.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=114) as planner:
        bundle = planner.sound()
        for name, form in _LISTED.items():
            plan = _listed(bundle, form)
            expect_accepted(await planner.judged(bundle.replaced(plan=plan)), f"parts as {name}")
            part = str(bundle.estimate["manufactured_parts"][1]["id"])
            for what, other in (
                (f"a part of another name, as {name}", plan.replace(part, f"{part}x")),
                (f"another quantity, as {name}", plan.replace("quantity: ", "quantity: 7")),
            ):
                answer = await planner.judged(bundle.replaced(plan=other))
                expect_found(answer, Stage.AGREE, {PLAN}, what=what, says=[part])


#: How an entry of a list names a part, its quantity and its price.
_LISTED: Final = {
    "bullets with code": "- `{id}`: quantity: {quantity}; unit_cost_usd: {usd:.2f}",
    "numbers with code": "1. The `{id}` - quantity: {quantity}; unit_cost_usd: {usd:.2f}",
    "lines of an entry": "* {id}:\n  quantity: {quantity}\n  unit_cost_usd: {usd:.2f}",
}


def _listed(bundle: Bundle, form: str) -> str:
    """The plan with its table of parts as a list."""
    lines = [
        form.format(id=each["id"], quantity=each["quantity"], usd=each["unit_cost_usd"])
        for each in bundle.estimate["manufactured_parts"]
    ]
    before, sections = _sections(bundle.plan)
    sections[1] = f"## {_HEADINGS[1]}\n\n" + "\n".join(lines) + "\n\n"
    return before + "".join(sections)


async def test_int_006_every_order_and_count(episodes: Episodes) -> None:
    """Of generated headings exactly the five in order pass; each that lacks or is too much is named.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=112) as planner:
        bundle = planner.sound()
        before, sections = _sections(bundle.plan)

        async def check(order: Sequence[int]) -> None:
            plan = before + "".join(sections[each] for each in order)
            answer = await planner.judged(bundle.replaced(plan=plan))
            what = f"sections in the order {[each + 1 for each in order]}"
            if list(order) == sorted(range(5)):
                expect_accepted(answer, what)
                return
            wrong = [_HEADINGS[each] for each in range(5) if order.count(each) != 1]
            if plan.strip():
                expect_found(answer, Stage.VALID, {PLAN}, what=what, says=wrong)

        five = st.permutations(range(5))
        nearly = st.builds(
            lambda order, drop, more: [each for each in order if each != drop] + more,
            five | st.just(list(range(5))),
            st.none() | st.integers(0, 4),
            st.lists(st.integers(0, 4), max_size=2),
        )
        await for_all(nearly, check, most=60)
        await check(list(range(5)))


async def test_int_006_each_round_is_judged(episodes: Episodes) -> None:
    """A plan that was accepted and is spoilt is refused in the next round; so by the agent's own tool.

    The model provider is a stand-in: the gateway does the turns, and holds the planner's model before.
    """
    async with planner_at_work(episodes, number=113) as planner:
        bundle = planner.sound()
        spoilt = bundle.planned("## 2. Parts List", "## 2. Parts")
        for _ in range(2):
            expect_accepted(await planner.judged(bundle), "a sound plan")
            answer = await planner.judged(spoilt)
            expect_found(answer, Stage.VALID, {PLAN}, what="a spoilt plan", says=["2. Parts List"])
        found = await episodes.get(planner.episode_id)
        kept = found["handovers"]
        assert len(kept) <= 2, f"expected two hand-overs at most, found {kept}"


def _sections(plan: str) -> tuple[str, list[str]]:
    """What stands before the first section, and the five sections."""
    places = [plan.index(f"## {heading}") for heading in _HEADINGS]
    ends = [*places[1:], len(plan)]
    return plan[: places[0]], [
        plan[start:end].rstrip() + "\n\n" for start, end in zip(places, ends, strict=True)
    ]
