"""What every driver of a stack must do, as a check that it passes by opening a sample stack.

The sample: ``front`` needs ``back``, the database and two recorders, ``back`` waits for a one-shot
service that looks for the database. It is written by :func:`write_sample_stack`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import trio

from harness_core.base.errors import BadInput, HarnessError
from harness_core.doubles.http import Silence, Unanswered
from harness_core.process import command_line
from harness_core.system.compose import Stack
from harness_core.system.parts import OUTAGES, ServiceFailed, State

Open = Callable[[Path], AbstractAsyncContextManager[Stack]]

#: A variable of the caller that the sample passes on to ``front``.
SAMPLE_VARIABLE: Final = "SAMPLE_PASSED_ON"

_SERVER: Final = Path(__file__).with_name("sample_server.py")

#: A paused server is silent for so long at least.
_SILENCE_S: Final = 0.5
_OK: Final = 200
_CREATED: Final = 201
_UNHEALTHY: Final = 503


def sample_stack(*, python: str = "python3") -> dict[str, Any]:
    """The sample as a compose file says it; JSON is YAML.

    Args:
        python: the interpreter that runs it where there are no containers.
    """
    serve = [python, "{here}/sample_server.py", "serve", "{host}", "{port}"]
    container = ["python3", "/sample/sample_server.py", "serve", "0.0.0.0", "8000"]
    image = {"image": "${SAMPLE_IMAGE:-python:3.11-slim}", "volumes": ["./:/sample:ro"]}
    # Two of one port, as third parties have it.
    recorder = {
        "image": "staging-harness:latest",
        "ports": ["3000"],
        "x-harness": {"service": "recorder"},
    }
    check = {
        "test": ["CMD", "python3", "/sample/sample_server.py", "once"],
        "interval": "1s",
        "timeout": "5s",
        "retries": 30,
    }
    return {
        "services": {
            "postgres": {
                "image": "${POSTGRES_IMAGE:-postgres:17}",
                "environment": {
                    "POSTGRES_USER": "sample",
                    "POSTGRES_PASSWORD": "sample-password",
                    "POSTGRES_DB": "sample_data",
                },
                "ports": ["5432"],
                "healthcheck": {
                    "test": ["CMD-SHELL", "pg_isready -U sample -d sample_data -h 127.0.0.1"],
                    "interval": "1s",
                    "timeout": "5s",
                    "retries": 30,
                },
                "x-harness": {"service": "postgres"},
            },
            "prepare": {
                **image,
                "command": ["python3", "/sample/sample_server.py", "once"],
                "environment": {"SAMPLE_NEEDS": "postgres:5432"},
                "depends_on": {"postgres": {"condition": "service_healthy"}},
                "x-harness": {"command": [python, "{bin}/sample_server.py", "once"]},
            },
            "back": {
                **image,
                "command": container,
                "environment": {"SAMPLE_NEEDS": "", "SAMPLE_DATA": "{data}"},
                "ports": ["8000"],
                "healthcheck": check,
                "depends_on": {"prepare": {"condition": "service_completed_successfully"}},
                "x-harness": {"command": serve, "health": "/health"},
            },
            "front": {
                **image,
                "command": container,
                "environment": {
                    "SAMPLE_NEEDS": "http://back:8000/health postgres:5432"
                    " http://ledger:3000/of-ledger http://mailbox:3000/of-mailbox",
                    "SAMPLE_DATA": "{data}",
                    "SAMPLE_DATABASE": "postgresql://sample@postgres:5432/sample_data",
                    SAMPLE_VARIABLE: f"${{{SAMPLE_VARIABLE}:-nothing}}",
                },
                "ports": ["8000"],
                "healthcheck": check,
                "depends_on": ["back"],
                "x-harness": {"command": serve, "health": "/health"},
            },
            "ledger": recorder,
            "mailbox": recorder,
        }
    }


def write_sample_stack(
    folder: Path, *, python: str, changes: Callable[[dict[str, Any]], None] = lambda _services: None
) -> Path:
    """Write the sample; returns the compose file.

    Args:
        folder: made when it is not there.
        python: the interpreter that runs it where there are no containers.
        changes: changes the services before they are written.
    """
    folder.mkdir(exist_ok=True)
    content = sample_stack(python=python)
    changes(content["services"])
    shutil.copy(_SERVER, folder)
    path = folder / "compose.yaml"
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


async def check_stack(
    open_at: Open,
    folder: Path,
    *,
    python: str,
    passed_on: str,
    leftovers: Callable[[], Collection[str]] = tuple,
) -> None:
    """Hold a driver to the promises of :class:`~harness_core.system.compose.Stack`.

    Args:
        open_at: opens the stack of a compose file by that driver, with ``{bin}`` the file's folder.
        folder: an empty one, for the sample.
        python: the interpreter that runs it where there are no containers.
        passed_on: the value that the driver is given for :data:`SAMPLE_VARIABLE`.
        leftovers: names what the driver has on this machine now; compared before and after.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    before = set(leftovers())
    compose = write_sample_stack(folder, python=python)
    async with open_at(compose) as stack, open_at(compose) as other:
        await _serves(stack, passed_on=passed_on)
        await _placed(stack)
        _apart(stack, other)
        for how in OUTAGES:
            await _outage(stack, how)
        await _outage_that_raises(stack)
        await _outage_that_is_cancelled(stack)
        await _server_taken_away(stack)
        await _restarts(stack)
        await _mends(stack)
        await _refuses_nonsense(stack)
        await _serves(other, passed_on=passed_on)
    _nothing_left(leftovers, before, "after close")
    for name, how in (("back", "ends"), ("prepare", "finds nothing")):
        await _names_the_culprit(open_at, folder / how.split()[0], name, python=python)
    _nothing_left(leftovers, before, "after a boot that failed")


