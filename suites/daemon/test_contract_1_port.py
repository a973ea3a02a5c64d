"""Contract 1: the port that a command line names is one, or nothing is started."""

from __future__ import annotations

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.front.skips import not_run
from harness_core.ports import listeners
from suites.daemon.daemon import Daemon
from suites.daemon.messages import expect_health
from suites.daemon.vitals import below

pytestmark = pytest.mark.covers("CONTRACT-1-START")

#: From the start to the end of a daemon that refuses its command line.
END_S = 10.0

#: What is no port.
NO_PORTS = ("65536", "-1", "soon", "9105.5", "٣٠٠٠")


@pytest.mark.capability("settings-refused")
async def test_what_is_no_port_is_refused(daemon: Daemon, run, subject) -> None:
    """A port out of bounds or mistyped is named in an error of a line or two, and nothing listens."""
    if not any("{port}" in word for word in subject.argv):
        not_run("subject", f"{subject.path.name} does not name the port on the command line")

    async def one(port: str) -> None:
        name = f"no-port-{NO_PORTS.index(port)}"
        async with daemon.process(run, name=name, port=port) as child:
            with trio.move_on_after(patience(END_S)):
                await child.wait()
            ours = {child.pid, *below(child.pid)}
            found = [row.port for row in listeners() if row.pid in ours]
            output = "\n".join(child.tail())

            assert child.returncode not in {0, None}, (
                f"contract 1: port {port} is none: expected an error, found status "
                f"{child.returncode}, listening on {found}:\n{output}"
            )
            assert port in output, f"contract 1: the error names {port}, found:\n{output}"
            assert "Traceback" not in output, f"contract 1: an error is a line, found:\n{output}"

    for port in NO_PORTS:
        await one(port)
    expect_health(await daemon.health())
