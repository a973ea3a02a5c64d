"""A suite on several products, one after the other, each with a report folder of its own."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness_core.assurance.requirements import covering_tests, load_ledger, suite_sources
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.front.hooks._end import HARNESS_ERROR_EXIT
from harness_core.front.runs._cells import Cell, Shows, cells_of
from harness_core.front.runs._run import Ended, read_run
from harness_core.process import open_run
from harness_core.system.subject import load_subject
from harness_core.system.suites import Suite, SuiteSession

#: How pytest ends where it has judged: passed, failed, nothing chosen, only the harness went wrong.
_JUDGED: Final = frozenset({0, 1, 5, HARNESS_ERROR_EXIT})

#: By these, lines of its output say why it has not.
_SAYS: Final = ("ERROR: ", "cannot ")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product of a survey.

    Attributes:
        name: what its column is called.
        subject: its subject file.
        folder: where its reports and evidence lie.
        cells: contract → what is shown of it.
        seconds: how long its sessions took.
        account: what they came to, in words.
    """

    name: str
    subject: Path
    folder: Path
    cells: Mapping[str, Cell] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    account: str = ""


def products_of(suite: Suite, subjects: Sequence[Path], *, root: Path) -> tuple[Product, ...]:
    """The products that subject files describe, not yet surveyed.

    Args:
        suite: whose contracts they are to keep.
        subjects: the files.
        root: of the tree, in whose ``.evidence/survey`` their folders are.

    Raises:
        BadInput: a file is malformed, or named twice.
    """
    found: list[Product] = []
    for path in subjects:
        if path.resolve() in {each.subject for each in found}:
            raise BadInput("harness survey", key="--subject", found=str(path), expected="it once")
        name = load_subject(path).name
        slug, number = path.stem, 2
        home = root / ".evidence" / "survey" / suite.name
        while home / slug in {each.folder for each in found}:
            slug, number = f"{path.stem}-{number}", number + 1
        if name in {each.name for each in found}:
            name = f"{name} ({slug})"
        found.append(Product(name=name, subject=path.resolve(), folder=home / slug))
    return tuple(found)


async def survey(
    suite: Suite,
    products: Sequence[Product],
    *,
    root: Path,
    sessions: Sequence[SuiteSession],
    words: Sequence[str] = (),
    say: Callable[[str], None] = lambda _line: None,
) -> tuple[Product, ...]:
    """Run sessions of a suite on each product.

    Args:
        suite: one with a ledger.
        products: of :func:`products_of`.
        root: where pytest starts.
        sessions: which.
        words: what pytest is given besides.
        say: called with a line of progress.
    """
    assert suite.ledger is not None, "contracts stand in a ledger"
    ledger = load_ledger(suite.ledger)
    tests = covering_tests(suite_sources(suite, root=root))
    prefix = suite.folder.relative_to(root).as_posix()
    surveyed: list[Product] = []
    for number, product in enumerate(products, start=1):
        say(f"{suite.name}: [{number}/{len(products)}] {product.name}")
        evidence = open_evidence(product.folder, wipe=True)
        ended: dict[str, Ended] = {}
        seconds, unjudged, accounts = 0.0, "", []
        for session in sessions:
            argv = _pytest(suite, session, product, words=words)
            status, log = await _ran(argv, session.name, root=root, evidence=evidence)
            if status in _JUDGED:
                found = read_run(_report(product, session), root=root)
                ended |= found.tests
                seconds += found.seconds
                accounts.append(f"{session.name}: {found.account()}")
            else:
                unjudged = unjudged or _why(log, status)
                accounts.append(f"{session.name}: {Shows.HARNESS}: {_why(log, status)}")
            say(f"  {accounts[-1]}")
        cells = cells_of(ledger, tests, ended, prefix=prefix)
        if unjudged:
            cells |= {
                each: Cell(shows=Shows.HARNESS, why=unjudged)
                for each, cell in cells.items()
                if cell.shows is Shows.NOT_RUN
            }
        told = "; ".join(accounts)
        surveyed.append(dataclasses.replace(product, cells=cells, seconds=seconds, account=told))
    return tuple(surveyed)


async def _ran(
    argv: Sequence[str], session: str, *, root: Path, evidence: Evidence
) -> tuple[int, Path]:
    """Run one pytest to its end; its status and its output."""
    env = os.environ | {"HARNESS_SESSION": session}
    async with (
        open_run(evidence=evidence) as run,
        run.child(argv, name=f"pytest-{session}", env=env, cwd=root) as child,
    ):
        return await child.wait(), child.log


def _pytest(
    suite: Suite, session: SuiteSession, product: Product, *, words: Sequence[str]
) -> list[str]:
    """The command line of a session; tests that prove no contract are left out."""
    proving = "(covers or not aside)"
    return [
        *(sys.executable, "-m", "pytest", *(str(suite.folder / path) for path in session.paths)),
        *("-m", f"({session.markers}) and {proving}" if session.markers else proving),
        *(f"--subject={product.subject}", f"--junitxml={_report(product, session)}"),
        *(f"--evidence={product.folder}", "--tb=short", *session.options, *words),
    ]


def _report(product: Product, session: SuiteSession) -> Path:
    return product.folder / "reports" / f"{session.name}.xml"


def _why(log: Path, status: int) -> str:
    """Why a pytest has not judged, from its output."""
    lines = log.read_text(encoding="utf-8").splitlines()
    said = [line.strip() for line in lines if line.startswith(_SAYS)] or lines[-1:]
    return said[0].removeprefix(_SAYS[0]) if said else f"pytest ended with {status}"
