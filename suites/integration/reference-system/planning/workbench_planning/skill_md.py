"""``SKILL.md``: what a skill is called, and when it is of use."""

from __future__ import annotations

import re

from workbench_contract.findings import Finding
from workbench_contract.skills import Skill
from workbench_planning.front_matter import read_front_matter
from workbench_planning.schema import value_at
from workbench_planning.text import finding, shortened

FILE = "SKILL.md"

#: As the public format of skills has it.
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARS = 64
_DESCRIPTION_CHARS = 1024


def read_skill(data: bytes, *, folder: str) -> tuple[Skill | None, list[Finding]]:
    """A skill, or all that is wrong with its head; other keys are for other readers."""
    file = f"{folder}/{FILE}"
    document, findings = read_front_matter(data, file=file)
    if document is None:
        return None, findings
    name = value_at(document.value, ("name",))
    if name != folder or len(folder) > _NAME_CHARS or not NAME.fullmatch(folder):
        expected = f"its folder's, of lower-case letters, digits and hyphens, at most {_NAME_CHARS}"
        findings = [*findings, finding(file, "name", shortened(str(name)), expected)]
    words = value_at(document.value, ("description",))
    if not isinstance(words, str) or not 0 < len(words.strip()) <= _DESCRIPTION_CHARS:
        expected = f"a text of 1 to {_DESCRIPTION_CHARS} characters"
        findings = [*findings, finding(file, "description", shortened(str(words)), expected)]
    if findings:
        return None, findings
    return Skill(name=folder, description=str(words).strip()), []
