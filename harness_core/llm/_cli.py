"""The command line of the gateway: ``python -m harness_core.llm``, ``harness gateway``."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from harness_core import limits
from harness_core.errors import BadInput, HarnessError, Unavailable
from harness_core.evidence import Redactor
from harness_core.llm._backend import Backend
from harness_core.llm._live import LiveBackend
from harness_core.llm._models import ModelRule
from harness_core.llm._record import RecordBackend
from harness_core.llm._replay import ReplayBackend
from harness_core.llm._serve import Settings, serve
from harness_core.llm.rehearsed import RehearsedBackend, read_form
from harness_core.turns import read_rehearsals

__all__ = [
    "CASSETTE_MODES",
    "DEFAULT_MODEL",
    "DEFAULT_UPSTREAM",
    "MODES",
    "PAID_MODES",
    "SHORTEST_KEY",
    "main",
]

DEFAULT_MODEL: Final = "claude-haiku-4-5-20251001"
DEFAULT_UPSTREAM: Final = "https://api.anthropic.com"
MODES: Final = ("rehearsed", "live", "record", "replay")

#: Modes that ask a provider with a key.
PAID_MODES: Final = ("live", "record")

#: Modes that need a cassette.
CASSETTE_MODES: Final = ("record", "replay")

#: Names of environment variables; values never appear in argv, where any user could read them.
KEY_VARIABLE: Final = "HARNESS_GATEWAY_KEY"
TOKEN_VARIABLE: Final = "HARNESS_GATEWAY_TOKEN"  # noqa: S105 - a name, not a token
UPSTREAM_KEY_VARIABLE: Final = "ANTHROPIC_API_KEY"

#: Shorter keys could be guessed.
SHORTEST_KEY: Final = 16


def main(argv: Sequence[str] | None = None) -> int:
    """Run a gateway until SIGTERM; the exit status.

    Returns:
        0 after a stop, 1 when it could not run, 2 for a bad argument.
    """
    options = _parser().parse_args(argv)
    try:
        settings = _settings(options)
        trio.run(serve, settings)
    except BadInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line tells its user
        return 2
    except HarnessError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness_core.llm",
        description="Serve the Anthropic Messages API on 127.0.0.1 for systems under test.",
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
    add("--ready-file", type=Path, help="write the ready line there when listening")
    add("--quiet", action="store_true", help="do not print the ready line")
    add(
        "--budget-usd",
        type=float,
        default=limits.LLM_BUDGET_USD,
        help="most that live calls may cost together (default: %(default)s)",
    )
    add(
        "--budget-applies-offline",
        action="store_true",
        help="count calls that cost nothing against the budget as if they were live",
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
        help="what the model does in mode rehearsed, as TOML (docs/gateway.md); repeatable",
    )
    add(
        "--form",
        type=Path,
        metavar="FILE",
        help="a TOML file whose [model] says where in the prompts things stand (docs/gateway.md)",
    )
    add(
        "--allow-model",
        action="append",
        metavar="MODEL",
        help=f"model that live calls may ask for, repeatable (default: {DEFAULT_MODEL})",
    )
    add("--force-model", default="", metavar="MODEL", help="ask for this model in every live call")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    if options.budget_usd < 0 or options.budget_usd != options.budget_usd:
        raise BadInput("--budget-usd", found=options.budget_usd, expected="USD from 0 on")
    if not 0 <= options.port <= 65535:  # noqa: PLR2004 - the range of TCP ports
        raise BadInput("--port", found=options.port, expected="a port from 0 to 65535")
    redactor = Redactor()
    backend = _backend(options, redactor)
    return Settings(
        backend=backend,
        api_key=_secret(KEY_VARIABLE, prefix="sk-ant-harness-"),
        control_token=_secret(TOKEN_VARIABLE, prefix="hgt-"),
        models=_models(options),
        budget_usd=options.budget_usd,
        charge_offline=options.budget_applies_offline,
        ledger=options.ledger,
        port=options.port,
        hosts=tuple(options.host),
        descriptor=options.fd,
        ready_file=options.ready_file,
        announce=not options.quiet,
        redactor=redactor,
    )


def _backend(options: argparse.Namespace, redactor: Redactor) -> Backend:
    if (options.cassette is not None) != (options.mode in CASSETTE_MODES):
        raise BadInput(
            "--cassette",
            found=options.cassette and str(options.cassette),
            expected=f"a directory with --mode {' or '.join(CASSETTE_MODES)}, and only with those",
        )
    if options.mode == "rehearsed":
        return _rehearsed(options)
    for name, given in (("--turns", options.turns), ("--form", options.form)):
        if given:
            raise BadInput(name, found=f"--mode {options.mode}", expected="--mode rehearsed")
    if options.mode == "replay":
        return ReplayBackend(options.cassette, redactor=redactor)
    key = os.environ.get(UPSTREAM_KEY_VARIABLE, "")
    if not key:
        action = f"run the gateway in mode {options.mode}"
        raise Unavailable(
            action,
            observed=f"{UPSTREAM_KEY_VARIABLE} is not set",
            next_step="Set it, or use --mode rehearsed, which needs no key",
        )
    if not options.upstream.startswith(("http://", "https://")):
        raise BadInput("--upstream", found=options.upstream, expected="an http or https URL")
    redactor.add(key)
    live = LiveBackend(options.upstream, key=key)
    if options.mode == "record":
        return RecordBackend(live, cassette=options.cassette, redactor=redactor)
    return live


def _rehearsed(options: argparse.Namespace) -> RehearsedBackend:
    backend = RehearsedBackend(read_form(options.form) if options.form is not None else None)
    for path in options.turns:
        for rehearsal in read_rehearsals(path):
            backend.stage.load(rehearsal)
    return backend


def _models(options: argparse.Namespace) -> ModelRule:
    """Only calls that cost money are held to a list; offline any model may be asked for."""
    if options.mode not in PAID_MODES:
        return ModelRule()
    allowed = tuple(options.allow_model or (DEFAULT_MODEL,))
    forced = options.force_model
    return ModelRule(allowed=(*allowed, forced) if forced else allowed, forced=forced)


def _secret(variable: str, *, prefix: str) -> str:
    given = os.environ.get(variable, "")
    if not given:
        return prefix + secrets.token_urlsafe(24)
    if len(given) < SHORTEST_KEY:
        raise BadInput(
            variable,
            found=f"{len(given)} characters",
            expected=f"at least {SHORTEST_KEY}, so that nobody guesses it",
        )
    return given
