"""A cassette: a directory with one JSON file per question, holding the answers in their order.

```
{
  "cassette": 1,
  "request": {…},                what was asked, normalised (``_normal.py``)
  "answers": [                   one per time it was asked
    {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn", "usage": {…}},
    {"status": 400, "error": "prompt is too long"}
  ]
}
```

A file is written whole, under another name first. Its name begins with words of the question, for
people; what it answers is decided by its ``request`` alone. ``volatile.json`` beside the files may
list further values that differ from run to run: ``{"cassette": 1, "volatile": {KIND: PATTERN}}``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Redactor
from harness_core.base.reading import JSON_WORDS, Misfit, Table, convert, read_json
from harness_core.doubles.model._backend import Call
from harness_core.doubles.model._normal import Asked, key_of, named_pattern
from harness_core.doubles.model._reply import Usage
from harness_core.doubles.model._request import text_of

T = TypeVar("T")

#: Of the file format; a file of another version is refused, never guessed at.
VERSION: Final = 1

_VOLATILE: Final = "volatile.json"

#: Letters of the question in a file's name.
_SLUG_CHARS: Final = 48

#: Type of a block → the fields that it must have.
_BLOCKS: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"text": str},
    "tool_use": {"name": str, "input": dict},
}

_Status = Annotated[int, Meta(ge=400, le=499, description="400 to 499")]


class CassetteAnswer(Table, frozen=True, omit_defaults=True):
    """One recorded answer: a message, or a refusal of the request with its HTTP status."""

    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    status: _Status | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        message = self.status is None and self.error is None
        for key in ("content", "usage") if message else ("status", "error"):
            if getattr(self, key) is None:
                raise Misfit(key, expected="content and usage, or status and error", found=None)
        if not all(_is_block(block) for block in self.content or []):
            expected = "an array of content blocks: text with a text, tool_use with name and input"
            raise Misfit("content", expected=expected)


def _is_block(block: Mapping[str, Any]) -> bool:
    fields = _BLOCKS.get(block.get("type", ""), {"type": str})
    return all(isinstance(block.get(name), kind) for name, kind in fields.items())


class Question(Table, frozen=True):
    """One file: what was asked, normalised, and its answers in their order."""

    cassette: int
    request: dict[str, Any]
    answers: Annotated[
        list[CassetteAnswer], Meta(min_length=1, description="an array of at least one answer")
    ]

    def __post_init__(self) -> None:
        if not isinstance(self.request.get("messages"), list):
            raise Misfit("request", expected="an object with messages")


class _Volatile(Table, frozen=True):
    cassette: int
    volatile: dict[str, str]

    def __post_init__(self) -> None:
        for kind, pattern in self.volatile.items():
            if not re.fullmatch(r"[a-z]{2,20}", kind):
                raise Misfit("volatile", expected="a kind of 2 to 20 letters", found=kind)
            try:
                matches_nothing = re.compile(pattern).search("") is not None
            except re.error as error:
                raise Misfit("volatile", kind, expected=f"a regex ({error})") from error
            if matches_nothing:
                raise Misfit("volatile", kind, expected="a pattern of some letters")


def read_cassette(directory: Path) -> dict[str, tuple[str, Question]]:
    """Read every file of a cassette: key of the question → name of its file, and what is in it.

    Raises:
        BadInput: there is no such directory, nothing in it, or a file is malformed.
    """
    if not directory.is_dir():
        raise BadInput(
            directory,
            found="no such directory",
            expected="a cassette",
            next_step="Record one first: --llm record (harness gateway --mode record)",
        )
    found: dict[str, tuple[str, Question]] = {}
    for path in sorted(directory.glob("*.json")):
        if path.name == _VOLATILE:
            continue
        question = _versioned(path, Question)
        key = key_of(question.request)
        if key in found:
            same = f"the request of {found[key][0]}"
            raise BadInput(path, key="request", found=same, expected="each request once")
        found[key] = path.name, question
    if not found:
        raise BadInput(directory, found="no recorded request", expected="at least one *.json file")
    return found


def asker(directory: Path, redactor: Redactor) -> Callable[[Call], Asked]:
    """Reduces the calls that a cassette is asked, with what its ``volatile.json`` lists.

    Raises:
        BadInput: that file is malformed, or a pattern of it is no regular expression.
    """
    path = directory / _VOLATILE
    volatile = _versioned(path, _Volatile).volatile if path.is_file() else {}
    pattern = named_pattern(volatile)
    return lambda call: Asked(call.request.body, now=call.now, redactor=redactor, pattern=pattern)


def write_recorded(
    directory: Path, request: Mapping[str, Any], answers: list[CassetteAnswer]
) -> None:
    """Write one question and its answers, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{_slug(request)}-{key_of(request)[:10]}.json"
    body = {"cassette": VERSION, "request": request, "answers": msgspec.to_builtins(answers)}
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    draft.replace(path)


def _slug(request: Mapping[str, Any]) -> str:
    """Words of the last thing the user said."""
    messages = request.get("messages", ())
    texts = [text_of(each.get("content") or "") for each in messages if each.get("role") == "user"]
    said = next((text for text in reversed(texts) if text.strip()), "")
    # A prompt that wraps the message in tags has it at its end.
    inner = re.findall(r"<message>(.*?)</message>", said, re.DOTALL)
    words = re.sub(r"[^a-z0-9]+", "-", (inner[-1] if inner else said).lower()).strip("-")
    return f"{words[:_SLUG_CHARS].strip('-') or 'request'}-turn-{len(messages)}"


def _versioned(path: Path, kind: type[T]) -> T:
    """The version is looked at first: a file of another one may have any shape."""
    body = read_json(path, dict[str, Any])
    if body.get("cassette") != VERSION:
        raise BadInput(
            path,
            key="cassette",
            found=body.get("cassette"),
            expected=f"version {VERSION}",
            next_step="Record the cassette again with this version of the harness",
        )
    return convert(body, kind, where=path, words=JSON_WORDS)