def _nothing_left(
    leftovers: Callable[[], Collection[str]], before: Collection[str], when: str
) -> None:
    left = sorted(set(leftovers()) - set(before))
    _expect(not left, f"nothing left {when}", ", ".join(left))


def _expect(condition: bool, wanted: str, found: object) -> None:  # noqa: FBT001 - reads like assert
    if not condition:
        raise AssertionError(f"expected {wanted}, found {found}")


async def _serves(stack: Stack, *, passed_on: str) -> None:
    unwell = await stack.unhealthy()
    _expect(not unwell, "every service to serve once the stack is open", unwell)
    states = await stack.states()
    _expect(
        states["prepare"] is State.COMPLETED, "a one-shot service to be completed", dict(states)
    )
    rows = await stack.rows("select current_database() as name, %s::int as number", [7])
    wanted = [{"name": "sample_data", "number": 7}]
    _expect(rows == wanted, f"{wanted} from the stack's own database", rows)
    environment = (await stack.client("front").get("/environment")).json()
    _expect(
        environment[SAMPLE_VARIABLE] == passed_on,
        f"{SAMPLE_VARIABLE} passed on as {passed_on!r}",
        environment[SAMPLE_VARIABLE],
    )
    lines = await stack.processes("front")
    _expect(any("sample_server.py" in line for line in lines), "the processes of front", lines)
    said = stack.logs("prepare")
    _expect(any(line.startswith("found:") for line in said), "the output of a one-shot", said)
    said = stack.logs("front")
    _expect(any("serving, pid" in line for line in said), "the output of front", said)
    for name in ("ledger", "mailbox"):
        asked = {request.target for request in stack.recorder(name).requests}
        _expect(asked == {f"/of-{name}"}, f"what front asks {name}, and nothing else", asked)


async def _placed(stack: Stack) -> None:
    """What `harness ps` shows of each service: its process, or its container."""
    found = {part["name"]: part for part in stack.describe()["parts"]}
    for name in ("front", "back", "postgres"):
        part = found[name]
        pid, container = part["pid"], part["container"]
        _expect(bool(pid or container), f"a pid or a container of {name}", part)
        if pid:
            _expect(bool(command_line(pid)), f"the pid of {name} to run", pid)
    pid = found["front"]["pid"]
    if pid:
        last = [line for line in stack.logs("front") if "serving, pid" in line][-1]
        _expect(str(pid) in last.split(), "the pid that front itself names", f"{pid}, {last!r}")
    async with stack.outage("back", "kill"):
        part = {part["name"]: part for part in stack.describe()["parts"]}["back"]
        shown = (part["state"], part["pid"])
        _expect(shown == ("stopped", None), "a killed service shown as stopped, no pid", shown)


def _apart(stack: Stack, other: Stack) -> None:
    for name in ("front", "back", "postgres"):
        _expect(
            stack.address(name) != other.address(name),
            f"a port of its own for {name} of each of two stacks",
            stack.address(name),
        )


