"""Spans that a recorder is sent stand among the evidence, once, whoever took them."""

import json

import pytest

from harness_core.doubles.http import Answer, HttpClient, Rule, open_recorder
from harness_core.doubles.telemetry import open_collector
from harness_core.front.live._spans import spans_written

SPAN = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "work", "startTimeUnixNano": "1"}
EXPORT = {"resourceSpans": [{"scopeSpans": [{"spans": [{**SPAN, "endTimeUnixNano": "2"}]}]}]}


async def export(server, body):
    """What an exporter of a product does."""
    return await HttpClient(server.url, name="x").post("/otel/v1/traces", body)


@pytest.mark.parametrize("kind", ["recorder", "collector"])
async def test_they_are_written_once(evidence, kind):
    """Of a stack's recorder as of a collector, which writes its own."""
    rules = (Rule(answer=Answer(), name="all"),)
    with spans_written(evidence):
        if kind == "recorder":
            async with open_recorder("telemetry", evidence=evidence, rules=rules) as recorder:
                await export(recorder, EXPORT)
        else:
            async with open_collector(evidence=evidence) as collector:
                await HttpClient(collector.endpoint, name="x").post("/v1/traces", EXPORT)
    rows = (evidence.path / "spans.jsonl").read_text().splitlines()

    assert ["work"] == [json.loads(row)["name"] for row in rows]


async def test_what_is_no_export_is_left_to_tests(evidence):
    """It is recorded as ever, and ends nothing."""
    rules = (Rule(answer=Answer(), name="all"),)
    with spans_written(evidence):
        async with open_recorder("telemetry", evidence=evidence, rules=rules) as recorder:
            answer = await export(recorder, {"resourceSpans": [3]})

    assert 200 == answer.status
    assert not (evidence.path / "spans.jsonl").exists()
