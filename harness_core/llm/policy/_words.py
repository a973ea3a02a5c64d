"""From text to comparable words: tokens with their place, stems, and the split of identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer

from harness_core.llm.policy._languages import english_of

__all__ = [
    "STOPWORDS",
    "Token",
    "identifier_words",
    "stem",
    "stems",
    "tokens",
    "word_list",
    "word_set",
]


def word_list(text: str) -> list[str]:
    """The words of a text, for tables that read better as text than as a column of strings."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """The same as a set."""
    return frozenset(text.split())


#: Function words: they say how a sentence is built, not what it is about.
STOPWORDS: Final = word_set(
    """
    a an the this that these those i me my mine we us our you your he him his she her it its
    they them their who whom whose which what when where why how am is are was were be been
    being do does did doing done have has had having will would shall should can could may
    might must not no nor and or but if then else so than as at by for from in into of off on
    onto out over to up with about after again against all also any because before between
    both down during each few just more most now once only other own same some such too under
    until very while there here please kindly hey hi hello thanks thank ok okay yes via per
    get got gets getting let lets make made new really quite bit lot much many every etc am
    i'm i've i'd i'll don't it's that's ones one's someone something anything everything
    person people use used using user when whenever which
    """
)

#: Past forms whose stem differs from that of the verb; general English, the commonest ones.
_IRREGULAR: Final = dict(
    pair.split(":")
    for pair in word_list(
        """
        took:take taken:take ate:eat eaten:eat drank:drink drunk:drink felt:feel met:meet
        slept:sleep ran:run bought:buy told:tell said:say sent:send gave:give given:give
        saw:see seen:see went:go gone:go spoke:speak spoken:speak wrote:write
        written:write forgot:forget forgotten:forget paid:pay knew:know known:know
        kept:keep lost:lose left:leave found:find thought:think hurts:hurt feet:foot
        teeth:tooth children:child men:man women:woman meds:medicine mum:mom
        """
    )
)

#: In order: what is taken whole and never looked into (tags, addresses, code identifiers,
#: tokens of letters and digits), numbers, words.
_TOKEN: Final = re.compile(
    r"(?P<opaque><\\?/?[a-z][\w-]*>|https?://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\w*[^\W_]_\w+(?:[.:]\w+)*"
    r"|[^\W\d_]+\d\w*|\d+[^\W\d_]+\d\w*)"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<word>(?<![\w-])[^\W\d_]{1,2}-[^\W\d_]{2,4}(?![\w-])|[^\W\d_]+(?:['\u2019][^\W\d_]+)?)"
)

_STEMMER: Final = snowballstemmer.stemmer("english")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of text with its place in it.

    Attributes:
        kind: ``word``, ``number`` or ``opaque``.
        stem: of a word; empty for the other kinds.
    """

    text: str
    kind: str
    start: int
    end: int
    stem: str = ""

    @property
    def lower(self) -> str:
        """Its text in lower case, with a plain apostrophe and no hyphen ("to-do" is one word)."""
        return self.text.lower().replace("\u2019", "'").replace("-", "")

    @property
    def is_content(self) -> bool:
        """A word that says what the text is about."""
        return self.kind == "word" and self.lower not in STOPWORDS


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The stem of one word, so that "headaches" meets "headache"."""
    plain = word.lower().replace("\u2019", "'").replace("-", "").removesuffix("'s")
    plain = english_of(plain)
    return str(_STEMMER.stemWord(_IRREGULAR.get(plain, plain)))


def tokens(text: str) -> tuple[Token, ...]:
    """Tokens of a text, in order."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        found.append(
            Token(
                text=match[0],
                kind=kind,
                start=match.start(),
                end=match.end(),
                stem=stem(match[0]) if kind == "word" else "",
            )
        )
    return tuple(found)


def stems(text: str) -> tuple[str, ...]:
    """Stems of the content words of a text, in order."""
    return tuple(token.stem for token in tokens(text) if token.is_content)


def identifier_words(name: str) -> tuple[str, ...]:
    """The words of an identifier: ``bloodPressure_log`` → blood, pressure, log."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(word.lower() for word in re.findall(r"[^\W_]+", spaced))


def identifier_stems(names: Iterable[str]) -> tuple[str, ...]:
    """Stems of the words of identifiers."""
    return tuple(stem(word) for name in names for word in identifier_words(name))
