"""What the page knows: renewed while anyone looks, and by nothing that a system says brought down."""

import json

import pytest
import trio

from harness_core.base.evidence import open_evidence
from harness_core.front.live._board import Board
from harness_core.process import open_run
from harness_core.system.staging import open_host

PART = {"name": "x", "kind": "process", "state": "running", "address": "127.0.0.1:1", "pid": None}


class Thing:
    """An environment that describes itself as the test wants."""

    def __init__(self, described):
        self.described = described

    def describe(self):
        """Whatever it is."""
        return self.described


async def looked(folder, environment):
    """What a client is shown after one look."""
    evidence = open_evidence(folder / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_host(run, title="thing", root=folder, staged=True) as host,
    ):
        host.environment = environment
        board = Board(host.path, holder=0, evidence=evidence.path, title="thing")
        with board.looking():
            await board._look()
        return {name: json.loads(text) for name, (_, text) in board.since({}).items()}


async def test_a_part_is_shown_without_secrets(tmp_path):
    """Whatever else stands there, and whatever is missing."""
    urls = {"database": "postgresql://me:hunter2secret@127.0.0.1:1/x"}
    part = {**PART, "urls": urls, "secrets": {"KEY": "hunter2secret"}, "odd": object}
    shown = await looked(tmp_path, Thing({"parts": [part]}))

    assert ["x"] == [each["name"] for each in shown["parts"]]
    assert "hunter2" not in json.dumps(shown)
    assert "" == shown["trouble"]


async def test_while_it_boots_there_are_no_parts(tmp_path):
    """And that is no trouble."""
    shown = await looked(tmp_path, None)

    assert (None, "") == (shown["parts"], shown["trouble"])


@pytest.mark.parametrize(
    "described", [{}, {"parts": [{}]}, {"parts": 3}, {"parts": [{"name": "x", "urls": 7}]}]
)
async def test_a_strange_description_is_shown_as_trouble(tmp_path, described, capsys):
    """The page goes on, and its log has where that was."""
    shown = await looked(tmp_path, Thing(described))

    assert shown["trouble"]
    assert "Traceback" in capsys.readouterr().err


async def test_without_a_client_nothing_is_looked_at(tmp_path):
    """A look waits for somebody to look."""
    board = Board(tmp_path / "none", holder=0, evidence=tmp_path, title="thing")
    with trio.move_on_after(0.2) as scope:
        await board._look()

    assert scope.cancelled_caught


async def test_a_holder_that_is_gone_is_said(tmp_path):
    """In a sentence; what was shown before stays."""
    board = Board(tmp_path / "none", holder=0, evidence=tmp_path, title="thing")
    with board.looking():
        await board._look()

    assert "has ended" in json.loads(board.since({})["trouble"][1])
