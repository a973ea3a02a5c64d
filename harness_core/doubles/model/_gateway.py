"""A gateway as a supervised child of a run."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from harness_core.base import limits
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import http_answers
from harness_core.doubles.model._cli import KEY_VARIABLE, TOKEN_VARIABLE
from harness_core.doubles.model._client import GatewayClient
from harness_core.doubles.model._modes import PAID_MODES, UPSTREAM_KEY_VARIABLE, GatewayOptions
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
async def open_gateway(run: Run, *, evidence: Evidence, **options: Any) -> AsyncIterator[Gateway]:
    """Start a gateway for a run and stop it at the end of the block.

    Args:
        run: the run it is a child of.
        evidence: keeps its log and ``ledger.jsonl``.
        options: of :class:`~harness_core.doubles.model._modes.GatewayOptions`: ``mode``,
            ``budget_usd``, ``upstream``, ``upstream_key``, ``cassette``, ``form``.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
        ChildExited: it ended before it answered; carries its output.
        NotReady: it did not answer within ``limits.CHILD_START_S``.
    """
    # The socket listens before the process exists: its address is known and calls may queue.
    with listening_socket(backlog=_BACKLOG) as listener:
        where = ("--fd", str(_FIRST_DESCRIPTOR))
        port = listener.getsockname()[1]
        command = gateway_command(where, port=port, evidence=evidence, **options)
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
    **options: Any,
) -> GatewayCommand:
    """How a gateway is started.

    Args:
        where: ``--port NUMBER`` or ``--fd NUMBER``, and ``--host`` with further names.
        port: of 127.0.0.1, where it then listens.
        evidence: keeps its ``ledger.jsonl``.
        api_key: what callers present; made up when left out.
        token: of its control API; made up when left out.
        options: as for :func:`open_gateway`; a ``form`` is read in mode ``rehearsed`` alone.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
    """
    key = options.pop("upstream_key", None) or os.environ.get(UPSTREAM_KEY_VARIABLE, "")
    chosen = GatewayOptions(**options, upstream_key=key)
    if chosen.mode != "rehearsed":
        chosen = replace(chosen, form=None)
    # Mistakes are reported here, not as the end of a process.
    chosen.backend(evidence.redactor)
    api_key = api_key or "sk-ant-harness-" + secrets.token_urlsafe(24)
    token = token or "hgt-" + secrets.token_urlsafe(24)
    evidence.redactor.add(api_key, token)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {KEY_VARIABLE: api_key, TOKEN_VARIABLE: token}
    if chosen.mode in PAID_MODES:
        environment[UPSTREAM_KEY_VARIABLE] = chosen.upstream_key or ""
    argv = [sys.executable, "-m", "harness_core.doubles.model", "--quiet", *where]
    argv += ["--ledger", str(evidence.path.absolute() / "ledger.jsonl")]
    for name in ("mode", "budget_usd", "cassette", "form", "upstream"):
        if (value := getattr(chosen, name)) is not None:
            argv += ["--" + name.replace("_", "-"), str(value)]
    url = f"http://127.0.0.1:{port}"
    client = GatewayClient(url, token)
    gateway = Gateway(url=url, api_key=api_key, mode=chosen.mode, client=client)
    return GatewayCommand(argv=tuple(argv), environment=environment, gateway=gateway)
