"""Campaigns on a small product: every verdict, what is kept, what is taken up, what is merged."""

import json
import sqlite3
from pathlib import Path

import pytest
import trio
from msgspec import structs

from harness_core.assurance.mutation import (
    Choice,
    Plan,
    Result,
    Store,
    Verdict,
    choose_mutants,
    load_index,
    merge_stores,
    render_survivors,
    run_campaign,
    to_json,
    to_stryker,
    wilson,
)
from harness_core.assurance.mutation._equivalents import load_equivalents, stale_equivalents
from harness_core.assurance.mutation._map import CoverageMap
from harness_core.assurance.mutation._verdict import judge_mutant
from harness_core.assurance.planted import Outcomes, TestOutcome
from harness_core.assurance.shards import Shard
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.screen import plain
from harness_core.system.suites import load_suite

SCHEMA = Path(__file__).parent / "schema" / "mutation-testing-report-schema.json"


@pytest.fixture
def index(words, tmp_path):
    """Every mutant of the product, by operator and what it does."""
    mutants = load_index(words.setting.product(), tmp_path / "index.json")
    return {(mutant.operator, mutant.what): mutant for mutant in mutants}


def of(index, operator, words=""):
    """The id of the first mutant of an operator."""
    return next(m.id for (name, what), m in index.items() if name == operator and words in what)


async def ran(words, *only, lines=None, **more):
    """A campaign of these mutants; the verdict and detail of each."""
    plan = Plan(setting=words.setting, choice=Choice(only=only), **more)
    said = lines if lines is not None else []
    store = await run_campaign(words.suite, plan, say=said.append)
    results = store.results()
    return store, results


@pytest.mark.slow
async def test_verdicts(words, index, monkeypatch):
    """Killed with its sentence, survived, not covered, hung, of import: each is what it is called."""
    monkeypatch.setattr("harness_core.assurance.mutation._campaign._START_S", 5.0)
    killed = of(index, "check-left-out")
    survived = of(index, "limit-off-by-one")  # no test has exactly as many words as it may
    uncovered = of(index, "arithmetic")
    hangs = of(index, "statement-removed", "print() left out")
    imported = of(index, "constant", "3 is one more")

    store, results = await ran(words, killed, survived, uncovered, hangs, imported)

    found = {id_: result.verdict for id_, result in results.items()}
    assert found == {
        killed: Verdict.KILLED,
        survived: Verdict.SURVIVED,
        uncovered: Verdict.NOT_COVERED,
        hangs: Verdict.KILLED_BADLY,
        imported: Verdict.KILLED,
    }
    assert results[killed].test == "suites/words/test_words.py::test_refused"
    assert "expected a refusal, found 4" in results[killed].detail
    assert "no end within" in results[hangs].detail
    assert results[survived].detail == "3 of 3 covering tests passed"
    shown = plain(render_survivors(store))
    assert "-    if len(words) > LIMIT:\n  +    if len(words) >= LIMIT:" in shown
    assert "2 of 5 killed by assertion: 40% (of all," in shown
    store.close()


@pytest.mark.slow
async def test_a_campaign_is_taken_up_where_it_was_left(words, index):
    """What has a verdict is not run again; what the interruption cut off is."""
    only = [of(index, "check-left-out"), of(index, "limit-off-by-one")]
    plan = Plan(setting=words.setting, choice=Choice(only=only))
    with trio.CancelScope() as scope:
        await run_campaign(
            words.suite, plan, count=lambda done, _of: scope.cancel() if done == 1 else None
        )
    kept = Store(words.root / ".evidence" / "mutation" / "words" / "results.sqlite")
    before = kept.results()
    kept.close()
    assert len(before) == 1
    lines = []

    store, results = await ran(words, *only, lines=lines, resume=True)

    assert set(only) == set(results)
    assert before.items() <= results.items(), "it was run again"
    assert any("1 mutants to run, 1 known already" in line for line in lines)
    store.close()
    with pytest.raises(BadInput, match="Without --resume a campaign begins anew"):
        await ran(words, only[0], resume=True)


@pytest.mark.slow
async def test_shards_make_up_the_whole(words):
    """Each mutant is in one of them, and the merged file has all; another campaign's is refused."""
    stores = []
    for number in (1, 2):
        choice = Choice(sample=4, seed="s", shard=Shard(number, 2))
        stores.append(await run_campaign(words.suite, Plan(setting=words.setting, choice=choice)))
    paths = [store.path for store in stores]

    merged = merge_stores(paths, words.root / "merged.sqlite")

    of_shards = [set(store.results()) for store in stores]
    assert of_shards[0].isdisjoint(of_shards[1])
    assert set(merged.results()) == of_shards[0] | of_shards[1]
    assert len(merged.results()) == 4
    assert merged.meta["shard"] == "1/2, 2/2"
    with sqlite3.connect(paths[1]) as db:
        db.execute("UPDATE meta SET value = 'other' WHERE key = 'fingerprint'")
    with pytest.raises(BadInput, match="expected results of the same suite, code and choice"):
        merge_stores(paths, words.root / "merged.sqlite")
    for store in (*stores, merged):
        store.close()


