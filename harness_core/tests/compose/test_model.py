"""The model of a stack: what is asked of every environment reaches its gateway."""

import json

import pytest

from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import HttpClient
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack

pytestmark = pytest.mark.real

KEY, TOKEN = "sk-ant-0123456789abcdef", "hgt-0123456789abcdef"
QUESTION = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
ANSWER = {"content": [{"type": "text", "text": "as recorded"}], "stop_reason": "end_turn"}
STACK = {
    "services": {
        "llm": {
            "environment": {"HARNESS_GATEWAY_KEY": KEY, "HARNESS_GATEWAY_TOKEN": TOKEN},
            "ports": ["8080"],
            "x-harness": {"service": "gateway"},
        }
    }
}


async def test_its_model_is_replayed_from_a_cassette(tmp_path):
    """Which the options name beside the mode."""
    compose, cassette = tmp_path / "compose.yaml", tmp_path / "cassette"
    compose.write_text(json.dumps(STACK))
    cassette.mkdir()
    recorded = {"cassette": 1, "request": QUESTION, "answers": [ANSWER | {"usage": {}}]}
    (cassette / "hello.json").write_text(json.dumps(recorded))
    evidence = open_evidence(tmp_path / "evidence")
    options = StackOptions(llm="replay", llm_cassette=cassette)
    async with (
        open_run(evidence=evidence) as run,
        open_stack(run, compose, evidence=evidence, options=options) as stack,
    ):
        client = HttpClient(stack.gateway.url, headers={"x-api-key": KEY})
        answer = await client.post("/v1/messages", QUESTION)

    assert (200, "as recorded") == (answer.status, answer.json()["content"][0]["text"])
