"""`butlers run`, `butlers up`, `butlers check`: what an operator types.

Exit codes: 0 stopped on request, 1 could not start or run, 2 malformed configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import sys
from pathlib import Path

from butlers import __version__
from butlers.errors import ButlerError, ConfigError

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(argv: list[str] | None = None) -> int:
    """Run a command; errors an operator can act on are one line on stderr."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except ButlerError as error:
        print(f"butlers: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="butlers", description="Run butlers.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run one butler in this process")
    run.add_argument("--config", type=Path, required=True, metavar="DIR",
                     help="the folder of the butler, e.g. roster/health")
    run.set_defaults(command=_run)
    up = commands.add_parser("up", help="run every butler of a roster, one process each")
    up.add_argument("--only", default="", metavar="NAMES", help="comma-separated names")
    up.set_defaults(command=_up)
    check = commands.add_parser("check", help="read every configuration and start nothing")
    check.set_defaults(command=_check)
    for command in (up, check):
        command.add_argument("--dir", type=Path, default=Path("roster"), metavar="ROSTER")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    # Start-up makes many objects and no garbage: collecting it costs a fifth of the time.
    gc.disable()
    _never_proxy_loopback()
    return asyncio.run(_serve(arguments.config))


def _never_proxy_loopback() -> None:
    """Butlers, sessions and a local gateway meet on loopback, whatever proxy the host has."""
    for variable in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(variable, "").split(",") if host]
        hosts.extend(host for host in ("127.0.0.1", "localhost") if host not in hosts)
        os.environ[variable] = ",".join(hosts)


async def _serve(directory: Path) -> int:
    from butlers.daemon import ButlerDaemon

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    daemon = ButlerDaemon(directory)
    starting = asyncio.create_task(daemon.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        stopping.cancel()
        return 0
    try:
        await starting
    finally:
        stopping.cancel() if starting.exception() else None
    gc.freeze()
    gc.enable()
    await stopping
    await daemon.shutdown()
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from butlers import config
    from butlers.modules import Modules

    problems = 0
    for directory in config.discover(arguments.dir):
        try:
            loaded = config.load(directory)
            Modules(loaded).check_config()
        except ConfigError as error:
            print(f"butlers: {error}", file=sys.stderr)
            problems += 1
        else:
            print(f"{loaded.name} port={loaded.port} ok")
    return ConfigError.exit_code if problems else 0


def _up(arguments: argparse.Namespace) -> int:
    from butlers import config, faults

    directories = {path.name: path for path in config.discover(arguments.dir)}
    if faults.on("up-misses-one"):
        del directories[min(directories)]
    wanted = [name.strip() for name in arguments.only.split(",") if name.strip()]
    for name in wanted:
        if name not in directories:
            raise ConfigError(
                arguments.dir, key="--only", found=name,
                expected="one of " + ", ".join(directories),
            )
    loaded = {name: config.load(directories[name]) for name in wanted or directories}
    ports: dict[int, str] = {}
    for name, butler in loaded.items():
        if (other := ports.setdefault(butler.port, name)) != name:
            raise ConfigError(
                butler.file, key="butler.port", found=butler.port,
                expected=f"a port of its own ({other} has this one)",
            )
    return _supervise({name: butler.directory for name, butler in loaded.items()})


def _supervise(directories: dict[str, Path]) -> int:
    """Fork one process per butler after importing once; end when all have ended.

    A butler that fails stops no other; the exit code reports it.
    """
    import butlers.core_tools
    import butlers.daemon
    import butlers.switchboard  # noqa: F401 - imported for the children
    from butlers.server import preload

    gc.disable()
    preload()
    gc.freeze()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    children: dict[int, str] = {}
    for name, directory in directories.items():
        pid = os.fork()
        if pid == 0:
            _child(directory)
        children[pid] = name
        print(f"{name} pid={pid}", flush=True)

    def forward(number: int, _frame: object) -> None:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    for number in _SIGNALS:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    worst = 0
    while children:
        pid, status = os.wait()
        name = children.pop(pid, "unknown")
        code = os.waitstatus_to_exitcode(status)
        if code:
            print(f"butlers: {name} ended with {code}", file=sys.stderr, flush=True)
        worst = worst or (code if code > 0 else int(bool(code)))
    return worst


def _child(directory: Path) -> None:
    """The rest of the life of a forked process."""
    import ctypes

    # The butlers of one `up` end with it, also when it is killed.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    code = 1
    try:
        code = main(["run", "--config", str(directory)])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