@pytest.mark.slow
async def test_code_that_changed_under_a_campaign_gives_no_verdict(words, index, monkeypatch):
    """The agent finds another file than the index was made of, and what its tests say is not used."""
    from harness_core.assurance.mutation import _campaign

    killed = of(index, "check-left-out")

    measured_map = _campaign.measured_map

    async def measure_and_edit(*args, **named):
        covered = await measured_map(*args, **named)
        words.edit("tally.py", "LIMIT = 3", "LIMIT = 4")
        return covered

    monkeypatch.setattr(_campaign, "measured_map", measure_and_edit)

    store, results = await ran(words, killed)

    assert results[killed].verdict is Verdict.NO_VERDICT
    assert "the code is not that of the index" in results[killed].detail
    store.close()


async def test_nothing_is_measured_of_a_product_that_is_not_there(words):
    """A map of nothing would say that no mutant is covered."""
    elsewhere = words.root / "elsewhere" / "other.py"
    elsewhere.parent.mkdir()
    elsewhere.write_text("ANSWER = 42\n")
    setting = replace_setting(words.setting, sources=("elsewhere",))

    with pytest.raises(HarnessError, match="Name the product's code and its Python"):
        await run_campaign(words.suite, Plan(setting=setting))


def replace_setting(setting, **more):
    """A setting with something else in it."""
    return structs.replace(setting, **more)


STARTS = """

@pytest.fixture(autouse=True)
def started(request):
    if request.node.get_closest_marker("starts_product") is None:
        with open_words() as ask:
            if ask("one two") != "2":
                raise RuntimeError("the product did not start")


@pytest.mark.starts_product
def test_starts():
    with open_words() as ask:
        found = ask("one two")
    assert found == "2", f"expected a product that counts two words, found {found}"
"""


@pytest.mark.slow
async def test_a_product_that_does_not_start_is_judged_by_the_tests_that_start_it(words, index):
    """Fixtures raise, which is no assertion; a body that starts it says what is wrong."""
    path = words.suite.folder / "test_words.py"
    path.write_text(path.read_text() + STARTS)
    broken = of(index, "condition-negated")

    store, results = await ran(words, broken)
    store.close()

    assert results[broken].verdict is Verdict.KILLED
    assert results[broken].test == "suites/words/test_words.py::test_starts"
    assert "expected a product that counts two words, found refused" in results[broken].detail


ONCE = """

def test_refused_once():
    import os
    from pathlib import Path

    with open_words() as ask:
        found = ask("a b c d")
    once = Path(os.environ["WORDS"], "once.txt")
    first = not once.exists()
    once.touch()
    assert found == "refused" or not first, f"expected a refusal, found {found}"
"""


@pytest.mark.slow
@pytest.mark.parametrize("again", [True, False])
async def test_a_kill_that_does_not_return_is_none(words, index, monkeypatch, again):
    """A test that took much longer than without the mutant is run once more."""
    monkeypatch.setattr("harness_core.assurance.mutation._job._TIMES", 0.0)
    monkeypatch.setattr("harness_core.assurance.mutation._job._ALLOWED_S", 0.0)
    path = words.suite.folder / "test_words.py"
    tests = path.read_text().replace("def test_refused", "def not_test_refused") + ONCE
    path.write_text(tests.replace("or not first", "") if again else tests)
    killed = of(index, "check-left-out")
    plan = Plan(setting=words.setting, choice=Choice(only=[killed]))
    said = []

    def forget(line):
        said.append(line)
        (words.code / "once.txt").unlink(missing_ok=True)

    store = await run_campaign(words.suite, plan, say=forget)
    result = store.results()[killed]
    store.close()

    assert result.verdict is (Verdict.KILLED if again else Verdict.NO_VERDICT)
    text = (
        "expected a refusal"
        if again
        else "test_refused_once killed it, and not when it was run again"
    )
    assert text in result.detail


# --- without running anything ---------------------------------------------------------------------------


def test_ids_stay_when_other_code_changes(words, tmp_path):
    """A line more above a function moves its mutants and keeps their names."""
    before = load_index(words.setting.product(), tmp_path / "index.json")
    words.edit("tally.py", "LIMIT = 3", "# three\nLIMIT = 3")

    again = load_index(words.setting.product(), tmp_path / "index.json")

    assert [mutant.id for mutant in before] == [mutant.id for mutant in again]
    assert [mutant.line for mutant in before] != [mutant.line for mutant in again]
    assert len({mutant.id for mutant in before}) == len(before)


