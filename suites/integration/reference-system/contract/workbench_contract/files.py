"""The worker's file, git and lint operations."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from workbench_contract.base import Model, Text

PATH_CHARS = 1_000
CONTENT_CHARS = 2_000_000
#: The largest image or video that is looked at.
VIEWED_BYTES = 1_000_000

_PATH = Field(min_length=1, max_length=PATH_CHARS, description="relative to the session's root")


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"


class Entry(Model):
    path: str
    kind: EntryKind
    size_bytes: int


class ListRequest(Model):
    path: str = Field(default=".", min_length=1, max_length=PATH_CHARS)
    recursive: bool = False


class Listing(Model):
    """What is in a folder.

    Attributes:
        truncated: there is more than one answer holds.
    """

    entries: list[Entry]
    truncated: bool


class ReadRequest(Model):
    path: str = _PATH


class FileContent(Model):
    path: str
    content: str
    size_bytes: int
    sha256: str


class ViewRequest(Model):
    path: str = _PATH


class Viewed(Model):
    """An image or a video.

    Attributes:
        media_type: by its first bytes, whatever its name says.
        content: its bytes, in base64.
    """

    path: str
    media_type: str
    size_bytes: int
    sha256: str
    content: str


class WriteRequest(Model):
    path: str = _PATH
    content: str = Field(max_length=CONTENT_CHARS)


class FileWritten(Model):
    path: str
    size_bytes: int
    sha256: str


class EditRequest(Model):
    """Replace a text that occurs exactly once."""

    path: str = _PATH
    old: str = Field(min_length=1, max_length=CONTENT_CHARS)
    new: str = Field(max_length=CONTENT_CHARS)


class GrepRequest(Model):
    """Lines that a regular expression matches."""

    pattern: Text = Field(min_length=1, max_length=500)
    path: str = Field(default=".", min_length=1, max_length=PATH_CHARS)


class GrepMatch(Model):
    path: str
    line: int
    text: str


class GrepMatches(Model):
    matches: list[GrepMatch]
    truncated: bool


class DeleteRequest(Model):
    """Remove a file, or a directory with all that is in it."""

    path: str = _PATH


class Deleted(Model):
    path: str


class GitInitRequest(Model):
    pass


class GitInitialised(Model):
    branch: str


class GitCommitRequest(Model):
    message: Text = Field(min_length=1, max_length=2_000)


class GitCommitted(Model):
    commit: str


class LintRequest(Model):
    path: str = _PATH


class LintFinding(Model):
    code: str
    message: str
    line: int


class LintReport(Model):
    """What a linter finds in a file.

    Attributes:
        truncated: there are more findings than one answer holds.
    """

    path: str
    passed: bool
    findings: list[LintFinding]
    truncated: bool
