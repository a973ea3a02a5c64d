"""Words of a text that could be a value: names, quotations, addresses, known terms, what is left."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.llm.policy._kinds import kinds_of
from harness_core.llm.policy._quantities import unit_of
from harness_core.llm.policy._verbs import is_verb, strip_courtesy
from harness_core.llm.policy._words import STOPWORDS, Token, stem, tokens, word_set

__all__ = [
    "email",
    "known_term",
    "labelled",
    "names",
    "noun_phrase",
    "object_and_place",
    "payload",
    "phone",
    "quoted",
    "url",
]

Span = tuple[int, int]

_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL: Final = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_PHONE: Final = re.compile(r"(?<![\w.])\+?\d[\d ()./-]{5,}\d(?![\w])")
_QUOTED: Final = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")

#: What may follow the first word of a name.
_MORE: Final = r"(?:\s+(?!(?:and|with|for|to|in|on|at|from)\b)[^\s,.;:!?\"'”]+){0,3}"

_CALENDAR: Final = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december today tomorrow
    """
)

#: Kin and the like stand for a person where no name is given.
_KIN: Final = re.compile(
    r"\b(?:my|our)\s+((?:grand)?(?:mother|father|ma|pa)|mom|mum|dad|sister|brother|wife|husband|son"
    r"|daughter|cousin|uncle|aunt|boss|neighbou?r|dentist|doctor|landlord|partner|girlfriend"
    r"|boyfriend|roommate)\b|\b(mom|mum|dad|grandma|grandpa)\b",
    re.IGNORECASE,
)

#: Where a noun phrase ends.
_PHRASE_END: Final = word_set(
    """
    to in on at for since from after before because during while when until this today
    yesterday tomorrow tonight last next every about around via by that which who is was are
    were has have so but if as into onto under over now again and
    """
)

#: Adjectives of degree: they tell how much, not what.
_DEGREE: Final = word_set(
    """
    bad terrible awful horrible severe mild slight light strong sharp dull constant annoying
    nasty big small huge little sudden persistent intense heavy massive splitting pounding
    awfully really very quite pretty extremely slightly somewhat today currently right still
    already following called named
    """
)

#: Verbs by which people report: what was done follows them.
_REPORTING: Final = frozenset(
    stem(word)
    for word in word_set(
        """
    feel feeling took take taking ate eat eating drank drink drinking had have having
    experience experiencing suffer suffering notice noticed got measured measure weigh need
    want started start been going meet met
    """
    )
)


#: Shortest word that is recognised written apart.
_LOOSE_CHARS: Final = 4

#: What two words must share from their beginning to be forms of one: so many characters, and so
#: much of the longer one.
_COMMON_CHARS: Final = 5
_COMMON_SHARE: Final = 0.6


def email(text: str) -> tuple[str, Span] | None:
    """The first e-mail address."""
    return _first(_EMAIL, text)


def url(text: str) -> tuple[str, Span] | None:
    """The first web address."""
    return _first(_URL, text)


def phone(text: str) -> tuple[str, Span] | None:
    """The first phone number."""
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        is_date = re.match(r"\d{4}-\d\d-\d\d", match[0])
        if 7 <= len(digits) <= 15 and not is_date:  # noqa: PLR2004 - E.164
            return match[0].strip(), match.span()
    return None


def quoted(text: str) -> tuple[str, Span] | None:
    """The first quotation, without its marks."""
    match = _QUOTED.search(text)
    if match is None:
        return None
    return next(group for group in match.groups() if group is not None), match.span()


def _first(pattern: re.Pattern[str], text: str) -> tuple[str, Span] | None:
    match = pattern.search(text)
    return (match[0], match.span()) if match is not None else None


def labelled(text: str, words: Iterable[str]) -> tuple[str, Span] | None:
    """A value that the text introduces by its label: "key foo", "a list called Books"."""
    for word in sorted(words):
        label = r"called|named|titled" if word in ("name", "title") else re.escape(word)
        match = re.search(
            rf"\b(?:{label})\b\s*(?:is|=|:|to|of)?\s*[\"'“]?(?P<value>[^\s,.;:!?\"'”]+"
            rf"{_MORE if word in ('name', 'title') else ''})",
            text,
            re.IGNORECASE,
        )
        if match is not None:
            return match["value"], match.span("value")
    return None


def names(text: str) -> tuple[tuple[str, Span], ...]:
    """Proper names, surest first; kin when there is no name."""
    sure: list[tuple[str, Span]] = []
    unsure: list[tuple[str, Span]] = []
    run: list[Token] = []
    before: Token | None = None
    for token in (*tokens(text), None):
        gap = text[before.end : token.start] if before is not None and token is not None else ""
        near = not re.search(r"[^\s.'\u2019-]", gap)
        # "Nora zx9f": what stands right behind a name in no language is part of it.
        if token is not None and run and near and (_capital(token) or _coined(token)):
            run.append(token)
        else:
            _close(run, text, sure, unsure)
            run = [token] if token is not None and _capital(token) else []
            if run and before is not None and _coined(before) and gap.isspace():
                run.insert(0, before)
        before = token
    found = sure + unsure
    if not found:
        found = [(m[1] or m[2], m.span(1) if m[1] else m.span(2)) for m in _KIN.finditer(text)]
    return tuple(found)


def _capital(token: Token) -> bool:
    return (
        token.kind == "word"
        and token.text[0].isupper()
        and token.lower.removesuffix("'s") not in _CALENDAR
        and token.lower not in STOPWORDS
    )


