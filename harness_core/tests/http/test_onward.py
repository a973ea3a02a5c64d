"""Spans sent on to a collector of the user's: as they came, aside, and with no say in anything."""

import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import pytest
import trio

from harness_core.base.errors import BadInput
from harness_core.base.wait import deadline, until
from harness_core.doubles.http import (
    Answer,
    HttpClient,
    Rule,
    check_endpoint,
    open_recorder,
    sending_on,
)

OK = (Rule(answer=Answer(), name="all"),)


async def export(recorder, body=b"\x0aspans", path="/v1/traces"):
    """What an exporter does."""
    client = HttpClient(recorder.url, name=recorder.name, headers={"content-type": "application/x"})
    return await client.request("POST", path, content=body)


async def test_an_export_arrives_as_it_was_sent(evidence, monkeypatch):
    """Bytes and content type, with the headers that exporters are given; metrics stay where they are."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-team=shop")
    async with open_recorder("theirs", evidence=evidence, rules=OK) as theirs:
        said = []
        with sending_on(f"{theirs.url}/otel", say=said.append):
            async with open_recorder("ours", evidence=evidence, rules=OK) as ours:
                await export(ours)
                await export(ours, path="/v1/metrics")
                with deadline("see the export", seconds=30):
                    await until(partial(arrived, theirs))
    (request,) = [each for each in theirs.requests if "/otel/" in each.target]

    assert ("/otel/v1/traces", b"\x0aspans", "application/x", "a b", "shop") == (
        request.target,
        request.body,
        request.header("content-type"),
        request.header("x-key"),
        request.header("x-team"),
    )
    assert [] == said


async def arrived(recorder):
    """Whether anything was sent on."""
    return any("/otel/" in each.target for each in recorder.requests)


async def test_one_that_cannot_be_reached_is_said_once(evidence):
    """However many exports there are; each of them was taken by the recorder it was meant for."""
    said = []
    async with open_recorder("ours", evidence=evidence, rules=OK) as ours:
        with sending_on("http://user:hunter2@127.0.0.1:1", say=said.append):
            answers = [(await export(ours)).status for _ in range(5)]

    assert [200] * 5 == answers
    (line,) = said
    assert "spans do not reach http://127.0.0.1:1: " in line
    assert "hunter2" not in line


async def test_one_that_refuses_is_said_once(evidence):
    """With the status that it answered."""
    said = []
    no = (Rule(answer=Answer(status=401), name="no"),)
    async with (
        open_recorder("theirs", evidence=evidence, rules=no) as theirs,
        open_recorder("ours", evidence=evidence, rules=OK) as ours,
    ):
        with sending_on(f"{theirs.url}/otel", say=said.append):
            await export(ours)
            await export(ours)
            with deadline("hear of it", seconds=30):
                await until(partial(heard, said))

    (line,) = said
    assert "401" in line


async def heard(said):
    """Whether anything was said."""
    return bool(said)


async def test_what_waits_at_the_end_is_sent_before_it(evidence):
    """A collector that takes its time has all that was exported when the block is over; even a block that fails."""
    with slow_collector() as (url, seen):
        async with open_recorder("ours", evidence=evidence, rules=OK) as ours:
            with pytest.raises(ZeroDivisionError), sending_on(url, say=print):
                await _fail_after_exports(ours)

    assert [b"%d" % number for number in range(8)] == seen


async def _fail_after_exports(recorder):
    for number in range(8):
        await export(recorder, body=b"%d" % number)
    raise ZeroDivisionError


@contextmanager
def slow_collector():
    """One at a time, a tenth of a second each; its address, and the bodies that it has taken."""
    seen = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            Event().wait(0.1)
            seen.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


async def test_afterwards_nothing_is_sent_on(evidence):
    """What a recorder takes later stays with it."""
    async with open_recorder("theirs", evidence=evidence, rules=OK) as theirs:
        with sending_on(f"{theirs.url}/otel", say=print):
            pass
        async with open_recorder("ours", evidence=evidence, rules=OK) as ours:
            await export(ours)

        assert () == theirs.requests


@pytest.mark.parametrize(
    "url", ["", "localhost:4318", "file:///etc/passwd", "ftp://a.test", "http://"]
)
def test_what_is_no_address_is_refused(url):
    """With what an address is."""
    with pytest.raises(BadInput, match="http://HOST:PORT"):
        check_endpoint(url)


def test_the_path_of_traces_may_stand_there():
    """Both ways of naming a collector mean the same."""
    assert "http://a.test:4318" == check_endpoint("http://a.test:4318/v1/traces")


EXPORTS = """
import pytest
from harness_core.doubles.http import Answer, HttpClient, Rule, open_recorder

@pytest.mark.parametrize("number", range(4))
async def test_exports(evidence, number):
    rules = (Rule(answer=Answer(), name="all"),)
    async with open_recorder("shop", evidence=evidence, rules=rules) as shop:
        await HttpClient(shop.url, name="shop").post("/v1/traces", {"number": number})
"""


def run_tests(folder, *words):
    """A project whose tests export spans."""
    (folder / "test_it.py").write_text(EXPORTS)
    (folder / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.runner
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
async def test_a_run_sends_the_spans_of_its_systems_on(evidence, tmp_path, workers):
    """Those of every worker, to the last; the run is as it is without."""
    async with open_recorder("theirs", evidence=evidence, rules=OK) as theirs:
        words = (*workers, "--otlp", theirs.url)
        done = await trio.to_thread.run_sync(partial(run_tests, tmp_path, *words))
        numbers = {request.json()["number"] for request in theirs.requests}

    assert 0 == done.returncode, done.stdout
    assert {0, 1, 2, 3} == numbers
    assert "otlp:" not in done.stdout


@pytest.mark.runner
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_collector_that_is_away_changes_no_verdict(tmp_path, workers):
    """It is said in one line at the end; the status is that of the tests."""
    done = run_tests(tmp_path, *workers, "--otlp", "http://127.0.0.1:1")

    assert 0 == done.returncode, done.stdout
    assert 1 == done.stdout.count("otlp: spans do not reach http://127.0.0.1:1")


@pytest.mark.runner
def test_what_is_no_collector_is_refused_before_anything_runs(tmp_path):
    """As a mistake of the command line."""
    done = run_tests(tmp_path, "--otlp", "localhost:4318")

    assert pytest.ExitCode.USAGE_ERROR == done.returncode
    assert "http://HOST:PORT" in done.stderr
