"""Hostile input as rows: what a careless, broken or malicious client sends, and what is owed to it.

Each row is bytes, and what becomes of the connection. What becomes of the daemon is the same for
all: nothing (``unharmed.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = [
    "CONNECTIONS",
    "DEPTH",
    "END_S",
    "FRAME_CHARACTERS",
    "FRAME_S",
    "ROWS",
    "End",
    "Hostile",
    "Owed",
    "frame",
]

#: What the daemon under attack is configured to, where its subject file has the knobs.
FRAME_CHARACTERS: Final = 65_536
DEPTH: Final = 64
FRAME_S: Final = 0.6
CONNECTIONS: Final = 48

#: Until a connection that is owed its end has ended.
END_S: Final = 5.0


class End(StrEnum):
    """What the client does when it has sent its bytes."""

    WAIT = "keeps the connection open"
    EOF = "ends its side of the connection"


class Owed(StrEnum):
    """What the contract owes to such a connection."""

    REFUSAL = "an error LOG, then the end"
    ERROR = "an error LOG, and the connection stays"
    END = "the end, whatever is sent before"
    HEALTH = "the answer to the health check in it"
    EITHER = "an error LOG and the end, or the answer to the health check in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One way to misbehave.

    Attributes:
        id: kebab-case; selects the row with ``-k``.
        sent: the bytes.
        says: words of which the LOG must hold one, in any case; none: any text with a number that
            says how far reading got.
        knob: the setting without which the row means nothing.
        reads: a macro of the reader that evaluates nothing: a daemon that does not claim to refuse every
            macro may read it.
    """

    id: str
    sent: bytes
    owed: Owed = Owed.REFUSAL
    end: End = End.WAIT
    says: tuple[str, ...] = ()
    knob: str = ""
    reads: bool = False


def frame(payload: str, *, length: int | None = None, lower_case: bool = False) -> bytes:
    """A frame whose length may lie."""
    count = len(payload) if length is None else length
    return f"{count:06{'x' if lower_case else 'X'}}{payload}".encode()


HEALTH: Final = "(:TYPE :HEALTH-CHECK)"
TALK: Final = '(:TYPE :EVENT :META (:SOURCE :TUI) :PAYLOAD (:SENSOR :USER-INPUT :TEXT "{}"))'
_TWO_BYTES: Final = TALK.format("é" * 40)

#: What no request has evaluated, but for the text that is meant for it (`[texts] eval`).
_VALUE: Final = "(* 1764 1764)"
_SHELL: Final = '(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:ACTION :EXECUTE :CMD "echo {}"))'


def _evaluating(macro: str) -> bytes:
    return frame(f"(:TYPE :HEALTH-CHECK :X {macro})")


