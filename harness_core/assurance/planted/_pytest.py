"""One supervised pytest that runs exactly the named tests and records what became of each.

What plants a fault and what runs a mutant differ in the environment that pytest is given, and in
what its outcomes prove; the run itself is this one.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from harness_core.assurance.planted._outcomes import Outcomes, read_outcomes
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.process import Run

#: After SIGINT, which lets pytest take its fixtures down; a stack of servers needs seconds.
_TEAR_DOWN_S: Final = 20.0

_PLUGIN: Final = "harness_core.assurance.planted._outcomes_plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestRuns:
    """Starts pytest for the tests of one tree.

    Attributes:
        run: supervises every pytest and what it starts.
        root: where pytest starts.
    """

    run: Run
    root: Path

    async def selected(
        self,
        wanted: Sequence[str],
        *,
        env: Mapping[str, str],
        limit_s: float,
        evidence: Evidence,
        options: Sequence[str] = (),
    ) -> tuple[Outcomes, bool]:
        """Run the wanted tests.

        Args:
            wanted: ids of tests, relative to the root.
            env: the whole environment of pytest.
            limit_s: seconds after which the run is ended, on a calm machine.
            evidence: where its output and its outcomes are kept.
            options: what pytest is given besides.

        Returns:
            What became of the tests, and whether time ran out.
        """
        # Not through the evidence writer: redaction could change an id.
        select = evidence.path / "select.json"
        select.write_text(json.dumps(list(wanted)), encoding="utf-8")
        files = sorted({name.partition("::")[0] for name in wanted})
        words = [*files, f"--harness-select={select}", *options]
        return await self.collected(words, env=env, limit_s=limit_s, evidence=evidence)

    async def collected(
        self, words: Sequence[str], *, env: Mapping[str, str], limit_s: float, evidence: Evidence
    ) -> tuple[Outcomes, bool]:
        """Run what pytest collects when it is given these words; else as :meth:`selected`."""
        record = evidence.path / "outcomes.jsonl"
        argv = [
            *(sys.executable, "-m", "pytest", *words),
            *("-p", _PLUGIN, "-p", "no:cacheprovider", f"--harness-outcomes={record}"),
            *(f"--rootdir={self.root}", f"--evidence={evidence.path}"),
            *("--continue-on-collection-errors", "--tb=short", "-q"),
            # The verdict reads what an assertion says, and must not depend on where pytest cuts it.
            *("-o", "truncation_limit_lines=0", "-o", "truncation_limit_chars=0"),
        ]
        async with self.run.child(
            argv,
            name="pytest",
            env=env,
            cwd=self.root,
            evidence=evidence,
            stop_signal=signal.SIGINT,
            grace_s=_TEAR_DOWN_S,
        ) as child:
            with trio.move_on_after(patience(limit_s)) as scope:
                await child.wait()
        return read_outcomes(record), scope.cancelled_caught
