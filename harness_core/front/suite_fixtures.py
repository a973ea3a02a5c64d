"""Fixtures that every suite gets from its suite.toml, without a line in its conftest.

``subject`` (what is tested: its own subject file, or ``--subject``), ``capable`` (skips, by name, what
the subject lacks), ``environment`` (what the suite boots, one for each worker) and ``gateway`` (the
model gateway of that). They are visible in the suite's folder alone; a conftest may replace any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.front.budget import llm_budget_usd
from harness_core.front.skips import not_run
from harness_core.process import Run
from harness_core.system.claims import pretending
from harness_core.system.staging import Options, open_host, opener_of, subject_of
from harness_core.system.subject import Subject
from harness_core.system.suites import Suite, find_root, load_suite

__all__ = ["check_subjects", "give_fixtures", "suite_subject"]

_Fixture = Callable[..., Any]

_SUBJECTS: Final = pytest.StashKey[dict[str, Subject]]()


def give_fixtures(collector: pytest.Collector) -> None:
    """Give a folder that is a suite its fixtures, when pytest begins to collect it.

    A malformed suite.toml gives none: :func:`check_subjects` refuses the run for it.
    """
    if not isinstance(collector, pytest.Directory) or not _is_suite(collector.path):
        return
    try:
        suite, root = load_suite(collector.path), find_root(collector.path)
    except BadInput:
        return
    if _has_subject(collector.config, suite):
        subject, capable = _subject_fixtures(suite, root=root)
        _register(collector, "subject", subject, scope="session")
        _register(collector, "capable", capable, autouse=True)
    if suite.environment:
        environment = _environment_fixture(suite, root=root)
        _register(collector, "environment", environment, scope="session")
        _register(collector, "gateway", _gateway, scope="session")


def check_subjects(config: pytest.Config, folders: set[Path]) -> dict[Path, Path]:
    """Nothing is run with a mistake in a suite.toml or a subject file.

    Args:
        config: of the run.
        folders: of the suites that are chosen.

    Returns:
        Folder → subject file of this run, of each suite that has one.

    Raises:
        BadInput: the first one.
    """
    return {
        suite.folder: _subject(config, suite, root=find_root(suite.folder)).path
        for suite in map(load_suite, sorted(filter(_is_suite, folders)))
        if _has_subject(config, suite)
    }


def suite_subject(config: pytest.Config, folder: Path) -> Subject:
    """What the fixture ``subject`` gives, for a suite's conftest while tests are collected.

    Args:
        config: of the run.
        folder: of the suite; it has a subject file.

    Raises:
        BadInput: a mistake in its suite.toml, or in the subject file.
    """
    return _subject(config, load_suite(folder), root=find_root(folder))


def _is_suite(folder: Path) -> bool:
    """Whether it is one of the ``suites/`` of a tree."""
    try:
        return folder.parent == find_root(folder) / "suites" and (folder / "suite.toml").is_file()
    except Unavailable:
        return False


def _has_subject(config: pytest.Config, suite: Suite) -> bool:
    """Whether this run has a subject file for it: its own, or one given where its own is a library."""
    given = config.getoption("--subject") or ""
    return suite.subject is not None or (suite.reads_subject_files and given.endswith(".toml"))


def _subject(config: pytest.Config, suite: Suite, *, root: Path) -> Subject:
    read = config.stash.setdefault(_SUBJECTS, {})
    if suite.name not in read:
        given = config.getoption("--subject")
        subject = subject_of(suite, Path(given) if given else None, root=root)
        tried = config.getoption("--try-capability")
        read[suite.name] = pretending(subject, suite, tried)
    return read[suite.name]


def _subject_fixtures(suite: Suite, *, root: Path) -> tuple[_Fixture, _Fixture]:
    """Of a suite with a subject file."""

    def subject(pytestconfig: pytest.Config) -> Subject:
        """What is tested: the reference system, or the file given with ``--subject``."""
        return _subject(pytestconfig, suite, root=root)

    def capable(request: pytest.FixtureRequest, subject: Subject) -> None:
        """Skip, by name, what the subject does not claim to do, and knobs that it does not have."""
        file = subject.path.name
        test = f"{request.node.path.relative_to(suite.folder).as_posix()}::{request.node.name}"
        needed = [
            name for marker in request.node.iter_markers("capability") for name in marker.args
        ]
        needed += [each.name for each in suite.capabilities if each.is_needed_by(test)]
        for name in needed:
            if name not in subject.capabilities:
                not_run("subject", f"{subject.name} lists no capability {name!r} in {file}")
        for marker in request.node.iter_markers("knob"):
            for name in marker.args:
                if name not in subject.table("knobs"):
                    not_run("subject", f"{subject.name} has no knob {name!r} in {file}")

    return subject, capable


def _environment_fixture(suite: Suite, *, root: Path) -> _Fixture:
    """Of a suite that boots something."""

    def environment(
        pytestconfig: pytest.Config,
        harness_loop: Loop,
        harness_run: Run,
        run_evidence: Evidence,
        progress: Callable[[str], None],
    ) -> Iterator[Any]:
        """What the suite boots, as the command line asks for it; each worker has its own."""
        option = pytestconfig.getoption
        subject = _subject(pytestconfig, suite, root=root) if suite.subject else None
        cassette = option("--llm-cassette")
        options = Options(
            services=option("--services"),
            llm=option("--llm"),
            llm_upstream=option("--llm-upstream"),
            llm_cassette=Path(cassette).absolute() if cassette else None,
            # A hard limit of the run: no worker may spend what another has.
            budget_usd=llm_budget_usd(pytestconfig, suite.folder) / _workers(pytestconfig),
        )
        progress(f"booting {subject.name if subject else suite.name}")
        opening = opener_of(suite, root=root)(
            harness_run, subject, options=options, evidence=run_evidence, say=progress
        )
        # `harness ps` shows it, while it boots too.
        seen = open_host(harness_run, title=suite.name, root=root)
        with harness_loop.hold(seen) as host, harness_loop.hold(opening) as opened:
            host.environment = opened
            yield opened

    return environment


def _gateway(environment: Any) -> Any:
    """The model gateway of what the suite boots: its address, its key, ``gateway.client``."""
    return environment.gateway


def _register(
    node: pytest.Collector, name: str, function: _Fixture, *, scope: Any = "function", **how: Any
) -> None:
    pytest.register_fixture(name=name, func=function, node=node, scope=scope, **how)


def _workers(config: pytest.Config) -> int:
    # Not from the environment, which a pytest inherits that a test starts.
    count: int = getattr(config, "workerinput", {}).get("workercount", 1)
    return count
