"""A service under schemathesis: what its live document allows and what it forbids, in bounds of time and memory.

The program is a process of its own: what it needs does not touch the tests, and it ends with them. Its report,
with each exchange, lies in the evidence.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.process import Run

__all__ = ["Fuzzed", "fuzz"]

#: What is asked of each answer. Whether malformed requests are refused is INT-028's to say.
_CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)

#: Of its own memory, bytes.
_MEMORY: Final = 4 * 1024**3

_BOUNDED: Final = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
from schemathesis.cli import schemathesis
sys.exit(schemathesis())
"""

#: How often a text of the requests is one that the service knows.
_KNOWN_SHARE: Final = 0.6

#: Statuses of the program: it found nothing, and it found something.
_ENDED: Final = (0, 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    """What came of it.

    Attributes:
        service: its name.
        cases: requests that were generated.
        operations: how many operations were reached.
        found: each failure in a sentence, then the commands that show them again.
        largest_bytes: size of the largest answer's body.
        answered: operation and status → how often.
        report: the folder that holds all of it.
    """

    service: str
    cases: int
    operations: int
    found: tuple[str, ...]
    largest_bytes: int
    answered: Mapping[str, int]
    report: Path


async def fuzz(
    run: Run,
    *,
    service: str,
    url: str,
    headers: Mapping[str, str],
    words: Sequence[str],
    seed: int,
    seconds: float,
    answer_s: float,
    evidence: Evidence,
) -> Fuzzed:
    """Send a service what its document says, and what it does not, until the time is up.

    Args:
        run: the run that the program belongs to.
        service: its name, for files.
        url: its base URL; the document is at ``/openapi.json``.
        headers: sent with every request.
        words: texts that mean something to it: ids, paths.
        seed: of the requests.
        seconds: the whole time.
        answer_s: how long one answer may take.
        evidence: where the report goes.

    Raises:
        HarnessError: it could not be done; that says nothing of the service.
    """
    folder = evidence.child(service)
    known = _configuration(words)
    folder.write_text("schemathesis.toml", known)  # lint: allow local-write: for the program
    options = {
        "--checks": ",".join(_CHECKS),
        "--max-time": f"{max(1, round(seconds))}",
        "--seed": str(seed),
        "--request-timeout": f"{answer_s:g}",
        "--report": "json,har",
        "--report-dir": str(folder.path),
        "--report-json-path": str(folder.path / "report.json"),
        "--report-har-path": str(folder.path / "exchanges.har"),
        "--generation-database": "none",
        "--suppress-health-check": "all",
    }
    argv = [
        *(sys.executable, "-c", _BOUNDED, "--config-file", str(folder.path / "schemathesis.toml")),
        *("--no-color", "run", f"{url}/openapi.json", "--continue-on-failure", "--no-shrink"),
        *(word for pair in options.items() for word in pair),
        *(word for name, value in headers.items() for word in ("--header", f"{name}: {value}")),
    ]
    # Its width is that of the terminal it believes to have; sentences are not to be cut.
    environment = {**os.environ, "COLUMNS": "250"}
    # It keeps what it found in the folder that it is in.
    async with run.child(
        argv, name=f"fuzz-{service}", env=environment, cwd=folder.path, evidence=folder
    ) as child:
        status = await child.wait()
    report = _report(folder.path, status, child.tail)
    text = (folder.path / f"fuzz-{service}.log").read_text(encoding="utf-8")
    exchanges = json.loads((folder.path / "exchanges.har").read_text(encoding="utf-8"))
    entries = exchanges["log"]["entries"]
    return Fuzzed(
        service=service,
        cases=report["test_cases"]["generated"],
        operations=report["operations"]["tested"],
        found=tuple(_found(report, text)),
        largest_bytes=max(entry["response"]["bodySize"] for entry in entries),
        answered=_counted(entries),
        report=folder.path,
    )


def _configuration(words: Sequence[str]) -> str:
    known = ", ".join(json.dumps(word) for word in words)
    return (
        f"[dictionaries.known]\nvalues = [{known}]\n\n"
        f'[generation.dictionaries]\nstring = {{ dictionary = "known", probability = {_KNOWN_SHARE} }}\n'
    )


def _report(folder: Path, status: int, tail: Sequence[str]) -> dict[str, Any]:
    """What the program reports of itself, whole."""
    try:
        report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        report = {"complete": False, "why": str(error)}
    if status not in _ENDED or not report.get("complete"):
        raise HarnessError(
            "fuzz a service",
            observed=f"schemathesis ended with {status}: {' '.join(tail[-5:])}",
            evidence=folder,
            next_step="Look at its log; a service that died is told by its own log",
        )
    return report


def _found(report: Mapping[str, Any], text: str) -> list[str]:
    # The report names operations, its text the requests, in another order.
    commands = dict.fromkeys(re.findall(r"^\s*(curl -X .*)$", text, re.MULTILINE))
    return [
        *(f"{each['title']} at {', '.join(each['operations'])}" for each in report["failures"]),
        *(f"no answer: {json.dumps(each)[:400]}" for each in report["errors"]),
        *(f"to be seen again by {command}" for command in commands),
    ]


def _counted(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for entry in entries:
        path = entry["request"]["url"].partition("?")[0].split("/", 3)[-1]
        key = f"{entry['request']['method']} /{path.split('/')[0]} {entry['response']['status']}"
        counted[key] = counted.get(key, 0) + 1
    return counted
