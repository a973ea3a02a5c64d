"""Command line flags as the tools themselves take them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from suites.parity.compare import UnknownInvocation

__all__ = ["SWITCH", "VALUE", "Flags", "mounts_of", "parse"]

SWITCH: Final = "switch"
VALUE: Final = "value"


@dataclass(slots=True, kw_only=True)
class Flags:
    """What stood on a command line.

    Attributes:
        values: canonical flag → every value given, in order.
        rest: the arguments from the first that is no flag.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    rest: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether a flag was given."""
        return name in self.values

    def all(self, name: str) -> list[str]:
        """Every value of a flag."""
        return self.values.get(name, [])

    def one(self, name: str, default: str = "") -> str:
        """The last value of a flag, which is the one that counts."""
        return self.values.get(name, [default])[-1]


def parse(
    argv: Sequence[str],
    known: Mapping[str, tuple[str, str]],
    *,
    command: str,
    interspersed: bool = False,
) -> Flags:
    """Take a command line apart.

    Args:
        argv: what follows the command.
        known: spelling of a flag → its canonical name and whether it takes a value.
        command: for the error.
        interspersed: flags may follow arguments; otherwise the first argument ends them.

    Raises:
        UnknownInvocation: a flag that is not known, or one without its value.
    """
    flags, rest, words = Flags(), list[str](), list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += words
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
            if not interspersed:
                rest += words
                break
            continue
        for spelling, inline in _apart(word, known):
            if spelling not in known:
                message = f"{command} has no flag {word}: {' '.join(argv)}"
                raise UnknownInvocation(message)
            name, kind = known[spelling]
            value = inline
            if kind == VALUE and value is None:
                if not words:
                    message = f"{command}: {word} has no value: {' '.join(argv)}"
                    raise UnknownInvocation(message)
                value = words.pop(0)
            flags.values.setdefault(name, []).append(value or "")
    flags.rest = tuple(rest)
    return flags


def mounts_of(flags: Flags) -> dict[str, Path]:
    """What ``-v SOURCE:TARGET`` and ``--mount`` let a guest see of the host: target → source.

    A volume that has a name is the tool's own, and nothing of the host.
    """
    pairs = [each.split(":")[:2] for each in flags.all("volume")]
    for each in flags.all("mount"):
        keys = dict(part.partition("=")[::2] for part in each.split(","))
        source = keys.get("source", keys.get("src", ""))
        pairs.append([source, keys.get("target", keys.get("destination", keys.get("dst", "")))])
    return {
        pair[1].rstrip("/") or "/": Path(pair[0])
        for pair in pairs
        if pair[0].startswith("/") and pair[1:]
    }


def _apart(word: str, known: Mapping[str, tuple[str, str]]) -> list[tuple[str, str | None]]:
    """The flags of one word: ``--a``, ``--a=value``, ``-a``, or ``-it`` for ``-i -t``."""
    spelling, equals, value = word.partition("=")
    if word.startswith("--") or spelling in known:
        return [(spelling, value if equals else None)]
    return [(f"-{letter}", None) for letter in word[1:]]