def _coined(token: Token) -> bool:
    return token.kind == "opaque" and token.text.isalnum()


def _close(
    run: list[Token], text: str, sure: list[tuple[str, Span]], unsure: list[tuple[str, Span]]
) -> None:
    first_of_sentence = bool(run) and not re.search(r"\w[^.!?\n]*$", text[: run[0].start])
    if first_of_sentence and _ordinary(run[0]):
        # A sentence's first word is capital whatever it is; an ordinary one is no name.
        run = run[1:]
        first_of_sentence = False
    if not run:
        return
    end = run[-1].end - (2 if run[-1].lower.endswith("'s") else 0)
    span = (run[0].start, end)
    (unsure if first_of_sentence else sure).append((text[span[0] : span[1]], span))


def _ordinary(token: Token) -> bool:
    return (
        is_verb(token.text)
        or bool(kinds_of(token.stem))
        or token.stem in _REPORTING
        or token.lower in _DEGREE
    )


def known_term(text: str, vocabulary: Iterable[str]) -> tuple[str, Span] | None:
    """The first (longest first) word of a vocabulary that a text uses, and where."""
    found = tokens(text)
    for word in vocabulary:
        wanted = [token.stem or token.lower for token in tokens(word.replace("_", " "))]
        if not wanted:
            continue
        for at in range(len(found) - len(wanted) + 1):
            window = found[at : at + len(wanted)]
            if [token.stem or token.lower for token in window] == wanted:
                return word, (window[0].start, window[-1].end)
        if (loose := _loosely_known(found, text, word)) is not None:
            return word, loose
    return None


def _loosely_known(found: Sequence[Token], text: str, word: str) -> Span | None:
    """A word written apart ("to-do") or of another form (nauseous for nausea)."""
    if not word.isalpha() or len(word) < _LOOSE_CHARS:
        return None
    apart = re.search(r"\b" + r"[-\s]?".join(word) + r"\b", text, re.IGNORECASE)
    if apart is not None:
        return apart.span()
    wanted = stem(word)
    for token in found:
        if token.is_content:
            pairs = itertools.takewhile(
                lambda p: p[0] == p[1], zip(token.stem, wanted, strict=False)
            )
            common = sum(1 for _ in pairs)
            longest = max(len(token.stem), len(wanted))
            if common >= _COMMON_CHARS and common >= _COMMON_SHARE * longest:
                return token.start, token.end
    return None


def payload(text: str) -> str:
    """What a command is about: the text without "please remind me to", "note that" and the like."""
    bare = strip_courtesy(text)
    words = tokens(bare)
    colon = re.search(r":\s+", bare)
    if colon is not None and words and is_verb(words[0].text):
        return bare[colon.end() :].strip()
    match = re.match(
        r"(?:(?:remind|tell|notify)\s+(?:me|us)\s+(?:(?:on|at|in)\s+[^,]{1,25}?\s+)?(?:to|that|about)"
        r"|(?:make|take|add|write|create|leave|save)\s+(?:me\s+)?(?:a|an|the)?\s*(?:new\s+|quick\s+)?"
        r"(?:note|reminder|memo|todo|task|entry)\s*(?:to|that|about|for|of|:|-)?"
        r"|(?:note|remember|record|log|save|write down|jot down)\s*(?:down\s+)?(?:that|to|:)?)\s+",
        bare,
        re.IGNORECASE,
    )
    rest = bare[match.end() :] if match is not None else bare
    return rest.strip().rstrip(".!?,;")


def noun_phrase(text: str, *, taken: Sequence[Span] = ()) -> tuple[str, Span] | None:
    """The first thing a text speaks of, without degree, amount, time and what surrounds it."""
    kept: list[Token] = []
    colon = re.search(r":\s+(?=\w)", text)
    begin = colon.end() if colon is not None else 0
    words = [token for token in tokens(text) if token.start >= begin]
    for token in words:
        outside = any(low < token.end and token.start < high for low, high in taken)
        if not kept:
            skipped = (
                outside
                or token.kind != "word"
                or token.lower in STOPWORDS
                or token.lower in _DEGREE
                or token.lower in _PHRASE_END
                or token.stem in _REPORTING
                or bool(unit_of(token.text))
                or (is_verb(token.text) and token is not words[-1])
            )
            if not skipped:
                kept.append(token)
            continue
        gap = text[kept[-1].end : token.start]
        if outside or token.lower in _PHRASE_END or re.search(r"[,;:.!?()]", gap):
            break
        if token.kind == "number" or unit_of(token.text):
            break
        kept.append(token)
    while kept and (kept[-1].lower in STOPWORDS or kept[-1].lower in _DEGREE):
        kept.pop()
    if not kept:
        return None
    span = (kept[0].start, kept[-1].end)
    return text[span[0] : span[1]], span


_PLACED: Final = re.compile(
    r"^(?P<verb>[^\W\d_]+)\s+(?P<object>.+?)\s+(?:to|on|onto|in|into|under|from)\s+"
    r"(?:my|the|our|a|an)?\s*(?P<place>[^,.;]+?)\s*[.!?]*$",
    re.IGNORECASE | re.DOTALL,
)


def object_and_place(text: str) -> tuple[str, str] | None:
    """What a command acts on, and where: "add milk to my list" gives milk and list."""
    match = _PLACED.match(strip_courtesy(text))
    if match is None or not is_verb(match["verb"]):
        return None
    return match["object"].strip(), match["place"].strip()
