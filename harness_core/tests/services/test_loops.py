"""A service's handle in each kind of loop: it is taken away and given back where it was opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness_core.base.bridge import open_loop
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.services import S3Service, open_s3
from harness_core.process import open_run

pytestmark = pytest.mark.real


@pytest.fixture
def server(evidence: Evidence) -> Iterator[S3Service]:
    """A server in a loop of its own, as session-scoped fixtures hold theirs."""
    with (
        open_loop() as loop,
        loop.hold(open_run(evidence=evidence)) as run,
        loop.hold(open_s3(run, evidence=evidence)) as opened,
    ):
        yield opened


def test_a_service_is_taken_away_and_given_back(caller, server):
    """Its buckets are there before and after, and it is not there in between."""

    async def body():
        await server.make_bucket("kept")
        await server.kill()
        with pytest.raises(OSError, match="refused"):
            await server.buckets()
        await server.start()
        assert ("kept",) == await server.buckets()
        await server.restart()
        assert ("kept",) == await server.buckets()

    caller.run(body)


async def test_a_service_that_was_closed_is_refused(run, evidence):
    """It would be started again behind the back of its run."""
    async with open_s3(run, evidence=evidence) as server:
        pass

    with pytest.raises(HarnessError, match="cannot use s3: it was closed"):
        await server.start()
