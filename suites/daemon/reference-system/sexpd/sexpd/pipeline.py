"""How a signal becomes an answer: perceive, reason, act.

Perceiving turns what a client sent into a percept; reasoning decides on an action, by a text
command, a skill or a language model, in this order; acting carries it out. A fixed number of
workers does this, so that a flood of signals waits instead of growing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from sexpd import faults, log
from sexpd.config import Config
from sexpd.evaluate import EvaluationError, evaluate_text
from sexpd.gateways import registry
from sexpd.providers import ALL_DOWN, NONE_CONFIGURED, Cascade
from sexpd.sexpr import Keyword, ReadError, as_plist, read
from sexpd.shell.actuator import Outcome, Shell
from sexpd.shell.verdict import Refused
from sexpd.skills import Registry

HELP = "/shell COMMAND, /eval EXPRESSION, /skills, /gateways, /health, /help; or any text."


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What came in.

    Attributes:
        source: the gateway, as META named it.
    """

    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Percept:
    """What a signal says: a text command with its argument, or a text."""

    text: str
    source: str
    command: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """The action of answering."""

    text: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """The action of running a command.

    Attributes:
        route: "text", "skill" or "model".
    """

    command: str
    route: str
    explanation: str


@dataclass(slots=True)
class _Job:
    signal: Signal | None
    done: trio.Event = field(default_factory=trio.Event)
    answer: Say | None = None


class Pipeline:
    """The workers and what they lean on."""

    def __init__(
        self,
        config: Config,
        *,
        skills: Registry,
        cascade: Cascade,
        shell: Shell,
        health: Callable[[], Any],
    ) -> None:
        self._config, self._skills, self._cascade, self._shell = config, skills, cascade, shell
        self._health = health
        self._send, self._receive = trio.open_memory_channel[_Job](config["pipeline.queue"])
        self.workers: int = config["pipeline.workers"]
        self.busy = 0

    async def run(self) -> None:
        """Work until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(self.workers):
                nursery.start_soon(self._work)

    async def process(self, signal: Signal) -> Say:
        """Put a signal through; waits for a worker."""
        job = _Job(signal)
        await self._send.send(job)
        await job.done.wait()
        assert job.answer is not None
        return job.answer

    async def ping(self) -> str:
        """How the workers are: a job goes through them, when one is free."""
        job = _Job(None)
        await self._send.send(job)
        await job.done.wait()
        return f"{self.busy} of {self.workers} workers have work"

    async def _work(self) -> None:
        async for job in self._receive:
            if job.signal is not None:
                self.busy += 1
                try:
                    job.answer = await self._through(job.signal)
                finally:
                    self.busy -= 1
            job.done.set()

    async def _through(self, signal: Signal) -> Say:
        limit = self._config["pipeline.signal_s"]
        try:
            with trio.move_on_after(limit):
                return await self.act(await self.reason(self.perceive(signal)))
        except Exception as error:  # the edge of the pipeline: one signal must not stop the workers
            found = log.place(error)
            log.error("pipeline.failed", source=signal.source, error=found)
            return Say(text="Something went wrong inside me.", explanation=found)
        log.warning("pipeline.timed_out", source=signal.source, limit_s=limit)
        return Say(text="I gave up on that.", explanation=f"it took longer than {limit:g} s")

    # --- The three stages ---

    def perceive(self, signal: Signal) -> Percept:
        """What a signal says."""
        text = signal.text.strip()
        if not text.startswith("/"):
            return Percept(text=text, source=signal.source)
        command, _, argument = text[1:].partition(" ")
        return Percept(
            text=text, source=signal.source, command=command.lower(), argument=argument.strip()
        )

    async def reason(self, percept: Percept) -> Say | Execute:
        """Which action answers it."""
        if percept.command:
            return await self._command(percept)
        if not percept.text:
            return Say(text="You said nothing.", explanation="the text is empty")
        self._skills.refresh()
        unheard = percept.source == "CLI" and faults.on("cli-skips-skills")
        if not unheard and (found := self._skills.match(percept.text)):
            skill, rule, rest = found
            why = f"skill {skill.name}"
            if rule.run:
                return Execute(command=rule.run, route="skill", explanation=why)
            return Say(text=rule.reply.replace("{rest}", rest), explanation=why)
        return await self._model(percept)

    async def _model(self, percept: Percept) -> Say | Execute:
        answer = await self._cascade.ask(percept.text)
        if answer.text is None:
            stated = ALL_DOWN if self._cascade.providers else NONE_CONFIGURED
            return Say(text=stated, explanation=answer.explanation)
        if command := proposed_command(answer.text):
            return Execute(command=command, route="model", explanation=answer.explanation)
        return Say(text=answer.text, explanation=answer.explanation)

    async def _command(self, percept: Percept) -> Say | Execute:
        why = f"text command /{percept.command}"
        if percept.command == "shell" and percept.argument:
            return Execute(command=percept.argument, route="text", explanation=why)
        if percept.command == "eval":
            try:
                return Say(text="=> " + evaluate_text(percept.argument), explanation=why)
            except EvaluationError as error:
                return Say(text=f"cannot evaluate: {error}", explanation=why)
        if percept.command == "skills":
            self._skills.refresh()
            rows = [f"{s.name} {s.version}: {s.description}" for s in self._skills.loaded]
            rows += [f"{r.name} rejected: {r.reason}" for r in self._skills.rejected]
            return Say(text="\n".join(rows) or "no skills", explanation=why)
        if percept.command == "gateways":
            rows = [f"{g.name} ({g.kind}): {g.description}" for g in registry()]
            return Say(text="\n".join(rows) or "no gateways", explanation=why)
        if percept.command == "health":
            report = await self._health()
            rows = [report.status, *(f"{c.name}: {c.state}, {c.detail}" for c in report.checks)]
            return Say(text="\n".join(rows), explanation=why)
        return Say(text=HELP, explanation=why)

    async def act(self, action: Say | Execute) -> Say:
        """Carry an action out."""
        if isinstance(action, Say):
            return action
        try:
            outcome = await self._shell.run(action.command, route=action.route)
        except Refused as refused:
            return Say(
                text=f"blocked by the security dispatcher: {refused}",
                explanation=f"{action.explanation}; the command was {action.command}",
            )
        return Say(text=_told(outcome), explanation=f"{action.explanation}; ran {action.command}")


def proposed_command(text: str) -> str:
    """The command that a model's answer asks for, or the empty string if it is a plain answer."""
    if not text.startswith("("):
        return ""
    try:
        form = as_plist(read(text, depth=8)) or {}
    except ReadError:
        return ""
    command = form.get("CMD")
    wanted = form.get("ACTION") == Keyword("EXECUTE") and isinstance(command, str)
    return str(command) if wanted else ""


def _told(outcome: Outcome) -> str:
    parts = [outcome.stdout.rstrip("\n"), outcome.stderr.rstrip("\n")]
    if parts[0] and faults.on("typed-stderr-lost"):
        del parts[1]
    if outcome.exit_code:
        parts.append(f"[exit code {outcome.exit_code}]")
    return "\n".join(part for part in parts if part) or "[done, no output]"


def silent(say: Say) -> bool:
    """Whether a planted fault swallows this answer."""
    return faults.on("all-down-silent") and say.text in {ALL_DOWN, NONE_CONFIGURED}
