"""Processes of a product that the agent did not reach are named, and no others."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from harness_core.assurance.agent import VARIABLE
from harness_core.assurance.mutation import (
    Choice,
    Plan,
    coverage_json,
    render_coverage,
    render_summary,
    run_campaign,
    to_json,
)
from harness_core.assurance.mutation._map import CoverageMap
from harness_core.assurance.mutation._unheard import Unheard, Watch, words_about
from harness_core.base.screen import plain
from harness_core.process import start_time

#: Says that it runs, and ends with its input.
WAITS = "import sys; print('runs', flush=True); sys.stdin.read()"


@pytest.fixture
def product(words, monkeypatch):
    """The product; its processes are judged however young they are."""
    monkeypatch.setattr("harness_core.assurance.mutation._unheard._AGE_S", 0.0)
    return words.setting.product()


@contextmanager
def running(*argv, **env):
    """A process with nothing but this in its environment, from when it runs until the block ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "runs\n"
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(30)


def heard(process):
    """What a hub writes down of a process that connected."""
    return {"heard": [process.pid, start_time(process.pid)]}


def test_a_process_that_was_not_heard_of_is_named(words, product):
    """By its command line, once for all that have the same, with what is known of the cause."""
    watch = Watch(product)
    argv = [str(words.python), "-c", WAITS]
    named = {VARIABLE: "/nowhere/agent.json"}
    with (
        running(*argv),
        running(*argv),
        running(*argv, "known", **named),
        running(*argv, "heard") as reached,
        running(*argv, "failed") as failed,
    ):
        watch.look()
        messages = [heard(reached), heard(failed), {"failed": "no room", "pid": failed.pid}]

    assert set(watch.unheard(messages)) == {
        Unheard(" ".join(argv), 2, "HARNESS_AGENT is not in its environment"),
        Unheard(" ".join([*argv, "known"]), 1, ""),
        Unheard(" ".join([*argv, "failed"]), 1, "the agent failed: no room"),
    }


def test_a_fork_of_a_process_with_the_agent_has_it(words, product):
    """Also where it cannot connect."""
    forks = f"import os; child = os.fork(); os.wait() if child else exec({WAITS!r})"
    watch = Watch(product)
    with running(str(words.python), "-c", forks) as process:
        watch.look()
        messages = [heard(process)]

    assert watch.unheard(messages) == []
    assert sum(each.processes for each in watch.unheard([])) == 2


def test_another_python_that_runs_its_code_is_one_of_its_processes(words, product, tmp_path):
    """A program that runs something else is none, whatever Python it has; nor is one of another kind."""
    script, other = words.code / "waits.py", tmp_path / "waits.py"
    script.write_text(WAITS)
    other.write_text(WAITS)
    watch = Watch(product)
    with (
        running(sys.executable, str(script)),
        running(sys.executable, str(other)),
        running("sh", "-c", f"echo runs; read line # {script}"),
    ):
        watch.look()

    assert [each.argv for each in watch.unheard([])] == [f"{sys.executable} {script}"]


def test_what_is_called_by_its_names_comes_first(words, product):
    """A sandbox may run hundreds of scripts with the product's Python: they hide no daemon."""
    watch = Watch(product)
    script = str(words.python), "-c", WAITS
    with running(*script), running(*script), running(*script, "tally"):
        watch.look()

    assert [each.argv.endswith("tally") for each in watch.unheard([])] == [True, False]


def test_what_has_not_begun_is_not_lost(words, monkeypatch):
    """A process that ends before the agent can have connected says nothing of it."""
    monkeypatch.setattr("harness_core.assurance.mutation._unheard._CPU_S", 60.0)
    monkeypatch.setattr("harness_core.assurance.mutation._unheard._AGE_S", 60.0)
    watch = Watch(words.setting.product())
    with running(str(words.python), "-c", WAITS):
        watch.look()

    assert watch.unheard([]) == []


def test_many_are_shown_in_few_words():
    """People are shown the most frequent; nothing is said where nothing is missing."""
    many = [Unheard(f"python -m m{number}", 20 - number, "") for number in range(12)]
    long = Unheard("x" * 900, 1, "")

    first, *rows, last = words_about(many)

    assert words_about([]) == []
    assert first.startswith("174 processes of the product ran without the agent; what only they")
    assert words_about([long]) == [
        "1 process of the product ran without the agent;" + first.partition(";")[2],
        f"  1 x {'x' * 200}…",
    ]
    assert [rows[0], len(rows), last] == ["  20 x python -m m0", 10, "  and 2 other command lines"]


#: A daemon that nobody above it passed anything to: its first process has ended, as has the shell.
DAEMON = """

def test_daemon(product):
    looks = Path(os.environ["WORDS"], "looks.txt")
    before = len(looks.read_text())
    python = os.environ["HARNESS_SUBJECT_BIN"] + "/python"
    script = f"exec 3<&0; env -i {python} -m words_main --daemon <&3 3<&- &"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=os.environ["WORDS"],
    ) as shell:
        shell.wait()
        shell.stdin.write("one two\\n")
        shell.stdin.flush()
        found = shell.stdout.readline().strip()
        # Two more looks: the first may have begun before. Only while coverage is measured there are any.
        request = os.environ.get("HARNESS_AGENT")
        measures = request and '"coverage"' in Path(request).read_text()
        while measures and len(looks.read_text()) < before + 2:
            assert product("one") == "1"
        shell.stdin.write("quit\\n")
    assert found == "2", f"expected 2 words, found {found}"
"""


async def test_reports_name_what_was_lost(words, product, monkeypatch):
    """Of a campaign and of its coverage, for people and for machines."""
    path = words.suite.folder / "test_words.py"
    imports = "import os\nfrom pathlib import Path\n"
    path.write_text(imports + path.read_text() + DAEMON)
    looks = words.code / "looks.txt"
    looks.touch()
    look = Watch.look

    def look_and_say(watch):
        look(watch)
        with looks.open("a") as file:
            file.write(".")

    monkeypatch.setattr(Watch, "look", look_and_say)
    plan = Plan(setting=words.setting, choice=Choice(files=["tally.py"], sample=1))
    store = await run_campaign(words.suite, plan)
    covered = CoverageMap(store.path.with_name("coverage.sqlite"))

    line = "-m words_main --daemon (HARNESS_AGENT is not in its environment)"
    (lost,) = coverage_json([], covered, map_at=covered.path)["without_agent"]
    assert lost["argv"] == f"{words.python} -m words_main --daemon"
    assert line in plain(render_coverage([], covered, title="words"))
    assert line in plain(render_summary(store))
    assert line in json.loads(json.dumps(to_json(store)))["without_agent"]
    covered.close()
    store.close()
