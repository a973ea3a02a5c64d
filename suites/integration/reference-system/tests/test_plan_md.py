"""plan.md: its five headings and what stands below each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_planning.plan_md import SECTIONS, read_plan
from workbench_planning.templates import PLAN
from workbench_planning.text import FILE_BYTES

SECTION = {
    "1. Solution Overview": "A flap throws the ball over the pit.",
    "2. Parts List": "- `flap`: a lever; quantity: 1\n- `B18-8`: a bolt; quantity: 4; unit_cost_usd: 0.12",
    "3. Assembly Strategy": "1. Mount the motor.\n2. Mount the flap.",
    "4. Cost & Weight Budget": "| what | value |\n|---|---|\n| max_unit_cost_usd | 40 |",
    "5. Risk Assessment": "* The ball may miss.",
}


def plan(**changes):
    """A good plan with other sections, by their number; none leaves one out."""
    pieces = []
    for number, (title, body) in enumerate(SECTION.items(), 1):
        body = changes.get(f"_{number}", body)
        if body is not None:
            pieces.append(f"## {title}\n\n{body}\n")
    return "\n".join(pieces)


def told(text):
    """What is found of a plan."""
    read, findings = read_plan(text if isinstance(text, bytes) else text.encode())

    assert (read is None) == bool(findings)
    assert all(each.file == "plan.md" and each.expected for each in findings)
    return [(each.where, each.found) for each in findings]


def test_good():
    """A plan of the right shape is read with the rows of its lists."""
    read, findings = read_plan(plan().encode())

    assert [] == findings
    assert ["flap", "B18-8"] == [row.name for row in read.parts]
    assert {"quantity": "4", "unit_cost_usd": "0.12"} == read.parts[1].fields
    assert [("max_unit_cost_usd", "40")] == [(row.name, row.fields["value"]) for row in read.budget]


GOOD = {
    "crlf": plan().replace("\n", "\r\n"),
    "no line end at the end": plan().rstrip(),
    "title above": "# The plan\n\nIntroduction.\n\n" + plan(),
    "closing hashes": plan().replace("## 2. Parts List", "## 2. Parts List ##"),
    "spaces around": plan().replace("## 2. Parts List", "  ##   2. Parts List  "),
    "an entity": plan().replace("Cost & Weight", "Cost &amp; Weight"),
    "an escape": plan().replace("2. Parts", "2\\. Parts"),
    "underlined": plan().replace("## 2. Parts List\n", "2\\. Parts List\n---\n"),
    "no empty lines": "\n".join(f"## {title}\n{body}" for title, body in SECTION.items()),
    "deeper headings": plan(_2="### Bought\n\n- `a`\n\n#### Made\n\n- `b`"),
    "heading in a fence": plan(_1="Prose.\n\n```\n## 6. More\n```\n\n~~~md\n## 2. Parts List\n~~~"),
    "heading in an indented block": plan(_1="Prose.\n\n    ## 6. More"),
    "heading in a comment": plan(_1="Prose.\n\n<!--\n## 6. More\n\n## 2. Parts List\n-->"),
    "heading in a quote": plan(_1="Prose.\n\n> ## 6. More"),
    "heading in a list": plan(_5="- ## 6. More\n- risk"),
    "heading in html": plan(_1="Prose.\n\n<h2>6. More</h2>"),
    "no heading": plan(_1="Prose.\n\n##6. More\n\n\\## 6. More"),
    "table of parts": plan(_2="| id | quantity |\n|---|---|\n| flap | 1 |"),
    "numbered parts": plan(_2="1. `flap`\n2. `arm`"),
    "list beside prose": plan(_2="These:\n\n- `flap`\n\nThat is all."),
    "numbers with a bracket": plan(_3="1) Mount.\n2) Done."),
    "budget as a list": plan(_4="- cost: 40"),
    "risks as a table": plan(_5="| risk | then |\n|---|---|\n| miss | again |"),
    "more than prose": plan(_1="- points\n\nand prose"),
    "unicode": plan(_1="Ünïcode 🎈 重い"),
    "todo within a sentence": plan(_1="What is left TODO is listed below."),
}


@pytest.mark.parametrize("name", GOOD)
def test_accepted(name):
    """What CommonMark takes for the five headings and their shapes is a plan."""
    assert [] == told(GOOD[name])


SHAPES = {
    "a heading less": (plan(_4=None), [("## 4. Cost & Weight Budget", "no such heading")]),
    "two headings less": (plan(_1=None, _5=None), [("## 1.", "no such"), ("## 5.", "no such")]),
    "a heading more": (plan() + "\n## 6. Appendix\n", [("## 6. Appendix (line 25)", "the heading '6. Appendix'")]),
    "a heading underlined": (plan() + "\nAppendix\n---\n", [("## Appendix (line 25)", "the heading 'Appendix'")]),
    "a heading without text": (plan() + "\n##\n", [("##  (line 25)", "the heading ''")]),
    "a heading twice": (plan() + "\n## 1. Solution Overview\n\nAgain.\n",
                        [("## 1. Solution Overview (line 25)", "a second time; it stands in line 1")]),
    "level 3": (plan().replace("## 2.", "### 2."), [("## 2. Parts List", "no such heading")]),
    "level 1": (plan().replace("## 2.", "# 2."), [("## 2. Parts List", "no such heading")]),
    "another case": (plan().replace("Parts List", "Parts list"),
                     [("## 2. Parts list (line 5)", "'2. Parts list'"), ("## 2. Parts List", "no such")]),
    "another space": (plan().replace("2. Parts", "2.\u00a0Parts"),
                      [("## 2.\\xa0Parts List (line 5)", "'2.\\xa0Parts List'"), ("## 2. Parts List", "no such")]),
    "bold": (plan().replace("2. Parts List", "**2. Parts List**"),
             [("## **2. Parts List** (line 5)", "the heading"), ("## 2. Parts List", "no such")]),
    "a comment in a heading": (plan().replace("2. Parts List", "2. Parts List <!-- x -->"),
                               [("## 2. Parts List <!-- x --> (line 5)", "the heading"), ("## 2. Parts List", "no")]),
    "no number": (plan().replace("2. Parts List", "Parts List"),
                  [("## Parts List (line 5)", "the heading"), ("## 2. Parts List", "no such heading")]),
    "and": (plan().replace("Cost & Weight", "Cost and Weight"),
            [("## 4. Cost and Weight Budget (line 15)", "the heading"), ("## 4. Cost & Weight", "no such")]),
    "empty overview": (plan(_1=""), [("## 1. Solution Overview (line 1)", "an empty section")]),
    "overview in a list": (plan(_1="- points"), [("## 1. Solution Overview (line 1)", "a section of list")]),
    "overview in a comment": (plan(_1="<!-- prose -->"), [("## 1. Solution Overview (line 1)", "an empty section")]),
    "overview in a fence": (plan(_1="```\nprose\n```"), [("## 1. Solution Overview (line 1)", "an empty section")]),
    "overview in a quote": (plan(_1="> prose"), [("## 1. Solution Overview (line 1)", "an empty section")]),
    "parts in prose": (plan(_2="A flap and a bolt."), [("## 2. Parts List (line 5)", "a section of prose")]),
    "parts in an empty list": (plan(_2="-\n-"), [("## 2. Parts List (line 5)", "an empty section")]),
    "parts in a table of a header": (plan(_2="| id |\n|---|"), [("## 2. Parts List (line 5)", "an empty section")]),
    "parts in a table of an empty row": (plan(_2="| id |\n|---|\n|  |"), [("## 2. Parts List (line 5)", "an empty")]),
    "parts in no table": (plan(_2="| id |\n| flap |"), [("## 2. Parts List (line 5)", "a section of prose")]),
    "parts in a fence": (plan(_2="```\n- flap\n```"), [("## 2. Parts List (line 5)", "an empty section")]),
    "steps in bullets": (plan(_3="- Mount."), [("## 3. Assembly Strategy (line 10)", "a section of list")]),
    "steps in a table": (plan(_3="| n | do |\n|---|---|\n| 1 | it |"),
                         [("## 3. Assembly Strategy (line 10)", "a section of table")]),
    "budget in prose": (plan(_4="40 USD"), [("## 4. Cost & Weight Budget (line 15)", "a section of prose")]),
    "no risks": (plan(_5=""), [("## 5. Risk Assessment (line 21)", "an empty section")]),
    "fence without an end": (plan(_2="```"), [
        ("## 3. Assembly", "no such"), ("## 4. Cost", "no such"), ("## 5. Risk", "no such"),
        ("## 2. Parts List (line 5)", "an empty section")]),
    "comment without an end": (plan(_5="- risk\n\n<!--\n") + plan(), []),
    "placeholder": (plan(_5="- TBD"), [("line 23", "'TBD'")]),
    "nothing": ("# Plan\n", [(f"## {title}", "no such heading") for title in SECTION]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    """Each fault is told with heading and line."""
    text, expected = SHAPES[name]
    findings = told(text)

    assert len(expected) == len(findings)
    for (where, found), (seen_where, seen_found) in zip(expected, findings, strict=True):
        assert seen_where.startswith(where)
        assert found in seen_found


def test_the_heading_that_was_meant_is_named():
    """Who wrote a heading otherwise is told how it is written."""
    for text in ("2. Parts list", "Parts List", "2 Parts List", "2. PARTS LIST"):
        _, findings = read_plan(plan().replace("2. Parts List", text).encode())

        assert "exactly `## 2. Parts List`" == findings[0].expected


def test_template():
    """The plan as it is issued has every heading and is refused for its placeholders."""
    findings = told(PLAN)

    assert findings
    assert not any("heading" in found for _, found in findings)


@given(st.permutations(list(SECTION)), st.sets(st.sampled_from(list(SECTION))))
def test_order(order, left_out):
    """Any order but the right one is a finding, and any heading that is left out."""
    titles = [title for title in order if title not in left_out]
    findings = told("".join(f"## {title}\n\n{SECTION[title]}\n\n" for title in titles))
    founds = [found for _, found in findings]

    assert len(left_out) == sum("no such heading" in found for found in founds)
    assert (titles != sorted(titles)) == any("is due" in found for found in founds)
    assert len(founds) == len(left_out) + (titles != sorted(titles))


_LINES = st.sampled_from(
    ["", "text", "## 1. Solution Overview", "## 2. Parts List", "## other", "- a", "1. b", "```", "<!--", "-->",
     "---", "> q", "| a |", "|---|", "    code", "    - deep", "\t", "`x`: y; z: 1", "&amp;", "\\", "[a]: b"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=30))
def test_any_lines(lines):
    """Whatever the lines, there is a plan or there are findings, and headings in fences count for nothing."""
    assert told("\n".join(lines))
    fenced = "~~~~\n" + "\n".join(lines) + "\n~~~~\n"

    assert [] == told(plan(_1=f"Prose.\n\n{fenced}"))


@pytest.mark.parametrize(
    "unit", ["[", "*a ", "`a", "|", "> ", "- ", "1. ", "<", "## x\n", "- `a`: b; c\n"]
)
def test_long(unit):
    """A file as long as is read, of anything, is read in time and refused."""
    assert told((unit * FILE_BYTES)[:FILE_BYTES])


def test_too_long():
    """A longer one is not parsed."""
    assert [("", "a file of 1000000 bytes")] == told(b"#" * 1_000_000)


def test_many_headings():
    """Of headings without end one finding is enough."""
    assert [("", "51 headings of level 2")] == told("## x\n" * 51)
    assert 50 + 5 == len(told("## x\n" * 50))


def test_names_of_headings():
    """The headings of these tests are those of the contract."""
    assert list(SECTION) == list(SECTIONS)
