"""INT-037: a file of connections that is none is refused where it is used, by name and key."""

from __future__ import annotations

import re
from typing import Final

import pytest
from workbench_contract.design import CONNECTIONS

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from suites.integration.assemblies import export
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-037"), pytest.mark.integration_p1]

_SIMULATED_S: Final = 120.0
_SCRIPT: Final = """\
from build123d import Box, Pos

parts = {"shelf": Box(30, 10, 4), "lid": Pos(0, 0, 20) * Box(9, 9, 9)}
"""
#: Connections that are none → a pattern of the key that is to be named.
_NONE: Final = {
    '{"pairs": [': "",
    '{"pairs": [], "glue": true}': "glue",
    '{"pairs": [{"parts": ["shelf", "lid"], "fasteners": 3}]}': r"pairs\W+0\W+fasteners",
    '{"pairs": [], "grounded": ["shelf", 7]}': r"grounded\W+1",
}


async def _simulated(session: Session) -> Response:
    return await session.post(
        "/benchmark/simulate",
        model="model.py",
        duration_s=0.1,
        seed=3707,
        seconds=patience(_SIMULATED_S),
    )


async def test_int_037_connections_that_are_none_are_refused(worker: HttpClient) -> None:
    """Exported and simulated, connections with a mistake are refused by file and key; mended, they are taken."""
    session = new_session(worker)
    await session.write("model.py", _SCRIPT)
    for text, key in _NONE.items():
        await session.write(CONNECTIONS, text)
        for answer in (await export(session), await _simulated(session)):
            expect_refused(answer, 409, 422, says=f"{re.escape(CONNECTIONS)}.*{key}")
    await session.write(CONNECTIONS, '{"pairs": []}')
    answer = await _simulated(session)
    assert 200 == answer.status, f"expected the design, mended, to be simulated, found {answer}"
