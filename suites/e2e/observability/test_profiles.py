"""Profiling: the processes of the running ecosystem are watched at work and never notice."""

from __future__ import annotations

import pytest

from harness_core.base.evidence import Evidence
from harness_core.process import open_run
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.subject_file import tables_of
from suites.e2e.observe.expect_journey import expect_journey
from suites.e2e.observe.flamegraphs import pids_of
from suites.e2e.observe.journey import follow
from suites.e2e.observe.profiling import open_profiles, read_frames

#: Calls to each butler, some 10 ms of its time each: a profile has 50 samples a second.
CALLS = 40

pytestmark = pytest.mark.aside("profiles observe the product and demand nothing of it")


@pytest.mark.requires("profiling")
async def test_a_profile_names_the_products_own_functions(
    ecosystem: Ecosystem, evidence: Evidence, token: str
) -> None:
    """While a message is handled, the butler concerned is seen in functions of its own code."""
    pids = {name: pid for name, pid in pids_of(ecosystem).items() if name != "gateway"}
    watched = {name: pid for name, pid in pids.items() if name in {"health", "switchboard"}} or pids
    folder = evidence.child("profiles")
    async with (
        open_run(evidence=folder) as run,
        open_profiles(run, watched, evidence=folder) as profiles,
    ):
        sent = await ecosystem.send(f"I have a bad headache, severity 6 ({token})")
        journey = await follow(ecosystem, sent)
        # A message alone may be done between two samples.
        for name in watched:
            for _ in range(CALLS):
                await ecosystem[name].status()
    own = tables_of(ecosystem.subject).profile.frames

    expect_journey(journey, ["health"])
    assert {} == profiles.problems
    for name, pid in watched.items():
        svg, scope = profiles.files[name]
        names = {frame.function for frame in read_frames(scope) if own in frame.file}

        assert names, f"nothing of {own!r} among what {name} did: see {scope}"
        assert [each for each in names if each in svg.read_text(encoding="utf-8")]
        assert (await ecosystem[name].status())["name"] == name
        assert pid == ecosystem[name].pid, f"{name} was restarted by being watched"
