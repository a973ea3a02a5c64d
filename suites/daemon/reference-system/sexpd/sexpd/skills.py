"""Which skills are there, in which order do they load, and which could not be loaded and why?

A skill is a file `<name>.toml` in the skills directory. Each says what it requires; it loads after
that, names deciding between equals. A file that cannot be read, a requirement that is not there
or was rejected itself, a name used twice and a cycle are rejected with a reason, and the rest
loads. The directory is read again when it has changed.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sexpd import faults, log

FILE_BYTES = 1 << 18
FILES = 1000
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_KEYS = {"name", "version", "description", "requires", "rule"}
_RULE_KEYS = {"when", "reply", "run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a skill does about a text.

    Attributes:
        when: words or phrases; the rule applies to a text that is one of them, case and
            punctuation at the end apart, or begins with one that ends in ` *`.
        reply: the answer; `{rest}` stands for what `*` matched.
        run: a command for the shell, which the dispatcher judges like any other.
    """

    when: tuple[str, ...]
    reply: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that loaded."""

    name: str
    version: str
    description: str
    requires: tuple[str, ...]
    rules: tuple[Rule, ...]
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A skill that did not load."""

    name: str
    reason: str
    file: Path


@dataclass(slots=True)
class Registry:
    """The skills of a directory."""

    directory: Path
    loaded: tuple[Skill, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problem: str = ""
    _seen: object = field(default=None, repr=False)

    def refresh(self) -> None:
        """Load again if a file of the directory came, went or changed."""
        paths = sorted(self.directory.glob("*.toml"))[: FILES + 1]
        seen = (self.directory.is_dir(), tuple(map(_signature, paths)))
        if seen == self._seen:
            return
        self._seen = seen
        self._load(paths)

    def _load(self, paths: list[Path]) -> None:
        self.problem = ""
        if not self.directory.is_dir():
            self.problem = f"no directory {self.directory}; run: sexpd setup"
        elif not paths:
            self.problem = f"no skill in {self.directory}; run: sexpd setup"
        elif len(paths) > FILES:
            self.problem = f"more than {FILES} files in {self.directory}"
            paths = paths[:FILES]
        good, bad = _read_all(paths)
        self.loaded, more = _in_order(good)
        rejected = sorted([*bad, *more], key=lambda r: r.name)
        if faults.on("skill-dropped"):
            self.loaded = self.loaded[:-1]
        self.rejected = () if faults.on("skill-broken-unreported") else tuple(rejected)
        for one in self.rejected:
            log.warning("skill.rejected", name=one.name, reason=one.reason, file=one.file)
        log.info("skills.loaded", count=len(self.loaded), names=",".join(s.name for s in self.loaded))

    def match(self, text: str) -> tuple[Skill, Rule, str] | None:
        """The first rule that applies to a text, with what its `*` stands for."""
        plain = " ".join(text.lower().split()).rstrip("?!. ")
        for skill in self.loaded:
            for rule in skill.rules:
                for phrase in rule.when:
                    if phrase == plain:
                        return skill, rule, ""
                    if phrase.endswith(" *") and text.lower().lstrip().startswith(phrase[:-1]):
                        return skill, rule, text.lstrip()[len(phrase) - 1 :].strip()
        return None


def _signature(path: Path) -> tuple[object, ...]:
    """What is other when a file is; of a link, what it leads to."""
    try:
        found = path.stat()
    except OSError as error:
        return path.name, error.errno
    return path.name, found.st_mtime_ns, found.st_size, found.st_ino


def _read_all(paths: list[Path]) -> tuple[dict[str, Skill], list[Rejected]]:
    good: dict[str, Skill] = {}
    bad: list[Rejected] = []
    for path in paths:
        try:
            skill = read(path)
        except ValueError as error:
            bad.append(Rejected(name=path.stem, reason=str(error), file=path))
            continue
        if skill.name in good:
            reason = f"{good[skill.name].file.name} has the name {skill.name} already"
            bad.append(Rejected(name=path.stem, reason=reason, file=path))
        else:
            good[skill.name] = skill
    return good, bad


def read(path: Path) -> Skill:
    """Read one manifest.

    Raises:
        ValueError: it cannot be read; the text says why.
    """
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise ValueError("is no regular file")
        raw = path.read_bytes()
        if len(raw) > FILE_BYTES and faults.on("skill-file-cut"):
            raw = raw[:FILE_BYTES].rpartition(b"\n")[0]
        if len(raw) > FILE_BYTES:
            raise ValueError(f"larger than {FILE_BYTES} bytes")
        content = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from error
    table = content.get("skill")
    if not isinstance(table, dict):
        raise ValueError("has to hold one table [skill]")
    for key in sorted(content.keys() - {"skill"}) if not faults.on("skill-tables-ignored") else ():
        raise ValueError(f"has an unknown key {key} beside [skill]")
    for key in sorted(table.keys() - _KEYS):
        raise ValueError(f"has an unknown key {key}")
    name = table.get("name", path.stem)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"has the name {name!r}, expected lower-case letters, digits and hyphens")
    return Skill(
        name=name,
        version=_text(table, "version", default="0"),
        description=_text(table, "description"),
        requires=tuple(_texts(table, "requires")),
        rules=tuple(_rules(table)),
        file=path,
    )


def _text(table: dict[str, Any], key: str, *, default: str = "") -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"has {key} = {value!r}, expected text")
    return value


def _texts(table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"has {key} = {value!r}, expected a list of texts")
    return value


def _rules(table: dict[str, Any]) -> list[Rule]:
    rows = table.get("rule", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("has rules that are no tables [[skill.rule]]")
    rules = []
    for row in rows:
        for key in sorted(row.keys() - _RULE_KEYS):
            raise ValueError(f"has a rule with an unknown key {key}")
        when = tuple(" ".join(phrase.lower().split()) for phrase in _texts(row, "when"))
        rule = Rule(when=when, reply=_text(row, "reply"), run=_text(row, "run"))
        if not rule.when or bool(rule.reply) == bool(rule.run):
            raise ValueError("has a rule without `when`, or without exactly one of reply and run")
        rules.append(rule)
    return rules


def _in_order(skills: dict[str, Skill]) -> tuple[tuple[Skill, ...], list[Rejected]]:
    """Skills such that each stands after what it requires, and those for which there is no such place."""
    if faults.on("skill-order-ignored"):
        return tuple(skills[name] for name in sorted(skills)), []
    order: list[Skill] = []
    placed: set[str] = set()
    waiting = dict(sorted(skills.items()))
    while ready := next((s for s in waiting.values() if placed.issuperset(s.requires)), None):
        order.append(waiting.pop(ready.name))
        placed.add(ready.name)
    rejected = [
        Rejected(name=s.name, reason=_why(s, skills, waiting), file=s.file)
        for s in waiting.values()
    ]
    return tuple(order), rejected


def _why(skill: Skill, skills: dict[str, Skill], waiting: dict[str, Skill]) -> str:
    if missing := [name for name in skill.requires if name not in skills]:
        return "requires what is not there: " + ", ".join(missing)
    path = [skill.name]
    while True:
        following = next(n for n in skills[path[-1]].requires if n in waiting or n not in skills)
        if following not in skills or any(n not in skills for n in skills[following].requires):
            return f"requires {path[1] if len(path) > 1 else following}, which was rejected"
        if following in path:
            cycle = [*path[path.index(following) :], following]
            if skill.name in cycle:
                return "requires itself: " + " -> ".join(cycle)
            return f"requires {path[1]}, which was rejected"
        path.append(following)
