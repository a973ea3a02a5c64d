"""A collector of spans: what exporters send is read exactly, and what is no OTLP is refused."""

import dataclasses
import gzip
import http.client
import json

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from harness_core.base.errors import NotReady
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import Answer, HttpClient, Rule, open_recorder
from harness_core.doubles.telemetry import (
    BadExport,
    Span,
    SpanEvent,
    Trace,
    open_collector,
    spans_of,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "f" * 32
ROOT = "b7ad6b7169203331"
CHILD = "00f067aa0ba902b7"


def key_value(key, **value):
    """One attribute in protobuf."""
    return KeyValue(key=key, value=AnyValue(**value))


def in_protobuf(*, trace_id=TRACE, span_id=CHILD, parent_id=ROOT):
    """An export request with one span that has everything."""
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    of_resource.resource.attributes.append(key_value("service.name", string_value="butler-x"))
    span = of_resource.scope_spans.add().spans.add(
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id),
        parent_span_id=bytes.fromhex(parent_id),
        name="tool y",
        start_time_unix_nano=1_000_000_000,
        end_time_unix_nano=1_500_000_000,
    )
    span.attributes.extend(
        [
            key_value("n", int_value=-(2**60)),
            key_value("f", double_value=0.5),
            key_value("b", bool_value=True),
            key_value("raw", bytes_value=b"\0\1"),
            key_value("none"),
            key_value("list", array_value=ArrayValue(values=[AnyValue(string_value="s")])),
            key_value("map", kvlist_value=KeyValueList(values=[key_value("k", int_value=1)])),
        ]
    )
    span.status.code = 2
    span.status.message = "it broke"
    event = span.events.add(name="exception")
    event.attributes.append(key_value("exception.type", string_value="KeyError"))
    return request.SerializeToString()


def in_json():
    """The same span in OTLP/JSON: ids hexadecimal, 64-bit integers as text."""
    attributes = [
        {"key": "n", "value": {"intValue": str(-(2**60))}},
        {"key": "f", "value": {"doubleValue": 0.5}},
        {"key": "b", "value": {"boolValue": True}},
        {"key": "raw", "value": {"bytesValue": "AAE="}},
        {"key": "none", "value": {}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "s"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [one("k", intValue=1)]}}},
    ]
    span = {
        "traceId": TRACE.upper(),
        "spanId": CHILD,
        "parentSpanId": ROOT,
        "name": "tool y",
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": 1_500_000_000,
        "attributes": attributes,
        "status": {"code": 2, "message": "it broke"},
        "events": [
            {"name": "exception", "attributes": [one("exception.type", stringValue="KeyError")]}
        ],
    }
    resource = {"attributes": [one("service.name", stringValue="butler-x")]}
    body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
    return json.dumps(body).encode()


def one(key, **value):
    """One attribute in JSON."""
    return {"key": key, "value": value}


THE_SPAN = Span(
    trace_id=TRACE,
    span_id=CHILD,
    parent_id=ROOT,
    name="tool y",
    service="butler-x",
    attributes={
        "n": -(2**60), "f": 0.5, "b": True, "raw": b"\0\1", "none": None, "list": ["s"],
        "map": {"k": 1},
    },
    resource={"service.name": "butler-x"},
    start_ns=1_000_000_000,
    end_ns=1_500_000_000,
    status="error",
    status_message="it broke",
    events=(SpanEvent(name="exception", attributes={"exception.type": "KeyError"}),),
)  # fmt: skip


async def export(collector, body, *, kind="application/x-protobuf", path="/v1/traces", **headers):
    """Send an export request; returns status, content type and body of the answer."""

    def send():
        connection = http.client.HTTPConnection("127.0.0.1", collector.recorder.port, timeout=5)
        sent = {"content-type": kind} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request("POST", path, body, sent)
        response = connection.getresponse()
        answer = (response.status, response.getheader("content-type"), response.read())
        connection.close()
        return answer

    return await trio.to_thread.run_sync(send)


@pytest.fixture
def evidence(tmp_path):
    """The directory spans are written to."""
    return open_evidence(tmp_path / "evidence")


@pytest.mark.parametrize(
    ("body", "kind", "answer"),
    [
        (in_protobuf(), "application/x-protobuf", b""),
        (in_json(), "application/json; charset=utf-8", b"{}"),
    ],
    ids=["protobuf", "json"],
)
async def test_both_encodings_give_the_same_span(evidence, body, kind, answer):
    """Ids, parent, attributes of every type, status and events are read; evidence has the span."""
    async with open_collector(evidence=evidence) as collector:
        seen = await export(collector, body, kind=kind)

        assert (200, kind.partition(";")[0], answer) == seen
        assert (THE_SPAN,) == collector.spans()
    (line,) = (evidence.path / "spans.jsonl").read_text().splitlines()

    assert (TRACE, "tool y") == (json.loads(line)["trace_id"], json.loads(line)["name"])


