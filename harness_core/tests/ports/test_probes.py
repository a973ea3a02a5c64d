"""One look at servers of every temper: refusing, hanging, talking nonsense, slow."""

import socket

import pytest
import trio

from harness_core.base.errors import BadInput
from harness_core.doubles.http import _probes as probes_of_http
from harness_core.doubles.http import http_answers, sse_opens
from harness_core.ports import _probes, lease_port, tcp_accepts


def answering(data: bytes):
    """A handler that reads a request, sends ``data`` and closes."""

    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        await stream.send_all(data)

    return handle


async def hang(stream: trio.SocketStream) -> None:
    """Accept and never answer."""
    await trio.sleep_forever()


async def reset(stream: trio.SocketStream) -> None:
    """Read a little and reset the connection."""
    await stream.receive_some(1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


async def never_ending_header(stream: trio.SocketStream) -> None:
    """Send header lines for ever."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    try:
        while True:
            await stream.send_all(b"X-Filler: " + b"x" * 1000 + b"\r\n")
    except trio.BrokenResourceError:
        return


async def drip(stream: trio.SocketStream) -> None:
    """Send the front of a status line and no more."""
    await stream.send_all(b"HTTP/1.1 200 O")
    await trio.sleep_forever()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        pytest.param(answering(OK), "", id="ok"),
        pytest.param(answering(b"HTTP/1.1 103 Hints\r\n\r\n" + OK), "", id="informational-first"),
        pytest.param(answering(b"HTTP/1.0 200 OK\r\n\r\n"), "", id="old-version"),
        pytest.param(
            answering(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
            "GET {url} answered 503, expected 200",
            id="error-status",
        ),
        pytest.param(
            answering(b"SSH-2.0-OpenSSH\r\n\r\n"), "GET {url}: not HTTP (", id="other-protocol"
        ),
        pytest.param(answering(b""), "GET {url}: not HTTP (", id="closes-at-once"),
        pytest.param(answering(b"HTTP/1.1 200 OK\r\nX:"), "GET {url}: not HTTP (", id="cut-header"),
        pytest.param(never_ending_header, "GET {url}: not HTTP (", id="header-without-end"),
        pytest.param(reset, "GET {url}: connection reset", id="reset"),
        pytest.param(hang, "GET {url}: no response headers within 0.2 s", id="hangs"),
        pytest.param(drip, "GET {url}: no response headers within 0.2 s", id="slow-header"),
    ],
)
async def test_http_probe(serve, monkeypatch, handler, expected):
    """One look says what was seen instead of the answer, and never takes longer than it may."""
    monkeypatch.setattr(probes_of_http, "LOOK_S", 0.2)
    async with serve(handler) as port:
        url = f"http://127.0.0.1:{port}/health?deep=1"
        with trio.fail_after(5):
            seen = await http_answers(url)()

    assert bool(expected) == bool(seen)
    assert seen.startswith(expected.format(url=url))


async def test_http_probe_sends_a_whole_request(serve):
    """The server gets path, query and host as they stand in the URL."""
    requests: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        requests.append(await stream.receive_some(4096))
        await stream.send_all(OK)

    async with serve(handle) as port:
        assert "" == await http_answers(f"http://user:pw@localhost:{port}/a%20b?c=d#e")()

    head = requests[0].decode().split("\r\n")
    assert "GET /a%20b?c=d HTTP/1.1" == head[0]
    assert f"Host: localhost:{port}" in head


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"200 OK\r\nContent-Type: text/event-stream; charset=utf-8", ""),
        (b"200 OK\r\ncontent-type: Text/Event-Stream", ""),
        (b"200 OK\r\nContent-Type: text/html", "answered 200 text/html"),
        (b"200 OK\r\nX: y", "answered 200 without a content type"),
        (b"404 No\r\nContent-Type: text/event-stream", "answered 404 text/event-stream"),
    ],
)
async def test_sse_probe_reads_headers_only(serve, head, expected):
    """An event stream that never ends is seen by its headers; anything else is not one."""

    async def stream_for_ever(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        await stream.send_all(b"HTTP/1.1 " + head + b"\r\n\r\n: ping\n\n")
        await trio.sleep_forever()

    async with serve(stream_for_ever) as port:
        url = f"http://127.0.0.1:{port}/sse"
        with trio.fail_after(5):
            seen = await sse_opens(url)()

    assert (f"GET {url} {expected}" if expected else "") == seen


async def test_refused_connections_are_said_so():
    """A port without a listener is a refused connection, for every probe."""
    with lease_port() as lease:
        url = f"http://127.0.0.1:{lease.port}/"
        refused = "connection refused"

        assert f"port {lease.port}: {refused}" == await tcp_accepts(lease.port)()
        assert f"GET {url}: {refused}" == await http_answers(url)()
        assert f"GET {url}: {refused}" == await sse_opens(url)()


async def test_name_that_does_not_resolve():
    """An unknown host is an observation, not an error of the harness."""
    seen = await http_answers("http://no-such-host.invalid/")()

    assert seen.startswith("GET http://no-such-host.invalid/: ")


@pytest.mark.requires("ipv6")
async def test_tcp_probe_sees_ipv6_and_localhost(serve):
    """A server on ::1 is found by its address and by ``localhost``, not on 127.0.0.1."""
    async with serve(hang, host="::1") as port:
        assert "" == await tcp_accepts(port, host="::1")()
        if "::1" in {entry[4][0] for entry in socket.getaddrinfo("localhost", port)}:
            assert "" == await tcp_accepts(port, host="localhost")()
        assert "refused" in await tcp_accepts(port)()
        assert "no response headers" in await _within(http_answers(f"http://[::1]:{port}/"))


async def _within(probe) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probes_of_http, "LOOK_S", 0.1)
        return await probe()


async def test_full_backlog_does_not_hold_a_look(monkeypatch):
    """A server that no longer accepts costs one look its bound, no more."""
    monkeypatch.setattr(_probes, "LOOK_S", 0.2)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        port = sock.getsockname()[1]
        with socket.create_connection(sock.getsockname()), trio.fail_after(5):
            seen = await tcp_accepts(port)()

    assert seen in {"", f"port {port}: no answer to a connection within 0.2 s"}


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "127.0.0.1:80",
        "http://",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/ü",
        "http://127.0.0.1/a\nb: c",
    ],
)
def test_url_that_no_probe_could_get_is_refused(url):
    """A URL that could never answer is refused when the probe is made, not when time is up."""
    for probe in (http_answers, sse_opens):
        if url.endswith("a\nb: c"):
            continue  # urlsplit drops the newline; nothing is injected
        with pytest.raises(BadInput) as refused:
            probe(url)
        assert url == refused.value.found