def test_a_sample_is_that_of_its_seed(words, index):
    """The same one, whatever else is asked; another seed has another."""
    mutants = list(index.values())
    chosen = choose_mutants(mutants, Choice(sample=5, seed="a"), where=words.root)

    assert len(chosen) == 5
    assert chosen == choose_mutants(mutants, Choice(sample=5, seed="a"), where=words.root)
    assert chosen != choose_mutants(mutants, Choice(sample=5, seed="b"), where=words.root)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (Choice(only=["nothing"]), "--only: found 'nothing', expected the id of a mutant"),
        (Choice(files=["*.rs"]), "--file: found '\\*.rs', expected a pattern of"),
    ],
)
def test_a_choice_of_nothing_is_refused(words, index, choice, text):
    """With what there is."""
    with pytest.raises(BadInput, match=text):
        choose_mutants(list(index.values()), choice, where=words.root)


@pytest.mark.parametrize(
    ("hits", "of", "expected"),
    [(0, 0, (0.0, 1.0)), (0, 10, (0.0, 0.278)), (8, 10, (0.490, 0.943)), (10, 10, (0.722, 1.0))],
)
def test_the_interval_is_wilsons(hits, of, expected):
    """Values of the literature (Newcombe 1998, method 3)."""
    assert expected == pytest.approx(wilson(hits, of), abs=0.001)


def test_equivalents_hold_while_their_code_stays(words, index):
    """An entry whose change is another now is stale; so is one whose mutant is gone."""
    mutant = index["limit-off-by-one", ">= for >"]
    row = (
        f'[[mutant]]\nid = "{mutant.id}"\nfile = "{mutant.file}"\nfunction = "count"\n'
        'diff = "{diff}"\nreason = "No contract names a number of words."\n'
    )
    path = words.suite.folder / "mutants.toml"

    path.write_text(row.format(diff=mutant.diff_hash))
    assert stale_equivalents(load_equivalents(words.suite.folder), index.values()) == {}
    path.write_text(row.format(diff="0" * 12))
    (stale,) = stale_equivalents(load_equivalents(words.suite.folder), index.values()).values()
    assert f"found diff {mutant.diff_hash} (>= for >), expected 000000000000" in stale
    assert "no such mutant any more" in str(
        stale_equivalents(load_equivalents(words.suite.folder), [])
    )


def test_an_equivalent_without_a_reason_is_refused(words):
    """It names the key, as in every file that people write."""
    path = words.suite.folder / "mutants.toml"
    path.write_text('[[mutant]]\nid = "a"\nfile = "b"\nfunction = "c"\ndiff = "d"\nreason = "ok"\n')

    with pytest.raises(BadInput, match="reason: found 'ok', expected a sentence"):
        load_equivalents(words.suite.folder)


def outcome(**more):
    """A test that failed by assertion, unless it says otherwise."""
    fields = {"phase": "call", "outcome": "failed", "assertion": True, "text": "AssertionError: no"}
    return TestOutcome(**fields | more)


PASSED = outcome(outcome="passed", text="")

#: what became of the tests, what the agent said, whether time ran out, and what that proves.
JUDGED = [
    ({"a": PASSED, "b": outcome()}, [{"loaded": "m"}], False, Verdict.KILLED),
    ({"a": outcome(assertion=False)}, [{"loaded": "m"}], False, Verdict.KILLED_BADLY),
    ({"a": outcome(phase="setup")}, [{"loaded": "m"}], False, Verdict.KILLED_BADLY),
    ({"a": outcome(outcome="skipped")}, [{"loaded": "m"}], False, Verdict.KILLED_BADLY),
    ({"a": PASSED}, [{"loaded": "m"}], True, Verdict.KILLED_BADLY),
    ({"a": PASSED, "b": PASSED}, [{"loaded": "m"}], False, Verdict.SURVIVED),
    ({"a": PASSED}, [{"loaded": "m"}], False, Verdict.NO_VERDICT),
    ({"a": PASSED, "b": PASSED}, [], False, Verdict.NO_VERDICT),
    ({"a": outcome()}, [], False, Verdict.NO_VERDICT),
    ({}, [{"loaded": "m"}], False, Verdict.NO_VERDICT),
    ({"a": outcome()}, [{"stale": "x"}, {"loaded": "m"}], False, Verdict.NO_VERDICT),
    ({"a": outcome()}, [{"loaded": "m"}, {"stillborn": "x"}], False, Verdict.STILLBORN),
]


