"""Which faults a run plants: a sample is decided by its seed, spread over files, and fair."""

import re
import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.errors import Unavailable
from harness_core.faults import Choice, Fault, commit_of, sample_faults


def plan(*sizes):
    """Faults of files of these sizes."""
    return [
        Fault(
            id=f"fault-{file}-{number}",
            why="w",
            requirement="R-1",
            env={},
            tests=("test_demo.py::test_total",),
            says=re.compile("x"),
            file=f"file-{file}",
        )
        for file, size in enumerate(sizes)
        for number in range(size)
    ]


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    size=st.integers(1, 60),
    seed=st.text(max_size=40),
)
def test_a_sample_has_its_size_and_each_file_its_share(sizes, size, seed):
    """As many as asked for, in the plan's order, and no file is off its share by a whole fault."""
    faults = plan(*sizes)

    chosen = sample_faults(faults, size=size, seed=seed)

    assert min(size, len(faults)) == len(chosen)
    assert [fault for fault in faults if fault in chosen] == list(chosen)
    counted = Counter(fault.file for fault in chosen)
    for file, of_file in enumerate(sizes):
        assert abs(counted[f"file-{file}"] - of_file * len(chosen) / len(faults)) < 2


def test_a_seed_always_chooses_the_same():
    """The choice is that of the seed on every machine: it is written down here."""
    faults = plan(10, 3, 7)

    chosen = [fault.id for fault in sample_faults(faults, size=4, seed="commit-1")]

    assert ["fault-0-6", "fault-0-7", "fault-1-1", "fault-2-4"] == chosen
    assert chosen != [fault.id for fault in sample_faults(faults, size=4, seed="commit-2")]


def test_over_many_seeds_each_fault_comes_up_as_often_as_any_other():
    """A fault of a large file is as likely as one of a small file; none is left out."""
    faults = plan(34, 13, 5, 5, 17, 8, 21, 14)
    seeds = 2000

    counted = Counter(
        fault.id
        for number in range(seeds)
        for fault in sample_faults(faults, size=6, seed=f"commit-{number}")
    )

    assert len(faults) == len(counted)
    expected = seeds * 6 / len(faults)
    # Five standard deviations of a binomial count.
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counted.values())


def test_the_commit_is_that_of_the_checkout(tmp_path):
    """The default seed is the hash of HEAD; where there is none, the option is named."""
    with pytest.raises(Unavailable, match=r"not a git repository.*Pass --seed WORD"):
        commit_of(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    with pytest.raises(Unavailable, match=r"choose a sample by the commit: .*Pass --seed WORD"):
        commit_of(tmp_path)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)

    assert re.fullmatch("[0-9a-f]{40}", commit_of(tmp_path))


def test_a_choice_says_how_it_is_made_again():
    """The command names everything that decided."""
    choice = Choice(files=["flows"], sample=3, seed="a b")

    assert "nox -s faults -- e2e --file flows --sample 3 --seed 'a b'" == choice.rerun("e2e")
