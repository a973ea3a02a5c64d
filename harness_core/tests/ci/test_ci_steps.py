"""``.ci/steps.py`` runs what a workflow would: in a clean clone, by an ordinary user, or it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parents[3] / ".ci" / "steps.py"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SYSTEM_PYTHON = Path(f"/usr/bin/python{PYTHON}")

WORKFLOW = """
on:
  workflow_call:
    inputs:
      greeting: {type: string, default: hello}
env:
  LEVEL: workflow
defaults:
  run:
    shell: bash
jobs:
  plan:
    runs-on: ubuntu-24.04
    outputs:
      words: ${{ steps.made.outputs.words }}
    steps:
      - id: made
        run: |
          echo 'words=["one", "two"]' >> "$GITHUB_OUTPUT"
  work:
    needs: plan
    runs-on: ubuntu-24.04
    timeout-minutes: 1
    strategy:
      matrix:
        word: ${{ fromJSON(needs.plan.outputs.words) }}
    env:
      WORD: ${{ matrix.word }}
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd
      - name: look
        env:
          GREETING: ${{ inputs.greeting }} ${{ github.event_name }}
        run: |
          echo "$GREETING $WORD $LEVEL $(id -u) $HOME"
          ls "$HOME" | wc -l
          cat kept; test ! -e dirty
          env | grep -c SECRET_OF_THE_CALLER || true
          echo "LATER=from before" >> "$GITHUB_ENV"
      - if: matrix.word == 'one' && !failure()
        run: echo "$LATER" | tee out; echo "### seen" >> "$GITHUB_STEP_SUMMARY"; false | true
      - run: echo never
      - if: failure()
        run: echo after the failure
      - if: ${{ always() }}
        uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a
        with: {name: "kept-${{ matrix.word }}", path: kept}
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, and a file that is not in it."""
    root = tmp_path / "repository"
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / "kept").write_text("committed\n")
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@example.org"]

    def commit(text):
        (root / ".github" / "workflows" / "demo.yml").write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "m"], check=True)
        (root / "dirty").write_text("not committed\n")
        return root

    subprocess.run([*git, "init", "-q"], check=True)
    return commit


def run_steps(root, *arguments):
    """Run the script on that repository."""
    return subprocess.run(
        [sys.executable, str(STEPS), "demo.yml", *arguments, f"--root={root}"],
        env={**os.environ, "SECRET_OF_THE_CALLER": "x"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_runs_as_github_would_run_it(repository):
    """Needs first, a clone of the commit, an empty home, outputs, variables, conditions, artifacts."""
    done = run_steps(repository(WORKFLOW), "work", "--matrix", "word=one", "--input", "greeting=hi")

    lines = done.stdout.splitlines()
    (greeted,) = [line for line in lines if line.startswith("hi push one workflow ")]
    *_, user, home = greeted.split()
    assert user == (str(os.geteuid()) if os.geteuid() else "65534")
    assert Path(home).name == "home"
    at = lines.index(greeted)
    assert ["0", "committed", "0"] == [line.strip() for line in lines[at + 1 : at + 4]]
    # pipefail, as GitHub sets it for "shell: bash".
    assert {"from before", "   | ### seen", "   failed: status 1"} <= set(lines)
    assert "never" not in lines
    assert "after the failure" in lines
    assert "   read, not run: kept-one would hold 1 file(s) of kept" in lines
    assert 1 == done.returncode
    assert not Path(home).exists()


def test_the_table_says_what_ran_and_what_did_not(repository):
    """The other combination: the step for one alone is left out, the rest succeeds."""
    done = run_steps(repository(WORKFLOW), "work", "--matrix", "word=two")

    table = done.stdout.partition("demo.yml work:\n")[2]
    assert 0 == done.returncode, done.stdout + done.stderr
    assert 1 == table.count('plan: echo \'words=["one", "two"]\' >> "$GITHUB_OUTPUT": ran\n')
    assert "work: look: ran\n" in table
    assert "work: echo never: ran\n" in table
    assert 2 == table.count("not run: its condition does not hold\n")


def job(step, **more):
    """A workflow of one job with one step."""
    rows = "".join(f"    {key}: {value}\n" for key, value in more.items())
    return f"on: push\njobs:\n  work:\n    runs-on: x\n{rows}    steps:\n      - {step}\n"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("run: echo ${{ secrets.TOKEN }}", "the context 'secrets' is not known here"),
        ("run: echo ${{ github.actor }}", "github.actor is not known here: --set github.actor="),
        ("run: echo ${{ hashFiles('x') }}", "the function hashFiles() is not known here"),
        ("run: echo ${{ github.ref ~ }}", "unexpected ' ~'"),
        ("uses: other/action@v1", "the action other/action is not known here"),
        ("{run: x, working-directory: y}", "working-directory is not done here"),
        ("{uses: actions/setup-python@v6, with: {python-version: '2.0'}}", "no python2.0"),
    ],
)
def test_what_is_not_known_is_refused_by_name(repository, step, text):
    """Nothing is guessed: the error names what it cannot do."""
    done = run_steps(repository(job(step)), "work")

    assert 2 == done.returncode
    assert text in done.stderr


def test_a_matrix_needs_one_combination(repository):
    """None or several are refused with what there is."""
    root = repository(WORKFLOW)

    several = run_steps(root, "work")
    none = run_steps(root, "work", "--matrix", "word=three")
    no_job = run_steps(root, "play")

    assert 'names 2 of these combinations, not one:\n  {"word": "one"}\n' in several.stderr
    assert "names 0 of these" in none.stderr
    assert "there is no job 'play'; there are plan, work" in no_job.stderr


def test_a_job_ends_with_its_limit(repository):
    """What hangs is ended with all that it started when the job's minutes are over."""
    text = job("run: (trap '' TERM; tail -f /dev/null) & wait", **{"timeout-minutes": 0.02})

    done = run_steps(repository(text), "work")

    assert 1 == done.returncode
    assert "failed: the job's time ran out" in done.stdout


def test_a_step_with_sudo_is_left_out_on_demand(repository):
    """It would change the machine; the rest of the job is still worth a run."""
    done = run_steps(repository(job("run: sudo rm kept")), "work", "--without-sudo")

    assert 0 == done.returncode
    assert "sudo rm kept: not run: it needs sudo" in done.stdout


# For root, steps are done by another user, who must be able to run that Python.
@pytest.mark.requires("linux" if SYSTEM_PYTHON.exists() or os.geteuid() else "root")
@pytest.mark.slow
def test_python_is_a_virtual_environment_of_that_version(repository):
    """setup-python is done otherwise: ``python`` is of the version that the step names."""
    shown = "import sys; print(sys.version_info[:2], sys.prefix != sys.base_prefix)"
    text = job(
        f'{{uses: actions/setup-python@v6, with: {{python-version: "{PYTHON}"}}}}\n'
        f"      - run: python -c '{shown}'"
    )
    found = SYSTEM_PYTHON if SYSTEM_PYTHON.exists() else sys.executable

    done = run_steps(repository(text), "work", f"--python={PYTHON}={found}")

    assert f"{sys.version_info[:2]} True" in done.stdout, done.stdout + done.stderr
