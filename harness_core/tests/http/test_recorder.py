"""A recording server: every request, well-behaved or not, is recorded as what it was."""

import contextlib
import gzip
import http.client
import json
import socket
import zlib

import pytest
import trio

from harness_core.base.errors import BadInput, HarnessError, NotReady
from harness_core.base.evidence import Redactor, open_evidence
from harness_core.doubles.http import Answer, HttpClient, Rule, _recorder, _state, open_recorder

OK = Rule(answer=Answer(json={"ok": True}), name="ok")


@pytest.fixture
def evidence(tmp_path):
    """The directory a recorder writes to."""
    return open_evidence(tmp_path / "evidence", redactor=Redactor())


async def talk(port: int, *parts: bytes, close: bool = False) -> bytes:
    """Send bytes, part by part, and read to the end; with ``close``, go away without reading."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        with contextlib.suppress(trio.BrokenResourceError):
            for part in parts:
                await stream.send_all(meant_for(port, part))
        answer = b""
        with trio.fail_after(5):
            while not close:
                data = await stream.receive_some(65_536)
                if not data:
                    break
                answer += data
    return answer


def meant_for(port: int, request: bytes) -> bytes:
    """A request with the recorder's own host in place of ``h``."""
    return request.replace(b"Host: h\r\n", b"Host: 127.0.0.1:%d\r\n" % port)


def post(body: bytes, *headers: str, path: str = "/x", close: bool = True) -> bytes:
    """A POST with a content length."""
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body)}", *headers]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def recorded(recorder, count: int = 1):
    """Wait for requests, good or bad."""
    with trio.fail_after(5):
        while len(recorder.requests) < count:
            await trio.lowlevel.checkpoint()
    return recorder.requests


async def test_a_request_is_recorded_whole(evidence):
    """Method, target, headers and body are what was sent; the rule that answered is named."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        request = post(b'{"a": [1, 2]}', "X-Twice: 1", "X-Twice: 2", path="/bot/send?chat=7&e=")
        answer = await talk(recorder.port, request)
        (seen,) = recorder.requests

    assert answer.startswith(b"HTTP/1.1 200")
    assert {"ok": True} == json.loads(answer.partition(b"\r\n\r\n")[2])
    assert ("POST", "/bot/send") == (seen.method, seen.path)
    assert "/bot/send?chat=7&e=" == seen.target
    assert {"a": [1, 2]} == seen.json()
    assert "1, 2" == seen.header("X-TWICE")
    assert ("ok", 200, "") == (seen.rule, seen.status, seen.problem)


async def test_one_connection_serves_many_requests(evidence):
    """Keep-alive, also when a client sends the next request before the first is answered."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        sent = post(b"one", close=False) + post(b"two", close=False) + post(b"three")
        answer = await talk(recorder.port, sent)

        assert 3 == answer.count(b"HTTP/1.1 200")
        assert [b"one", b"two", b"three"] == [request.body for request in recorder.requests]
        assert [1, 2, 3] == [request.sequence for request in recorder.requests]


