"""A gateway as a supervised child of a run."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from harness_core.base import limits
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import http_answers
from harness_core.doubles.model._cli import KEY_VARIABLE, TOKEN_VARIABLE
from harness_core.doubles.model._client import GatewayClient
from harness_core.doubles.model._modes import PAID_MODES, UPSTREAM_KEY_VARIABLE, open_backend
from harness_core.ports import Stage, await_ready, listening_socket

if TYPE_CHECKING:
    # Types alone: the gateway's own process imports this package and supervises nothing.
    from harness_core.process import Run

#: A listening socket handed over is the child's first descriptor after the standard ones.
_FIRST_DESCRIPTOR: Final = 3

#: Connections that may wait while the gateway starts.
_BACKLOG: Final = 256

#: What the gateway may inherit; a subject's settings and keys of others are no part of it.
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
        mode: ``rehearsed``, ``live``, ``record`` or ``replay``.
        client: its control API.
    """

    url: str
    api_key: str = field(repr=False)
    mode: str
    client: GatewayClient


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCommand:
    """How a gateway is started.

    Attributes:
        argv: its command line.
        environment: its whole environment, with its key and token.
        gateway: what it is once it serves.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    gateway: Gateway


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
    # The socket listens before the process exists: its address is known and calls may queue.
    with listening_socket(backlog=_BACKLOG) as listener:
        command = gateway_command(
            ("--fd", str(_FIRST_DESCRIPTOR)),
            port=listener.getsockname()[1],
            evidence=evidence,
            **options,
        )
        starting = run.child(
            command.argv,
            name="gateway",
            env=command.environment,
            evidence=evidence,
            listen=(listener,),
        )
        async with starting as child:
            # Our copy goes: were the child to die, connections must be refused, not queue up.
            listener.close()
            hello = http_answers(f"{command.gateway.url}/api/hello")
            await await_ready(
                child, [Stage(name="hello", probe=hello, seconds=limits.CHILD_START_S)]
            )
            yield command.gateway


def gateway_command(
    where: Sequence[str],
    *,
    port: int,
    evidence: Evidence,
    api_key: str = "",
    token: str = "",
    **options: Unpack[GatewayOptions],
) -> GatewayCommand:
    """How a gateway is started.

    Args:
        where: ``--port NUMBER`` or ``--fd NUMBER``, and ``--host`` with further names.
        port: of 127.0.0.1, where it then listens.
        evidence: keeps its ``ledger.jsonl``.
        api_key: what callers present; made up when left out.
        token: of its control API; made up when left out.
        options: see :class:`GatewayOptions`.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
    """
    mode = options.get("mode", "rehearsed")
    api_key = api_key or "sk-ant-harness-" + secrets.token_urlsafe(24)
    token = token or "hgt-" + secrets.token_urlsafe(24)
    evidence.redactor.add(api_key, token)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {KEY_VARIABLE: api_key, TOKEN_VARIABLE: token}
    needed: dict[str, Any] = {"cassette": options.get("cassette")}
    key = ""
    if mode == "rehearsed":
        needed["form"] = options.get("form")
    elif mode in PAID_MODES:
        needed["upstream"] = options.get("upstream")
        key = options.get("upstream_key") or os.environ.get(UPSTREAM_KEY_VARIABLE, "")
        environment[UPSTREAM_KEY_VARIABLE] = key
    given = {name: value for name, value in needed.items() if value is not None}
    # Mistakes are reported here, not as the end of a process.
    open_backend(mode, redactor=evidence.redactor, upstream_key=key, **given)
    argv = [sys.executable, "-m", "harness_core.doubles.model", "--mode", mode, "--quiet", *where]
    argv += ["--ledger", str(evidence.path.absolute() / "ledger.jsonl")]
    argv += ["--budget-usd", repr(options.get("budget_usd", limits.LLM_BUDGET_USD))]
    for name, value in given.items():
        argv += [f"--{name}", str(value)]
    url = f"http://127.0.0.1:{port}"
    client = GatewayClient(url, token)
    gateway = Gateway(url=url, api_key=api_key, mode=mode, client=client)
    return GatewayCommand(argv=tuple(argv), environment=environment, gateway=gateway)