@pytest.mark.parametrize(("tests", "said", "late", "verdict"), JUDGED)
def test_a_kill_is_an_assertion_against_a_product_that_is_damaged(tests, said, late, verdict):
    """Anything else is something else."""
    found = judge_mutant(
        "m",
        tests=["a", "b"],
        covering=2,
        outcomes=Outcomes(selected={}, tests=tests),
        messages=said,
        limit_s=9.0 if late else None,
        duration_s=1.0,
    )

    assert found.verdict is verdict


def test_reports_for_machines_have_every_mutant(words, index):
    """As plain data, and as Stryker's viewers read it: valid by its published schema."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    store = Store(words.root / "results.sqlite")
    store.begin({"suite": "words", "chosen": "all", "mutants": "9"}, resume=False)
    product = words.setting.product()
    for mutant, verdict in zip(index.values(), Verdict, strict=False):
        test = "suites/words/test_words.py::test_count" if verdict is Verdict.KILLED else ""
        store.add(mutant, "", Result(mutant=mutant.id, verdict=verdict, detail="d", test=test))

    plain_data, report = to_json(store), to_stryker(store, product, index.values())
    json.dumps([plain_data, report])

    assert len(Verdict) == len(plain_data["mutants"])
    jsonschema.validate(report, schema)
    shown = [mutant for file in report["files"].values() for mutant in file["mutants"]]
    assert len(Verdict) == len(shown)
    assert {mutant["status"] for mutant in shown} == {
        *("Killed", "RuntimeError", "Survived", "NoCoverage", "Ignored", "CompileError", "Pending")
    }
    for file in report["files"].values():
        lines = file["source"].splitlines()
        for mutant in file["mutants"]:
            start, end = mutant["location"]["start"], mutant["location"]["end"]
            assert 1 <= start["line"] <= end["line"] <= len(lines)
            assert 1 <= start["column"] <= len(lines[start["line"] - 1]) + 1
            assert (start["line"], start["column"]) < (end["line"], end["column"])
    assert "suites/words/test_words.py" in report["testFiles"]
    store.close()


@pytest.mark.slow
async def test_workers_of_xdist_name_their_own_tests(words):
    """Each worker has a hub, which its product finds though the environment was cleaned."""
    path = words.suite.folder / "suite.toml"
    path.write_text(path.read_text() + 'options = ["-n", "2"]\n')
    plan = Plan(setting=words.setting, choice=Choice(files=["tally.py"], sample=1))

    store = await run_campaign(load_suite(words.suite.folder), plan)
    store.close()

    with sqlite3.connect(store.path.with_name("coverage.sqlite")) as db:
        tests = {test for (test,) in db.execute("SELECT DISTINCT test FROM arc")}
    assert {f"suites/words/test_words.py::test_{name}" for name in ("count", "refused")} <= tests


#: Passes each line on to a warm process, which forks for it; nothing of this environment goes there.
WARM = """
import subprocess
import sys


def main():
    argv = [sys.executable, "-I", "-c", f"import sys; sys.path[:] += [{sys.path[0]!r}]; import server"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env={}, start_new_session=True, text=True, **pipes) as warm:
        for line in sys.stdin:
            if line.strip() == "quit":
                break
            warm.stdin.write(line)
            warm.stdin.flush()
            print(warm.stdout.readline().strip(), flush=True)
        warm.stdin.close()


if __name__ == "__main__":
    main()
"""

SERVER = """
import os
import sys

from tally import count


def answer(line):
    try:
        return str(count(line))
    except ValueError:
        return "refused"


while line := sys.stdin.readline():
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(0)
        os.environ.clear()
        inner = os.fork()
        if inner:
            os.waitpid(inner, 0)
            os._exit(0)
        nothing = os.open("/dev/null", os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.write(writing, answer(line.strip()).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as found:
        print(found.read(), flush=True)
"""


@pytest.mark.slow
async def test_mutants_live_in_a_fork_server(words, monkeypatch):
    """It starts with an empty environment and isolated; its jobs are covered, and are the mutant."""
    (words.code / "words_main.py").write_text(WARM)
    (words.code / "server.py").write_text(SERVER)
    mutants = load_index(words.setting.product(), words.root / "index.json")
    found = {(mutant.operator, mutant.what): mutant for mutant in mutants}
    killed, survived = of(found, "check-left-out"), of(found, "limit-off-by-one")

    store, results = await ran(words, killed, survived)
    covered = CoverageMap(store.path.with_name("coverage.sqlite"))

    assert [results[id_].verdict for id_ in (killed, survived)] == [
        Verdict.KILLED,
        Verdict.SURVIVED,
    ]
    assert "expected a refusal, found 4" in results[killed].detail
    assert covered.unheard == []
    covered.close()
    store.close()
