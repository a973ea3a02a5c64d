"""A gateway as a supervised child of a run."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_core import limits
from harness_core.errors import BadInput, ChildExited, Unavailable
from harness_core.evidence import Evidence
from harness_core.llm._cassette import read_cassette, read_volatile
from harness_core.llm._cli import (
    CASSETTE_MODES,
    DEFAULT_UPSTREAM,
    KEY_VARIABLE,
    MODES,
    PAID_MODES,
    TOKEN_VARIABLE,
    UPSTREAM_KEY_VARIABLE,
)
from harness_core.llm._client import GatewayClient
from harness_core.llm.rehearsed import read_form
from harness_core.wait import deadline, until

if TYPE_CHECKING:
    # Types alone: the gateway's own process imports this package and supervises nothing.
    from harness_core.process import Child, Run

__all__ = ["Gateway", "GatewayCommand", "gateway_command", "open_gateway"]

#: A listening socket handed over is the child's first descriptor after the standard ones.
_FIRST_DESCRIPTOR: Final = 3

_LOOPBACK: Final = "127.0.0.1"

#: Connections that may wait while the gateway starts.
_BACKLOG: Final = 256

#: What the gateway may inherit; a subject's settings and other people's keys are no part of it.
_INHERITED: Final = (
    "PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy",
    "no_proxy",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway that serves.

    Attributes:
        url: base URL for ``ANTHROPIC_BASE_URL``.
        api_key: the key of this run for ``ANTHROPIC_API_KEY``; worth nothing elsewhere.
        client: its control API.
        ledger: the JSONL file it appends to.
        child: its process; ``None`` where it is a part of a system, which then has it.
    """

    url: str
    api_key: str
    mode: str
    client: GatewayClient
    ledger: Path
    child: Child | None = None