async def test_a_chunked_body_is_put_together(evidence):
    """Chunks that arrive in pieces make one body."""
    head = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, head, b"3\r\nab", b"c\r\n", b"2\r\nde\r\n0\r\n\r\n")

        assert [b"abcde"] == [request.body for request in recorder.requests]


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)]
)
async def test_a_compressed_body_is_opened(evidence, encoding, pack):
    """The body is recorded as it was meant."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, post(pack(b"hello"), f"Content-Encoding: {encoding}"))

        assert [(b"hello", "")] == [(r.body, r.problem) for r in recorder.requests]


@pytest.mark.parametrize(
    ("sent", "status", "problem"),
    [
        pytest.param(b"NONSENSE\r\n\r\n", b"400", "malformed: illegal request line", id="no-http"),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
            b"400",
            "malformed: bad Content-Length",
            id="bad-length",
        ),
        pytest.param(
            b"GET /x HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000,
            b"431",
            "malformed: Receive buffer too long",
            id="head-without-end",
        ),
        pytest.param(post(b"x" * 1001), b"413", "the body is larger than 1000 bytes", id="large"),
        pytest.param(
            post(gzip.compress(b"x" * 100_000), "Content-Encoding: gzip"),
            b"413",
            "the gzip body unfolds to more than 1000 bytes",
            id="bomb",
        ),
        pytest.param(
            post(b"no gzip", "Content-Encoding: gzip"), b"400", "the gzip body is damaged", id="gz"
        ),
        pytest.param(
            post(gzip.compress(b"hello")[:-9], "Content-Encoding: gzip"),
            b"400",
            "the gzip body ends early",
            id="short-gzip",
        ),
        pytest.param(
            post(b"?", "Content-Encoding: br"), b"415", "content encoding 'br' is not", id="unknown"
        ),
    ],
)
async def test_a_bad_request_is_recorded_as_one(evidence, monkeypatch, sent, status, problem):
    """It is answered with its status, kept apart from good ones, and the next one is served."""
    monkeypatch.setattr(_recorder, "_BODY_BYTES", 1000)
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        answer = await talk(recorder.port, sent)
        await talk(recorder.port, post(b"good"))
        bad, good = recorder.requests

        assert b"HTTP/1.1 " + status == answer[:12]
        assert bad.problem.startswith(problem)
        assert int(status) == bad.status
        assert [bad] == [request for request in recorder.requests if request.problem]
        assert [good] == recorder.matching()
        assert b"good" == good.body


async def test_a_client_that_goes_away_in_its_body_is_recorded(evidence):
    """What had come is kept with the reason it is not whole; no answer is sent."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, post(b"x" * 100)[:-60], close=True)
        (seen,) = await recorded(recorder)

        assert "the client went away after 40 bytes of its body" == seen.problem
        assert (b"x" * 40, 0) == (seen.body, seen.status)
        assert [] == recorder.matching()


async def test_a_client_that_does_not_wait_for_its_answer_disturbs_no_other(evidence):
    """Its request is recorded, and the recorder goes on."""
    big = Rule(answer=Answer(body=b"x" * 5_000_000))
    async with open_recorder("api", evidence=evidence, rules=[big]) as recorder:
        await talk(recorder.port, post(b"impatient"), close=True)
        await recorded(recorder)
        answer = await talk(recorder.port, post(b"patient"))

        assert 5_000_000 < len(answer)
        assert [b"impatient", b"patient"] == [request.body for request in recorder.requests]


