"""Contract 3: each of the four words of health is said when it is so, and not after.

A recorder is a stand-in for a model provider: whether something listens there is all that counts.
"""

from __future__ import annotations

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import slowness
from harness_core.doubles.http import open_recorder
from suites.daemon.daemon import Provider, Settings, health_on
from suites.daemon.health import NOTICED_S, becomes
from suites.daemon.messages import ANSWER_S, due, expect_health, expect_message, user_input
from suites.daemon.wire import Connection

pytestmark = [
    pytest.mark.covers("CONTRACT-3-HEALTH"),
    pytest.mark.capability("providers", "self-checks", "shell-text"),
    pytest.mark.knob("check_s"),
    pytest.mark.knob("workers"),
]

#: What has come already is read in this time.
AT_ONCE_S = 0.2

#: What keeps a worker busy may take so long, where the daemon can be told: longer than health may take
#: to notice something on a machine many times slower than another.
BUSY_S = 80

#: What a check of the daemon may take before it is given up.
CHECK_S = 0.3


async def expect_still_busy(connection: Connection) -> None:
    """What keeps the worker busy has not ended: a check that failed is told beside one that cannot end.

    Raises:
        HarnessError: the machine is so busy that the command may have run into its timeout before.
    """
    ended = None
    with trio.move_on_after(AT_ONCE_S):
        ended = await connection.receive("nothing yet", seconds=NOTICED_S)
    if ended is not None and slowness() > 1:
        raise HarnessError(
            "judge health while a worker is busy",
            observed=f"what kept it busy had ended: {ended.payload[:200]}",
            next_step="Run the test again with less beside it",
        )

    assert ended is None, (
        "contract 3: a working root that is gone is :UNHEALTHY, also while a worker is busy; expected "
        f"that before the end of what kept it busy, found it after: {ended.payload[:200]}"
    )


async def test_each_word_is_said_when_it_is_so(start, subject, evidence) -> None:
    """Healthy, degraded, unhealthy and unknown: each follows what happens, and gives way again."""
    async with open_recorder("provider", evidence=evidence) as there:
        dead = Provider(name="dead", shape="openai", url="http://127.0.0.1:1", key="k", model="m")
        up = Provider(name="up", shape="anthropic", url=there.url, key="l", model="n")
        port = there.port
        knobs = {"workers": 1, "check_s": CHECK_S}
        if "command_s" in subject.table("knobs"):
            knobs["command_s"] = BUSY_S
        settings = Settings(knobs=knobs, providers=(dead, up))
        opening = start(settings)
        daemon = await opening.__aenter__()
        await becomes(daemon, "HEALTHY", since="after start, one of two providers there")
    try:
        answer = await becomes(daemon, "DEGRADED", since="no provider there")

        assert "dead" in answer.payload, f"contract 3: health names no provider: {answer.payload}"
        assert "up" in answer.payload, f"contract 3: health names one provider: {answer.payload}"
        async with open_recorder("provider-again", evidence=evidence, port=port):
            await becomes(daemon, "HEALTHY", since="a provider is back")
            away = daemon.root.with_name("away")
            daemon.root.rename(away)
            await becomes(daemon, "UNHEALTHY", since="its working root is gone")
            away.rename(daemon.root)
            await becomes(daemon, "HEALTHY", since="its working root is back")
            async with daemon.connect() as busy:
                waits = "until [ -e go-on ]; do sleep 0.05; done"
                text = daemon.subject.table("texts")["shell"].replace("{command}", waits)
                await busy.send(user_input(text))
                await becomes(daemon, "UNKNOWN", since="its one worker is busy")
                daemon.root.rename(away)
                await becomes(
                    daemon, "UNHEALTHY", since="its working root is gone and its worker is busy"
                )
                await expect_still_busy(busy)
                away.rename(daemon.root)
                (daemon.root / "go-on").touch()
                done = await due(busy, "the end of what kept it busy", seconds=ANSWER_S)
                expect_message(done, busy)
            await becomes(daemon, "HEALTHY", since="its worker is free again")
            async with daemon.connect() as connection:
                for _ in range(5):
                    expect_health(await health_on(connection))
    finally:
        await opening.__aexit__(None, None, None)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "second", "last"])
async def test_one_provider_of_many_is_enough(start, evidence, place: int) -> None:
    """Whichever of three providers is there, first or last, health is the same."""
    async with open_recorder("there", evidence=evidence) as there:
        order = tuple(
            Provider(
                name=name,
                shape="openai",
                key=f"k-{name}",
                model="m",
                url=there.url if number == place else "http://127.0.0.1:1",
            )
            for number, name in enumerate(("one", "two", "three"))
        )
        settings = Settings(knobs={"check_s": CHECK_S}, providers=order)
        async with start(settings) as daemon:
            said = await becomes(daemon, "HEALTHY", since=f"provider {place + 1} of three is there")

    assert "HEALTHY" == expect_health(said).name, (
        f"contract 3: one of three is enough, found {said}"
    )
