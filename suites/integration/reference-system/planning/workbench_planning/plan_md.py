"""``plan.md``: five sections, each once, in order, none else at level 2, each with what it is for.

Besides what its shape asks for a section may hold anything; headings of other levels are free. What
counts as a heading is said in ``sections.py``.

So that the plan can be compared with the estimate (``agreement.py``) its rows are read by name: in
``2. Parts List`` the name is the part's id, in ``4. Cost & Weight Budget`` the name of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench_contract.findings import Finding
from workbench_planning.sections import BlockKind, Row, Section, sections_of
from workbench_planning.templates import is_placeholder
from workbench_planning.text import finding, shortened, text_of

FILE = "plan.md"

#: A file of more level-2 headings is no plan, and its findings would be nobody's reading.
MOST_SECTIONS = 50

_LISTED = frozenset({BlockKind.BULLETS, BlockKind.NUMBERED, BlockKind.TABLE})

PARTS = "2. Parts List"
BUDGET = "4. Cost & Weight Budget"
#: The headings, and of which kind one block of their sections has to be.
SECTIONS = {
    "1. Solution Overview": frozenset({BlockKind.PROSE}),
    PARTS: _LISTED,
    "3. Assembly Strategy": frozenset({BlockKind.NUMBERED}),
    BUDGET: _LISTED,
    "5. Risk Assessment": _LISTED,
}
_WORDS = {
    "1. Solution Overview": "a paragraph of prose",
    "3. Assembly Strategy": "a numbered list with at least one entry",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan that has its shape.

    Attributes:
        parts: rows of the parts list.
        budget: rows of the budget.
    """

    parts: tuple[Row, ...]
    budget: tuple[Row, ...]


def read_plan(data: bytes) -> tuple[Plan | None, list[Finding]]:
    """The plan, or all that is wrong with its shape."""
    text, findings = text_of(data, file=FILE)
    if text is None:
        return None, findings
    sections = sections_of(text)
    if len(sections) > MOST_SECTIONS:
        found = f"{len(sections)} headings of level 2"
        return None, [finding(FILE, "", found, "the five headings of a plan at level 2")]
    findings = [*_headings(sections), *(each for section in sections for each in _shape(section))]
    if findings:
        return None, findings
    by_title = {section.title: section for section in sections}
    return Plan(parts=by_title[PARTS].rows, budget=by_title[BUDGET].rows), []


def _headings(sections: Sequence[Section]) -> list[Finding]:
    findings = []
    first: dict[str, Section] = {}
    for section in sections:
        if section.title not in SECTIONS:
            expected = "none but the five headings of a plan at level 2"
            if meant := _meant(section.title):
                expected = f"exactly `## {meant}`"
            findings.append(_at(section, f"the heading {shortened(section.title)}", expected))
        elif section.title in first:
            found = f"the heading a second time; it stands in line {first[section.title].line}"
            findings.append(_at(section, found, "each heading once"))
        else:
            first[section.title] = section
    for title in SECTIONS:
        if title not in first:
            findings.append(finding(FILE, f"## {title}", "no such heading", f"`## {title}`"))
    # Dicts keep the order in which the headings were found.
    given = list(first)
    due = [title for title in SECTIONS if title in first]
    for title, instead in zip(given, due, strict=True):
        if title != instead:
            found = f"`## {title}` where `## {instead}` is due"
            findings.append(_at(first[title], found, "the headings in order, 1 to 5"))
            break
    return findings


def _meant(title: str) -> str | None:
    """The heading that was probably meant: the same letters and digits."""
    letters = _letters(title)
    for each in SECTIONS:
        if letters in (_letters(each), _letters(each.partition(". ")[2])):
            return each
    return None


def _letters(title: str) -> str:
    return "".join(each for each in title.replace("and", "").casefold() if each.isalnum())


def _shape(section: Section) -> list[Finding]:
    kinds = SECTIONS.get(section.title)
    if kinds is None:
        return []
    findings = []
    if not any(block.kind in kinds for block in section.blocks):
        held = sorted({block.kind.value for block in section.blocks})
        found = f"a section of {', '.join(held)}" if held else "an empty section"
        expected = _WORDS.get(section.title, "a list or a table with at least one row")
        findings.append(_at(section, found, expected))
    for block in section.blocks:
        pieces = [(block.line, block.text)] if block.kind is BlockKind.PROSE else []
        pieces += [(row.line, text) for row in block.rows for text in row.texts]
        for line, text in pieces:
            if is_placeholder(text):
                expected = "text in the placeholder's place"
                findings.append(finding(FILE, f"line {line}", shortened(text), expected))
    return findings


def _at(section: Section, found: str, expected: str) -> Finding:
    where = f"## {shortened(section.title)[1:-1]} (line {section.line})"
    return finding(FILE, where, found, expected)
