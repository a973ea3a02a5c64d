"""Calls that were refused for their key, told where the test failed that made them."""

import datetime as dt

from harness_core.doubles.model import Fault, refused_keys
from harness_core.tests.model.served import HI, served

MINE, ANOTHERS = "suites/a/test_a.py::test_mine", "suites/a/test_a.py::test_anothers"


async def test_what_was_refused_is_one_sentence() -> None:
    """Counted by what was wrong, since the test began; the calls of others and planted 401 apart."""
    async with served() as (http, control):
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "before"})
        began = dt.datetime.now(dt.UTC)
        await control.set_scope(ANOTHERS)
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "another's"})
        await control.set_scope(MINE)
        async with control.fault(Fault(kind="status", status=401)):
            await http.post("/v1/messages", json=HI)
        await http.post("/v1/messages", json=HI)
        silent = refused_keys(await control.ledger(), test=MINE, since=began)
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "wrong"})
        await control.set_scope("")
        await http.post("/v1/messages/count_tokens", json=HI, headers={"x-api-key": "wrong"})
        await http.post("/v1/chat/completions", json=HI, headers={"x-api-key": ""})
        entries = await control.ledger()

    assert "" == silent
    assert (
        "the model gateway refused 3 requests while this test ran, with 401: 2 with a wrong "
        "x-api-key, 1 without a key; it expects the key given in MODEL_KEY"
    ) == refused_keys(entries, test=MINE, since=began, held_in=["MODEL_KEY"])
    assert refused_keys(entries, test="", since=began).endswith("it expects the key of this run")
