"""The rows of ``reports/SESSION.jsonl``: one when a session begins, two of each test, one at the end."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

#: Of the rows; a reader refuses a later one.
SCHEMA: Final = 1


class Word(StrEnum):
    """How a test ended; what weighs most against it is last."""

    PASSED = "passed"
    NOT_RUN = "not run"
    KNOWN = "known"
    HARNESS = "harness could not run"
    FAILED = "failed"


class Began(msgspec.Struct, frozen=True, kw_only=True, tag_field="row", tag="began"):
    """A session begins.

    Attributes:
        schema: of the rows that follow.
        session: its name, as that of the file.
        at: seconds since 1970, as all times here.
        machine: its name.
        pid: of the process that writes.
        arguments: of the command line.
    """

    schema: int = SCHEMA
    session: str
    at: float
    machine: str = ""
    pid: int = 0
    arguments: tuple[str, ...] = ()


class Started(msgspec.Struct, frozen=True, kw_only=True, tag_field="row", tag="started"):
    """A test is under way."""

    test: str
    at: float


class Ended(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="row", tag="ended"
):
    """A test is over.

    Attributes:
        test: its id.
        word: how it ended.
        at: when it began.
        seconds: how long it took, setup and teardown included.
        worker: of xdist, e.g. ``gw0``; empty without.
        evidence: its folder, relative to the one that ``reports`` lies in; empty where it left none.
        said: what a failure says, or the reason for which it was not run.
        text: the whole report of pytest on a failure.
        rerun: the command that runs it again.
        deaths: processes that ended by themselves meanwhile.
        log_error: the last error in the product's log of that time.
    """

    test: str
    word: Word
    at: float
    seconds: float = 0.0
    worker: str = ""
    evidence: str = ""
    said: str = ""
    text: str = ""
    rerun: str = ""
    deaths: tuple[str, ...] = ()
    log_error: str = ""


class Cost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What model calls cost, at list prices.

    Attributes:
        calls: how many.
        input_tokens: of all of them.
        output_tokens: likewise.
        usd: likewise.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


class Spent(msgspec.Struct, frozen=True, kw_only=True, tag_field="row", tag="spent"):
    """What the model calls of each test cost, known at the end."""

    by_test: dict[str, Cost]


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag_field="row", tag="finished"):
    """The session has ended by itself, with this exit status."""

    at: float
    status: int


Row = Began | Started | Ended | Spent | Finished

_DECODER: Final = msgspec.json.Decoder(Row)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, as far as they are whole: of a run that was killed the last may be cut."""
    for line in path.read_bytes().splitlines():
        try:
            yield _DECODER.decode(line)
        except msgspec.DecodeError:
            continue
