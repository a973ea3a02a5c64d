"""The subject file: what it says, what reaches the subject, and every mistake in it."""

import sys
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from harness_core.base.errors import BadInput
from harness_core.base.reading import Table
from harness_core.system.subject import Tables, load_subject

GOOD = """
[subject]
name = "butlers (reference)"
project = "butlers"
summary = "the reference"
argv = ["{bin}/butlers", "run", "--config", "{config_dir}"]
capabilities = ["ingest.v1", "route.v1"]
inherit = ["BUTLERS_*"]

[env]
"BUTLERS_{NAME}_PORT" = "{port}"
PLAIN = 'json {"a": 1} ${HOME}'

[readiness]
path = "/sse"
"""


def load(tmp_path: Path, text: str):
    """Load a subject file with this text."""
    path = tmp_path / "subject.toml"
    path.write_text(text, encoding="utf-8")
    return load_subject(path)


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a developer's keys and settings on it."""
    import os

    for key in list(os.environ):
        monkeypatch.delenv(key)
    for key, value in {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "LC_TIME": "de_DE",
        "TZ": "UTC",
        "SSL_CERT_FILE": "/ca.pem",
        "HOME": "/home/dev",
        "ANTHROPIC_API_KEY": "sk-ant-developer",
        "ANTHROPIC_BASE_URL": "https://api.example",
        "AWS_SECRET_ACCESS_KEY": "x",
        "PYTHONPATH": "/dev/src",
        "BUTLERS_LOG": "debug",
        "butlers_log": "other",
        "MY_PATH": "x",
    }.items():
        monkeypatch.setenv(key, value)


def test_command_and_environment_are_filled_in(tmp_path, clean_environment, monkeypatch):
    """Fields reach argv, names and values; braces that are no field stay."""
    monkeypatch.setenv("HARNESS_SUBJECT_BIN", "/opt/bin")
    subject = load(tmp_path, GOOD)

    command = subject.command(config_dir="/roster/health")
    environment = subject.environment(NAME="HEALTH", port=8103, HOME="never offered by name")

    assert ("/opt/bin/butlers", "run", "--config", "/roster/health") == command
    assert "8103" == environment["BUTLERS_HEALTH_PORT"]
    assert frozenset({"ingest.v1", "route.v1"}) == subject.capabilities
    assert {"path": "/sse"} == subject.table("readiness")
    assert {} == subject.table("absent")
    assert (tmp_path / "x").resolve() == subject.resolve("x")


def test_keys_of_the_developer_do_not_reach_the_subject(tmp_path, clean_environment):
    """Only what every program needs and what the file asks for is passed on, by exact case."""
    text = GOOD.replace("${HOME}", "")
    environment = load(tmp_path, text).environment(NAME="A", port=1)

    assert {
        "PATH",
        "LANG",
        "LC_TIME",
        "TZ",
        "SSL_CERT_FILE",
        "BUTLERS_LOG",
        "BUTLERS_A_PORT",
        "PLAIN",
    } == set(environment)


def test_a_command_may_have_a_folder_of_its_own(tmp_path):
    """Relative to the file, with fields; left out, the suite decides."""
    text = '[subject]\nname = "x"\nargv = ["x"]\n'
    (tmp_path / "deep" / "er").mkdir(parents=True)
    subject = load(tmp_path, text + 'cwd = "deep/{name}"')

    assert load(tmp_path, text).folder(name="er") is None
    assert (tmp_path / "deep" / "er").resolve() == subject.folder(name="er")
    with pytest.raises(BadInput, match="a folder that is there"):
        subject.folder(name="gone")
    with pytest.raises(BadInput, match=r"subject\.cwd: found '\{name\}', expected one of \{port\}"):
        subject.folder(port=1)
    with pytest.raises(BadInput, match="none without argv"):
        load(tmp_path, '[subject]\nname = "x"\ncwd = "deep"\n[stack]\ncompose = "c.yaml"')


def test_own_variables_win_over_inherited_ones(tmp_path, clean_environment):
    """What the file sets is what the subject gets."""
    text = GOOD.replace("${HOME}", "").replace("[env]", '[env]\nPATH = "/own"\nBUTLERS_LOG = ""')
    environment = load(tmp_path, text).environment(NAME="A", port=1)

    assert ("/own", "") == (environment["PATH"], environment["BUTLERS_LOG"])


def test_commands_come_from_our_own_environment_by_default(tmp_path, monkeypatch):
    """Without an environment of its own the subject's commands lie beside our interpreter."""
    monkeypatch.delenv("HARNESS_SUBJECT_BIN", raising=False)
    subject = load(tmp_path, '[subject]\nname = "x"\nargv = ["{bin}/x"]')

    assert (f"{Path(sys.executable).parent}/x",) == subject.command()


