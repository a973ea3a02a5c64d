"""todo.md: what may become of the entries that were issued."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_planning.text import FILE_BYTES
from workbench_planning.todo_md import Box, Issued, issue, read_todo, rendered

A, B, C = ISSUED = (
    Issued(id="aa", text="Choose the motor"),
    Issued(id="bb", text="Check the price"),
    Issued(id="cc", text="Größe prüfen (mm)"),
)
LINES = [f"- [x] {each.text} <!-- todo:{each.id} -->" for each in ISSUED]


def told(lines, *, submitted=False, issued=ISSUED):
    """What is found of a list."""
    text = lines if isinstance(lines, (str, bytes)) else "\n".join(lines) + "\n"
    data = text if isinstance(text, bytes) else text.encode()
    entries, findings = read_todo(data, issued, submitted=submitted)

    assert (entries is None) == bool(findings)
    assert all(each.file == "todo.md" and each.expected for each in findings)
    return [(each.where, each.found) for each in findings]


def test_issued():
    """The list as it is issued is in order while work goes on; at submission each of its boxes is open."""
    issued = issue(["Choose the motor", "Check the price", "Check the price"])

    assert 3 == len({each.id for each in issued})
    assert issued == issue(["Choose the motor", "Check the price", "Check the price"])
    other = issue([each.text for each in issued], of="another list")
    assert {each.id for each in issued}.isdisjoint(each.id for each in other)
    assert [] == told(rendered(issued), issued=issued)
    assert ["line 3", "line 4", "line 5"] == [
        each[0] for each in told(rendered(issued), issued=issued, submitted=True)
    ]


@pytest.mark.parametrize("text", ["", " a", "a ", "a\nb", "a  b", "a <!-- b", "a -->"])
def test_not_issued(text):
    """What cannot stand as an entry is refused to the controller."""
    with pytest.raises(ValueError, match="cannot issue"):
        issue([text])


ACCEPTED = {
    "done": LINES,
    "crlf": "\r\n".join(LINES) + "\r\n",
    "no line end at the end": "\n".join(LINES),
    "headings and empty lines": [
        "# To do",
        "",
        LINES[0],
        "",
        "## Later",
        LINES[1],
        LINES[2],
        "",
        "",
    ],
    "space at the end": [f"{line}  " for line in LINES],
    "space in the comment": [
        line.replace("<!-- ", "<!--").replace(" -->", "   -->") for line in LINES
    ],
    "new ones after": [LINES[0], "- [x] Buy it", "  - [x] Soon", *LINES[1:], "- [-] Sell it: no"],
    "skipped, colon": [LINES[0], "- [-] Check the price: no parts <!-- todo:bb -->", LINES[2]],
    "skipped, dash": [LINES[0], "- [-] Check the price - no parts <!-- todo:bb -->", LINES[2]],
    "skipped, dashes": [LINES[0], "- [-] Check the price -- no parts <!-- todo:bb -->", LINES[2]],
    "skipped, em dash": [LINES[0], "- [-] Check the price — no parts <!-- todo:bb -->", LINES[2]],
    "skipped, brackets": [LINES[0], "- [-] Check the price (no parts) <!-- todo:bb -->", LINES[2]],
    "skipped, brackets twice": [*LINES[:2], "- [-] Größe prüfen (mm) (出来ない) <!-- todo:cc -->"],
    "the same text again": [*LINES, "- [x] Choose the motor"],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name):
    """Ticked, skipped with a reason, followed by new entries: in order, at submission too."""
    assert [] == told(ACCEPTED[name], submitted=True)


def second(line):
    """The list with another second line."""
    return [LINES[0], line, LINES[2]]


REFUSED = {
    "deleted": ([LINES[0], LINES[2]], [("", "no entry bb")]),
    "all deleted": (["# To do"], [("", "no entry aa"), ("", "no entry bb"), ("", "no entry cc")]),
    "id deleted": (second("- [x] Check the price"), [("", "no entry bb")]),
    "id of another": (second("- [x] Check the price <!-- todo:dd -->"), [("line 2", "the id 'dd'"), ("", "no entry bb")]),
    "id in capitals": (second("- [x] Check the price <!-- todo:BB -->"), [("line 2", "the id 'BB'"), ("", "no entry")]),
    "no id": (second("- [x] Check the price <!-- todo: -->"), [("line 2", "the id ''"), ("", "no entry bb")]),
    "new with an id": ([*LINES, "- [x] Buy it <!-- todo:dd -->"], [("line 4", "the id 'dd'")]),
    "twice": ([*LINES, LINES[0]], [("line 4", "a second time; it stands in line 1")]),
    "turned": ([LINES[1], LINES[0], LINES[2]], [("line 2", "aa after bb")]),
    "last first": ([LINES[2], LINES[0], LINES[1]], [("line 2", "aa after cc"), ("line 3", "bb after cc")]),
    "new before": (["- [x] Buy it", *LINES], [("line 1", "a new entry before")]),
    "reworded": (second("- [x] Check the prices <!-- todo:bb -->"), [("line 2", "'Check the prices'")]),
    "shortened": (second("- [x] Check <!-- todo:bb -->"), [("line 2", "'Check'")]),
    "another case": (second("- [x] check the price <!-- todo:bb -->"), [("line 2", "'check the price'")]),
    "another space": (second("- [x] Check  the price <!-- todo:bb -->"), [("line 2", "'Check  the price'")]),
    "done with a note": (second("- [x] Check the price: 4 USD <!-- todo:bb -->"), [("line 2", "4 USD")]),
    "decomposed": ([*LINES[:2], LINES[2].replace("ö", "o\u0308")], [("line 3", "Gro")]),
    "zero width": (second("- [x] Check\u200b the price <!-- todo:bb -->"), [("line 2", "\\u200b")]),
    "texts exchanged": (
        [LINES[0].replace("aa", "bb"), LINES[1].replace("bb", "aa"), LINES[2]],
        [("line 1", "Choose"), ("line 2", "aa after bb"), ("line 2", "Check")],
    ),
    "skipped without a reason": (second("- [-] Check the price <!-- todo:bb -->"), [("line 2", "Check the price")]),
    "skipped with a colon": (second("- [-] Check the price: <!-- todo:bb -->"), [("line 2", "price:")]),
    "skipped with dots": (second("- [-] Check the price: ... <!-- todo:bb -->"), [("line 2", "...")]),
    "skipped with empty brackets": (second("- [-] Check the price () <!-- todo:bb -->"), [("line 2", "()")]),
    "skipped and reworded": (second("- [-] No price: no <!-- todo:bb -->"), [("line 2", "No price")]),
    "skipped and longer": (second("- [-] Check the prices: no <!-- todo:bb -->"), [("line 2", "prices")]),
    "reason after the id": (second("- [-] Check the price <!-- todo:bb -->: no"), [("line 2", "todo:bb"), ("", "bb")]),
    "new, skipped without a reason": ([*LINES, "- [-] Sell it"], [("line 4", "Sell it")]),
    "X": (second("- [X] Check the price <!-- todo:bb -->"), [("line 2", "[X]")]),
    "/": (second("- [/] Check the price <!-- todo:bb -->"), [("line 2", "[/]")]),
    "?": (second("- [?] Check the price <!-- todo:bb -->"), [("line 2", "[?]")]),
    "no space": (second("- [] Check the price <!-- todo:bb -->"), [("line 2", "[]")]),
    "two spaces": (second("- [  ] Check the price <!-- todo:bb -->"), [("line 2", "[  ]")]),
    "x and space": (second("- [x ] Check the price <!-- todo:bb -->"), [("line 2", "[x ]")]),
    "cyrillic": (second("- [х] Check the price <!-- todo:bb -->"), [("line 2", "[х]")]),
    "full width": (second("- [ｘ] Check the price <!-- todo:bb -->"), [("line 2", "[ｘ]")]),
    "star": (second("* [x] Check the price <!-- todo:bb -->"), [("line 2", "* [x]")]),
    "number": (second("1. [x] Check the price <!-- todo:bb -->"), [("line 2", "1. [x]")]),
    "close": (second("-[x] Check the price <!-- todo:bb -->"), [("line 2", "-[x]")]),
    "far": (second("-  [x] Check the price <!-- todo:bb -->"), [("line 2", "-  [x]")]),
    "text close": (second("- [x]Check the price <!-- todo:bb -->"), [("line 2", "[x]Check")]),
    "text far": (second("- [x]  Check the price <!-- todo:bb -->"), [("line 2", "[x]  Check")]),
    "indented": (second("  - [x] Check the price <!-- todo:bb -->"), [("line 2", "  - [x]")]),
    "tab": ([*LINES, "\t- [x] Buy it"], [("line 4", "\\t")]),
    "no text": ([*LINES, "- [x]"], [("line 4", "- [x]")]),
    "two ids": (second("- [x] Check the price <!-- todo:cc --> <!-- todo:bb -->"),
                [("line 2", "cc"), ("line 2", "cc")]),
    "prose": ([*LINES, "That is all."], [("line 4", "That is all.")]),
    "no box": ([*LINES, "- Buy it"], [("line 4", "- Buy it")]),
    "in a fence": (["```", *LINES, "```"], [("line 1", "```"), ("line 5", "```")]),
    "in a comment": (["<!--", *LINES, "-->"], [("line 1", "<!--"), ("line 5", "-->")]),
    "in a quote": ([f"> {line}" for line in LINES],
                   [*[(f"line {n}", "> ") for n in (1, 2, 3)], *[("", "no entry")] * 3]),
    "long": ([*LINES, "- [x] " + "x" * 3000], [("line 4", "a line of 3006 characters")]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """Whatever else becomes of an entry is told with its line, or with the id that is gone."""
    lines, expected = REFUSED[name]
    findings = told(lines)

    assert len(expected) == len(findings)
    for (where, part), (seen_where, found) in zip(expected, findings, strict=True):
        assert where == seen_where
        assert part in found


def test_open_at_submission():
    """At submission an open box is a finding, of an added entry too; before it is none."""
    lines = [LINES[0], LINES[1].replace("[x]", "[ ]"), LINES[2], "- [ ] Buy it"]

    assert [] == told(lines)
    assert [
        ("line 2", "an open box at submission"),
        ("line 4", "an open box at submission"),
    ] == told(lines, submitted=True)


def test_nothing_issued():
    """Where nothing was issued the list is the agent's own."""
    assert [] == told(["- [x] Mine"], issued=())


