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
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from harness_core.base import limits
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import http_answers
from harness_core.doubles.model._cli import KEY_VARIABLE, TOKEN_VARIABLE
from harness_core.doubles.model._client import GatewayClient
from harness_core.doubles.model._modes import PAID_MODES, UPSTREAM_KEY_VARIABLE, open_backend
from harness_core.ports import Stage, await_ready

if TYPE_CHECKING:
    # Types alone: the gateway's own process imports this package and supervises nothing.
    from harness_core.process import Child, Run

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


class GatewayOptions(TypedDict, total=False):
    """The options of a gateway, all of which may be left out.

    Attributes:
        mode: ``rehearsed``, ``live``, ``record`` or ``replay``.
        budget_usd: most that live calls may cost together.
        upstream: base URL of the provider in modes ``live`` and ``record``.
        upstream_key: the provider's key; from ``ANTHROPIC_API_KEY`` when not given.
        cassette: directory that ``record`` writes and ``replay`` reads.
        form: TOML file whose ``[model]`` says how prompts are shaped; read in mode ``rehearsed``.
    """

    mode: str
    budget_usd: float
    upstream: str | None
    upstream_key: str | None
    cassette: Path | None
    form: Path | None


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
async def open_gateway(
    run: Run, *, evidence: Evidence, **options: Unpack[GatewayOptions]
) -> AsyncIterator[Gateway]:
    """Start a gateway for a run and stop it at the end of the block.

    Args:
        run: the run it is a child of.
        evidence: keeps its log and ``ledger.jsonl``.
        options: see :class:`GatewayOptions`.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
        ChildExited: it ended before it answered; carries its output.
        NotReady: it did not answer within ``limits.CHILD_START_S``.
    """
    command = gateway_command(("--fd", str(_FIRST_DESCRIPTOR)), evidence=evidence, **options)
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
            hello = http_answers(f"{url}/api/hello")
            await await_ready(
                child, [Stage(name="hello", probe=hello, seconds=limits.CHILD_START_S)]
            )
            yield Gateway(
                url=url,
                api_key=command.api_key,
                mode=options.get("mode", "rehearsed"),
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


def gateway_command(
    where: Sequence[str],
    *,
    evidence: Evidence,
    api_key: str = "",
    token: str = "",
    **options: Unpack[GatewayOptions],
) -> GatewayCommand:
    """The command line of a gateway.

    Args:
        where: ``--port NUMBER`` or ``--fd NUMBER``.
        evidence: keeps its ``ledger.jsonl``.
        api_key: what callers present; made up when left out.
        token: of its control API; made up when left out.
        options: see :class:`GatewayOptions`.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
    """
    mode = options.get("mode", "rehearsed")
    budget_usd = options.get("budget_usd", limits.LLM_BUDGET_USD)
    argv = [sys.executable, "-m", "harness_core.doubles.model", "--mode", mode, "--quiet", *where]
    argv += ["--ledger", str(evidence.path.absolute() / "ledger.jsonl")]
    argv += ["--budget-usd", repr(budget_usd)]
    api_key = api_key or "sk-ant-harness-" + secrets.token_urlsafe(24)
    token = token or "hgt-" + secrets.token_urlsafe(24)
    evidence.redactor.add(api_key, token)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {KEY_VARIABLE: api_key, TOKEN_VARIABLE: token}
    needed: dict[str, Path | str | None] = {"cassette": options.get("cassette")}
    key = ""
    if mode == "rehearsed":
        needed["form"] = options.get("form")
    elif mode in PAID_MODES:
        needed["upstream"] = options.get("upstream")
        key = options.get("upstream_key") or os.environ.get(UPSTREAM_KEY_VARIABLE, "")
        environment[UPSTREAM_KEY_VARIABLE] = key
    given = {name: value for name, value in needed.items() if value is not None}
    # Mistakes are reported here, not as the end of a process.
    open_backend(mode, redactor=evidence.redactor, upstream_key=key, **given)  # type: ignore[arg-type]
    for name, value in given.items():
        argv += [f"--{name}", str(value)]
    return GatewayCommand(argv=tuple(argv), environment=environment, api_key=api_key, token=token)
