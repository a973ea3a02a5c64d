"""Which engine is found, by which rule, and the error when none answers."""

from __future__ import annotations

import hashlib
import json
import socket
import socketserver
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_core.base.errors import BadInput, Unavailable
from harness_core.infrastructure import engine as engine_module
from harness_core.infrastructure.engine import find_engine

DOCKER = {"Version": "20.10.24", "ApiVersion": "1.41", "Components": [{"Name": "Engine"}]}
PODMAN = {"Version": "5.4.0", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}


@pytest.fixture
def tmp_path():
    """A short one, whatever TMPDIR is: the address of a socket has some hundred characters."""
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as name:
        yield Path(name)


@contextmanager
def fake_engine(path: Path, answer: object = DOCKER, *, status: str = "200 OK"):
    """A socket that answers every request with the same JSON."""
    body = json.dumps(answer).encode()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

    path.parent.mkdir(parents=True, exist_ok=True)
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def write_context(home: Path, name: str, url: str, *, current: bool) -> Path:
    """A context as the docker command keeps it; returns its meta.json."""
    config = home / ".docker"
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts/meta" / key / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": url}}}))
    if current:
        (config / "config.json").write_text(json.dumps({"currentContext": name}))
    return meta


def test_docker_host_is_asked_who_it_is(tmp_path):
    """A named engine on a socket is local, and its ports are reached on loopback."""
    with fake_engine(tmp_path / "e.sock"):
        engine = find_engine(environment={"DOCKER_HOST": f"unix://{tmp_path}/e.sock"})

    assert ("Docker Engine", "20.10.24", "DOCKER_HOST") == (
        engine.name,
        engine.version,
        engine.source,
    )
    assert (True, "127.0.0.1") == (engine.local, engine.host)
    assert {"DOCKER_HOST": f"unix://{tmp_path}/e.sock"} == engine.environment


def test_a_silent_named_engine_is_not_replaced(tmp_path):
    """Who names an engine gets that one or an error, never another that happens to answer."""
    environment = {
        "DOCKER_HOST": f"unix://{tmp_path}/gone.sock",
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
    }
    with fake_engine(tmp_path / "run/docker.sock"), pytest.raises(Unavailable) as refused:
        find_engine(environment=environment)

    assert "gone.sock (DOCKER_HOST): No such file" in refused.value.observed
    assert "run/docker.sock" not in refused.value.observed


@pytest.mark.parametrize("how", ["config", "variable"])
def test_the_current_context_names_the_engine(tmp_path, how):
    """A context of the docker command is followed, from its configuration or DOCKER_CONTEXT."""
    write_context(tmp_path, "lab", f"unix://{tmp_path}/lab.sock", current=how == "config")
    environment = {"HOME": str(tmp_path)}
    if how == "variable":
        environment["DOCKER_CONTEXT"] = "lab"
    with fake_engine(tmp_path / "lab.sock"):
        engine = find_engine(environment=environment)

    assert ("context lab", f"unix://{tmp_path}/lab.sock") == (engine.source, engine.url)


def test_a_context_that_is_not_there_is_one_clear_error(tmp_path):
    """A name without a context names itself and the file that was looked for."""
    with pytest.raises(BadInput) as refused:
        find_engine(environment={"HOME": str(tmp_path), "DOCKER_CONTEXT": "nowhere"})

    assert "nowhere" == refused.value.key
    assert "meta.json" in str(refused.value.found)


@pytest.fixture
def no_machine_wide_engine(tmp_path, monkeypatch):
    """Whatever this machine runs: nothing listens on the sockets that belong to all users."""
    monkeypatch.setattr(engine_module, "_DOCKER_SOCKET", tmp_path / "machine/docker.sock")
    monkeypatch.setattr(engine_module, "_PODMAN_SOCKET", tmp_path / "machine/podman.sock")


@pytest.mark.usefixtures("no_machine_wide_engine")
def test_podman_is_found_by_its_socket_and_named(tmp_path):
    """Without a Docker socket the Docker API of Podman is used, and called what it is."""
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    with fake_engine(tmp_path / "run/podman/podman.sock", PODMAN):
        engine = find_engine(environment=environment)

    assert ("Podman Engine", "5.4.0", "rootless Podman") == (
        engine.name,
        engine.version,
        engine.source,
    )


def test_a_remote_engine_has_its_own_address():
    """Ports of an engine behind ssh are reached at its host, unless an override says otherwise."""
    remote = find_engine(environment={"DOCKER_HOST": "ssh://me@build.example"})
    override = {"DOCKER_HOST": "ssh://me@build.example", "TESTCONTAINERS_HOST_OVERRIDE": "nat"}

    assert (False, "build.example") == (remote.local, remote.host)
    assert "nat" == find_engine(environment=override).host


def test_a_tcp_engine_on_loopback_is_local():
    """tcp:// to this machine is this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unavailable) as refused:
        find_engine(environment={"DOCKER_HOST": f"tcp://127.0.0.1:{port}"})

    assert "Connection refused" in refused.value.observed


@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        pytest.param({"hello": "world"}, "200 OK", "is no container engine", id="no-engine"),
        pytest.param({}, "403 Forbidden", "answers 403 Forbidden", id="refusal"),
    ],
)
def test_what_answers_and_is_no_engine_is_refused(tmp_path, answer, status, expected):
    """A server that is something else, or refuses, is named with its answer."""
    with (
        fake_engine(tmp_path / "e.sock", answer, status=status),
        pytest.raises(Unavailable, match=expected),
    ):
        find_engine(environment={"DOCKER_HOST": f"unix://{tmp_path}/e.sock"})


@pytest.mark.usefixtures("no_machine_wide_engine")
def test_nobody_anywhere_names_every_place(tmp_path):
    """On a machine without an engine each place that was looked at is in the text, once."""
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    with pytest.raises(Unavailable) as refused:
        find_engine(environment=environment)

    assert 1 == refused.value.observed.count("nothing at")
    assert f"unix://{tmp_path}/podman/podman.sock" in refused.value.observed