async def test_a_client_that_asks_first_may_go_on(evidence):
    """``Expect: 100-continue`` is answered before the body is sent."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        stream = await trio.open_tcp_stream("127.0.0.1", recorder.port)
        async with stream:
            asked = meant_for(recorder.port, post(b"body", "Expect: 100-continue"))
            head, _, body = asked.partition(b"\r\n\r\n")
            await stream.send_all(head + b"\r\n\r\n")
            with trio.fail_after(5):
                first = await stream.receive_some(1000)
                await stream.send_all(body)
                second = await stream.receive_some(1000)

        assert b"HTTP/1.1 100" == first[:12]
        assert b"HTTP/1.1 200" == second[:12]


async def test_rules_answer_in_order_and_run_out(evidence):
    """The first rule that matches and is not spent answers; a request that none matches gets 404."""
    once = Rule(path="/a*", method="POST", answer=Answer(status=503), times=1)
    then = Rule(path="/a*", answer=lambda request: Answer(body=request.body.upper()))
    async with open_recorder("api", evidence=evidence, rules=[once, then]) as recorder:
        answers = [
            await talk(recorder.port, post(b"x", path=path)) for path in ("/ab", "/ab", "/b")
        ]

        assert [b"503", b"200", b"404"] == [answer[9:12] for answer in answers]
        assert b"X" == answers[1][-1:]
        assert ["POST /a*", "any /a*", ""] == [request.rule for request in recorder.requests]


async def test_rules_come_and_go_while_it_serves(evidence):
    """A rule that is added comes first; taken away, the others answer again."""
    trouble = Rule(answer=Answer(status=500))
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        recorder.add_rule(trouble)
        first = await talk(recorder.port, post(b""))
        recorder.remove_rule(trouble)
        second = await talk(recorder.port, post(b""))

    assert [b"500", b"200"] == [first[9:12], second[9:12]]


async def test_an_answer_takes_its_time(evidence, autojump_clock):
    """The request is on record while its answer is still to come."""
    slow = Rule(answer=Answer(latency_s=30, body="late"))
    async with open_recorder("api", evidence=evidence, rules=[slow]) as recorder:
        began = trio.current_time()
        stream = await trio.open_tcp_stream("127.0.0.1", recorder.port)
        async with stream:
            await stream.send_all(meant_for(recorder.port, post(b"now")))
            answer = await stream.receive_some(1000)

        assert 30 <= trio.current_time() - began < 31
        assert b"late" == answer[-4:]


@pytest.mark.parametrize(
    ("drop", "arrives"), [("unanswered", b""), ("cut", b"HTTP/1.1 200")], ids=["nothing", "half"]
)
async def test_an_answer_may_fail_to_arrive(evidence, drop, arrives):
    """A dropped answer closes the connection without its end; the request is recorded all the same."""
    rule = Rule(answer=Answer(body=b"0123456789", drop=drop))
    async with open_recorder("api", evidence=evidence, rules=[rule]) as recorder:
        answer = await talk(recorder.port, post(b"x", close=False))

        assert arrives == answer[:12]
        assert (b"01234" if arrives else b"") == answer[-5:]
        assert [b"x"] == [request.body for request in recorder.requests]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_the_standard_library_understands_it(evidence, method):
    """A client that is not ours reads the answers to HEAD and GET and keeps its connection."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:

        def ask() -> list[tuple[int, bytes]]:
            connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=5)
            answers = []
            for path in ("/one", "/two"):
                connection.request(method, path)
                response = connection.getresponse()
                answers.append((response.status, response.read()))
            connection.close()
            return answers

        answers = await trio.to_thread.run_sync(ask)

        body = b"" if method == "HEAD" else b'{"ok": true}'
        assert [(200, body), (200, body)] == answers
        assert ["/one", "/two"] == [request.path for request in recorder.requests]


async def test_no_content_has_no_body(evidence):
    """A status without a body is sent without one, and the connection goes on."""
    empty = Rule(answer=Answer(status=204, body="not sent"))
    async with open_recorder("api", evidence=evidence, rules=[empty]) as recorder:
        answer = await talk(recorder.port, post(b"1", close=False) + post(b"2"))

    assert (2, 0) == (answer.count(b"HTTP/1.1 204"), answer.count(b"not sent"))


async def test_secrets_are_readable_in_memory_and_redacted_in_evidence(evidence):
    """Known secrets, secret headers and secret-shaped text never reach the file."""
    evidence.redactor.add("hunter2-and-more")
    body = json.dumps({"nested": json.dumps({"pass": "hunter2-and-more"}), "ok": "hello"}).encode()
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(
            recorder.port,
            post(
                body,
                "Authorization: Basic dXNlcjpwYXNz",
                "X-Api-Key: short1",
                path="/bot123456789:AAbbCCddEEffGGhhIIjjKKllMMnnOOpp/sendMessage?token=hunter2-and-more",
            ),
        )
        (seen,) = recorder.requests
        written = (evidence.path / "api.jsonl").read_text()

    assert "Basic dXNlcjpwYXNz" == seen.header("authorization")
    assert "hunter2-and-more" == json.loads(seen.json()["nested"])["pass"]
    for secret in ("hunter2", "dXNlcjpwYXNz", "short1", "AAbbCC"):
        assert secret not in written
    assert "hello" in written