@pytest.mark.parametrize(
    "unit", ["- [x] a\n", "- [ ", "<!-- todo:", "-", " ", "- [-] a: ", "\n", "# x\n"]
)
def test_long(unit):
    """A file as long as is read, of anything, is read in time and refused."""
    assert told((unit * FILE_BYTES)[:FILE_BYTES])


def test_too_long():
    """A longer one is not looked into."""
    assert [("", "a file of 1000000 bytes")] == told(b"- [x] a\n" * 125_000)


_EDITS = st.lists(
    st.tuples(
        st.sampled_from(
            ["tick", "skip", "add", "delete", "reword", "swap", "repeat", "spoil", "unskip"]
        ),
        st.integers(0, 5),
    ),
    max_size=6,
)


@given(_EDITS, st.booleans())
def test_edits(edits, submitted):
    """Any edits: accepted exactly when what was issued is there once, in order and word for word."""
    # A list of (box, text, id): the oracle looks at this, never at the file.
    rows = [[" ", each.text, each.id] for each in ISSUED]
    for edit, place in edits:
        if not rows:
            break
        at = place % len(rows)
        if edit == "tick":
            rows[at][0] = "x"
        elif edit == "skip" and ": " not in rows[at][1]:
            rows[at][:2] = ["-", rows[at][1] + ": no need"]
        elif edit == "unskip" and rows[at][0] == "-":
            rows[at][0] = "x"
        elif edit == "add":
            rows.insert(at + 1, ["x", "More", None])
        elif edit == "delete":
            del rows[at]
        elif edit == "reword":
            rows[at][1] = "Re" + rows[at][1]
        elif edit == "swap":
            rows[at], rows[-1] = rows[-1], rows[at]
        elif edit == "repeat":
            rows.append(list(rows[at]))
        elif edit == "spoil":
            rows[at][0] = "X"
    lines = [
        f"- [{box}] {text}" + (f" <!-- todo:{id_} -->" if id_ else "") for box, text, id_ in rows
    ]
    kept = [row for row in rows if row[2]]
    texts = {each.id: each.text for each in ISSUED}
    good = (
        ["aa", "bb", "cc"] == [row[2] for row in kept]
        and rows[0][2] is not None
        and all(row[0] in " x-" for row in rows)
        and all(row[1] == texts[row[2]] + (": no need" if row[0] == "-" else "") for row in kept)
        and not (submitted and any(row[0] == " " for row in rows))
    )

    assert good == (told(lines, submitted=submitted) == [])


@given(
    st.lists(st.text(st.sampled_from("-*[]xX <>!to:d#abc()\t"), max_size=30), max_size=10),
    st.booleans(),
)
def test_any_lines(lines, submitted):
    """No lines raise; what is accepted holds every issued entry."""
    if not told(lines, submitted=submitted):
        assert all(any(each.text in line for line in lines) for each in ISSUED)


def test_boxes():
    """There are three boxes."""
    assert {" ", "x", "-"} == {box.value for box in Box}
