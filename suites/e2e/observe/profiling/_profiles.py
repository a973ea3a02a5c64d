"""py-spy attached to running processes for the length of a block.

It only reads their memory (``--nonblocking``): nothing is stopped, injected or slowed, at the price
of a sample now and then that does not fit together and is dropped. A process may end or be killed
meanwhile; what was seen of it until then is kept. One that only waits has no samples: py-spy writes
files all the same, which are removed here.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_core.base.errors import Unavailable
from harness_core.base.evidence import Evidence
from suites.e2e.observe.profiling._frames import read_frames
from suites.e2e.observe.profiling._profiler import cannot_profile, find_py_spy

if TYPE_CHECKING:
    from harness_core.process import Child, Run

__all__ = ["Profiles", "open_profiles"]

#: py-spy writes one format at a time, so each process is watched twice.
_FORMATS: Final[Mapping[str, str]] = {"flamegraph": "svg", "speedscope": "speedscope.json"}

#: Samples per second: a butler's work takes seconds, and 12 watchers share a machine with it.
_RATE_HZ: Final = 50

#: Writing a long profile out. Slowest seen on a loaded machine: 3 s.
_WRITE_S: Final = 60.0


@dataclass(slots=True)
class Profiles:
    """Profiles being taken; complete when the block has ended.

    Attributes:
        folder: where they are written.
        files: per process, its flame graph and its speedscope file; none without samples.
        problems: why a process lacks one or both.
    """

    folder: Path
    files: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def open_profiles(
    run: Run, pids: Mapping[str, int], *, evidence: Evidence, rate_hz: int = _RATE_HZ
) -> AsyncIterator[Profiles]:
    """Profile processes during the block.

    Args:
        run: the run that the profilers belong to.
        pids: name → process id.
        evidence: gets ``<name>.svg`` (flame graph) and ``<name>.speedscope.json``.
        rate_hz: samples per second.

    Raises:
        Unavailable: processes cannot be profiled here; says why.
    """
    reason, py_spy = cannot_profile(), find_py_spy()
    if reason or py_spy is None:
        action = f"profile {', '.join(pids)}"
        raise Unavailable(action, observed=reason, next_step="harness doctor says what can run")
    profiles = Profiles(folder=evidence.path)
    watchers: dict[str, list[Child]] = {name: [] for name in pids}
    try:
        async with AsyncExitStack() as stack:
            for name, pid in pids.items():
                for form, suffix in _FORMATS.items():
                    opened = run.child(
                        [
                            *(py_spy, "record", "--nonblocking", "--pid", str(pid)),
                            *("--rate", str(rate_hz), "--format", form),
                            *(
                                "--full-filenames",
                                "--output",
                                str(evidence.path / f"{name}.{suffix}"),
                            ),
                        ],
                        name=f"profile-{name}-{form}",
                        evidence=evidence,
                        stop_signal=signal.SIGINT,  # to py-spy: enough, write it out
                        grace_s=_WRITE_S,
                    )
                    watchers[name].append(await stack.enter_async_context(opened))
            yield profiles
    finally:
        for name, children in watchers.items():
            paths = [evidence.path / f"{name}.{suffix}" for suffix in _FORMATS.values()]
            written = [path for path in paths if path.is_file()]
            profiles.files[name] = tuple(path for path in written if _has_samples(path))
            empty = set(written) - set(profiles.files[name])
            for path in empty:
                path.unlink()
            if empty:
                profiles.problems[name] = "no samples: it ran nothing while it was watched"
            elif len(written) < len(_FORMATS):
                lines = [line for child in children for line in child.tail() if line.strip()]
                profiles.problems[name] = lines[-1] if lines else "py-spy wrote nothing"


def _has_samples(path: Path) -> bool:
    """Whether a file of py-spy names a function: each frame of a flame graph has a title."""
    if path.suffix == ".svg":
        return "<title>" in path.read_text(encoding="utf-8", errors="replace")
    return bool(read_frames(path))
