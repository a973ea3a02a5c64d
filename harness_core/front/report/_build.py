"""A report of one or more runs, from their evidence; nothing is drawn here."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from harness_core.base.evidence import (
    STORY,
    Frame,
    Link,
    Message,
    Moment,
    Plot,
    Sides,
    Told,
    read_story,
)
from harness_core.front.causes import Failure, causes_of, without_kind
from harness_core.front.outcomes import Cost, Word
from harness_core.front.report._files import Room, archive_of, files_of, flames_of, paths_of
from harness_core.front.report._ledgers import requirements_of
from harness_core.front.report._said import expected_and_found
from harness_core.front.report._schema import Cause, Detail, Report, Requirement, Test
from harness_core.front.report._sessions import Gathered, One, gather
from harness_core.front.report._timeline import Timelines

#: What weighs most against a test stands first.
_FIRST: Final = [Word.FAILED, Word.HARNESS, Word.KNOWN, Word.NOT_RUN, Word.PASSED]

_MIB: Final = 1_048_576


def build_report(places: Sequence[Path], *, root: Path) -> Report:
    """Read the evidence of some runs.

    Args:
        places: folders of evidence, trees that have one, or single reports.
        root: of the tree, in which ledgers are.

    Raises:
        BadInput: there is no report in a place, or a file is malformed.
    """
    gathered = gather(places, root=root)
    costs = {**_costs_of_ledgers(gathered), **gathered.costs}
    words = {test: one.ended.word for test, one in gathered.tests.items()}
    folders = {one.place for one in gathered.tests.values()}
    requirements = requirements_of(words, places=folders, root=root)
    covered = _covered(requirements)
    order = sorted(gathered.tests, key=lambda test: _FIRST.index(gathered.tests[test].ended.word))
    tests = [_test(gathered, test, costs.get(test), covered.get(test, ())) for test in order]
    return Report(
        harness=_version(),
        made_at=time.time(),
        title=", ".join(dict.fromkeys(session.name for session in gathered.sessions)),
        places=tuple(map(str, places)),
        sessions=tuple(gathered.sessions),
        tests=tuple(tests),
        causes=tuple(_causes(gathered)),
        requirements=tuple(requirements),
        plots=tuple(_bench_plots(folders)),
        details=_details(gathered, order),
    )


def _version() -> str:
    try:
        return version("staging-harness")
    except PackageNotFoundError:
        return ""


def _test(gathered: Gathered, test: str, cost: Cost | None, covered: Iterable[str]) -> Test:
    one = gathered.tests[test]
    lines = [line.strip() for line in without_kind(one.ended.said).splitlines() if line.strip()]
    words = [line for line in lines if " " in line]
    return Test(
        id=test,
        suite=_suite(test),
        session=one.session.name,
        word=one.ended.word,
        why=(words or lines or [""])[0][:1000],
        at=one.ended.at,
        seconds=one.ended.seconds,
        worker=one.ended.worker,
        machine=one.session.machine,
        evidence=one.ended.evidence,
        place=str(one.place),
        cost=cost,
        requirements=tuple(covered),
        earlier=gathered.earlier.get(test, ""),
    )


def _suite(test: str) -> str:
    parts = test.partition("::")[0].split("/")
    return parts[1] if parts[0] == "suites" and len(parts) > 1 else "core"


def _covered(requirements: Iterable[Requirement]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in requirements:
        for test in row.tests:
            found[test].append(row.id)
    return found


def _causes(gathered: Gathered) -> list[Cause]:
    """Of the product first: why a run is red."""
    found: list[Cause] = []
    for word in (Word.FAILED, Word.HARNESS):
        failures = [
            Failure(
                test=test,
                sentence=(without_kind(one.ended.said).splitlines() or ["it says nothing"])[0],
                deaths=one.ended.deaths,
                log_error=one.ended.log_error,
            )
            for test, one in gathered.tests.items()
            if one.ended.word is word
        ]
        found += [
            Cause(word=word, sentence=each.sentence, tests=tuple(each.tests), told=tuple(each.told))
            for each in causes_of(failures)
        ]
    return found


def _costs_of_ledgers(gathered: Gathered) -> dict[str, Cost]:
    """What model calls cost by the ledgers of gateways: of a run that did not come to its end."""
    found: dict[str, Cost] = {}
    for place in {one.place for one in gathered.tests.values()}:
        for path in place.glob("_run*/ledger.jsonl"):
            for line in path.read_bytes().splitlines():
                try:
                    row = json.loads(line)
                    test, usd = row["test"], row["usd"] or 0.0
                    tokens = row["input_tokens"], row["output_tokens"]
                except (ValueError, KeyError, TypeError):
                    continue
                known = found.get(test, Cost())
                found[test] = Cost(
                    calls=known.calls + 1,
                    input_tokens=known.input_tokens + tokens[0],
                    output_tokens=known.output_tokens + tokens[1],
                    usd=known.usd + usd,
                )
    return found


def _details(gathered: Gathered, order: Iterable[str]) -> dict[str, Detail]:
    """Of every test that left more than its line, those that weigh most first: room is for them."""
    timelines = Timelines()
    shown = Room(each_bytes=4 * _MIB, all_bytes=32 * _MIB)
    kept = Room(each_bytes=8 * _MIB, all_bytes=48 * _MIB)
    found: dict[str, Detail] = {}
    for test in order:
        detail = _detail(gathered.tests[test], timelines, shown=shown, kept=kept)
        if not detail.empty:
            found[test] = detail
    return found


def _detail(one: One, timelines: Timelines, *, shown: Room, kept: Room) -> Detail:
    ended, bad = one.ended, one.ended.word in {Word.FAILED, Word.HARNESS, Word.KNOWN}
    if not ended.evidence and not bad and not ended.at:
        return Detail()
    folder = one.place / ended.evidence if ended.evidence else None
    paths = paths_of(folder, since=ended.at - 1) if folder is not None and folder.is_dir() else []
    told = _told(folder, paths) if folder is not None else []
    messages = tuple(row for row in told if isinstance(row, Message))
    drawn = timelines.of(
        place=one.place,
        evidence=ended.evidence,
        worker=ended.worker,
        at=ended.at,
        seconds=ended.seconds,
        moments=[row for row in told if isinstance(row, Moment)],
        messages=messages,
    )
    expected, found = expected_and_found(ended.said) if bad else ("", "")
    return Detail(
        said=ended.said,
        expected=expected,
        found=found,
        text=ended.text,
        deaths=ended.deaths,
        rerun=(ended.rerun or f"nox -s {one.session.name} -- {ended.test}") if bad else "",
        lanes=tuple(drawn.lanes) if drawn.events else (),
        sources=tuple(drawn.sources),
        events=tuple(drawn.events),
        dropped=drawn.dropped,
        messages=messages,
        links=tuple(row for row in told if isinstance(row, Link)),
        frames=tuple(row for row in told if isinstance(row, Frame)),
        sides=tuple(row for row in told if isinstance(row, Sides)),
        plots=tuple(row for row in told if isinstance(row, Plot)),
        flames=flames_of(folder, paths, room=shown) if folder is not None else {},
        files=tuple(files_of(folder, paths, room=shown)) if folder is not None else (),
        archive=archive_of(folder, paths, room=kept) if folder is not None and bad else "",
    )


def _told(folder: Path, paths: Iterable[Path]) -> list[Told]:
    return read_story((folder / STORY).read_bytes()) if folder / STORY in paths else []


def _bench_plots(places: Iterable[Path]) -> list[Plot]:
    """Curves of benchmarks: rows of the same kind as a test's own, in ``bench/*.jsonl``."""
    rows = [
        row
        for place in places
        for path in sorted(place.glob("bench/**/*.jsonl"))
        for row in read_story(path.read_bytes())
    ]
    return [row for row in rows if isinstance(row, Plot)]


def words_of(tests: Iterable[Test]) -> Mapping[Word, int]:
    """Word → how many tests ended so, what weighs most first."""
    counts = dict.fromkeys(_FIRST, 0)
    for test in tests:
        counts[test.word] += 1
    return counts
