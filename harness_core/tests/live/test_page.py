"""The page of what is held, as a program sees it: whom it answers, how it streams, how it ends."""

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.tests.live.looking import Listening, post, request
from harness_core.tests.live.made import SOON_S, Staged, make_tree

pytestmark = pytest.mark.real

PARTS = ("otlp", "model", "front", "orders", "stock")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A shop that is held, with its page."""
    staged = Staged(make_tree(tmp_path_factory.mktemp("live")))
    try:
        yield staged.wait_up()
    finally:
        staged.end()


@pytest.fixture
def own(tmp_path):
    """A shop of the test's own."""
    staged = Staged(make_tree(tmp_path))
    try:
        yield staged.wait_up()
    finally:
        staged.end()


@pytest.fixture
def listen(shop):
    """Clients, closed at the end."""
    made = []

    def opened(**settings):
        made.append(Listening(shop, **settings))
        return made[-1]

    yield opened
    for each in made:
        each.close()


REFUSED = {
    "no token": (401, "GET", "/events", {"token": ""}),
    "no token for the page": (401, "GET", "/", {"token": ""}),
    "a wrong token": (401, "GET", "/events", {"token": "x" * 43}),
    "a wrong token in the address": (401, "GET", "/?token=wrong", {"token": ""}),
    "the token in an address that is not the page's": (401, "GET", "/events?token=", {"token": ""}),
    "the token as a cookie": (401, "GET", "/events", {"token": "", "cookie": "token="}),
    "a post without a token": (401, "POST", "/act", {"token": ""}),
    "a page of another origin": (403, "GET", "/events", {"origin": "http://127.0.0.1:1"}),
    "a post of another origin": (403, "POST", "/act", {"origin": "https://example.com"}),
    "a sandboxed page": (403, "POST", "/act", {"origin": "null"}),
    "another origin's token": (403, "GET", "/?token=", {"token": "", "origin": "http://a.test"}),
    "a name that was bound to this address": (421, "GET", "/", {"host": "attacker.test:80"}),
    "another port's name": (421, "GET", "/", {"host": "127.0.0.1:80"}),
    "an address that is not there": (404, "GET", "/etc/passwd", {}),
    "a preflight": (405, "OPTIONS", "/act", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_answers_nobody_else(shop, name):
    """No token, another origin, another name: refused, with no word of what is held and no CORS."""
    status, method, path, options = REFUSED[name]
    options = {
        key: f"{value}{shop.token}" if key == "cookie" else value for key, value in options.items()
    }
    path = f"{path}{shop.token}" if path.endswith("token=") else path
    found, headers, text = request(shop, method, path, **options)

    assert status == found, text
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert "set-cookie" not in {name.lower() for name in headers}
    assert [] == [word for word in ("front", shop.token, "hunter2") if word in text]


def test_its_answer_is_guarded(shop):
    """A policy without other addresses; nothing is stored, framed, sniffed or passed on."""
    status, headers, text = request(shop, "GET", f"/?token={shop.token}", token="")

    assert 200 == status
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in headers["content-security-policy"]
    assert ("no-store", "DENY", "no-referrer", "nosniff") == (
        headers["cache-control"],
        headers["x-frame-options"],
        headers["referrer-policy"],
        headers["x-content-type-options"],
    )
    assert shop.token not in text


def test_it_is_on_loopback_alone(shop):
    """Another address of this machine does not reach it."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", shop.port), timeout=SOON_S)


def test_its_token_is_in_no_file_and_no_command_line(shop):
    """It is on the terminal of who called for it, and in the memory of two processes."""
    request(shop, "GET", f"/?token={shop.token}", token="")
    request(shop, "GET", f"/nowhere?token={shop.token}", token="")
    files = [path for path in shop.root.parent.rglob("*") if path.is_file() and path != shop.output]
    lines = [
        path for path in Path("/proc").glob("[0-9]*/cmdline") if shop.token.encode() in _bytes(path)
    ]

    assert [] == [path for path in files if shop.token.encode() in _bytes(path)]
    assert [] == lines


def _bytes(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_it_shows_every_part_and_no_secret(shop, listen):
    """State, address, memory and restarts of each; passwords and keys stay where they are."""
    client = listen().until(lambda seen: seen.part("front").get("memory"))
    front = client.part("front")
    ours = shop.parts()["front"]

    assert set(PARTS) == {part["name"] for part in client.seen["parts"]}
    assert ("running", ours["address"], ours["pid"], 0) == (
        front["state"],
        front["address"],
        front["pid"],
        front["restarts"],
    )
    assert front["memory"] > 1_000_000
    assert "hunter2" not in str(client.seen) + str(client.rows)


def test_a_message_is_seen_at_every_part(shop, listen):
    """What was sent is followed to its end, with the lines and spans of each process."""
    client = listen()
    status, text = post(shop, "/send", offer="rope", title="A rope")

    assert 200 == status, text
    client.until(lambda seen: _arrived(seen, spans=3))
    (sent, *_) = client.seen["travels"]
    rows = {row[0]: row for row in client.rows}
    ours = [rows[number] for number in sent["events"] if number in rows]

    assert "twelve yards of rope" == sent["text"]
    assert ["held"] * 3 == [link["state"] for link in sent["links"]]
    assert {("front", "log"), ("stock", "log"), ("front", "span"), ("stock", "span")} <= {
        (row[3], row[4]) for row in ours
    }


def _arrived(client, *, spans):
    travels = client.seen.get("travels")
    if not travels or not travels[0]["ended"]:
        return False
    kinds = {row[0]: row[4] for row in client.rows}
    return [kinds.get(number) for number in travels[0]["events"]].count("span") >= spans


def test_free_text_needs_somebody_who_understands_it(shop):
    """With rehearsed models only what is rehearsed is sent."""
    status, text = post(shop, "/send", text="whatever")

    assert 409 == status
    assert "--llm live" in text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"part": "nobody", "verb": "kill"},
        {"part": "front", "verb": "explode"},
        {"x": "y" * 20_000},
    ],
    ids=["nothing", "no such part", "no such verb", "too long"],
)
def test_what_cannot_be_done_is_said(shop, body):
    """In one sentence; and all goes on."""
    status, text = post(shop, "/act", **body)

    assert 409 == status
    assert "cannot" in text
    assert "running" == shop.parts()["front"]["state"]


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_taken_away_and_given_back(shop, listen, name):
    """Killed, it is shown to be away and the page serves on; started, it is as it was."""
    client = listen().until(lambda seen: seen.part(name).get("state") == "running")
    restarts = client.part(name)["restarts"]

    assert (200, "null") == post(shop, "/act", part=name, verb="kill")
    client.until(lambda seen: seen.part(name)["state"] == "stopped")
    assert ["start"] == client.part(name)["verbs"]
    assert (200, "null") == post(shop, "/act", part=name, verb="start")
    client.until(lambda seen: seen.part(name)["restarts"] == restarts + 1)
    assert "running" == client.part(name)["state"]


@pytest.mark.parametrize("name", ["model", "front", "stock"])
def test_a_part_that_dies_is_shown(shop, listen, name):
    """How it died, in a sentence; started again, nothing of that is left."""
    client = listen().until(lambda seen: seen.part(name).get("state") == "running")
    os.kill(client.part(name)["pid"], signal.SIGKILL)
    client.until(lambda seen: seen.part(name)["state"] == "ended")

    assert "SIGKILL" in client.part(name)["died"]
    assert 200 == post(shop, "/act", part=name, verb="start")[0]
    client.until(lambda seen: seen.part(name)["state"] == "running")
    assert "" == client.part(name)["died"]


def test_fifty_clients_see_the_same(shop, listen):
    """Each of them gets what happens, and none waits for another."""
    clients = [listen() for _ in range(50)]
    for client in clients:
        client.until(lambda seen: "parts" in seen.seen)
    assert 200 == post(shop, "/send", offer="tea")[0]

    def follow(client):
        return client.until(lambda seen: any("one pound of tea" in row[5] for row in seen.rows))

    with ThreadPoolExecutor(50) as threads:
        assert 50 == len(list(threads.map(follow, clients)))


@pytest.mark.slow
def test_a_client_that_never_reads_is_dropped(shop, listen):
    """It costs a bounded piece of memory until the kernel gives it up; others are served meanwhile."""
    idle = listen(receive_bytes=2048)
    reader = listen().until(lambda seen: "parts" in seen.seen)
    before = _memory(shop)
    for _ in range(4):
        assert 200 == post(shop, "/send", offer="flood")[0]
    # Beats come when nothing else does, so who reads has a look again and again.
    reader.until(lambda _: not _is_served(shop, idle))
    so_far = len(reader.rows)
    assert 200 == post(shop, "/send", offer="tea")[0]
    reader.until(lambda seen: any("one pound of tea" in row[5] for row in seen.rows[so_far:]))

    assert _memory(shop) - before < 120e6


def _is_served(staged, client):
    """Whether the kernel has the page's end of a connection; the client's own end learns of nothing."""
    ours = f"0100007F:{staged.port:04X} 0100007F:{client.socket.getsockname()[1]:04X}"
    return ours in " ".join(Path("/proc/net/tcp").read_text().split())


def _memory(staged):
    (page,) = _pages(staged)
    return int(Path(f"/proc/{page}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _pages(staged):
    """Pids of the page's process."""
    wanted = str(staged.evidence()).encode()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"harness_core.front.live" in _bytes(path) and wanted in _bytes(path)
    ]


@pytest.mark.slow
def test_a_page_that_dies_takes_nothing_with_it(own):
    """Its end is said once; what is held goes on, and ends as ever."""
    (page,) = _pages(own)
    os.kill(page, signal.SIGKILL)
    until_blocking(
        lambda: "the page has ended" in own.said(), seconds=SOON_S, action="see the page's end"
    )

    assert {"running"} == {part["state"] for part in own.parts().values()}
    assert 0 == own.end(), own.said()
    assert [] == own.left()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_nothing_is_left(own, number):
    """Clients that listen, one that does not, and a part that is just starting hold nothing up."""
    reading, idle = Listening(own), Listening(own, receive_bytes=2048)
    reading.until(lambda seen: "parts" in seen.seen)
    pids = [part["pid"] for part in own.parts().values() if part["pid"]] + _pages(own)
    assert 200 == post(own, "/send", offer="flood")[0]
    assert 200 == post(own, "/act", part="stock", verb="kill")[0]

    assert 0 == own.end(number), own.said()
    assert [] == own.left()
    assert [] == [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", own.port), timeout=SOON_S)
    reading.close()
    idle.close()


@pytest.mark.slow
def test_after_sigkill_nothing_runs(own):
    """The warden ends the page with all the rest; what lies on disk is swept."""
    reading = Listening(own).until(lambda seen: "parts" in seen.seen)
    pids = [part["pid"] for part in own.parts().values() if part["pid"]] + _pages(own)
    own.process.kill()
    own.process.wait()

    until_blocking(
        lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()],
        seconds=SOON_S,
        action="see all processes end",
    )
    own.harness("sweep")
    assert [] == own.left()
    reading.close()
