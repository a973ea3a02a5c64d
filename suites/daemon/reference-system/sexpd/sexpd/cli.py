"""`sexpd`: start the daemon, set it up, look at it, talk to it.

Each command imports what it needs when it runs: `sexpd start` listens before it has read what only
others use. Exit codes: 0 done, 1 could not, 2 malformed configuration or command line.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
from pathlib import Path
from typing import Any

from sexpd import VERSION
from sexpd.errors import SexpdError


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code.
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments) or 0)
    except SexpdError as error:
        print(f"sexpd: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sexpd",
        description="A daemon that speaks framed s-expressions on a loopback port.",
        epilog="Settings are SEXPD_* variables: README.md of the distribution.",
    )
    parser.add_argument("--version", action="version", version=f"sexpd {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = _add(commands, "start", _start, "serve until SIGTERM or SIGINT")
    start.add_argument("--port", metavar="N", help="port, 0 for a free one (default 9105)")

    _add(commands, "setup", _setup, "install skills and clients into the data directory")
    _add(commands, "faults", _faults, "list the planted faults of SEXPD_FAULT")
    _add(commands, "emacs", _emacs, "print the path of the Emacs client")

    for name, function, summary in (
        ("status", _status, "ask a running daemon how it is"),
        ("gateways", _gateways, "list the gateways and messaging links of a running daemon"),
        ("skills", _skills, "list the skills of a running daemon, and those rejected"),
        ("stop", _stop, "stop a running daemon"),
        ("tui", _tui, "talk to a running daemon in the terminal"),
    ):
        _with_port(_add(commands, name, function, summary))
    say = _with_port(_add(commands, "say", _say, "send one text through the CLI gateway"))
    say.add_argument("text", nargs="+")
    shell = _with_port(_add(commands, "shell", _shell, "run one command in the daemon's shell"))
    shell.add_argument("--timeout", type=float, metavar="SECONDS")
    shell.add_argument("cmd", metavar="COMMAND")

    link = _add(commands, "link", _link, "link a messaging address; the daemon need not run")
    link.add_argument("name")
    link.add_argument("platform", help="telegram, signal, matrix, slack, discord or webhook")
    link.add_argument("address", help="the platform's word for who it is, e.g. a chat id")
    link.add_argument(
        "--webhook-file", metavar="FILE",
        help="holds the URL where texts for it are posted, - is stdin: others can read a command line",
    )
    unlink = _add(commands, "unlink", _unlink, "forget a messaging link")
    unlink.add_argument("name")
    _add(commands, "links", _links, "list the messaging links on disk")
    return parser


def _add(commands: Any, name: str, function: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(command=function)
    return parser


def _with_port(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--port", metavar="N", help="port of the daemon")
    return parser


def _load(*, port: str | None = None) -> Any:
    from sexpd import config, faults

    faults.active()
    return config.load(port=port)


# --- Here -----------------------------------------------------------------------------------------------


def _start(arguments: argparse.Namespace) -> None:
    # Start-up makes many objects and no garbage: collecting it costs a fifth of the time.
    gc.disable()
    config = _load(port=arguments.port)
    import trio

    from sexpd.environment import blot_out
    from sexpd.server import serve

    # Keys, and addresses that may hold a password: a command may read what is known of this process.
    blot_out("SEXPD_PROVIDER_")

    try:
        trio.run(serve, config, strict_exception_groups=True)
    except BaseExceptionGroup as group:
        known, others = group.split(SexpdError)
        if others is not None or known is None:
            raise
        while isinstance(known, BaseExceptionGroup):
            known = known.exceptions[0]
        raise known from None


def _setup(arguments: argparse.Namespace) -> None:
    from sexpd.install import setup

    for line in setup(_load()):
        print(line)


def _faults(arguments: argparse.Namespace) -> None:
    from sexpd.faults import FAULTS

    for name, meaning in FAULTS.items():
        print(f"{name:26} {meaning}")


def _emacs(arguments: argparse.Namespace) -> None:
    from sexpd.install import emacs_client

    print(emacs_client())


def _link(arguments: argparse.Namespace) -> None:
    from sexpd.gateways import Links

    link = Links(_load().data).add(
        name=arguments.name,
        platform=arguments.platform,
        address=arguments.address,
        webhook=_content(arguments.webhook_file) if arguments.webhook_file else "",
    )
    print(f"linked {link.name}: {link.platform} {link.address}")


def _content(file: str) -> str:
    try:
        return (sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")).strip()
    except (OSError, ValueError) as error:
        raise SexpdError(f"cannot read {file}: {type(error).__name__}. Name a text file") from error


def _unlink(arguments: argparse.Namespace) -> None:
    from sexpd.gateways import Links

    link = Links(_load().data).remove(arguments.name)
    print(f"unlinked {link.name}: {link.platform} {link.address}")


def _links(arguments: argparse.Namespace) -> None:
    from sexpd.gateways import Links

    for link in Links(_load().data).all():
        print(f"{link.name} {link.platform} {link.address} {link.origin}".rstrip())


# --- There ----------------------------------------------------------------------------------------------


def _connect(arguments: argparse.Namespace) -> Any:
    from sexpd.client import Client

    host, port = _address(arguments)
    return Client(host, port)


def _address(arguments: argparse.Namespace) -> tuple[str, int]:
    """Where the daemon is: --port, else its port file, else the configured port."""
    config = _load(port=arguments.port)
    port = config["server.port"]
    if arguments.port is None:
        with contextlib.suppress(OSError, ValueError):
            port = int(config["server.port_file"].read_text())
    return config["server.host"], port


def _request(target: str, **payload: Any) -> list[Any]:
    from sexpd.sexpr import Keyword, plist

    meta = plist(source=Keyword("CLI"))
    return plist(
        meta=meta, type=Keyword("REQUEST"), target=Keyword(target), payload=plist(**payload)
    )


def _asked(arguments: argparse.Namespace, target: str, action: str, **more: Any) -> dict[str, Any]:
    from sexpd.sexpr import Keyword, as_plist

    with _connect(arguments) as client:
        answer = client.ask(_request(target, action=Keyword(action), **more))
    return as_plist(answer.get("PAYLOAD")) or {}


def _rows(value: Any) -> list[dict[str, Any]]:
    from sexpd.sexpr import as_plist

    return [as_plist(item) or {} for item in value or []]


def _status(arguments: argparse.Namespace) -> int:
    from sexpd import faults
    from sexpd.sexpr import Keyword, keyword_name, plist

    with _connect(arguments) as client:
        health = client.ask(plist(type=Keyword("HEALTH-CHECK")))
    status = keyword_name(health.get("STATUS"))
    print(status)
    for row in _rows(health.get("CHECKS")):
        print(f"  {row.get('NAME')}: {keyword_name(row.get('STATUS'))}, {row.get('DETAIL')}")
    for key, value in _asked(arguments, "DAEMON", "STATUS").items():
        if key != "SENSOR":
            print(f"  {key.lower()}: {value}")
    if faults.on("status-unhealthy-succeeds"):
        return int(status == "DEGRADED")
    return int(status != "HEALTHY")


def _gateways(arguments: argparse.Namespace) -> None:
    from sexpd.sexpr import keyword_name

    listed = _asked(arguments, "GATEWAY", "LIST")
    for row in _rows(listed.get("GATEWAYS")):
        kind = keyword_name(row.get("KIND")).lower()
        print(f"{row.get('NAME')} ({kind}): {row.get('DESCRIPTION')}")
    for row in _rows(listed.get("LINKS")):
        print(f"link {row.get('NAME')}: {row.get('PLATFORM')} {row.get('ADDRESS')}")


def _skills(arguments: argparse.Namespace) -> None:
    listed = _asked(arguments, "SKILL", "LIST")
    for row in _rows(listed.get("SKILLS")):
        print(f"{row.get('NAME')} {row.get('VERSION')}: {row.get('DESCRIPTION')}")
    for row in _rows(listed.get("REJECTED")):
        print(f"{row.get('NAME')} rejected: {row.get('REASON')}")


def _stop(arguments: argparse.Namespace) -> None:
    _asked(arguments, "DAEMON", "SHUTDOWN")
    print("stopping")


def _say(arguments: argparse.Namespace) -> None:
    from sexpd.sexpr import Keyword, as_plist, plist

    payload = plist(sensor=Keyword("USER-INPUT"), text=" ".join(arguments.text))
    message = plist(meta=plist(source=Keyword("CLI")), type=Keyword("EVENT"), payload=payload)
    with _connect(arguments) as client:
        answer = as_plist(client.ask(message).get("PAYLOAD")) or {}
    print(answer.get("TEXT"))
    print(f"({answer.get('EXPLANATION')})", file=sys.stderr)


def _shell(arguments: argparse.Namespace) -> int:
    from sexpd import faults

    more = {} if arguments.timeout is None else {"timeout": arguments.timeout}
    done = _asked(arguments, "SHELL", "EXECUTE", cmd=arguments.cmd, **more)
    sys.stdout.write(done["STDOUT"])
    (sys.stdout if faults.on("typed-streams-mixed") else sys.stderr).write(done["STDERR"])
    return int(done.get("EXIT-CODE") or 0)


def _tui(arguments: argparse.Namespace) -> int:
    host, port = _address(arguments)
    from sexpd.tui import run

    return run(host, port)
