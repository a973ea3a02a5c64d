"""The ``harness`` command: statuses, texts, and that a HarnessError never is a traceback."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness_core.assurance.shards import read_durations, update_durations


@pytest.fixture
def harness(tmp_path):
    """Run the command in an empty folder, or in ``cwd``."""

    def run(*args, cwd=tmp_path, given="", **env):
        return subprocess.run(
            [sys.executable, "-m", "harness_core.front.cli", *args],
            cwd=cwd,
            env={**os.environ, **env},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def tree(tmp_path):
    """A tree with one suite, its fault and a README."""
    folder = tmp_path / "suites" / "demo"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n[tool.pytest]\n")
    (folder / "README.md").write_text("# demo\n")
    (folder / "test_demo.py").write_text(
        "import os\n\n\ndef test_demo():\n"
        "    assert os.environ.get('DEMO', '') != 'wrong', 'the demo is wrong'\n"
    )
    (folder / "suite.toml").write_text(
        '[suite]\nname = "demo"\nsummary = "A demo."\ngroup = "test"\nfaults = "faults.toml"\n'
        '[[session]]\nname = "demo_all"\nsummary = "All."\ndefault = true\n'
    )
    (folder / "faults.toml").write_text(fault("wrong") + fault("harmless"))
    return tmp_path


def fault(mode):
    """A [[fault]] that sets DEMO."""
    return (
        f'[[fault]]\nid = "{mode}"\nwhy = "w"\nrequirement = "R"\nenv = {{ DEMO = "{mode}" }}\n'
        'tests = ["test_demo.py::test_demo"]\nsays = "the demo is wrong"\n'
    )


@pytest.mark.parametrize("command", [["lint"], ["faults"], ["new", "suite", "tally"]])
def test_outside_of_a_tree_is_one_clear_error(harness, command):
    """Where there are no suites, every command that needs them says so on stderr, status 2."""
    result = harness(*command)

    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("cannot find the suites: no folder above ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [["lint"], ["faults"], ["new", "suite", "tally"]])
def test_malformed_suite_is_one_clear_error(harness, tree, command):
    """A broken suite.toml names itself, without a traceback."""
    (tree / "suites/demo/suite.toml").write_text("[suite\n")

    result = harness(*command)

    assert result.returncode == 2
    assert "suites/demo/suite.toml: found " in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_lint_is_clean_or_not(harness, tree):
    """A finding is a line on stdout and status 1; a clean tree says what it looked at."""
    clean = harness("lint")
    (tree / "suites/demo/test_more.py").write_text("def test_more():\n    pass\n")
    found = harness("lint")

    assert (0, "0 finding(s); suites: demo\n") == (clean.returncode, clean.stdout)
    assert found.returncode == 1
    assert found.stdout.startswith("suites/demo/test_more.py:1: pass-only: ")


@pytest.mark.slow
def test_faults_ends_with_1_unless_all_are_killed(harness, tree):
    """A survivor makes the command fail; the killed one alone does not."""
    both = harness("faults", "demo")
    killed = harness("faults", "demo", "wrong")
    by_option = harness("faults", "--fault", "wrong")
    report = json.loads((tree / ".evidence/faults/demo/report.json").read_text())

    assert both.returncode == 1
    assert "1 of 2 planted faults killed" in both.stdout
    assert killed.returncode == 0, killed.stdout + killed.stderr
    assert by_option.returncode == 0
    assert [("wrong", "killed")] == [(row["id"], row["verdict"]) for row in report]


def test_faults_are_listed_without_being_planted(harness, tree):
    """A line each; those of another product stand beside its subject file."""
    stall = tree / "suites/demo/foreign/stall"
    stall.mkdir(parents=True)
    (stall / "subject.toml").write_text('[subject]\nname = "s"\nargv = ["true"]\n')
    shutil.copy(tree / "suites/demo/faults.toml", stall)

    own = harness("faults", "demo", "--list")
    of_stall = harness("faults", "demo", "wrong", "--list", f"--subject={stall / 'subject.toml'}")

    assert (0, ["demo wrong", "demo harmless"]) == (
        own.returncode,
        [line.partition(":")[0] for line in own.stdout.splitlines()],
    )
    assert of_stall.stdout.startswith("stall wrong: ")
    assert not (tree / ".evidence").exists()


def test_faults_plants_a_sample_and_says_which(harness, tree):
    """The seed's choice alone is planted, named, and can be planted again by the printed command."""
    sampled = harness("faults", "demo", "--sample", "1", "--seed", "word-3")
    without = harness("faults", "--seed", "word-3")

    assert "demo: 1 fault(s) chosen by the seed word-3: harmless\n" in sampled.stdout
    assert "again: nox -s faults -- demo --sample 1 --seed word-3\n" in sampled.stdout
    assert "0 of 1 planted faults killed" in sampled.stdout
    assert "rerun: nox -s faults -- demo harmless\n" in sampled.stdout
    assert sampled.returncode == 1
    assert without.returncode == 2
    assert "--seed: found 'word-3', expected --sample N with it" in without.stderr


