"""Whether a design that lies in a session is the one that was validated and priced.

For coders that were handed a plan: what they simulate and submit has passed as it is now.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench_contract.design import CONNECTIONS
from workbench_contract.episodes import AgentRole
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import OpenRequest
from workbench_foundation import faults
from workbench_making import validity
from workbench_making.validity import Record
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning.text import finding
from workbench_worker import environment
from workbench_worker.costs import shop
from workbench_worker.opening import given_files, purpose_of
from workbench_worker.sessions import Session
from workbench_worker.snapshots import whole_session

_RECORD = "validity.json"


#: Path to inode and the time of its last change, in ns; none where there is nothing.
Marks = dict[str, tuple[int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of a session at one moment; what a script may be made of."""

    files: Mapping[str, bytes]
    odd: frozenset[str] = frozenset()

    def paths(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.files)

    def links(self) -> frozenset[str]:
        """Those that lead elsewhere, or nowhere."""
        return self.odd

    def read(self, path: str) -> bytes:
        """The bytes of one."""
        return self.files[path]

    def connections_sha256(self) -> str | None:
        """Of the file that says how parts hold together."""
        data = self.files.get(CONNECTIONS)
        return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The last verdict about a design.

    Attributes:
        findings: of a design that did not pass.
        densities_kg_m3: of its parts, as they are simulated: hollows of prints count.
    """

    record: Record
    connections_sha256: str | None
    findings: tuple[Finding, ...]
    densities_kg_m3: Mapping[str, float] = field(default_factory=dict)


def is_due(opened: OpenRequest) -> bool:
    """Whether a session's design has to pass before it goes on: its coder was handed a plan."""
    given = given_files(opened.given)
    return opened.role is AgentRole.CODER and estimate_file.FILE in given


def handed(opened: OpenRequest) -> tuple[bytes, bytes]:
    """Estimate and objectives as they were handed over, whatever lies in the session now."""
    content = {each.path: each.content for each in opened.files}
    return content[estimate_file.FILE], content[objectives_file.FILE]


def snapshot(session: Session) -> tuple[Snapshot, list[Finding]]:
    """The files as they are now, or what keeps a design from being made of them."""
    left, odd = whole_session(session)
    return Snapshot(files=left.files, odd=odd), list(left.findings)


def bind(script: str, files: Snapshot) -> tuple[Record | None, list[Finding]]:
    """What a verdict on a script would be about."""
    return validity.bind(script, files, configuration_sha256=_shop_sha256())


def _shop_sha256() -> str:
    return "0" * 64 if faults.on("configuration-unbound") else shop().sha256


def marks(session: Session, record: Record) -> Marks:
    """What shows that a file of a design was written, even when it says afterwards what it said before.

    The folders that hold it count; that of the session does not: a script may leave files there.
    """
    paths = {Path(path) for path, _ in record.files}
    folders = {folder for path in paths for folder in path.parents} - {Path(".")}
    found: dict[str, tuple[int, int] | None] = {}
    for path in sorted(paths | folders):
        try:
            state = (session.workspace / path).lstat()
        except OSError:
            found[str(path)] = None
        else:
            found[str(path)] = (state.st_ino, state.st_ctime_ns)
    return found


def keep(session: Session, verdict: Verdict) -> None:
    """Remember the last verdict, beside the session's files; it outlives the worker."""
    value = {
        "record": asdict(verdict.record),
        "connections_sha256": verdict.connections_sha256,
        "findings": [each.model_dump(mode="json") for each in verdict.findings],
        "densities_kg_m3": dict(verdict.densities_kg_m3),
    }
    new = session.home / f"{_RECORD}.{secrets.token_hex(8)}"
    with new.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(session.home / _RECORD)


def kept(session: Session) -> Verdict | None:
    """The last verdict about a design of the session."""
    file = session.home / _RECORD
    if not file.exists():
        return None
    value: dict[str, Any] = json.loads(file.read_bytes())
    record = value["record"]
    record["files"] = tuple((path, digest) for path, digest in record["files"])
    return Verdict(
        record=Record(**record),
        connections_sha256=value["connections_sha256"],
        findings=tuple(Finding.model_validate(each) for each in value["findings"]),
        densities_kg_m3=value["densities_kg_m3"],
    )


def findings_against(session: Session, script: str) -> list[Finding]:
    """Nothing if the design passed as it is now; else what is due, or what it did not pass by."""
    last = kept(session)
    files, problems = snapshot(session)
    if not problems:
        problems, _ = environment.disturbed(session, purpose_of(session))
    if problems:
        return problems
    if faults.on("validity-for-ever") and last is not None and not last.findings:
        return []
    record = last.record if last else None
    if faults.on("validity-of-script-alone") and last is not None and script in files.files:
        digest = hashlib.sha256(files.read(script)).hexdigest()
        return list(last.findings) if (script, digest) in last.record.files else []
    stale = validity.current(record, script, files, configuration_sha256=_shop_sha256())
    bound = not faults.on("connections-unbound")
    if bound and last is not None and not stale and last.connections_sha256 != files.connections_sha256():
        found = "changed since the design was validated and priced"
        expected = "validate and price it once more"
        stale = [finding(CONNECTIONS, "", found, expected, stage=Stage.PRICE)]
    if stale or last is None:
        return stale
    return list(last.findings)
