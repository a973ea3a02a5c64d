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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness_core.errors import BadInput
from harness_core.llm._message import Message
from harness_core.llm._normal import key_of
from harness_core.llm._reply import usage_body, usage_from_body

__all__ = [
    "VERSION",
    "CassetteAnswer",
    "Recorded",
    "read_cassette",
    "read_volatile",
    "write_recorded",
]

#: Of the file format; a file of another version is refused, never guessed at.
VERSION: Final = 1

_VOLATILE: Final = "volatile.json"
_FILE_KEYS: Final = ("cassette", "request", "answers")
_ANSWER_KEYS: Final = ("content", "stop_reason", "stop_sequence", "usage", "status", "error")

#: Letters of the question in a file's name.
_SLUG_CHARS: Final = 48

#: Statuses that are the provider's answer to a request and not its trouble.
_REFUSALS: Final = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteAnswer:
    """One recorded answer: a message, or a refusal of the request.

    Attributes:
        message: the message; ``None`` for a refusal.
        status: HTTP status of a refusal.
        error: its text.
    """

    message: Message | None = None
    status: int = 200
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        if self.message is None:
            return {"status": self.status, "error": self.error}
        body: dict[str, Any] = {
            "content": list(self.message.content),
            "stop_reason": self.message.stop_reason,
            "usage": usage_body(self.message.usage),
        }
        if self.message.stop_sequence is not None:
            body["stop_sequence"] = self.message.stop_sequence
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One question and its answers.

    Attributes:
        name: the file's name.
        request: the normalised request.
    """

    name: str
    request: Mapping[str, Any]
    answers: tuple[CassetteAnswer, ...]


def read_cassette(directory: Path) -> dict[str, Recorded]:
    """Read every file of a cassette: key of the question → what was recorded.

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
    read_volatile(directory)
    found: dict[str, Recorded] = {}
    for path in sorted(directory.glob("*.json")):
        if path.name == _VOLATILE:
            continue
        recorded = _read_file(path)
        key = key_of(recorded.request)
        if key in found:
            raise BadInput(
                path,
                key="request",
                found=f"the request of {found[key].name}",
                expected="each request once",
            )
        found[key] = recorded
    if not found:
        raise BadInput(directory, found="no recorded request", expected="at least one *.json file")
    return found


def read_volatile(directory: Path) -> dict[str, str]:
    """Kind → pattern of what a cassette's own ``volatile.json`` lists; empty without one.

    Raises:
        BadInput: the file is malformed, or a pattern is no regular expression.
    """
    path = directory / _VOLATILE
    if not path.is_file():
        return {}
    body = _versioned(path, keys=("cassette", "volatile"))
    patterns = body.get("volatile")
    if not isinstance(patterns, dict):
        raise BadInput(path, key="volatile", found=patterns, expected="an object KIND: PATTERN")
    for kind, pattern in patterns.items():
        if not re.fullmatch(r"[a-z]{2,20}", kind):
            raise BadInput(path, key="volatile", found=kind, expected="a kind of 2 to 20 letters")
        try:
            matches_nothing = re.compile(pattern).search("") is not None
        except (re.error, TypeError) as error:
            raise BadInput(
                path, key=f"volatile.{kind}", found=pattern, expected=f"a regex ({error})"
            ) from error
        if matches_nothing:
            raise BadInput(
                path, key=f"volatile.{kind}", found=pattern, expected="a pattern of some letters"
            )
    return patterns


