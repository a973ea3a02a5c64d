"""The environment of a benchmark as its session has it: held to be as it was handed over."""

from __future__ import annotations

from collections.abc import Mapping

from workbench_contract.episodes import Purpose
from workbench_contract.findings import Finding
from workbench_contract.handover import OpenRequest
from workbench_foundation import faults
from workbench_planning import environment, package
from workbench_worker import planted
from workbench_worker.opening import given_files
from workbench_worker.sessions import Session
from workbench_worker.snapshots import whole_session


def fixed(opened: OpenRequest) -> dict[str, str]:
    """Path to sha256 of what whoever works in an environment leaves as it is; nothing of who makes it."""
    if opened.purpose is Purpose.BENCHMARK:
        return {}
    return {
        path: digest
        for path, digest in given_files(opened.given).items()
        if environment.belongs(path)
    }


def disturbed(session: Session, opened: OpenRequest) -> tuple[list[Finding], dict[str, bytes]]:
    """What has become of a session's environment, and its files as they are."""
    given = planted.environment_of(session.id, fixed(opened))
    if not given:
        return [], {}
    left, links = whole_session(session)
    if left.findings:
        return list(left.findings), {}
    found = environment.disturbed(left.files, links, given)
    files = {path: left.files[path] for path in given if path in left.files and path not in links}
    return planted.undisturbed(session.id, _told(found)), files


def disturbed_in(
    session: Session, opened: OpenRequest, files: Mapping[str, bytes]
) -> list[Finding]:
    """The same of plain files that are handed over."""
    given = planted.environment_of(session.id, fixed(opened))
    return planted.undisturbed(session.id, _told(environment.disturbed(files, frozenset(), given)))


def _told(found: list[Finding]) -> list[Finding]:
    """For the planted fault `package-unguarded` alone: what is said of a package is not."""
    if not faults.on("package-unguarded"):
        return found
    return [each for each in found if not package.belongs(each.file)]