@pytest.mark.slow
def test_shards_of_faults_plant_each_once(harness, tree):
    """Two shards plant both faults, each one of them, and write how long it took beside the file."""
    file = tree / "durations" / "faults-demo.json"

    shards = [
        harness("faults", "demo", "--shard", f"{number}/2", f"--durations-file={file}")
        for number in (1, 2)
    ]
    too_many = harness("faults", "demo", "--shard", "3/3")
    files = sorted(path.name for path in file.parent.iterdir())
    measured = [set(read_durations(file.parent / name).seconds) for name in files]

    assert ["1 of 1 planted", "0 of 1 planted"] == [
        next(part for part in ("1 of 1 planted", "0 of 1 planted") if part in shard.stdout)
        for shard in sorted(shards, key=lambda shard: shard.returncode)
    ]
    assert "1 fault(s) of shard 2/2: " in shards[1].stdout
    assert re.search(r"again: nox -s faults -- demo (wrong|harmless)\n", shards[1].stdout)
    assert ["faults-demo.1-of-2.json", "faults-demo.2-of-2.json"] == files
    assert [{"demo/wrong"}, {"demo/harmless"}] == sorted(measured, key=str, reverse=True)
    assert too_many.returncode == 2
    assert "expected no more shards than faults, which are 2" in too_many.stderr


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["nowhere"], "found 'nowhere', expected one of demo"),
        (["demo", "odd"], "found 'odd', expected one of harmless, wrong"),
    ],
)
def test_unknown_suite_or_fault_is_refused(harness, tree, names, text):
    """A name that is neither is refused with what there is."""
    result = harness("faults", *names)

    assert result.returncode == 2
    assert text in result.stderr


def test_doctor_says_what_can_run(harness):
    """Every gate has a line; one that CI demands and that is closed ends with status 1."""
    plain = harness("doctor", HARNESS_REQUIRE="")
    demanded = harness("doctor", HARNESS_REQUIRE="live-llm", ANTHROPIC_API_KEY="")
    typo = harness("doctor", HARNESS_REQUIRE="live-lm")

    assert plain.returncode == 0
    assert "yes  linux" in plain.stdout
    assert demanded.returncode == 1
    assert "HARNESS_REQUIRE demands live-llm" in demanded.stderr
    assert typo.returncode == 2
    assert "found 'live-lm'" in typo.stderr


def test_sweep_forgets_only_what_is_dead(harness, tmp_path):
    """A run that is not among the dead is refused by name."""
    result = harness("sweep", "--forget", "17-abc", HARNESS_STATE_DIR=str(tmp_path / "state"))

    assert result.returncode == 2, result
    assert "--forget" in result.stderr
    assert "17-abc" in result.stderr


def test_sweep_says_what_it_did(harness, tmp_path):
    """A sweep of a state directory without dead runs removes nothing."""
    result = harness("sweep", HARNESS_STATE_DIR=str(tmp_path / "state"))

    assert result.returncode == 0
    assert "0 dead run(s) swept" in result.stdout


def test_gateway_has_its_own_options(harness):
    """Options after ``gateway`` are the gateway's; its help names every path that it answers."""
    result = harness("gateway", "--help")

    assert result.returncode == 0
    assert "--budget-usd" in result.stdout
    served = ("/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/embeddings")
    assert [] == [path for path in served if path not in result.stdout]