async def test_a_large_or_binary_body_is_shown_by_its_size(evidence):
    """The evidence stays readable; the memory has everything."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, post(b"a" * 30_000))
        await talk(recorder.port, post(b"\0\xff"))
        lines = (evidence.path / "api.jsonl").read_text().splitlines()

        assert 30_000 == len(recorder.requests[0].body)
    shown = [json.loads(line)["body"] for line in lines]

    assert "… (10000 characters more)" == shown[0][20_000:]
    assert "(2 B that are no text)" == shown[1]


async def test_waiting_for_requests(evidence):
    """A wait ends with the requests that were wanted, or says which came instead."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, post(b"old"))
        mark = recorder.mark()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk, recorder.port, post(b"a", path="/no"))
            nursery.start_soon(talk, recorder.port, post(b"b", path="/yes"))
            (found,) = await recorder.wait_for("/yes", since=mark, seconds=5)
        with pytest.raises(NotReady, match="it received POST /") as failure:
            await recorder.wait_for("/yes", count=2, since=mark, seconds=0.05)

    assert b"b" == found.body
    assert "see 2 requests for any method /yes at api" == failure.value.action


async def test_what_does_not_fit_is_never_silently_missing(evidence, monkeypatch):
    """Past the bound, asking for all requests is an error; clients are answered as before."""
    monkeypatch.setattr(_state, "_KEPT_REQUESTS", 2)
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        for _ in range(3):
            answer = await talk(recorder.port, post(b"x"))
        with pytest.raises(HarnessError, match="1 did not fit after 2"):
            _ = recorder.requests

        assert b"HTTP/1.1 200" == answer[:12]


async def test_it_serves_loopback_only_and_ends_with_its_block(evidence):
    """Its socket is bound to 127.0.0.1, and nothing listens there afterwards."""
    async with open_recorder("api", evidence=evidence) as recorder:
        answer = await HttpClient(recorder.url).get("/nothing")

        assert (404, "application/json") == (answer.status, answer.content_type)
    with pytest.raises(OSError, match="all attempts"):
        await trio.open_tcp_stream("127.0.0.1", recorder.port)


async def test_a_taken_port_is_a_clear_error(evidence):
    """The error names recorder and port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HarnessError, match=f"cannot serve api on 127.0.0.1:{port}"):
            async with open_recorder("api", evidence=evidence, port=port):
                pass


async def test_an_error_of_the_block_comes_out_as_itself(evidence):
    """The recorder's nursery wraps nothing."""
    with pytest.raises(KeyError, match="mine"):
        async with open_recorder("api", evidence=evidence):
            raise KeyError("mine")


async def test_a_rule_that_raises_ends_the_block(evidence):
    """A mistake in a rule is not answered as if the service had said so."""

    def broken(request):
        raise LookupError(request.path)

    async def until_it_breaks():
        async with open_recorder("api", evidence=evidence, rules=[Rule(answer=broken)]) as recorder:
            await talk(recorder.port, post(b""))
            await trio.sleep_forever()

    with pytest.raises(LookupError, match="/x"):
        await until_it_breaks()


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"status": 100}, "status"),
        ({"latency_s": -1}, "latency_s"),
        ({"drop": "maybe"}, "drop"),
        ({"json": {}, "body": "x"}, "json"),
    ],
)
def test_an_answer_that_cannot_be_sent_is_refused_where_it_is_written(change, key):
    """The error names the field."""
    with pytest.raises(BadInput) as failure:
        Answer(**change)

    assert key == failure.value.key


async def test_a_body_that_is_no_json_is_an_error_of_its_reader(evidence):
    """Asking for JSON that is none names the request and shows the body."""
    async with open_recorder("api", evidence=evidence, rules=[OK]) as recorder:
        await talk(recorder.port, post(b"a=1"))
        (seen,) = recorder.requests

    with pytest.raises(HarnessError, match="POST /x as JSON"):
        seen.json()