def write_recorded(
    directory: Path, request: Mapping[str, Any], answers: tuple[CassetteAnswer, ...]
) -> Path:
    """Write one question and its answers, whole or not at all; returns the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{_slug(request)}-{key_of(request)[:10]}.json"
    body = {
        "cassette": VERSION,
        "request": request,
        "answers": [answer.as_json() for answer in answers],
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    draft.replace(path)
    return path


def _slug(request: Mapping[str, Any]) -> str:
    """Words of the last thing the user said."""
    said = ""
    for message in request.get("messages", ()):
        content = message.get("content")
        parts = [content] if isinstance(content, str) else [p.get("text") for p in content or ()]
        texts = [text for text in parts if isinstance(text, str) and text.strip()]
        said = texts[-1] if texts and message.get("role") == "user" else said
    # A prompt that wraps the message in tags has it at its end.
    inner = re.findall(r"<message>(.*?)</message>", said, re.DOTALL)
    words = re.sub(r"[^a-z0-9]+", "-", (inner[-1] if inner else said).lower()).strip("-")
    turn = len(request.get("messages", ()))
    return f"{words[:_SLUG_CHARS].strip('-') or 'request'}-turn-{turn}"


def _versioned(path: Path, *, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(path, found=str(error), expected="a JSON file") from error
    if not isinstance(body, dict):
        raise BadInput(path, found=type(body).__name__, expected="a JSON object")
    if body.get("cassette") != VERSION:
        raise BadInput(
            path,
            key="cassette",
            found=body.get("cassette"),
            expected=f"version {VERSION}",
            next_step="Record the cassette again with this version of the harness",
        )
    for key in body:
        if key not in keys:
            raise BadInput(path, key=key, found=key, expected=f"one of {', '.join(keys)}")
    return body


def _read_file(path: Path) -> Recorded:
    body = _versioned(path, keys=_FILE_KEYS)
    request, answers = body.get("request"), body.get("answers")
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        raise BadInput(
            path, key="request", found=_short(request), expected="an object with messages"
        )
    if not isinstance(answers, list) or not answers:
        raise BadInput(path, key="answers", found=_short(answers), expected="at least one answer")
    return Recorded(
        name=path.name,
        request=request,
        answers=tuple(_answer(path, f"answers[{i}]", item) for i, item in enumerate(answers)),
    )


def _answer(path: Path, at: str, body: object) -> CassetteAnswer:
    if not isinstance(body, dict):
        raise BadInput(path, key=at, found=_short(body), expected="an object")
    for key in body:
        if key not in _ANSWER_KEYS:
            known = ", ".join(_ANSWER_KEYS)
            raise BadInput(path, key=f"{at}.{key}", found=key, expected=f"one of {known}")
    if "error" in body or "status" in body:
        return _refusal(path, at, body)
    return CassetteAnswer(message=_message(path, at, body))


def _refusal(path: Path, at: str, body: Mapping[str, Any]) -> CassetteAnswer:
    status, error = body.get("status"), body.get("error")
    if not isinstance(status, int) or status not in _REFUSALS:
        raise BadInput(path, key=f"{at}.status", found=status, expected="400 to 499")
    if not isinstance(error, str):
        raise BadInput(path, key=f"{at}.error", found=_short(error), expected="a text")
    return CassetteAnswer(status=status, error=error)


def _message(path: Path, at: str, body: Mapping[str, Any]) -> Message:
    content, usage = body.get("content"), body.get("usage")
    if not isinstance(content, list) or not all(_is_block(block) for block in content):
        expected = "an array of content blocks: text with a text, tool_use with name and input"
        raise BadInput(path, key=f"{at}.content", found=_short(content), expected=expected)
    for key in ("stop_reason", "stop_sequence"):
        if not isinstance(body.get(key, ""), str):
            raise BadInput(path, key=f"{at}.{key}", found=body[key], expected="a text")
    if not isinstance(usage, dict):
        raise BadInput(path, key=f"{at}.usage", found=_short(usage), expected="token counts")
    return Message(
        content=tuple(content),
        stop_reason=body.get("stop_reason", "end_turn"),
        stop_sequence=body.get("stop_sequence"),
        usage=usage_from_body(usage),
    )


def _is_block(block: object) -> bool:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return False
    if block["type"] == "text":
        return isinstance(block.get("text"), str)
    if block["type"] == "tool_use":
        return isinstance(block.get("name"), str) and isinstance(block.get("input"), dict)
    return True


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004 - one line of a message
