"""What kind of act a sentence asks for, and what kind a tool performs.

A sentence that states something may create a record and nothing else. Reading, deleting, changing,
sending and running each want a sentence that says so with a verb where commands have it, so that
words *about* a tool in the middle of a message never call it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from harness_core.llm.policy._words import STOPWORDS, Token, identifier_words, stem, tokens

__all__ = ["Act", "act_of_clause", "act_of_tool", "command_verb", "is_verb", "strip_courtesy"]


class Act(StrEnum):
    """Kinds of act."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    SEND = "send"
    RUN = "run"
    OTHER = "other"


_VERBS: Final = {
    Act.DELETE: "delete remove erase drop cancel forget clear purge wipe destroy discard revoke",
    Act.UPDATE: "update change edit rename modify correct move complete finish reschedule adjust"
    " replace mark",
    Act.SEND: "send notify forward deliver reply post announce publish email text message",
    Act.RUN: "run trigger execute launch restart shutdown invoke tick deploy kill",
    Act.READ: "show list get find search look lookup display view check count summarize fetch read"
    " query tell describe compare recall",
    Act.CREATE: "log record add create note save store register track write remember put enter"
    " append insert jot set remind keep make",
}  # fmt: skip
_BY_STEM: Final = {stem(verb): act for act, verbs in _VERBS.items() for verb in verbs.split()}

#: Nouns by which a tool's name says that it reads.
_READING_NOUNS: Final = frozenset(
    stem(word)
    for word in ["summary", "history", "status", "report", "latest", "stats", "overview", "details"]
)

_COURTESY: Final = re.compile(
    r"^(?:(?:hi|hey|hello|ok|okay|so|well|also|and|then|please|kindly|just|now)\b[,!]?\s*"
    r"|(?:can|could|would|will)\s+(?:you|u|somebody|someone)\s+(?:please\s+)?"
    r"|(?:i|we)(?:\s+would|'d|\u2019d)?\s+(?:like|want|need)\s+(?:you\s+)?to\s+"
    r"|(?:don't|do not)\s+forget\s+to\s+)+",
    re.IGNORECASE,
)
#: What is written to somebody is meant to arrive.
_LETTER: Final = re.compile(
    r"^(?:write|drop|make|put)\s+(?:an?\s+|the\s+)?(?:[\w-]+\s+)?"
    r"(?:e-?mail|message|letter|text|sms|telegram)\s+to\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"^(?:what|what's|whats|which|who|who's|whose|when|when's|where|where's|why|how|did|do(?! not)|does|is"
    r"|are|was|were|have|has|any)\b",
    re.IGNORECASE,
)


def strip_courtesy(text: str) -> str:
    """A sentence without what politeness puts in front of it."""
    return _COURTESY.sub("", text.strip())


def is_verb(word: str) -> bool:
    """Whether a word is one of the verbs by which acts are recognised."""
    return stem(word) in _BY_STEM


def command_verb(text: str) -> Token | None:
    """The verb a sentence commands with; ``None`` when it does not begin with one."""
    first = next((token for token in tokens(strip_courtesy(text)) if token.kind != "number"), None)
    if first is None or first.kind != "word":
        return None
    return first if first.stem in _BY_STEM else None


def act_of_clause(text: str) -> Act:
    """What a sentence asks for; a statement asks to be recorded."""
    verb = command_verb(text)
    if verb is not None and _LETTER.match(strip_courtesy(text)):
        return Act.SEND
    if verb is not None:
        return _BY_STEM[verb.stem]
    bare = strip_courtesy(text)
    if _QUESTION.match(bare) or bare.rstrip().endswith("?"):
        return Act.READ
    return Act.CREATE


def act_of_tool(name: str, description: str) -> Act:
    """What a tool does, by the verbs of its name, else the first verb of its description."""
    words = [stem(word) for word in identifier_words(name)]
    acts = {_BY_STEM[word] for word in words if word in _BY_STEM}
    for act in (Act.DELETE, Act.UPDATE, Act.RUN):
        if act in acts:
            return act
    if acts & {Act.CREATE, Act.READ, Act.SEND}:
        # "note_search", "message_list", "list_add": in a name that holds two, the verb is last.
        return next(_BY_STEM[word] for word in reversed(words) if word in _BY_STEM)
    if set(words) & _READING_NOUNS:
        return Act.READ
    for token in tokens(description)[:3]:
        if token.kind == "word" and token.lower not in STOPWORDS and token.stem in _BY_STEM:
            return _BY_STEM[token.stem]
    return Act.OTHER