def test_ci_plan_prints_a_matrix_on_one_line(harness, tree):
    """From what nox lists to jobs, faults by their number; people read the table on stderr."""
    rows = [
        {"session": "demo_all", "tags": ["tests"]},
        {"session": "faults-demo", "tags": ["faults"]},
    ]

    lists = "".join(json.dumps([row]) + "\n" for row in [*rows, rows[0]])

    planned = harness("ci", "plan", "--arguments=-k demo", given=lists)
    nothing = harness("ci", "plan", given="[]")
    no_json = harness("ci", "plan", given="Sessions defined in noxfile.py:")
    others = harness("ci", "plan", given='[{"name": "e2e"}]')

    (line,) = planned.stdout.splitlines()
    assert [
        ["demo_all", "--durations-file=.durations/demo_all.json -k demo"],
        ["faults-demo", "--durations-file=.durations/faults-demo.json --jobs 2 -k demo"],
    ] == [[job["slug"], job["arguments"]] for job in json.loads(line)]
    assert "60 min  --durations-file=.durations/demo_all.json" in planned.stderr
    assert [2, 2, 2] == [done.returncode for done in (nothing, no_json, others)]
    assert "missing required field `session`" in others.stderr
    assert "found 'no session', expected at least one" in nothing.stderr
    assert "expected what nox -l --json prints" in no_json.stderr


def test_ci_report_annotates_and_appends_the_summary(harness, tree):
    """Failures of tests and of faults are commands on stdout; the summary is added to, not replaced."""
    harness("faults", "demo")
    reports = tree / ".evidence" / "reports"
    reports.mkdir()
    (reports / "demo_all.xml").write_text(
        '<testsuites><testsuite time="2"><testcase classname="suites.demo.test_demo" name="test_demo">'
        '<failure message="AssertionError: the demo is wrong">suites/demo/test_demo.py:5: x</failure>'
        "</testcase></testsuite></testsuites>"
    )
    summary = tree / "summary.md"
    summary.write_text("before\n")

    written = harness("ci", "report", "--title", "demo", GITHUB_STEP_SUMMARY=str(summary))
    shown = harness("ci", "report", GITHUB_STEP_SUMMARY="")

    first, second = written.stdout.splitlines()
    assert first.startswith("::error file=suites/demo/test_demo.py,line=5,title=demo_all%3A failed")
    assert second.startswith("::error title=faults-demo%3A survived%3A harmless::suites/demo/")
    assert written.returncode == 0
    assert summary.read_text().startswith("before\n### demo\n")
    assert "| faults-demo | 1 | 1 | 0 |" in summary.read_text()
    assert "### tests" in shown.stdout


def test_ci_durations_merges_what_jobs_left(harness, tree):
    """Two shards' files become one, and the session's total is printed."""
    for number in (1, 2):
        update_durations(tree / "left" / f"demo.{number}-of-2.json", {f"t{number}": 2.0}, workers=1)

    merged = harness("ci", "durations", "kept", "left")

    assert "kept/demo.json: 2 measured, 4 s\n" == merged.stdout
    assert {"t1": 2.0, "t2": 2.0} == read_durations(tree / "kept" / "demo.json").seconds


def test_a_new_project_says_what_it_wrote_and_what_it_could_not_know(harness, tmp_path):
    """Where there is no tree; what comes next is one line."""
    text = "services: { db: { image: postgres }, front: { image: nginx } }\n"
    (tmp_path / "compose.yaml").write_text(text)
    begun = harness("new", "project", "shop", "--compose", "compose.yaml")

    assert (0, "") == (begun.returncode, begun.stderr)
    assert [
        "wrote shop",
        "wrote compose.harness.yaml: how each service runs; look it over",
        "  front: say there how it runs; compose.yaml does not show it",
        "Next: cd shop && nox",
    ] == begun.stdout.splitlines()
    assert (tmp_path / "shop/suites/shop/suite.toml").is_file()
    assert 0 == harness("lint", cwd=tmp_path / "shop").returncode


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--command", "x", "--compose", "compose.yaml"], "--compose and --command: give one"),
        (["--command", " "], "--command: found ' ', expected a command"),
    ],
)
def test_a_new_project_is_of_one_product(harness, tmp_path, words, says):
    """What cannot be meant is refused, and nothing is written."""
    (tmp_path / "compose.yaml").write_text("services: { db: { image: postgres } }\n")
    refused = harness("new", "project", "shop", *words)

    assert 2 == refused.returncode
    assert says in refused.stderr
    assert not (tmp_path / "shop").exists()
