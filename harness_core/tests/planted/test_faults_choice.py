"""Which faults a run plants: a sample is decided by its seed, spread over files, and fair."""

import re
import subprocess
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness_core.assurance.planted import (
    Choice,
    Fault,
    choose_faults,
    commit_of,
    load_product,
    sample_faults,
)
from harness_core.assurance.shards import Shard
from harness_core.base.errors import Unavailable
from harness_core.system.suites import load_suite


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


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    count=st.integers(1, 6),
    sample=st.none() | st.integers(1, 20),
)
def test_shards_share_out_what_was_chosen(tmp_path_factory, sizes, count, sample):
    """The shards together plant the sample, each fault once, in the order of the plan."""
    product = load_product(written(tmp_path_factory.mktemp("plan"), sizes))
    whole = Choice(sample=sample, seed="s")
    chosen = [fault.id for fault in choose_faults(product, whole)]
    assume(count <= len(chosen))

    parts = [
        [
            fault.id
            for fault in choose_faults(
                product, replace(whole, shard=Shard(number, count), seconds={"demo/fault-0-0": 9.0})
            )
        ]
        for number in range(1, count + 1)
    ]

    assert sorted(chosen) == sorted(id_ for part in parts for id_ in part)
    assert all(part == [id_ for id_ in chosen if id_ in part] for part in parts)


def written(root, sizes):
    """A suite with a folder of such files."""
    folder = root / "suites" / "demo"
    (folder / "faults").mkdir(parents=True)
    (folder / "test_demo.py").write_text("def test_total(): pass\n")
    (folder / "suite.toml").write_text(
        '[suite]\nname = "demo"\nsummary = "s"\ngroup = "test"\nfaults = "faults"\n'
        '[[session]]\nname = "demo"\nsummary = "s"\n'
    )
    for file, size in enumerate(sizes):
        (folder / "faults" / f"file-{file}.toml").write_text(
            "".join(
                f'[[fault]]\nid = "fault-{file}-{number}"\nwhy = "w"\nrequirement = "R-1"\n'
                'env = { DEMO = "x" }\ntests = ["test_demo.py::test_total"]\nsays = "x"\n'
                for number in range(size)
            )
        )
    return load_suite(folder)


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
