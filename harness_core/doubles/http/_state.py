"""What a recorder holds: the requests it got and the rules it answers by."""

from __future__ import annotations

import dataclasses
from typing import Final

from harness_core.base.evidence import Evidence
from harness_core.doubles.http._own_host import OwnHosts
from harness_core.doubles.http._recorded import Recorded, written
from harness_core.doubles.http._rules import Answer, Rule
from harness_core.doubles.http._watchers import notify

#: What is kept in memory; a run of a whole suite leaves some thousand requests of some kB.
_KEPT_REQUESTS: Final = 50_000
_KEPT_BYTES: Final = 256 * 1024 * 1024

#: The answer when no rule matches; the request is recorded.
_NO_RULE: Final = Answer(status=404, json={"error": "no rule of the recorder matches this request"})


@dataclasses.dataclass(slots=True)
class LiveRule:
    """A rule in use, and how often it has answered."""

    rule: Rule
    used: int = 0


@dataclasses.dataclass(slots=True, kw_only=True)
class State:
    """Shared by a recorder and its connections.

    Attributes:
        name: of the recorder.
        evidence: where requests are written.
        own: whom requests must be for.
        body_bytes: the largest body that is taken.
        rules: first to last.
        sequence: number of the last request.
        kept: the requests, in the order they were read.
        kept_bytes: size of their bodies.
        dropped: how many did not fit.
    """

    name: str
    evidence: Evidence
    own: OwnHosts
    body_bytes: int
    rules: tuple[LiveRule, ...]
    sequence: int = 0
    kept: list[Recorded] = dataclasses.field(default_factory=list)
    kept_bytes: int = 0
    dropped: int = 0

    def begin(self) -> int:
        """Number the next request."""
        self.sequence += 1
        return self.sequence

    def decide(self, request: Recorded) -> tuple[Answer, str]:
        """The answer to a good request, and the name of the rule that gave it."""
        for live in self.rules:
            rule = live.rule
            if rule.matches(request) and (rule.times is None or live.used < rule.times):
                live.used += 1
                return rule.answer_to(request), rule.label
        return _NO_RULE, ""

    def record(self, request: Recorded) -> None:
        """Keep a request that was read as far as it came, before it is answered."""
        notify(request)
        size = len(request.body)
        if len(self.kept) >= _KEPT_REQUESTS or self.kept_bytes + size > _KEPT_BYTES:
            self.dropped += 1
            return
        self.kept.append(request)
        self.kept_bytes += size
        self.evidence.append_json(f"{self.name}.jsonl", written(request, self.evidence.redactor))