@pytest.mark.parametrize(
    ("text", "key", "found"),
    [
        pytest.param('[subject]\nname = "x"\nargv = ["{prt}"]', "argv[0]", "{prt}", id="argv"),
        pytest.param(
            '[subject]\nname = "x"\nargv = ["x"]\n[env]\nA = "{prt}"', "env.A", "{prt}", id="value"
        ),
        pytest.param(
            '[subject]\nname = "x"\nargv = ["x"]\n[env]\n"A_{N}" = ""',
            "env.A_{N}",
            "{N}",
            id="name",
        ),
    ],
)
def test_field_that_nobody_offers_is_named(tmp_path, text, key, found):
    """A field without a value is refused with those that are offered."""
    subject = load(tmp_path, text)

    with pytest.raises(BadInput) as refused:  # noqa: PT012
        subject.command(port=1)
        subject.environment(port=1)

    assert (key, found) == (refused.value.key, refused.value.found)
    assert "one of {bin}, {port}" == refused.value.expected
    assert str(subject.path) == refused.value.where


HEAD = '[subject]\nname = "x"\nargv = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param("", "subject", id="empty"),
        pytest.param('[subject]\nargv = ["x"]', "subject.name", id="no-name"),
        pytest.param('[subject]\nname = ""\nargv = ["x"]', "subject.name", id="empty-name"),
        pytest.param('[subject]\nname = "x"', "subject.argv", id="no-argv"),
        pytest.param(HEAD + '[env]\n"A=B" = "1"', "env", id="env-equals"),
        pytest.param(HEAD + '[env]\n"" = "1"', "env", id="env-nameless"),
    ],
)
def test_mistake_in_the_file_is_named(tmp_path, text, key):
    """Each is one error with file and key; of every key, see suites/test_every_file."""
    with pytest.raises(BadInput) as refused:
        load(tmp_path, text)

    assert (str(tmp_path / "subject.toml"), key) == (refused.value.where, refused.value.key)


def test_file_that_cannot_be_read(tmp_path):
    """A missing file, a directory, a file that is no text and one that is no TOML are told apart."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "text").write_text("name: yaml\n", encoding="utf-8")
    found = {}
    for name in ("missing", "directory", "binary", "text"):
        with pytest.raises(BadInput) as refused:
            load_subject(tmp_path / name)
        found[name] = str(refused.value.found)

    assert "No such file or directory" == found["missing"]
    assert "Is a directory" in found["directory"]
    assert "utf-8" in found["binary"]
    assert "line 1" in found["text"]


def test_table_that_is_none_is_refused(tmp_path):
    """An adapter that asks for a table gets one, or one clear error."""
    subject = load(tmp_path, "readiness = 3\n" + HEAD)

    with pytest.raises(BadInput) as refused:
        subject.table("readiness")

    assert ("readiness", 3) == (refused.value.key, refused.value.found)


class Ports(Table, frozen=True):
    """A table of a suite."""

    source: str = ""
    health: int = 0


class Chain(Table, frozen=True):
    """A row of a suite."""

    path: str


class Shape(Tables, frozen=True):
    """What a suite reads."""

    ports: Ports = Ports()
    chains: Annotated[tuple[Chain, ...], Meta(description="a list of tables")] = ()


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        pytest.param("[pots]\nsource = 'x'", "pots", "Did you mean ports?", id="table"),
        pytest.param("[evn]\nA = 'x'", "evn", "Did you mean env?", id="env"),
        pytest.param("[ports]\nsource = 3", "ports.source", "a text", id="number"),
        pytest.param("[[chains]]\npaht = 'x'", "chains[0].paht", "Did you mean path?", id="row"),
        pytest.param("[chains]\npath = 'x'", "chains", "a list of tables", id="no-list"),
    ],
)
def test_table_of_a_suite_has_the_keys_that_it_reads(tmp_path, text, key, said):
    """A misspelt table or key would do nothing; it is refused, and the right one is named."""
    subject = load(tmp_path, f"{HEAD}\n{text}")

    with pytest.raises(BadInput) as refused:
        subject.read_tables(Shape)

    assert (str(subject.path), key) == (refused.value.where, refused.value.key)
    assert said in str(refused.value)


def test_tables_that_are_read_pass(tmp_path):
    """Every kind of value, and tables that are left out."""
    text = "[ports]\nsource = 'lease'\nhealth = 8103\n[[chains]]\npath = 'x'"

    assert load(tmp_path, f"{HEAD}\n{text}").read_tables(Shape)
    assert load(tmp_path, HEAD).read_tables(Shape)
