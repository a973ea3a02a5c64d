"""``todo.md``: the list that the controller issued, ticked, skipped and added to, never changed otherwise.

The file is headings (``#``), empty lines and entries, one line each and nothing else, so that nothing can
be hidden in a fence or a comment:

    - [ ] Choose the motor <!-- todo:3f9a01c2 -->
    - [x] Choose the motor <!-- todo:3f9a01c2 -->
    - [-] Choose the motor: nothing moves <!-- todo:3f9a01c2 -->

A skipped entry has its text as it was, then ``:``, ``-``, ``--``, an en or em dash and a space, then the
reason; or the reason in brackets. Entries that were not issued have no id and stand below an issued
one, indented or not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from workbench_contract.findings import Finding
from workbench_planning.text import finding, shortened, text_of

FILE = "todo.md"
#: The longest entry; the regular expressions below see no longer line.
LINE_CHARS = 2_000

_ID_DIGITS = 8
_ENTRY = re.compile(
    r"(?P<indent>\s*)(?P<bullet>[-*+]|[0-9]{1,9}[.)])\s*\[(?P<box>[^\]]*)\](?P<rest>.*)"
)
_ID = re.compile(r"<!--\s*todo:(?P<id>[^\s>]*)\s*-->$")
_REASON = re.compile(r"\s*(?::|--?|–|—)\s+(?P<plain>\S.*)|\s+\((?P<bracketed>.+)\)")
_ANY_REASON = re.compile(r"\S.*?(?:(?::|\s--?|\s–|\s—)\s+\S|\s\(.*\)$)")


class Box(StrEnum):
    """What stands between the brackets."""

    OPEN = " "
    DONE = "x"
    SKIPPED = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """An entry that the controller gave; its text stands on one line."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry as it stands in the file.

    Attributes:
        line: from 1.
        box: none if it is no box.
        text: without id; of a skipped entry with its reason.
        id: none of an entry that was added.
    """

    line: int
    box: Box | None
    text: str
    id: str | None


def issue(texts: Sequence[str], *, of: str = "") -> tuple[Issued, ...]:
    """Mandatory entries with ids of their own, the same for the same texts and list.

    Args:
        texts: of the entries, in order.
        of: whose list it is: lists of the same texts have other ids.

    Raises:
        ValueError: a text is empty, stands on two lines, has space around it or an HTML comment in it.
    """
    issued = []
    for number, text in enumerate(texts):
        if not text or text != " ".join(text.split()) or "<!--" in text or "-->" in text:
            raise ValueError(
                f"cannot issue {shortened(text)}: it is no entry. Write words on one line, "
                "one space between them, no comment"
            )
        digest = hashlib.sha256(f"{of}:{number}:{text}".encode()).hexdigest()
        issued.append(Issued(id=digest[:_ID_DIGITS], text=text))
    return tuple(issued)


def rendered(issued: Sequence[Issued]) -> str:
    """The file as the controller issues it."""
    lines = [_line(each, Box.OPEN) for each in issued]
    return "\n".join(["# To do", "", *lines, ""])


def read_todo(
    data: bytes, issued: Sequence[Issued], *, submitted: bool
) -> tuple[tuple[Entry, ...] | None, list[Finding]]:
    """The entries of a list, or all that is wrong with it.

    Args:
        data: the whole file.
        issued: what the controller gave, in order.
        submitted: nothing may be open any more.
    """
    text, findings = text_of(data, file=FILE)
    if text is None:
        return None, findings
    entries, findings = _entries(text)
    findings += _against(entries, issued)
    if submitted:
        findings += [
            _at(entry, "an open box at submission", "`[x]`, or `[-]` with a reason")
            for entry in entries
            if entry.box is Box.OPEN
        ]
    return (None if findings else tuple(entries)), findings


def _entries(text: str) -> tuple[list[Entry], list[Finding]]:
    """All that looks like an entry, and what is wrong with its form."""
    entries: list[Entry] = []
    findings: list[Finding] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"line {number}"
        if len(line) > LINE_CHARS:
            expected = f"at most {LINE_CHARS} characters"
            findings.append(finding(FILE, where, f"a line of {len(line)} characters", expected))
            continue
        seen = _ENTRY.fullmatch(line)
        if seen is None:
            expected = "an entry (`- [ ] text`), a heading or an empty line"
            findings.append(finding(FILE, where, shortened(line), expected))
            continue
        entry, problem = _entry(number, seen)
        entries.append(entry)
        if problem:
            findings.append(finding(FILE, where, shortened(line), problem))
    return entries, findings


def _entry(number: int, seen: re.Match[str]) -> tuple[Entry, str]:
    """An entry, and what its form should be where it is another."""
    rest = seen["rest"].rstrip()
    marked = _ID.search(rest)
    text = rest[: marked.start()].rstrip() if marked else rest
    box = next((each for each in Box if each.value == seen["box"]), None)
    entry = Entry(line=number, box=box, text=text.strip(), id=marked["id"] if marked else None)
    if box is None:
        return entry, "one of the boxes `[ ]`, `[x]`, `[-]`"
    between = seen.string[seen.end("bullet") : seen.start("box") - 1]
    if seen["bullet"] != "-" or between != " " or seen["indent"].strip(" "):
        return entry, f"`- [{box.value}] ` at the start of the entry"
    if not entry.text or not text.startswith(" ") or text.startswith("  "):
        return entry, "one space and a text after the box"
    if "<!--" in text or "-->" in text:
        return entry, "no comment but the id at the end"
    if entry.id is not None and seen["indent"]:
        return entry, "an issued entry without space before it"
    if entry.id is None and box is Box.SKIPPED and not _ANY_REASON.match(entry.text):
        return entry, "a reason after the text: `- [-] text: reason`"
    return entry, ""


def _against(entries: Sequence[Entry], issued: Sequence[Issued]) -> list[Finding]:
    """What has become of the issued entries."""
    places = {each.id: place for place, each in enumerate(issued)}
    first: dict[str, Entry] = {}
    findings = []
    latest = -1
    for entry in entries:
        if entry.id is None:
            if latest < 0 and issued:
                expected = "new entries after an issued one"
                findings.append(_at(entry, "a new entry before the issued ones", expected))
        elif entry.id not in places:
            found = f"the id {shortened(entry.id)}"
            findings.append(_at(entry, found, "an id that was issued, or none for a new entry"))
        elif entry.id in first:
            found = f"the entry {entry.id} a second time; it stands in line {first[entry.id].line}"
            findings.append(_at(entry, found, "each issued entry once"))
        else:
            first[entry.id] = entry
            place = places[entry.id]
            if place < latest:
                found = f"the entry {entry.id} after {issued[latest].id}, which was issued later"
                findings.append(_at(entry, found, "the issued entries in their order"))
            latest = max(latest, place)
            if problem := _reworded(entry, issued[place]):
                findings.append(_at(entry, shortened(entry.text), problem))
    for each in issued:
        if each.id not in first:
            found = f"no entry {each.id}: it was deleted, or its id was"
            findings.append(
                finding(FILE, "", found, f"`{_line(each, Box.OPEN)}`, ticked or skipped")
            )
    return findings


def _reworded(entry: Entry, issued: Issued) -> str:
    """What the text of an issued entry should be where it is not."""
    if entry.box is not Box.SKIPPED:
        return "" if entry.text == issued.text else f"the issued text, `{issued.text}`"
    if not entry.text.startswith(issued.text):
        return f"the issued text, `{issued.text}`, and after it a reason"
    reason = _REASON.fullmatch(entry.text[len(issued.text) :])
    if reason and any(each.isalnum() for each in reason["plain"] or reason["bracketed"]):
        return ""
    return f"a reason after the text: `- [-] {issued.text}: reason`"


def _line(issued: Issued, box: Box) -> str:
    return f"- [{box.value}] {issued.text} <!-- todo:{issued.id} -->"


def _at(entry: Entry, found: str, expected: str) -> Finding:
    return finding(FILE, f"line {entry.line}", found, expected)
