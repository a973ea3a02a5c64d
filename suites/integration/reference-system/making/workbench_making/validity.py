"""The record that a design was validated and priced, and whether it is about what lies there now.

It is bound to the script, to everything of the session that it is made of (``imports.py`` says what that
is) and to the configuration. What has been validated is looked at anew each time: a module that was not
there and now shadows another one changes the record as an edit does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding
from workbench_making.imports import Session, sources_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a verdict is about.

    Attributes:
        script: its path in the session.
        files: (path, sha256) of the script and all that it is made of, by path.
        whole: None, or why that is the whole session.
        configuration_sha256: of ``manufacturing_config.yaml``.
    """

    script: str
    files: tuple[tuple[str, str], ...]
    whole: str | None
    configuration_sha256: str

    @property
    def sha256(self) -> str:
        """Of all of it."""
        content = [self.script, self.files, self.whole, self.configuration_sha256]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def bind(
    script: str, session: Session, *, configuration_sha256: str
) -> tuple[Record | None, list[Finding]]:
    """The record of a script as it is now; a finding if there is none."""
    if script not in session.paths():
        row = finding(
            Stage.PRESENT,
            file=script,
            where="",
            found="no such file",
            expected="the design's script",
        )
        return None, [row]
    sources = sources_of(script, session)
    files = tuple(
        (path, hashlib.sha256(session.read(path)).hexdigest()) for path in sorted(sources.paths)
    )
    return Record(
        script=script,
        files=files,
        whole=sources.whole,
        configuration_sha256=configuration_sha256,
    ), []


def current(
    record: Record | None, script: str, session: Session, *, configuration_sha256: str
) -> list[Finding]:
    """Nothing if a record is about the design as it is now; else everything that is different.

    Args:
        record: of the last time that the design passed; None if it never did.
    """
    now, findings = bind(script, session, configuration_sha256=configuration_sha256)
    if now is None:
        return findings
    if record is None or record.script != script:
        return [_stale(script, "no record that this design was validated and priced")]
    if record.sha256 == now.sha256:
        return []
    before, after = dict(record.files), dict(now.files)
    found = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            found.append(_stale(path, "gone since the design was validated and priced"))
        elif path not in before:
            found.append(_stale(path, "new since the design was validated and priced"))
        elif before[path] != after[path]:
            found.append(_stale(path, "changed since the design was validated and priced"))
    if record.configuration_sha256 != configuration_sha256:
        found.append(_stale("manufacturing_config.yaml", "changed since the design was validated"))
    return found or [_stale(script, "made of other files than when it was validated and priced")]


def _stale(file: str, found: str) -> Finding:
    return finding(
        Stage.PRICE, file=file, where="", found=found, expected="validate and price it once more"
    )
