"""What a prompt consists of: instructions, the message, the time, and what was done so far.

The message is data. Nothing found in it is ever taken for an instruction, a registry or the time.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness_core.llm._request import (
    MessagesRequest,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

__all__ = ["Done", "Prompt", "message_of", "read_prompt"]

#: Blocks that Claude Code adds to what the user said.
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

#: A section that holds the message, first opening to last closing tag: a closing tag written
#: inside the message does not end it.
_MESSAGE: Final = re.compile(
    r"<(?P<tag>(?:user[_-]?|inbound[_-]?|incoming[_-]?|customer[_-]?)?"
    r"(?:message|msg|session|input|request|utterance|text|query))>"
    r"(?P<text>.*)</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)

_LABELLED: Final = re.compile(
    r"^[ \t]*(?:user |incoming |inbound )?(?:message|input|request)[ \t]*:[ \t]*(?P<text>.+)\Z",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)

#: Any other tagged section is context.
_SECTION: Final = re.compile(
    r"<(?P<tag>[a-z][\w-]*)(?:\s[^<>]*)?>.*?</(?P=tag)>", re.DOTALL | re.IGNORECASE
)

_MOMENT: Final = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?")
_MOMENT_NEAR: Final = re.compile(
    r"\b(?:today|date|now|time|current)\b[^\n.]{0,40}?(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A tool call made for this message, with its result when there is one."""

    name: str
    input: Mapping[str, Any]
    result: str = ""
    is_error: bool = False
    answered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt taken apart.

    Attributes:
        instructions: system text and everything the user side holds outside the message.
        message: what somebody wrote.
        now: the time the prompt states, else that of the clock.
        done: tool calls since the message, oldest first.
        rounds: answers with tool calls since the message.
    """

    instructions: str
    message: str
    now: dt.datetime
    done: tuple[Done, ...] = ()
    rounds: int = 0


def read_prompt(request: MessagesRequest, *, now: dt.datetime) -> Prompt:
    """Take a request apart."""
    at = _message_turn(request)
    texts = [b.text for b in request.turns[at].blocks if isinstance(b, TextBlock)]
    reminders = [match for text in texts for match in _REMINDER.findall(text)]
    said = "\n".join(text for text in (_REMINDER.sub("", text) for text in texts) if text.strip())
    around, message = _split(said)
    stated = _stated_time([*request.system, *reminders, around], now=now)
    done, rounds = _history(request, since=at)
    return Prompt(
        instructions="\n".join([*request.system, around]),
        message=message,
        now=stated,
        done=done,
        rounds=rounds,
    )


def message_of(request: MessagesRequest) -> str:
    """The message of a request alone."""
    at = _message_turn(request)
    texts = (b.text for b in request.turns[at].blocks if isinstance(b, TextBlock))
    return _split("\n".join(_REMINDER.sub("", text) for text in texts))[1]


def _message_turn(request: MessagesRequest) -> int:
    """The last user turn that says something, rather than returning results."""
    for index in range(len(request.turns) - 1, -1, -1):
        turn = request.turns[index]
        if turn.role == "user" and _REMINDER.sub("", turn.text).strip():
            return index
    return 0


def _split(said: str) -> tuple[str, str]:
    """What surrounds the message, and the message."""
    found = _MESSAGE.search(said) or _LABELLED.search(said)
    if found is not None:
        around = said[: found.start("text")] + "\n" + said[found.end("text") :]
        return around, found["text"].strip()
    bare = _SECTION.sub("", said).strip()
    if not bare:
        return "", re.sub(r"</?[a-z][\w-]*[^<>]*>", "", said, flags=re.IGNORECASE).strip()
    sections = "\n".join(match[0] for match in _SECTION.finditer(said))
    return sections, bare


def _stated_time(texts: list[str], *, now: dt.datetime) -> dt.datetime:
    for text in texts:
        for near in _MOMENT_NEAR.finditer(text):
            match = _MOMENT.match(near[1])
            if match is None:
                continue
            year, month, day, *clock = (int(part) if part else None for part in match.groups())
            hour, minute, second = clock
            try:
                stated = now.replace(year=year or 1, month=month or 1, day=day or 1)
                if hour is None:
                    return stated
                return stated.replace(
                    hour=hour, minute=minute or 0, second=second or 0, microsecond=0
                )
            except ValueError:
                continue
    return now


def _history(request: MessagesRequest, *, since: int) -> tuple[tuple[Done, ...], int]:
    results = {
        block.tool_use_id: block
        for turn in request.turns[since:]
        for block in turn.blocks
        if isinstance(block, ToolResultBlock)
    }
    done: list[Done] = []
    rounds = 0
    for turn in request.turns[since:]:
        calls = [block for block in turn.blocks if isinstance(block, ToolUseBlock)]
        rounds += bool(calls)
        for call in calls:
            result = results.get(call.id)
            done.append(
                Done(
                    name=call.name,
                    input=call.input,
                    result=_REMINDER.sub("", result.text).strip() if result else "",
                    is_error=result.is_error if result else False,
                    answered=result is not None,
                )
            )
    return tuple(done), rounds
