"""Runs of the suite beside each other, and one that is killed."""

import re
import signal
from pathlib import Path

import pytest

from harness_core.base.slowness import patience
from harness_core.base.wait import until_blocking
from harness_core.ports import listeners
from harness_core.process import descendants

#: One that takes servers away, and one that wants its own left in peace.
BREAKING = "suites/integration/architecture_p0/test_int_056_upload_failures.py"
PEACEFUL = "suites/integration/architecture_p0/test_int_055_asset_uploads.py"

END_S = 240.0

#: The warden sees the end of its runner at once and kills in milliseconds.
GONE_S = 10.0


@pytest.mark.aside("about runs of this suite; proves no requirement")
@pytest.mark.runner
@pytest.mark.slow
def test_two_stacks_on_one_host_do_not_meet(place, start):
    """One run kills its object store, the other uploads; a sweep while both are up touches neither."""
    runs = [start(BREAKING), start(PEACEFUL)]
    stacks = place.until_up(*runs)
    sweep = place.harness("sweep")
    codes = [each.process.wait(timeout=patience(END_S)) for each in runs]
    output = "\n".join(each.text() for each in runs)
    one, other = (set(stacks[each.process.pid].values()) for each in runs)

    assert 0 == sweep.returncode, sweep.stdout + sweep.stderr
    assert [0, 0] == codes, f"expected both runs to pass, found {codes}\n{output}"
    assert all(re.search(r"[1-9]\d* passed", each.text()) for each in runs), (
        f"nothing ran\n{output}"
    )
    assert len(one) >= 6, f"few services are listed: {stacks}"
    assert set() == one & other, "both served at one address"
    left = list((place.state / "runs").iterdir())
    assert not left, f"directories of the runs are left: {left}"


@pytest.mark.aside("about runs of this suite; proves no requirement")
@pytest.mark.runner
def test_a_killed_run_leaves_nothing(place, start):
    """SIGKILL to pytest once its stack is up ends every service; the sweep does the rest."""
    run = start(BREAKING)
    stacks = place.until_up(run)
    ports = [int(address.rpartition(":")[2]) for address in stacks[run.process.pid].values()]
    below = descendants(run.process.pid)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()

    assert len(below) >= 6, f"few processes were below the runner: {below}"
    assert len(ports) >= 6, f"few services are listed: {stacks}"
    until_blocking(
        lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()],
        seconds=GONE_S,
        action="see every process of the killed run end",
    )

    listening = [entry for port in ports for entry in listeners(port=port)]
    assert not listening, f"ports of the killed run are listened on: {listening}"
    sweep = place.harness("sweep")

    assert 0 == sweep.returncode, sweep.stdout + sweep.stderr
    left = list((place.state / "runs").iterdir())
    assert not left, f"directories of the killed run are left: {left}"