async def test_a_compressed_export_is_read(evidence):
    """Exporters may send gzip."""
    async with open_collector(evidence=evidence) as collector:
        await export(collector, gzip.compress(in_protobuf()), content_encoding="gzip")

        assert (THE_SPAN,) == collector.spans()


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"\xff\xff\xff", "application/x-protobuf", "no ExportTraceServiceRequest"),
        (b"{", "application/json", "no OTLP/JSON: Expecting property name"),
        (
            b'{"resourceSpans": [3]}',
            "application/json",
            "no OTLP/JSON: Failed to parse resourceSpans",
        ),
        (b"[]", "application/json", "no OTLP/JSON: found list, expected an object"),
        (in_json().replace(CHILD.encode(), b"xyz"), "application/json", "no OTLP/JSON: non-hexa"),
        (in_json().replace(CHILD.encode(), b""), "application/json", "span_id is ''"),
        (in_protobuf(), "text/plain", "content type 'text/plain'"),
        (in_protobuf(trace_id="00" * 16), "application/x-protobuf", "trace_id is '0000"),
        (in_protobuf(span_id="aa" * 7), "application/x-protobuf", "span_id is 'aaaaaaaaaaaaaa'"),
        (in_json().replace(b'"code": 2', b'"code": 7'), "application/json", "status code is 7"),
    ],
)
async def test_what_is_no_export_is_refused_and_counted(evidence, body, kind, why):
    """The exporter gets 400, and a test can see that its product exports nonsense."""
    async with open_collector(evidence=evidence) as collector:
        status, _, _ = await export(collector, body, kind=kind)

        assert 400 == status
        assert () == collector.spans()
        assert [True] == [reason.startswith(why) for reason in collector.refused]


async def test_metrics_and_logs_are_acknowledged(evidence):
    """An exporter of all three signals is content; nothing of it is taken for spans."""
    async with open_collector(evidence=evidence) as collector:
        answers = [
            await export(collector, b"x", path=f"/v1/{kind}") for kind in ("metrics", "logs")
        ]

        assert [200, 200] == [status for status, _, _ in answers]
        assert ((), ()) == (collector.spans(), collector.refused)


async def test_waiting_for_a_trace(evidence):
    """A wait sees its own trace only, and shows the trace as far as it came when time is up."""
    async with open_collector(evidence=evidence) as collector:
        await export(collector, in_protobuf(trace_id=OTHER))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(export, collector, in_protobuf(span_id=ROOT, parent_id=""))
            trace = await collector.wait_for(TRACE, where=lambda trace: len(trace) > 0, seconds=5)
        with pytest.raises(NotReady, match=r"butler-x: tool y \[b7ad6b7169203331 \(root\)\] error"):
            await collector.wait_for(TRACE, where=lambda trace: len(trace) > 1, seconds=0.05)
        settled = await collector.settled(TRACE, where=lambda t: len(t) > 1, seconds=0.05)

        assert (ROOT,) == tuple(span.span_id for span in trace.spans)
        assert settled == trace


async def test_trouble_comes_by_the_recorders_rules(evidence):
    """A collector that refuses for a while takes what is sent afterwards."""
    trouble = Rule(path="/v1/traces", answer=Answer(status=503), times=1)
    async with open_collector(evidence=evidence) as collector:
        collector.recorder.add_rule(trouble)
        statuses = [(await export(collector, in_protobuf()))[0] for _ in range(2)]

        assert [503, 200] == statuses
        assert (THE_SPAN,) == collector.spans()


def span(span_id, parent_id="", *, service="a"):
    """A span that has nothing but its place."""
    return Span(
        trace_id=TRACE, span_id=span_id, parent_id=parent_id, name=span_id, service=service,
        attributes={}, resource={}, start_ns=0, end_ns=1, status="unset",
    )  # fmt: skip


def test_how_a_trace_hangs_together():
    """Roots, ancestors, what has no parent, and what came twice are distinguished."""
    spans = (span("1", "caller"), span("2", "1", service="b"), span("3", "2"), span("4", "gone"))
    trace = Trace(trace_id=TRACE, spans=(*spans, span("3", "2")))

    assert ["4"] == [loose.span_id for loose in trace.loose(below="caller")]
    assert ["1", "4"] == [loose.span_id for loose in trace.loose()]
    assert ["2", "1"] == [above.span_id for above in trace.above(spans[2])]
    assert ("3",) == trace.repeated()
    assert {"a", "b"} == trace.services
    assert "    b: 2 [2 below 1]" in trace.text().splitlines()


def test_a_circle_of_parents_ends():
    """A product that makes a span its own ancestor does not hang the harness."""
    trace = Trace(trace_id=TRACE, spans=(span("1", "2"), span("2", "1")))

    assert ["2"] == [above.span_id for above in trace.above(trace.spans[0])]
    assert 3 == len(trace.text().splitlines())


async def test_spans_are_read_wherever_they_were_sent(tmp_path):
    """By a recorder of another third party's API, under a path of its own."""
    async with open_recorder("other", evidence=open_evidence(tmp_path)) as recorder:
        await HttpClient(recorder.url).request(
            "POST",
            "/api/public/otel/v1/traces",
            content=in_protobuf(),
            headers={"content-type": "application/x-protobuf"},
        )
        (request,) = recorder.requests

    assert (THE_SPAN,) == spans_of(request)
    with pytest.raises(BadExport, match="content type ''"):
        spans_of(dataclasses.replace(request, headers=()))
