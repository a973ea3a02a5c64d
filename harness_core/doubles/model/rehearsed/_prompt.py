"""What a prompt consists of: instructions, the message, its quotation, and what was done so far."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from harness_core.doubles.model._request import (
    MessagesRequest,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from harness_core.doubles.model.rehearsed._form import Form

#: Blocks that Claude Code adds to what the user said.
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

#: Where it puts them: before the text. Inside it they are part of the message.
_REMINDERS: Final = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)

_TAGS: Final = (
    r"(?P<tag>(?:user[_-]?|inbound[_-]?|incoming[_-]?|customer[_-]?)?"
    r"(?:message|msg|session|input|request|utterance|text|query))"
)

#: A section that holds the message, first opening to last closing tag: where it stands for a reader
#: who knows it beforehand.
_MESSAGE: Final = re.compile(rf"<{_TAGS}>(?P<text>.*)</(?P=tag)>", re.DOTALL | re.IGNORECASE)

#: The same to the *first* closing tag, in any spelling: where the quotation ends for a reader who
#: goes by its marks.
_QUOTED: Final = re.compile(
    rf"<{_TAGS}>(?P<text>.*?)<\s*/\s*(?P=tag)\s*>", re.DOTALL | re.IGNORECASE
)

_LABELLED: Final = re.compile(
    r"^[ \t]*(?:user |incoming |inbound )?(?:message|input|request)[ \t]*:[ \t]*(?P<text>.+)\Z",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)

#: Any other tagged section is context.
_SECTION: Final = re.compile(
    r"<(?P<tag>[a-z][\w-]*)(?:\s[^<>]*)?>.*?</(?P=tag)>", re.DOTALL | re.IGNORECASE
)

#: Ways to say that a message is no instruction.
_WARNING: Final = re.compile(
    r"\b(?:is|are|as) (?:only |just )?(?:quoted )?(?:data|untrusted)\b"
    r"|\b(?:never|not|ignore)\b[^.\n]{0,40}\b(?:instructions?|orders?|commands?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A tool call made for this message, and its result; ``None`` when there is none."""

    name: str
    input: Mapping[str, Any]
    result: str | None
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt taken apart.

    Attributes:
        instructions: system text and everything the user side holds outside the message.
        message: what the user wrote.
        quotation: what stands between the first marks of a quotation; ``None`` without any.
        system: the system text.
        said: all that the user side says in the turn of the message.
        whole: everything the model is asked, system text included.
        placed: the message stands where the subject says that its classifier has it.
        done: tool calls since the message, oldest first.
        rounds: answers with tool calls since the message.
    """

    instructions: str
    message: str
    quotation: str | None
    system: str
    said: str
    whole: str
    placed: bool = False
    done: tuple[Done, ...] = ()
    rounds: int = 0

    def around(self, message: str) -> Prompt:
        """This prompt once it is known what of it is the message, where no marks said so."""
        # A product may have put backslashes into it.
        spelt = r"\\*".join(map(re.escape, message.strip()))
        found = re.search(spelt, self.said) if spelt else None
        if found is None or self.message == found[0]:
            return self
        rest = f"{self.said[: found.start()]}\n{self.said[found.end() :]}"
        if self.message in rest:
            return self  # the marks stand around something else
        return replace(self, instructions=f"{self.system}\n{rest}", message=message.strip())

    @property
    def warns(self) -> bool:
        """Whether the instructions say that the message is no instruction."""
        return _WARNING.search(self.instructions) is not None


def read_prompt(request: MessagesRequest, form: Form) -> Prompt:
    """Take a request apart.

    Args:
        request: what the model is asked.
        form: where the subject says that its message stands.
    """
    at = _message_turn(request)
    said = _said(request, at)
    done, rounds = _history(request, since=at)
    stated = form.find("message", said) if form.message is not None else None
    quoted = _QUOTED.search(said)
    quotation = quoted["text"] if quoted is not None else None
    around, message = _split(said)
    if stated is not None:
        around = said[: stated.start("message")] + "\n" + said[stated.end("message") :]
        message = stated["message"].strip()
        quotation = message if quotation is None else quotation
    return Prompt(
        instructions="\n".join([*request.system, around]),
        message=message,
        quotation=quotation,
        system="\n".join(request.system),
        said=said,
        whole="\n".join([*request.system, *(turn.text for turn in request.turns)]),
        placed=stated is not None,
        done=done,
        rounds=rounds,
    )


def message_of(request: MessagesRequest) -> str:
    """The message of a request alone."""
    return _split(_said(request, _message_turn(request)))[1]


def _said(request: MessagesRequest, at: int) -> str:
    texts = (b.text for b in request.turns[at].blocks if isinstance(b, TextBlock))
    return "\n".join(text for text in (_REMINDERS.sub("", text) for text in texts) if text.strip())


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


def _history(request: MessagesRequest, *, since: int) -> tuple[tuple[Done, ...], int]:
    rounds = [
        [block for block in turn.blocks if isinstance(block, ToolUseBlock)]
        for turn in request.turns[since:]
    ]
    results = {
        block.tool_use_id: block
        for turn in request.turns[since:]
        for block in turn.blocks
        if isinstance(block, ToolResultBlock)
    }
    done = [(call, results.get(call.id)) for calls in rounds for call in calls]
    return tuple(
        Done(
            name=call.name,
            input=call.input,
            result=None if result is None else _REMINDER.sub("", result.text).strip(),
            is_error=result is not None and bool(result.is_error),
        )
        for call, result in done
    ), sum(map(bool, rounds))
