"""Jobs are planned by what was measured: none is longer than it should be, none is cut off."""

from datetime import date
from pathlib import Path

import pytest

from harness_core.assurance.shards import update_durations
from harness_core.base.errors import BadInput
from harness_core.front.ci import Session, plan_jobs, read_sessions


def rows(*names, tags=("tests",)):
    """What nox lists of these sessions."""
    return [Session(name, tuple(tags)) for name in names]


@pytest.fixture
def plan(tmp_path):
    """Plan with durations in an empty folder, or what a test measures first."""

    def plan(*given, faults=(), arguments=(), **measured):
        for session, (seconds, workers) in measured.items():
            path = tmp_path / f"{session.replace('_', '-')}.json"
            update_durations(path, seconds, workers=workers, today=date(2026, 3, 1))
        return plan_jobs(given, durations=tmp_path, faults=dict(faults), arguments=arguments)

    return plan


def even(seconds, tests):
    """So many tests that take so long together."""
    return {f"test-{number}": seconds / tests for number in range(tests)}


def test_a_session_that_was_never_measured_is_one_job(plan, tmp_path):
    """It has a generous limit, and its command says where to write what it measures."""
    (job,) = plan(*rows("e2e"))

    assert ("e2e", "e2e", "e2e", 60) == (job.name, job.slug, job.session, job.minutes)
    assert f"--durations-file={tmp_path}/e2e.json" == job.arguments
    assert f"{tmp_path}/e2e.json" == job.measures
    assert (True, "") == (job.tools, job.require)


def test_a_long_session_is_divided(plan):
    """Forty minutes with two workers are two jobs of ten, each limited to 2.5 times that and its set-up."""
    jobs = plan(*rows("e2e"), e2e=(even(2400, 100), 2))

    assert ["e2e 1/2", "e2e 2/2"] == [job.name for job in jobs]
    assert ["e2e-1-of-2", "e2e-2-of-2"] == [job.slug for job in jobs]
    assert ["--shard 1/2", "--shard 2/2"] == [job.arguments.partition(" --dur")[0] for job in jobs]
    assert ["e2e.1-of-2.json", "e2e.2-of-2.json"] == [Path(job.measures).name for job in jobs]
    assert {8 + 25} == {job.minutes for job in jobs}


def test_a_short_session_is_one_job_with_a_short_limit(plan):
    """Four minutes are no reason for two jobs, and what hangs ends after ten and its set-up."""
    (job,) = plan(*rows("parity"), parity=(even(240, 40), 1))

    assert (1, 8 + 10) == (job.arguments.count("-file"), job.minutes)


def test_one_long_test_is_not_divided(plan):
    """There is nothing to share out: one job, whose limit the test fits in."""
    (job,) = plan(*rows("soak"), soak=({"test-soak": 1500.0}, 1))
    beside = plan(*rows("mixed"), mixed=({"test-soak": 1500.0} | even(300, 30), 2))

    assert (1, 8 + 63) == (job.arguments.count("-file"), job.minutes)
    assert [("mixed 1/2", 8 + 63), ("mixed 2/2", 8 + 63)] == [
        (job.name, job.minutes) for job in beside
    ]


def test_faults_are_divided_by_their_number_until_they_are_measured(plan):
    """117 faults at 20 s, two at once, are two jobs; measured at 10 s they are one."""
    faults = {"faults-e2e": 117, "faults-small": 1}
    guessed = plan(*rows("faults-e2e", "faults-small", tags=["faults"]), faults=faults)
    known = plan(
        *rows("faults-e2e", tags=["faults"]), faults=faults, faults_e2e=(even(1170, 117), 2)
    )

    assert ["faults-e2e 1/2", "faults-e2e 2/2", "faults-small"] == [job.name for job in guessed]
    assert {60} == {job.minutes for job in guessed}
    assert guessed[0].arguments.endswith(" --jobs 2")
    assert [("faults-e2e", 8 + 25)] == [(job.name, job.minutes) for job in known]


def test_mutants_are_divided_and_their_verdicts_kept(plan):
    """Each shard has its file; the sample is the same for all."""
    jobs = plan(*rows("mutate-e2e", tags=["mutants"]), arguments=["--sample", "9"])

    assert ["1/3", "2/3", "3/3"] == [job.name.removeprefix("mutate-e2e ") for job in jobs]
    assert "--shard 1/3 --sample 9" == jobs[0].arguments
    assert ".evidence/mutation/e2e/results.2-of-3.sqlite" == jobs[1].results
    assert {("", 90)} == {(job.measures, job.minutes) for job in jobs}


def test_lint_is_given_nothing_but_what_was_asked_for(plan):
    """A session without tests has no durations, no shards, and no tools to install."""
    (static,) = plan(*rows("lint", tags=["fast", "static"]))
    (sample,) = plan(*rows("faults", tags=[]), arguments=["--sample", "4"])

    assert ("", 15, False, "") == (static.arguments, static.minutes, static.tools, static.measures)
    assert ("--sample 4", True, "") == (sample.arguments, sample.tools, sample.measures)


def test_a_session_for_containers_demands_the_engine(plan):
    """There every test would be skipped without one."""
    (job,) = plan(*rows("e2e_containers", tags=["docker", "tests"]))

    assert "docker" == job.require


@pytest.mark.parametrize("word", ["a b", "$HOME", "'", ";"])
def test_a_word_that_a_shell_would_read_otherwise_is_refused(plan, word):
    """The workflow splits the arguments at blanks and nothing else."""
    with pytest.raises(BadInput, match="expected plain words"):
        plan(*rows("e2e"), arguments=[word])


def test_several_lists_of_nox_are_one():
    """A workflow lists the sessions of one tag after those of another; each is planned once."""
    first = '[{"session": "core", "tags": ["tests"], "python": null}]'
    second = '[{"session": "core", "tags": ["tests"]}, {"session": "lint", "tags": []}]'

    assert (Session("core", ("tests",)), Session("lint", ())) == read_sessions(
        f"{first}\n{second}\n"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[{"name": "e2e"}]', '[{"name": "e2e"}]'),
        ('{"name": "e2e"}', '{"name": "e2e"}'),
        ("nox > Running", "nox > Running"),
        ("[]", "no session"),
        ("", "no session"),
    ],
)
def test_what_nox_does_not_list_is_refused(text, found):
    """Another program's words are an error, no empty matrix."""
    with pytest.raises(BadInput) as caught:
        read_sessions(text)

    assert ("stdin", found) == (caught.value.where, caught.value.found)