async def _outage(stack: Stack, how: str) -> None:
    client, front, url = stack.client("back"), stack.client("front"), stack.url("back")
    await client.request("POST", "/notes", content=how.encode())
    async with stack.outage("back", how):
        silence = Silence.LATE if how == "pause" else Silence.REFUSED
        await _silent(stack, "back", silence, when=f"during outage {how!r}")
        status = (await front.get("/health")).status
        _expect(status == _UNHEALTHY, f"front to miss back during outage {how!r}", status)
        states = await stack.states()
        _expect(states["front"] is State.RUNNING, "the others to run during an outage", states)
    _expect(stack.url("back") == url, "the same address after an outage", stack.url("back"))
    status = (await front.get("/health")).status
    _expect(status == _OK, f"front to serve again after outage {how!r}", status)
    kept = (await client.get("/notes")).json()
    _expect(kept[-1:] == [how], f"data to survive outage {how!r}", kept)


async def _silent(stack: Stack, service: str, how: Silence, *, when: str) -> None:
    try:
        answer = await stack.client(service).get("/health", seconds=_SILENCE_S)
    except Unanswered as silence:
        _expect(silence.how is how, f"{service} to be silent, {how}, {when}", silence.how)
        return
    raise AssertionError(f"expected {service} to be silent {when}, found {answer}")


async def _outage_that_raises(stack: Stack) -> None:
    class OwnError(Exception):
        """Of the block."""

    try:
        async with stack.outage("back", "kill"):
            raise OwnError  # noqa: TRY301 - the block under test
    except OwnError:
        unwell = await stack.unhealthy()
        _expect(not unwell, "a stack restored after a block that raised", unwell)
    else:
        raise AssertionError("expected the block's own error to come out of an outage, found none")


async def _outage_that_is_cancelled(stack: Stack) -> None:
    with trio.CancelScope() as scope:
        async with stack.outage("back", "pause"):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    _expect(scope.cancelled_caught, "the cancellation to come out of an outage", "none")
    unwell = await stack.unhealthy()
    _expect(not unwell, "a stack restored after a block that was cancelled", unwell)


async def _server_taken_away(stack: Stack) -> None:
    await stack.rows("create table if not exists kept (word text)")
    await stack.rows("insert into kept values ('here')")
    async with stack.outage("postgres", "kill"):
        answer = await stack.client("front").get("/health")
        _expect(
            "postgres" in answer.text or answer.status == _UNHEALTHY, "front to miss it", answer
        )
    rows = await stack.rows("select word from kept")
    _expect(rows == [{"word": "here"}], "rows to survive the death of their server", rows)


async def _restarts(stack: Stack) -> None:
    lives, url = len(stack.log_files("front")), stack.url("front")
    await stack.restart("front")
    _expect(stack.url("front") == url, "the same address after a restart", stack.url("front"))
    said = [line for line in stack.logs("front") if "serving, pid" in line]
    _expect(len(set(said)) > lives - 1 and len(said) > 1, "the output of both lives", said)


async def _mends(stack: Stack) -> None:
    _expect(await stack.mend() == [], "nothing to mend in a sound stack", "something")
    await stack.kill("back")
    await stack.pause("front")
    found = await stack.mend()
    told = " ".join(found)
    _expect("back" in told and "front" in told, "both services to be told as mended", found)
    await stack.healthy()


async def _refuses_nonsense(stack: Stack) -> None:
    for name, how in (("nobody", "stop"), ("back", "earthquake")):
        try:
            async with stack.outage(name, how):
                raise AssertionError(f"expected no outage {how!r} of {name}, found one")
        except BadInput:
            continue
    try:
        await stack.start("front")
    except HarnessError:
        return
    raise AssertionError("expected a second start to be refused, found it accepted")


async def _names_the_culprit(open_at: Open, folder: Path, name: str, *, python: str) -> None:
    def break_it(services: dict[str, Any]) -> None:
        if name == "back":
            services["back"]["environment"]["SAMPLE_FAILS"] = "a test wants it"
        else:
            services["prepare"]["environment"]["SAMPLE_NEEDS"] = "127.0.0.1:1"

    compose = write_sample_stack(folder, python=python, changes=break_it)
    words = "I fail because a test wants it" if name == "back" else "missing: 127.0.0.1:1"
    try:
        async with open_at(compose):
            raise AssertionError(f"expected a stack with a broken {name} to fail, found it open")
    except ServiceFailed as error:
        _expect(error.service == name, f"{name} to be named as the culprit", str(error))
        _expect(words in "\n".join(error.tail), f"its last words, {words!r}", error.tail)
        log = error.log
        found = log.read_text() if log else ""
        _expect(words in found, f"its log to hold {words!r}", f"{log}: {found}")
