"""The command line: start, resume, list, cleanup, propose, approve."""

from __future__ import annotations

import argparse
import getpass
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from bot_bottle.backends import BACKENDS
from bot_bottle.errors import BottleError
from bot_bottle.host import Host
from bot_bottle.launcher import Launcher
from bot_bottle.run import SubprocessRunner


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. What is refused is one line on stderr and status 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    # What follows -- is the agent's own: argparse would take its flags for ours.
    at = words.index("--") if "--" in words else len(words)
    arguments = _parser().parse_args(words[:at])
    arguments.command = words[at + 1 :] or ["sh"]
    logging.basicConfig(
        level=logging.DEBUG if arguments.verbose else logging.WARNING,
        format="%(levelname)s %(message)s",
    )
    host = Host(
        home=Path.home(),
        environ=dict(os.environ),
        prompt=getpass.getpass,
        runner=SubprocessRunner(),
        log=logging.getLogger("bot_bottle"),
    )
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal cannot show is no reason not to show the rest.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Ended from outside, it removes its guest as at any other end.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        status: int = arguments.run(Launcher(host), arguments)
    except BottleError as error:
        print(f"bot-bottle: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bot-bottle", description="Bottles for coding agents.")
    parser.add_argument("--verbose", action="store_true", help="say what is done")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = commands.add_parser("start", help="launch a bottle and run what follows -- in it (sh)")
    start.add_argument("name", help="of ~/.bot-bottle/bottles/NAME.md")
    start.add_argument("--backend", help=f"one of {', '.join(BACKENDS)}")
    start.add_argument("--preserve", action="store_true", help="keep its state for resume")
    start.set_defaults(run=_start)

    resume = commands.add_parser("resume", help="launch a preserved bottle again (-- COMMAND)")
    resume.add_argument("identity")
    resume.set_defaults(run=_resume)

    listing = commands.add_parser("list", help="recorded bottles and proposals that wait")
    listing.set_defaults(run=_list)

    cleanup = commands.add_parser("cleanup", help="remove what crashed launches left")
    cleanup.set_defaults(run=_cleanup)

    propose = commands.add_parser("propose", help="queue a change of a bottle's image")
    propose.add_argument("identity")
    propose.add_argument("--image", required=True)
    propose.add_argument("--justification", required=True)
    propose.set_defaults(run=_propose)

    approve = commands.add_parser("approve", help="apply a proposal")
    approve.add_argument("proposal")
    approve.set_defaults(run=_approve)
    return parser


def _start(launcher: Launcher, arguments: argparse.Namespace) -> int:
    with launcher.start(arguments.name, backend=arguments.backend, cwd=Path.cwd()) as bottle:
        print(f"bot-bottle: {bottle.identity}", file=sys.stderr)
        if arguments.preserve:
            launcher.preserve(bottle.identity)
        return bottle.exec_agent(arguments.command, tty=sys.stdin.isatty())


def _resume(launcher: Launcher, arguments: argparse.Namespace) -> int:
    with launcher.resume(arguments.identity) as bottle:
        return bottle.exec_agent(arguments.command, tty=sys.stdin.isatty())


def _list(launcher: Launcher, _: argparse.Namespace) -> int:
    for metadata in launcher.recorded():
        _print_row(metadata.identity, metadata.backend, metadata.started_at)
    for proposal in launcher.pending():
        _print_row(proposal.id, proposal.identity, proposal.image, proposal.justification)
    return 0


def _print_row(*cells: str) -> None:
    """One line, whatever is in the cells: what is no printable character is shown as in Python."""
    print("\t".join("".join(map(_shown, cell)) for cell in cells))


def _shown(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    return character.encode("unicode_escape").decode()


def _cleanup(launcher: Launcher, _: argparse.Namespace) -> int:
    for identity in launcher.cleanup():
        print(f"removed {identity}")
    return 0


def _propose(launcher: Launcher, arguments: argparse.Namespace) -> int:
    proposal = launcher.propose(
        arguments.identity, image=arguments.image, justification=arguments.justification
    )
    print(proposal.id)
    return 0


def _approve(launcher: Launcher, arguments: argparse.Namespace) -> int:
    launcher.approve(arguments.proposal)
    return 0
