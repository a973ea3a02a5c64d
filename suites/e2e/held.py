"""An ecosystem as a host holds it: described as data, acted on by name, put right after a crash."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from harness_core.db import POSTGRES_URL_VARIABLE
from harness_core.errors import BadInput
from harness_core.evidence import Evidence
from harness_core.process import Run, StopReport
from harness_core.staging import Options
from suites.e2e.attached_collector import collector_act
from suites.e2e.ecosystem import Ecosystem, open_ecosystem
from suites.e2e.subject_file import read_subject

__all__ = ["HeldEcosystem", "holding", "open_environment"]


class HeldEcosystem:
    """What a host asks of an ecosystem."""

    def __init__(self, ecosystem: Ecosystem) -> None:
        self.ecosystem = ecosystem

    def describe(self) -> Mapping[str, Any]:
        """Everything that another process needs to use it, and its parts for people."""
        ecosystem = self.ecosystem
        return {
            "title": ecosystem.subject.name,
            "subject": str(ecosystem.subject.path),
            "boot_s": ecosystem.boot_s,
            "postgres": {
                "url": ecosystem.postgres.url(),
                "provider": ecosystem.postgres.provider,
                "in_memory": ecosystem.postgres.in_memory,
            },
            "gateway": {
                "url": ecosystem.gateway.url,
                "key": ecosystem.gateway.api_key,
                "token": ecosystem.gateway.client.token,
                "mode": ecosystem.gateway.mode,
                "ledger": str(ecosystem.gateway.ledger),
            },
            "collector": {
                "endpoint": ecosystem.collector.endpoint,
                "spans": str(ecosystem.logs / "spans.jsonl"),
            },
            "butlers": {
                name: {
                    "directory": str(butler.config.directory),
                    "port": butler.port,
                    "database": butler.database.url,
                    "command": butler.command,
                    "environment": butler.environment,
                    "own_process": name in ecosystem.lives,
                }
                for name, butler in ecosystem.butlers.items()
            },
            "parts": list(self._parts()),
        }

    async def act(self, part: str, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Start, stop, restart, kill, pause or resume a part, or look at its process."""
        ecosystem = self.ecosystem
        if part == "postgres" and verb in {"start", "stop", "kill", "pause", "resume"}:
            await getattr(ecosystem.postgres, verb)()
            return None
        if part == "collector":
            return collector_act(ecosystem.collector, verb, arguments)
        if part == "gateway":
            return _process(ecosystem.gateway.child, verb)
        life = ecosystem.lives.get(part) or next(iter(ecosystem.lives.values()))
        if part not in ecosystem.butlers and part not in ecosystem.lives:
            known = ", ".join([*ecosystem.butlers, "postgres", "gateway"])
            raise BadInput("host", key="part", found=part, expected=f"one of {known}")
        if verb in {"start", "stop", "restart"}:
            await life.change(verb, arguments or life.environment)
        elif verb in {"kill", "pause", "resume"}:
            life.signal(verb)
        elif verb == "attempt":
            return await life.attempt(**arguments)
        else:
            return _process(life.child, verb)
        return _process(life.child, "look")

    async def mend(self) -> Sequence[str]:
        """Put right what a test left broken; says what that was."""
        return await self.ecosystem.mend()

    def _parts(self) -> Sequence[Mapping[str, Any]]:
        ecosystem = self.ecosystem
        state = ecosystem.server.state if ecosystem.server else "running"
        parts: list[Mapping[str, Any]] = [
            {
                "name": "postgres",
                "kind": f"PostgreSQL ({ecosystem.postgres.provider})",
                "state": state,
                "address": ecosystem.postgres.address,
                **dataclasses.asdict(ecosystem.postgres.place),
                "log": _existing(ecosystem, "postgres.log"),
                "urls": {"database": ecosystem.postgres.url()},
                "secrets": {},
            },
            {
                "name": "gateway",
                "kind": f"model gateway ({ecosystem.gateway.mode})",
                "state": _state(ecosystem.gateway.child),
                "address": ecosystem.gateway.url,
                "pid": ecosystem.gateway.child.pid,
                "log": str(ecosystem.gateway.child.log),
                "urls": {},
                "secrets": {"ANTHROPIC_API_KEY": ecosystem.gateway.api_key},
            },
        ]
        for name, butler in ecosystem.butlers.items():
            life = ecosystem.lives.get(name)
            parts.append(
                {
                    "name": name,
                    "kind": "butler",
                    "state": "paused" if life and life.paused else _state(butler.child),
                    "address": butler.url,
                    "pid": butler.pid,
                    "log": str(butler.child.log),
                    "urls": {"database": butler.database.url},
                    "secrets": {},
                }
            )
        return parts


@asynccontextmanager
async def holding(
    opening: AbstractAsyncContextManager[Ecosystem],
) -> AsyncIterator[HeldEcosystem]:
    """Open an ecosystem for a host."""
    async with opening as ecosystem:
        yield HeldEcosystem(ecosystem)


@asynccontextmanager
async def open_environment(
    run: Run, *, options: Options, evidence: Evidence, say: Callable[[str], None]
) -> AsyncIterator[HeldEcosystem]:
    """An ecosystem for staging (``suite.toml``, ``environment``).

    Raises:
        HarnessError: something did not start.
    """
    subject = read_subject(options.subject)
    say(f"booting {subject.name}")
    opened = open_ecosystem(
        run,
        subject,
        evidence=evidence,
        services=options.services,
        services_url=os.environ.get(POSTGRES_URL_VARIABLE),
        llm=options.llm,
        llm_upstream=options.llm_upstream,
        budget_usd=options.budget_usd,
        say=say,
    )
    async with holding(opened) as held:
        yield held


def _process(child: Any, verb: str) -> Any:
    """What can be seen of a process, after doing to it what was asked."""
    if verb == "tail":
        return list(child.tail())
    if verb in {"kill", "pause", "resume"}:
        getattr(child, verb)()
    elif verb != "look":
        raise BadInput("host", key="verb", found=verb, expected="kill, pause, resume, tail or look")
    report = child.stop_report
    return {
        "name": child.name,
        "pid": child.pid,
        "returncode": child.returncode,
        "log": str(child.log),
        "stop_report": dataclasses.asdict(report) if isinstance(report, StopReport) else None,
    }


def _state(child: Any) -> str:
    return "running" if child.returncode is None else f"ended with {child.returncode}"


def _existing(ecosystem: Ecosystem, name: str) -> str:
    path = ecosystem.logs / name
    return str(path) if path.exists() else ""
