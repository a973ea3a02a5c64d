"""What can go wrong in the harness itself, as opposed to in the product under test.

Three outcomes are never mixed: the product failed (``AssertionError``), the harness could not
run (:class:`HarnessError` and its children), not run (a skip with a reason). A ``HarnessError``
renders as ``cannot VERB OBJECT: OBSERVED. NEXT STEP`` followed by whatever evidence it carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class HarnessError(Exception):
    """The harness could not do its work; says nothing about the product.

    Args:
        action: verb and object without a subject, e.g. ``"start postgres"``.
        observed: what was seen instead.
        next_step: what the reader should do now; a full sentence without the final stop.
        tail: last lines of output of the process concerned, oldest first.
        log: the full log, when there is one.
    """

    def __init__(
        self,
        action: str,
        *,
        observed: str,
        next_step: str = "",
        tail: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        super().__init__(action, observed)
        self.action = action
        self.observed = observed
        self.next_step = next_step
        self.tail = tuple(tail)
        self.log = log

    def __str__(self) -> str:
        sentence = f"cannot {self.action}: {self.observed.rstrip('.')}."
        if self.next_step:
            sentence += f" {self.next_step.rstrip('.')}" + (
                "" if self.next_step.endswith("?") else "."
            )
        lines = [sentence]
        if self.tail:
            lines.append(f"last {len(self.tail)} lines of output:")
            lines.extend(f"  | {line}" for line in self.tail)
        if self.log is not None:
            lines.append(f"full log: {self.log}")
        return "\n".join(lines)


class BadInput(HarnessError):  # noqa: N818 - names what was wrong, as the message does
    """A file, row or argument given to the harness is malformed.

    Args:
        where: file, ``file:line``, row id or option that holds the mistake.
        key: the key or field inside it, empty when the whole is unreadable.
        found: the offending value as written (shortened by the caller when it is long); ``None``
            for a key that is not there.
        expected: what would have been accepted.
    """

    def __init__(
        self, where: str | Path, *, key: str = "", found: object, expected: str, next_step: str = ""
    ) -> None:
        at = f"{where}: {key}" if key else str(where)
        shown = "nothing" if found is None else repr(found)
        super().__init__(
            f"read {at}", observed=f"found {shown}, expected {expected}", next_step=next_step
        )
        self.where = str(where)
        self.key = key
        self.found = found
        self.expected = expected


class Unavailable(HarnessError):  # noqa: N818
    """Something the harness needs is not on this machine (a binary, an engine, a URL)."""


class NotReady(HarnessError):  # noqa: N818
    """A wait ran out of time.

    Args:
        stage: the first readiness stage that failed, e.g. ``"port"``.
        waited_s: seconds that passed.
    """

    def __init__(  # noqa: PLR0913 - every field is read by a test or a report
        self,
        action: str,
        *,
        observed: str,
        stage: str = "",
        waited_s: float = 0.0,
        next_step: str = "",
        tail: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        super().__init__(action, observed=observed, next_step=next_step, tail=tail, log=log)
        self.stage = stage
        self.waited_s = waited_s


class ChildExited(HarnessError):  # noqa: N818
    """A supervised child ended while it was needed.

    Args:
        name: the child's name.
        returncode: exit status; negative for the signal that ended it.
    """

    def __init__(  # noqa: PLR0913
        self,
        action: str,
        *,
        name: str,
        returncode: int,
        observed: str = "",
        next_step: str = "",
        tail: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        how = f"killed by signal {-returncode}" if returncode < 0 else f"exited with {returncode}"
        super().__init__(
            action,
            observed=observed or f"{name} {how}",
            next_step=next_step,
            tail=tail,
            log=log,
        )
        self.name = name
        self.returncode = returncode


class PortTaken(HarnessError):  # noqa: N818
    """The port a subject insists on is held by another process.

    Args:
        port: the TCP port.
        owner: what is known of the holder: ``"pid 4711 (nginx)"``, or ``"unknown process"``.
    """

    def __init__(self, port: int, *, owner: str, next_step: str = "") -> None:
        super().__init__(
            f"use port {port} on 127.0.0.1",
            observed=f"it is held by {owner}",
            next_step=next_step or "Stop that process, or free the port, and run again",
        )
        self.port = port
        self.owner = owner


class BudgetExceeded(HarnessError):  # noqa: N818
    """The run would spend more on model calls than it may.

    Args:
        budget_usd: the limit of the run.
        spent_usd: settled cost so far.
        reserved_usd: what calls in flight may still cost.
    """

    def __init__(self, *, budget_usd: float, spent_usd: float, reserved_usd: float) -> None:
        super().__init__(
            "call the model",
            observed=(
                f"the run has spent {spent_usd:.4f} USD, holds {reserved_usd:.4f} USD for calls in "
                f"flight and may spend {budget_usd:.4f} USD"
            ),
            next_step="Raise the limit with --llm-budget-usd, or run fewer scenarios",
        )
        self.budget_usd = budget_usd
        self.spent_usd = spent_usd
        self.reserved_usd = reserved_usd
