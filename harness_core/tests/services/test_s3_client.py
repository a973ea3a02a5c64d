"""What stands between us and an S3 server: one request for one question, and errors in our words."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services import S3RefusedError, S3Url, fetch_object, list_objects
from harness_core.infrastructure.services._s3_client import list_buckets, make_bucket

SECRET = "geheimnis"
BUSY = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\n\r\n"
    b"<Error><Code>SlowDown</Code><Message>Please reduce your rate.</Message></Error>"
)


class Stranger:
    """A server that answers every connection with the same bytes.

    Attributes:
        url: where it is, with keys.
        heard: what it was sent, one text for each connection.
    """

    def __init__(self, port: int, answer: bytes) -> None:
        self.url = S3Url(
            host="127.0.0.1", port=port, access_key="me", secret_key=SECRET, region="eu-1"
        )
        self.heard: list[str] = []
        self._answer = answer

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        self.heard.append((await stream.receive_some()).decode())
        await stream.send_all(self._answer)
        await stream.aclose()


@pytest.fixture
def stranger(nursery: trio.Nursery):
    """Makes one that answers so."""

    async def make(answer: bytes) -> Stranger:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        made = Stranger(listeners[0].socket.getsockname()[1], answer)
        nursery.start_soon(trio.serve_listeners, made.serve, listeners)
        return made

    return make


async def test_a_refusal_is_asked_for_once_and_keeps_its_words(stranger) -> None:
    """No retry hides that a server is busy; its code and its message arrive, the secret does not."""
    server = await stranger(BUSY)
    with pytest.raises(S3RefusedError) as refused:
        await list_buckets(server.url)

    assert 1 == len(server.heard)
    assert (503, "SlowDown") == (refused.value.status, refused.value.code)
    assert "it answers 503 SlowDown: Please reduce your rate." == refused.value.observed
    assert SECRET not in "".join(traceback.format_exception(refused.value)) + server.heard[0]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"220 mail.example.org ESMTP\r\n", id="mail"),
    ],
)
async def test_what_is_no_s3_server_is_an_error_of_the_connection(stranger, answer: bytes) -> None:
    """What listens there and speaks something else differs from a server that refuses."""
    server = await stranger(answer)
    with pytest.raises(OSError, match="Connection was closed"):
        await make_bucket(server.url, "things")

    assert 1 == len(server.heard)


async def test_an_object_that_ends_early_is_no_object(stranger) -> None:
    """Fewer bytes than were announced are an error of the connection."""
    server = await stranger(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
    with pytest.raises(OSError, match="4 bytes read, 5 more expected"):
        await fetch_object(server.url, "things", "a/key")


async def test_a_name_that_no_server_takes_is_refused_here() -> None:
    """It is neither an outage nor a refusal of the server."""
    url = S3Url(host="127.0.0.1", port=9, access_key="me", secret_key=SECRET)
    with pytest.raises(HarnessError, match="Invalid bucket name") as refused:
        await list_objects(url, "no bucket")

    assert not isinstance(refused.value, S3RefusedError)


async def test_nothing_of_the_user_is_used(
    stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither profile, keys, region, endpoint, proxy nor certificates of the shell and the home."""
    home = tmp_path / ".aws"
    home.mkdir()
    (home / "config").write_text("[default]\nregion = mars-1\ns3 =\n  addressing_style = virtual\n")
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = theirs\naws_secret_access_key = x\n"
    )
    shell = {
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "theirs",
        "AWS_CA_BUNDLE": "/nowhere",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_MAX_ATTEMPTS": "9",
        "AWS_PROFILE": "nobody",
        "AWS_REGION": "mars-1",
        "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT": "nonsense",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    server = await stranger(BUSY)
    with pytest.raises(S3RefusedError):
        await list_objects(server.url, "things")

    (request,) = server.heard
    assert request.startswith("GET /things?list-type=2")
    assert "Credential=me/" in request
    assert "/eu-1/s3/aws4_request" in request


def test_who_uses_no_s3_does_not_load_its_client() -> None:
    """It takes 0.2 to 0.4 s and 25 MB."""
    code = "import sys, harness_core.infrastructure.services; print({'boto3', 'botocore'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set()" == done.stdout.strip()