ROWS: Final = (
    # --- the prefix
    Hostile(id="prefix-of-letters", sent=b"ZZZZZZ", says=("prefix", "hexadecimal", "hex")),
    Hostile(id="prefix-is-http", sent=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    Hostile(id="prefix-is-tls", sent=bytes.fromhex("16030100c8010000c40303") + b"\0" * 32),
    Hostile(id="prefix-bad-last-digit", sent=b"00001G(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-negative", sent=b"-00015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-0x", sent=b"0x0015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-plus", sent=b"+00015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-underscore", sent=b"00_015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-space-inside", sent=b"00 015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-of-other-digits", sent="٠٠٠٠٢١(:TYPE :HEALTH-CHECK)".encode()),
    Hostile(id="prefix-of-five", sent=b"00015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-of-seven", sent=b"0000015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-dot", sent=b"0001.5(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-h", sent=b"00015h(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-of-wide-digits", sent="\uff10\uff10\uff10\uff10\uff11\uff15".encode()),
    Hostile(id="prefix-of-nul", sent=b"\0" * 64),
    Hostile(id="prefix-with-nul-inside", sent=b"0000\x0015(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-ends-in-nul", sent=b"00015\0(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-ends-in-space", sent=b"00015 (:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-of-one-other-digit", sent="0000\u06615(:TYPE :HEALTH-CHECK)".encode()),
    Hostile(id="prefix-of-bengali-digits", sent="০০০০১৫(:TYPE :HEALTH-CHECK)".encode()),
    Hostile(id="prefix-with-sign-inside", sent=b"000+15(:TYPE :HEALTH-CHECK)"),
    Hostile(id="prefix-with-no-break-space", sent="\xa000015(:TYPE :HEALTH-CHECK)".encode()),
    Hostile(id="prefix-of-ff", sent=b"\xff" * 64),
    Hostile(id="no-prefix", sent=HEALTH.encode()),
    Hostile(id="second-frame-junk", sent=frame(HEALTH) + b"junk!!", owed=Owed.END),
    # --- lengths that lie
    Hostile(id="length-one-short", sent=frame(HEALTH, length=len(HEALTH) - 1)),
    Hostile(id="length-one-long-then-eof", sent=frame(HEALTH, length=len(HEALTH) + 1), end=End.EOF),
    Hostile(id="length-one-long-then-frame", sent=frame(HEALTH, length=22) + frame(HEALTH)),
    Hostile(
        id="length-long-and-silent",
        sent=frame(HEALTH, length=500),
        says=("time", "within", " s"),
        knob="frame_s",
    ),
    Hostile(id="length-zero", sent=b"000000"),
    Hostile(
        id="length-in-bytes", sent=frame(_TWO_BYTES, length=len(_TWO_BYTES.encode())), end=End.EOF
    ),
    Hostile(id="length-of-nothing", sent=b"000005     "),
    Hostile(
        id="size-huge",
        sent=b"FFFFFF",
        says=("large", "limit", "too long", "at most", "more than"),
        knob="frame_characters",
    ),
    Hostile(
        id="size-one-too-many",
        sent=frame(TALK.format("x" * FRAME_CHARACTERS)),
        says=("large", "limit", "too long", "at most", "more than"),
        knob="frame_characters",
    ),
    # --- what is no property list
    Hostile(id="syntax-open-list", sent=frame("(:TYPE :HEALTH-CHECK")),
    Hostile(id="syntax-closed-twice", sent=frame("(:TYPE :HEALTH-CHECK))")),
    Hostile(id="syntax-open-string", sent=frame('(:TYPE "HEALTH-CHECK)')),
    Hostile(id="syntax-two-forms", sent=frame("(:TYPE :HEALTH-CHECK) (:TYPE :HEALTH-CHECK)")),
    Hostile(id="syntax-dot-first", sent=frame("(. :TYPE)")),
    Hostile(id="syntax-two-dots", sent=frame("(:TYPE . . :HEALTH-CHECK)")),
    Hostile(id="syntax-backquote", sent=frame("`(:TYPE :HEALTH-CHECK)")),
    Hostile(id="syntax-comma", sent=frame("(:TYPE ,@(:HEALTH-CHECK))")),
    Hostile(id="payload-is-a-number", sent=frame("42")),
    Hostile(id="payload-is-a-text", sent=frame('"(:TYPE :HEALTH-CHECK)"')),
    Hostile(id="payload-is-a-keyword", sent=frame(":TYPE")),
    Hostile(id="payload-is-quoted", sent=frame("'(:TYPE :HEALTH-CHECK)")),
    Hostile(id="plist-of-three", sent=frame("(:TYPE :HEALTH-CHECK :X)")),
    Hostile(id="plist-without-keywords", sent=frame('("TYPE" :HEALTH-CHECK)')),
    Hostile(id="plist-dotted", sent=frame("(:TYPE . :HEALTH-CHECK)")),
    Hostile(id="syntax-dot-last", sent=frame("(:TYPE :HEALTH-CHECK . )")),
    Hostile(id="syntax-two-after-dot", sent=frame("(:TYPE . :A :B)")),
    Hostile(id="syntax-dots", sent=frame("(:TYPE ... )")),
    Hostile(id="syntax-open-bar", sent=frame("(:TYPE |HEALTH)")),
    Hostile(id="syntax-open-quote", sent=frame("(:TYPE ')")),
    Hostile(id="syntax-lone-backslash", sent=frame("(:TYPE :A\\")),
    Hostile(id="syntax-no-keyword", sent=frame("(:TYPE : )")),
    Hostile(id="number-over-zero", sent=frame("(:TYPE :HEALTH-CHECK :X 1/0)")),
    Hostile(id="comment-alone", sent=frame("; (:TYPE :HEALTH-CHECK)")),
    Hostile(id="comment-hides-the-end", sent=frame("(:TYPE :HEALTH-CHECK ; )")),
    Hostile(id="payload-is-json", sent=frame('{"type": "health-check"}')),
    # --- reader macros: nothing is ever evaluated
    Hostile(id="macro-evaluates", sent=_evaluating('#.(format t "~a" 42)')),
    Hostile(id="macro-runs-a-program", sent=_evaluating('#.(sb-ext:run-program "/bin/sh" nil)')),
    Hostile(id="macro-evaluates-arithmetic", sent=frame("(:TYPE #.(+ 1 2))")),
    Hostile(id="macro-in-place-of-the-text", sent=frame(TALK.replace('"{}"', "#.(* 6 7)"))),
    Hostile(id="macro-function", reads=True, sent=_evaluating("#'car")),
    Hostile(id="macro-circle", reads=True, sent=_evaluating("#1=(1 . #1#)")),
    Hostile(id="macro-array", reads=True, sent=_evaluating("#2A((1 2)(3 4))")),
    Hostile(id="macro-structure", reads=True, sent=_evaluating("#S(HASH-TABLE)")),
    Hostile(id="macro-path", reads=True, sent=_evaluating('#P"/etc/passwd"')),
    Hostile(id="macro-feature", reads=True, sent=_evaluating("#+sbcl :a #-sbcl :b")),
    Hostile(id="macro-character", reads=True, sent=_evaluating("#\\a")),
    Hostile(id="macro-block-comment", reads=True, sent=_evaluating("#| hidden |# 1")),
    # --- nesting
    Hostile(
        id="depth-100",
        sent=frame("(:TYPE " + "(" * 100 + ")" * 100 + ")"),
        says=("nest", "deep", "depth"),
        knob="depth",
    ),
    Hostile(
        id="depth-10000",
        sent=frame("(:TYPE " + "(" * 10_000 + ")" * 10_000 + ")"),
        says=("nest", "deep", "depth"),
    ),
    Hostile(
        id="depth-of-quotes",
        sent=frame("(:TYPE " + "'" * 10_000 + "X)"),
        says=("nest", "deep", "depth"),
    ),
    Hostile(id="depth-unclosed", sent=frame("(" * 20_000), says=("nest", "deep", "depth")),
    # --- UTF-8
    Hostile(id="utf8-lone-continuation", sent=b"000015(:TYPE :HEALTH\x80CHECK)", says=("utf-8",)),
    Hostile(id="utf8-overlong-slash", sent=b"000016(:TYPE :HEALTH\xc0\xafCHECK)", says=("utf-8",)),
    Hostile(id="utf8-surrogate", sent=b"000015(:TYPE :HEALT\xed\xa0\x80CHECK)", says=("utf-8",)),
    Hostile(
        id="utf8-beyond-unicode", sent=b"000015(:TYPE :HEAL\xf5\x80\x80\x80CHECK)", says=("utf-8",)
    ),
    Hostile(id="utf8-cut-by-eof", sent=b"000030(:TYPE \xf0\x9f\x98", end=End.EOF),
    Hostile(id="utf16", sent=b"000015" + HEALTH.encode("utf-16")),
    # --- well-formed, but meaning nothing: an error, and the connection stays
    Hostile(id="no-type", sent=frame("(:PAYLOAD (:SENSOR :HEARTBEAT))"), owed=Owed.ERROR),
    Hostile(id="unknown-type", sent=frame("(:TYPE :EXPLODE)"), owed=Owed.ERROR),
    Hostile(
        id="unknown-sensor", sent=frame("(:TYPE :EVENT :PAYLOAD (:SENSOR :NOSE))"), owed=Owed.ERROR
    ),
    Hostile(id="text-is-a-number", sent=frame(TALK.replace('"{}"', "42")), owed=Owed.ERROR),
    Hostile(id="type-is-a-text", sent=frame('(:TYPE "HEALTH-CHECK")'), owed=Owed.ERROR),
    Hostile(id="type-is-a-list", sent=frame("(:TYPE (:HEALTH-CHECK))"), owed=Owed.ERROR),
    Hostile(
        id="payload-is-no-list", sent=frame("(:TYPE :EVENT :PAYLOAD :USER-INPUT)"), owed=Owed.ERROR
    ),
    Hostile(
        id="meta-is-no-list",
        sent=frame(TALK.format("ping").replace("(:SOURCE :TUI)", "7")),
        owed=Owed.ERROR,
    ),
    Hostile(
        id="meta-is-odd",
        sent=frame(TALK.format("ping").replace("(:SOURCE :TUI)", "(:SOURCE)")),
        owed=Owed.ERROR,
    ),
    Hostile(id="no-payload", sent=frame("(:TYPE :EVENT)"), owed=Owed.ERROR),
    Hostile(id="no-target", sent=frame(_SHELL.replace(":TARGET :SHELL", "")), owed=Owed.ERROR),
    Hostile(
        id="unknown-target",
        sent=frame(_SHELL.replace(":TARGET :SHELL", ":TARGET :SHELF")),
        owed=Owed.ERROR,
    ),
    Hostile(
        id="unknown-action", sent=frame(_SHELL.replace(":EXECUTE", ":EXECUTED")), owed=Owed.ERROR
    ),
    Hostile(
        id="command-is-a-list", sent=frame(_SHELL.replace('"echo {}"', "(1 2)")), owed=Owed.ERROR
    ),
    Hostile(id="no-command", sent=frame(_SHELL.replace(':CMD "echo {}"', "")), owed=Owed.ERROR),
    *(
        Hostile(
            id=f"asks-{target}-to-{action}",
            sent=frame(
                f"(:TYPE :REQUEST :TARGET :{target.upper()} :PAYLOAD (:ACTION :{action.upper()}"
                f' :FORM (* 1764 1764) :CODE "{_VALUE}" :CMD "{_VALUE}" :TEXT "{_VALUE}"))'
            ),
            owed=Owed.ERROR,
        )
        for target, action in (
            ("lisp", "eval"),
            ("repl", "evaluate"),
            ("daemon", "eval"),
            ("shell", "eval"),
            ("emacs", "eval"),
        )
    ),
    Hostile(id="no-text", sent=frame(TALK.replace(':TEXT "{}"', "")), owed=Owed.ERROR),
    Hostile(id="text-is-nil", sent=frame(TALK.replace('"{}"', "NIL")), owed=Owed.ERROR),
    # --- odd, and right all the same
    Hostile(
        id="prefix-in-mixed-case", sent=b"00001a" + HEALTH.encode() + b" " * 5, owed=Owed.HEALTH
    ),
    Hostile(
        id="first-of-two-types", sent=frame("(:TYPE :HEALTH-CHECK :TYPE :X)"), owed=Owed.HEALTH
    ),
    Hostile(id="other-keys", sent=frame("(:X 1 :TYPE :HEALTH-CHECK :Y NIL)"), owed=Owed.HEALTH),
    Hostile(id="comment-inside", sent=frame("(:TYPE ; :X )\n:HEALTH-CHECK)"), owed=Owed.HEALTH),
    Hostile(id="name-in-bars", sent=frame("(:|TYPE| :HEALTH-CHECK)"), owed=Owed.HEALTH),
    Hostile(id="dotted-to-a-list", sent=frame("(:TYPE . (:HEALTH-CHECK))"), owed=Owed.HEALTH),
    Hostile(id="every-whitespace-before", sent=b" \t\r\n\f\v" + frame(HEALTH), owed=Owed.HEALTH),
    Hostile(
        id="lower-case-prefix",
        sent=frame("(:TYPE  :HEALTH-CHECK     )", lower_case=True),
        owed=Owed.HEALTH,
    ),
    Hostile(id="whitespace-before", sent=b" \t\r\n \n" + frame(HEALTH), owed=Owed.HEALTH),
    Hostile(
        id="whitespace-inside", sent=frame("\n( :TYPE\t:HEALTH-CHECK\r\n)\n"), owed=Owed.HEALTH
    ),
    Hostile(id="eof-after-request", sent=frame(HEALTH), end=End.EOF, owed=Owed.HEALTH),
)

_IDS = [row.id for row in ROWS]
assert len(set(_IDS)) == len(_IDS), "two rows of one id"
