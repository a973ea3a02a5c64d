"""The command line of the gateway: ``python -m harness_core.doubles.model``, ``harness gateway``."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import trio

from harness_core.base import limits
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import Redactor
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._ledger import Ledger
from harness_core.doubles.model._modes import (
    DEFAULT_UPSTREAM,
    MODES,
    PAID_MODES,
    UPSTREAM_KEY_VARIABLE,
    GatewayOptions,
)
from harness_core.doubles.model._serve import listen, serve

_DEFAULT_MODEL: Final = "claude-haiku-4-5-20251001"

#: Names of environment variables; values never appear in argv, where any user could read them.
KEY_VARIABLE: Final = "HARNESS_GATEWAY_KEY"
TOKEN_VARIABLE: Final = "HARNESS_GATEWAY_TOKEN"  # noqa: S105 - a name, not a token

#: Shorter keys could be guessed.
SHORTEST_KEY: Final = 16


def main(argv: Sequence[str] | None = None) -> int:
    """Run a gateway until SIGTERM; the exit status.

    Returns:
        0 after a stop, 1 when it could not run, 2 for a bad argument.
    """
    options = gateway_parser().parse_args(argv)
    try:
        trio.run(_serve, options)
    except HarnessError as error:
        print(error, file=sys.stderr)  # noqa: T201 - this process's interface
        return 2 if isinstance(error, BadInput) else 1
    except KeyboardInterrupt:
        pass
    return 0


def gateway_parser() -> argparse.ArgumentParser:
    """What the process understands; `harness gateway` hands it all of its words."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_core.doubles.model",
        description="Serve the APIs of models' providers on 127.0.0.1 for systems under test: "
        "Anthropic's Messages (/v1/messages), OpenAI's Chat Completions (/v1/chat/completions), "
        "Responses (/v1/responses) and embeddings (/v1/embeddings).",
        epilog=(
            f"{KEY_VARIABLE} and {TOKEN_VARIABLE} set the key that callers present and the token of"
            " the control API; without them both are made up and printed in the ready line."
            f" Modes live and record read the provider's key from {UPSTREAM_KEY_VARIABLE}."
        ),
    )
    add = parser.add_argument
    add("--mode", choices=MODES, default="rehearsed", help="who answers (default: %(default)s)")
    add("--port", type=int, default=0, help="TCP port; 0 takes any (default)")
    add("--fd", type=int, help="inherited listening socket, instead of --port")
    add(
        "--host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="name that callers know it by, besides 127.0.0.1 and localhost with its port;"
        " repeatable. A request for any other host is refused",
    )
    add("--ledger", type=Path, help="append every call to this JSONL file")
    add("--quiet", action="store_true", help="do not print the ready line")
    add(
        "--budget-usd",
        type=float,
        default=limits.LLM_BUDGET_USD,
        help="most that live calls may cost together (default: %(default)s)",
    )
    add(
        "--upstream",
        default=DEFAULT_UPSTREAM,
        help="provider of modes live and record (default: %(default)s)",
    )
    add("--cassette", type=Path, metavar="DIR", help="what record writes and replay reads")
    add(
        "--turns",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="what the model does in mode rehearsed, as TOML (docs/how-to/gateway.md); repeatable",
    )
    add(
        "--form",
        type=Path,
        metavar="FILE",
        help="a TOML file whose [model] says where in the prompts things stand (docs/how-to/gateway.md)",
    )
    add(
        "--allow-model",
        action="append",
        metavar="MODEL",
        help=f"model that live calls may ask for, repeatable (default: {_DEFAULT_MODEL})",
    )
    return parser


async def _serve(options: argparse.Namespace) -> None:
    if options.budget_usd < 0 or options.budget_usd != options.budget_usd:
        raise BadInput("--budget-usd", found=options.budget_usd, expected="USD from 0 on")
    if not 0 <= options.port <= 65535:  # noqa: PLR2004 - the range of TCP ports
        raise BadInput("--port", found=options.port, expected="a port from 0 to 65535")
    redactor = Redactor()
    chosen = GatewayOptions(
        mode=options.mode,
        upstream=options.upstream,
        upstream_key=os.environ.get(UPSTREAM_KEY_VARIABLE, ""),
        cassette=options.cassette,
        turns=options.turns,
        form=options.form,
    )
    backend = chosen.backend(redactor)
    # Only calls that cost money are held to a list; offline any model may be asked for.
    models = options.allow_model or [_DEFAULT_MODEL] if options.mode in PAID_MODES else []
    key = _secret(KEY_VARIABLE, prefix="sk-ant-harness-")
    token = _secret(TOKEN_VARIABLE, prefix="hgt-")
    with (
        closing(_open_ledger(options.ledger)) as ledger,
        listen(port=options.port, descriptor=options.fd) as listener,
    ):
        desk = Desk(
            backend=backend,
            ledger=ledger,
            budget=Budget(options.budget_usd),
            api_key=key,
            models=models,
            redactor=redactor,
        )
        line = {
            "url": f"http://127.0.0.1:{listener.getsockname()[1]}",
            "api_key": key,
            "control_token": token,
            "mode": options.mode,
            "pid": os.getpid(),
        }

        def announce() -> None:
            # A supervisor that knows key and token, and keeps the output, has it left out.
            if not options.quiet:
                print(json.dumps(line), flush=True)  # noqa: T201 - this process's interface

        await serve(desk, listener, control_token=token, hosts=options.host, ready=announce)


def _open_ledger(path: Path | None) -> Ledger:
    try:
        return Ledger(path)
    except OSError as error:
        raise BadInput(
            "--ledger", found=str(path), expected=f"a file that can be written ({error.strerror})"
        ) from error


def _secret(variable: str, *, prefix: str) -> str:
    given = os.environ.get(variable, "")
    if given and len(given) < SHORTEST_KEY:
        raise BadInput(
            variable,
            found=f"{len(given)} characters",
            expected=f"at least {SHORTEST_KEY}, which cannot be guessed",
        )
    return given or prefix + secrets.token_urlsafe(24)
