"""``harness mutate``: a suite is its first word, and what it cannot do is said before anything runs."""

import pytest
from click.testing import CliRunner

from harness_core.assurance.mutation import Mutant, Result, Store, Verdict
from harness_core.base.errors import BadInput
from harness_core.front.cli import cli


def asked(*words):
    """The result of a command."""
    return CliRunner().invoke(cli, ["mutate", *words])


def test_a_suite_needs_no_further_word(words):
    """`harness mutate SUITE` is `harness mutate run SUITE`: both know the suites of the tree."""
    for begin in (["nothing"], ["run", "nothing"]):
        result = asked(*begin, "--root", str(words.root))

        assert isinstance(result.exception, BadInput)
        assert "SUITE: found 'nothing', expected one of words" in str(result.exception)


def result_file(path, mutant_id, shard):
    """A file of results with one killed mutant."""
    store = Store(path)
    same = {"suite": "words", "fingerprint": "f", "chosen": "all", "mutants": "2"}
    store.begin(same | {"shard": shard}, resume=False)
    mutant = Mutant(
        id=mutant_id,
        file="tally.py",
        function="count",
        operator="constant",
        what="3 is one more",
        line=1,
        first=1,
        last=1,
        at_import=True,
        start=0,
        end=1,
        text="4",
        diff_hash="d",
        sha256="s",
    )
    store.add(mutant, "", Result(mutant=mutant_id, verdict=Verdict.KILLED, detail="no"))
    store.close()
    return str(path)


def test_shards_are_merged_by_a_command(tmp_path):
    """The report is that of the whole; a file that is one of the parts is not overwritten."""
    parts = [
        result_file(tmp_path / f"results.{number}-of-2.sqlite", f"m{number}", f"{number}/2")
        for number in (1, 2)
    ]

    result = asked("merge", *parts)

    assert result.exit_code == 0, result.output
    assert "mutants of words: all, of 2, shard 1/2, 2/2" in result.output
    assert "2 of 2 killed by assertion: 100%" in result.output
    assert (tmp_path / "results.sqlite").is_file()
    refused = asked("merge", *parts, "--into", parts[0])
    assert isinstance(refused.exception, BadInput)


@pytest.mark.parametrize("action", ["run", "coverage"])
def test_a_folder_that_is_not_there_is_refused(action):
    """By its option."""
    result = asked(action, "words", "--source", "/nothing/here")

    assert result.exit_code == 2
    assert "--source" in result.output
