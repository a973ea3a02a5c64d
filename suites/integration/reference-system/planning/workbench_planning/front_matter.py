"""YAML at the head of a Markdown file: between a first line ``---`` and the next line ``---``.

What follows is free, but for another ``---`` as its first words: that would be a second document, and
which of the two holds would be for each reader to say.
"""

from __future__ import annotations

from workbench_contract.findings import Finding
from workbench_planning.strict_yaml import Document, read_text
from workbench_planning.text import finding, shortened, text_of

_FENCE = "---"


def read_front_matter(data: bytes, *, file: str) -> tuple[Document | None, list[Finding]]:
    """The front matter of a file; lines are those of the file."""
    text, findings = text_of(data, file=file)
    if text is None:
        return None, findings
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        expected = "`---`, front matter, `---`"
        return None, [finding(file, "line 1", shortened(lines[0]), expected)]
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() == _FENCE), None)
    if end is None:
        found = "front matter without an end"
        return None, [finding(file, f"line {len(lines)}", found, "a line `---` after it")]
    document, findings = read_text("\n".join(lines[1:end]) + "\n", file=file, first_line=2)
    after = next((at for at in range(end + 1, len(lines)) if lines[at].strip()), None)
    if after is not None and lines[after].rstrip() == _FENCE:
        found = "a second document after the front matter"
        findings = [*findings, finding(file, f"line {after + 1}", found, "one front matter alone")]
    return (None if findings else document), findings