@asynccontextmanager
async def open_gateway(  # noqa: PLR0913 - the options of a gateway, all but the run with defaults
    run: Run,
    *,
    mode: str = "rehearsed",
    evidence: Evidence,
    budget_usd: float = limits.LLM_BUDGET_USD,
    budget_applies_offline: bool = False,
    upstream: str | None = None,
    upstream_key: str | None = None,
    models: Sequence[str] = (),
    forced_model: str = "",
    cassette: Path | None = None,
    form: Path | None = None,
) -> AsyncIterator[Gateway]:
    """Start a gateway for a run and stop it at the end of the block.

    Args:
        run: the run it is a child of.
        mode: ``rehearsed``, ``live``, ``record`` or ``replay``.
        evidence: keeps its log and ``ledger.jsonl``.
        budget_usd: most that live calls may cost together.
        budget_applies_offline: count calls that cost nothing as if they were live.
        upstream: base URL of the provider in modes ``live`` and ``record``.
        upstream_key: the provider's key; from ``ANTHROPIC_API_KEY`` when not given.
        models: models that live calls may ask for; the default model when empty.
        forced_model: asked for in place of whatever the subject names.
        cassette: directory that ``record`` writes and ``replay`` reads.
        form: TOML file whose ``[model]`` says how prompts are shaped, in mode ``rehearsed``.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
        ChildExited: it ended before it answered; carries its output.
        NotReady: it did not answer within ``limits.CHILD_START_S``.
    """
    command = gateway_command(
        ("--fd", str(_FIRST_DESCRIPTOR)),
        mode=mode,
        evidence=evidence,
        budget_usd=budget_usd,
        budget_applies_offline=budget_applies_offline,
        upstream=upstream,
        upstream_key=upstream_key,
        models=models,
        forced_model=forced_model,
        cassette=cassette,
        form=form,
    )
    # The socket listens before the process exists: its address is known and calls may queue.
    listener = socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG)
    url = f"http://{_LOOPBACK}:{listener.getsockname()[1]}"
    try:
        starting = run.child(
            command.argv,
            name="gateway",
            env=command.environment,
            evidence=evidence,
            listen=(listener,),
        )
        client = GatewayClient(url, command.token)
        async with starting as child:
            # Our copy goes: were the child to die, connections must be refused, not queue up.
            listener.close()
            await _wait_until_ready(child, client)
            yield Gateway(
                url=url,
                api_key=command.api_key,
                mode=mode,
                client=client,
                ledger=evidence.path / "ledger.jsonl",
                child=child,
            )
    finally:
        listener.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCommand:
    """How a gateway is started by somebody who supervises it himself.

    Attributes:
        argv: its command line.
        environment: its whole environment, with its key and token.
        api_key: what callers present.
        token: of its control API.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    api_key: str = field(repr=False)
    token: str = field(repr=False)


def gateway_command(  # noqa: PLR0913 - the options of a gateway, all but where it listens optional
    where: Sequence[str],
    *,
    mode: str = "rehearsed",
    evidence: Evidence,
    api_key: str = "",
    token: str = "",
    budget_usd: float = limits.LLM_BUDGET_USD,
    budget_applies_offline: bool = False,
    upstream: str | None = None,
    upstream_key: str | None = None,
    models: Sequence[str] = (),
    forced_model: str = "",
    cassette: Path | None = None,
    form: Path | None = None,
) -> GatewayCommand:
    """The command line of a gateway; :func:`open_gateway` says what its options mean.

    ``where`` is ``--port NUMBER`` or ``--fd NUMBER``; ``api_key`` is what callers present and
    ``token`` that of its control API, both made up when left out.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
    """
    if mode not in MODES:
        raise BadInput("open_gateway", key="mode", found=mode, expected=" or ".join(MODES))
    _check_cassette(mode, cassette)
    if form is not None:
        read_form(form)
    api_key = api_key or "sk-ant-harness-" + secrets.token_urlsafe(24)
    token = token or "hgt-" + secrets.token_urlsafe(24)
    evidence.redactor.add(api_key, token)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {KEY_VARIABLE: api_key, TOKEN_VARIABLE: token}
    argv = [sys.executable, "-m", "harness_core.llm", "--mode", mode, "--quiet", *where]
    ledger = evidence.path.absolute() / "ledger.jsonl"
    argv += ["--ledger", str(ledger), "--budget-usd", repr(budget_usd)]
    argv += ["--budget-applies-offline"] if budget_applies_offline else []
    argv += ["--cassette", str(cassette)] if cassette is not None else []
    argv += ["--form", str(form)] if form is not None and mode == "rehearsed" else []
    if mode in PAID_MODES:
        key = upstream_key or os.environ.get(UPSTREAM_KEY_VARIABLE, "")
        if not key:
            action = f"open a model gateway in mode {mode}"
            raise Unavailable(
                action,
                observed=f"{UPSTREAM_KEY_VARIABLE} is not set",
                next_step="Set it, or use mode rehearsed, which needs no key",
            )
        evidence.redactor.add(key)
        environment[UPSTREAM_KEY_VARIABLE] = key
        argv += ["--upstream", upstream or DEFAULT_UPSTREAM]
        for model in models:
            argv += ["--allow-model", model]
        argv += ["--force-model", forced_model] if forced_model else []
    return GatewayCommand(argv=tuple(argv), environment=environment, api_key=api_key, token=token)


def _check_cassette(mode: str, cassette: Path | None) -> None:
    """Mistakes in a cassette are told here, not as the end of a process."""
    if (cassette is not None) != (mode in CASSETTE_MODES):
        raise BadInput(
            "open_gateway",
            key="cassette",
            found=cassette and str(cassette),
            expected=f"a directory in mode {' or '.join(CASSETTE_MODES)}, and in no other",
        )
    if cassette is not None and mode == "replay":
        read_cassette(cassette)
    elif cassette is not None:
        read_volatile(cassette)


async def _wait_until_ready(child: Child, client: GatewayClient) -> None:
    async def answers() -> bool:
        if child.returncode is not None:
            raise ChildExited(
                "start the model gateway",
                name=child.name,
                returncode=child.returncode,
                tail=child.tail(),
                log=child.log,
            )
        try:
            await client.health()
        except Unavailable:
            return False
        return True

    with deadline("start the model gateway", seconds=limits.CHILD_START_S, tail=child.tail):
        await until(answers)
