"""Evidence of runs, written as runs write it: by rows, logs, ledgers and stories."""

import inspect
import json
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_core.base.evidence import (
    STORY,
    Curve,
    Field,
    Frame,
    Link,
    Message,
    Moment,
    Plot,
    Sides,
    open_evidence,
    story_text,
)
from harness_core.front.outcomes import (
    Began,
    Cost,
    Ended,
    Finished,
    Spent,
    Started,
    Word,
    folder_of_test,
)
from harness_core.front.report import Report

#: When made runs begin: 2026-11-26 09:00:00 UTC.
AT = 1795683600.0

#: What a product may say that wants to be more than text.
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "<svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "{{ 7*7 }}{% raw %}",
    "<!--<script>",
    "]]>&lt;b&gt;\u2028\u0000\u202e",
)


def stamp(at):
    """A moment as logs have it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Made:
    """A folder of evidence that is being made.

    Args:
        folder: ``.evidence``.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.evidence = open_evidence(folder)
        self.rows = []
        self.costs = {}
        self.at = AT

    def test(self, test, word=Word.PASSED, *, said="", seconds=1.0, worker="", **more):
        """A test that ended; the folder of its evidence."""
        file, _, name = test.partition("::")
        folder = folder_of_test((file, None, name))
        self.rows.append(Started(test=test, at=self.at))
        self.rows.append(
            Ended(
                test=test,
                word=word,
                at=self.at,
                seconds=seconds,
                worker=worker,
                evidence=folder,
                said=said,
                text=f"    def test():\n>       {said}\n\n{file}:7: AssertionError" if said else "",
                **more,
            )
        )
        self.at += seconds
        return open_evidence(self.folder / folder)

    def cost(self, test, usd):
        """What its model calls cost."""
        self.costs[test] = Cost(calls=2, input_tokens=1200, output_tokens=80, usd=usd)

    def session(self, name, *, finished=True, under_way="", at=AT, machine="builder"):
        """Write the rows of a session, of all tests made so far."""
        began = Began(session=name, at=at, machine=machine, pid=0)
        rows = [began, *self.rows]
        if under_way:
            rows.append(Started(test=under_way, at=self.at))
        if finished:
            rows += [Spent(by_test=self.costs), Finished(at=self.at, status=0)]
        path = self.folder / "reports" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        encode = msgspec.json.encode
        path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
        self.rows, self.costs = [], {}
        return path

    def earlier(self, name, words, *, number):
        """A run of a session that is kept: test → word."""
        path = self.folder / "reports" / "history" / f"{name}.{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [Ended(test=test, word=word, at=AT) for test, word in words.items()]
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def tell(evidence, *rows):
    """Write the story of a test."""
    evidence.write_text(STORY, story_text(rows))


def span(service, name, at, took_s, trace="", **more):
    """A line of spans.jsonl."""
    start_ns = int(at * 1e9)
    return {
        "trace_id": trace,
        "span_id": f"{start_ns:016x}"[-16:],
        "name": name,
        "service": service,
        "attributes": {"rpc.system": "mcp"},
        "start_ns": start_ns,
        "end_ns": start_ns + int(took_s * 1e9),
        "status": "unset",
        **more,
    }


def turn(at, prompt, answer, **more):
    """A line of a gateway's ledger.jsonl."""
    return {
        "sequence": 1,
        "arrived_at": stamp(at),
        "model": "claude-haiku-4-5",
        "status": 200,
        "usd": 0.001,
        "latency_ms": 180.0,
        "input_tokens": 800,
        "output_tokens": 40,
        "prompt": prompt,
        "answer": answer,
        **more,
    }


def exchange(at, took_s, url, status=200):
    """A line of a client's exchanges."""
    answer = {"status": status, "headers": [], "body": {"ok": True}}
    return {"at": stamp(at), "duration_s": took_s, "method": "POST", "url": url, "answer": answer}


def picture(width, height, shade):
    """A PNG of one colour."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = (b"\0" + bytes(shade) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def journey(made):
    """A message that went to the wrong butler, as e2e leaves it."""
    trace, at = "4a38b36fd784adfa5456f3dfbbbe9905", made.at
    said = (
        "expected health, found that sessions ran on general; routing_log has general\n"
        "message 01a2172b ('I weigh 72.5 kg zx8nx4cvbz'), trace 4a38b36f\n"
        "  inbox: completed, decomposition general"
    )
    test = "suites/e2e/test_scenario_runner.py::test_scenario[health-weight-log]"
    rerun = f"nox -s e2e -- '{test}'"
    kept = made.test(test, Word.FAILED, said=said, seconds=2.4, rerun=rerun, worker="gw0")
    for offset, service, name, took_s in (
        (0.05, "butler-switchboard", "tools/call ingest", 0.04),
        (0.12, "butler-switchboard", "session switchboard", 0.62),
        (0.80, "butler-switchboard", "MCP send tools/call route.execute", 1.1),
        (0.83, "butler-general", "tools/call route.execute", 1.05),
        (0.90, "butler-general", "session general", 0.9),
        (1.40, "butler-general", "tool note_add", 0.06),
    ):
        kept.append_json("during/spans.jsonl", span(service, name, at + offset, took_s, trace))
    kept.append_json(
        "during/ledger.jsonl", turn(at + 0.3, f"route: {trace}", '[{"butler": "general"}]')
    )
    lacking = turn(at + 1.1, f"{trace} add a note", "", missing="the prompt lacks the message")
    kept.append_json("during/ledger.jsonl", lacking)
    for offset, name, line in (
        (0.06, "switchboard", f"info switchboard ingest accepted trace={trace}"),
        (0.79, "switchboard", "warning switchboard classification unsure"),
        (0.84, "general", f"info general route.execute trace={trace}"),
        (1.95, "general", "error general cannot file: no such collection"),
    ):
        kept.append(f"during/{name}.log", f"{stamp(at + offset)} {line}")
    kept.append_json(
        "switchboard.exchanges.jsonl", exchange(at + 0.04, 0.06, "http://127.0.0.1:1/sse")
    )
    link = {"message": "01a2172b"}
    tell(
        kept,
        Message(id="01a2172b", text="I weigh 72.5 kg zx8nx4cvbz", at=at, names=(trace,)),
        Link(**link, source="test", target="switchboard", label="ingest"),
        Link(**link, source="switchboard", target="classification", label="session"),
        Link(
            **link,
            source="switchboard",
            target="general",
            label="routing",
            state="broken",
            said="nothing was expected here",
        ),
        Link(
            **link,
            source="switchboard",
            target="health",
            label="routing",
            state="missing",
            said="expected, and nothing ran",
        ),
        Link(**link, source="general", target="session on general", label="session"),
        Link(**link, source="session on general", target="note_add", label="tool call"),
        Link(**link, source="switchboard", target="completed", label="inbox"),
        Moment(
            at=at + 0.07, took_s=1.9, lane="switchboard", what="row", text="message_inbox completed"
        ),
        Moment(
            at=at + 1.9,
            lane="switchboard",
            what="row",
            text=f"routing_log switchboard → general {trace}",
        ),
    )
    made.cost(test, 0.0042)
    return test


def talk(made):
    """A connection of the daemon that ended without a word."""
    said = "contract 3: depth-10000 is owed an error LOG, then the end; the connection ended without a word"
    test = "suites/daemon/test_contract_3_protocol.py::test_hostile[depth-10000]"
    kept = made.test(test, Word.FAILED, said=said, seconds=0.3)
    tell(
        kept,
        Frame(
            connection="1",
            sender="product",
            after_s=0.001,
            text='00002B(:HELLO :VERSION 1 :SESSION "k3v9")',
        ),
        Frame(
            connection="1",
            sender="we",
            after_s=0.002,
            text='000021(:EVENT :SOURCE "cli" :TEXT "hi")',
        ),
        Frame(
            connection="1", sender="product", after_s=0.09, text='00001D(:REPLY :TEXT "hello, you")'
        ),
        Frame(
            connection="1", sender="we", after_s=0.1, text="002710((((((((((((", size_bytes=10_006
        ),
    )
    return test


def sides(made):
    """A backend that lost a variable."""
    said = "smolmachines regressed: env 'TOKEN': expected 'a b', found 'a' (says the scenario) [spaces]"
    test = "suites/parity/test_secret_env.py::test_literals[spaces-smolmachines]"
    kept = made.test(test, Word.FAILED, said=said, seconds=0.1)
    seen = {"docker": "'a b'", "bubblewrap": "'a b'", "smolmachines": "'a'"}
    tell(
        kept,
        Sides(
            scenario="spaces",
            fields=(
                Field(name="exit", seen=dict.fromkeys(seen, "0"), expected="0"),
                Field(
                    name="env.TOKEN",
                    seen=seen,
                    expected="'a b'",
                    wrong=("smolmachines",),
                    why="says the scenario",
                ),
                Field(name="files./work/out.txt", seen=dict.fromkeys(seen, "'done\\n'")),
            ),
        ),
    )
    return test


def renders(made):
    """Pictures, curves and a profile."""
    test = "suites/integration/architecture_p1/test_int_039_renders.py::test_int_039_views"
    kept = made.test(test, seconds=3.0)
    for number, shade in enumerate(((214, 206, 190), (126, 156, 178), (178, 138, 120))):
        kept.keep(f"view-{number}.png", picture(320, 240, shade))
    kept.keep("sheet.png", picture(1280, 160, (200, 210, 205)))
    points = tuple((float(x), 40 + 0.4 * x + (x * 37 % 11)) for x in range(60))
    tell(
        kept,
        Plot(
            title="memory: 200 frames",
            x="rounds",
            y="MiB",
            curves=(
                Curve(name="worker", points=points),
                Curve(name="controller", points=tuple((x, y / 2) for x, y in points)),
            ),
        ),
    )
    frames = [{"name": name, "file": "worker.py"} for name in ("main", "render", "encode", "trace")]
    kept.write_text(
        "worker.speedscope.json",
        json.dumps(
            {
                "shared": {"frames": frames},
                "profiles": [
                    {
                        "type": "sampled",
                        "samples": [[0, 1], [0, 1, 3], [0, 2], [0]],
                        "weights": [5, 9, 4, 2],
                    }
                ],
            }
        ),
    )
    return test


def run_of_everything(folder):
    """One run with something for each view; ids of tests by what they show."""
    made = Made(folder)
    ids = {"journey": journey(made)}
    for number in range(40):
        test = f"suites/e2e/test_scenario_runner.py::test_scenario[row-{number}]"
        made.test(test, seconds=0.4 + number % 7 / 5)
        made.cost(test, 0.001 * (number % 9))
    made.test(
        "suites/e2e/test_live.py::test_live", Word.NOT_RUN, said="ANTHROPIC_API_KEY is not set"
    )
    made.test("suites/e2e/test_known.py::test_known", Word.KNOWN, said="it is slow (#7)")
    flaky = "suites/e2e/test_scenario_runner.py::test_scenario[row-3]"
    for number, word in enumerate((Word.PASSED, Word.FAILED, Word.PASSED, Word.PASSED)):
        made.earlier("e2e", {flaky: word}, number=number + 1)
    made.session("e2e")
    ids |= {"talk": talk(made)}
    harness = "cannot boot the daemon: 9 s passed. Read daemon.log"
    made.test("suites/daemon/test_contract_1.py::test_boots", Word.HARNESS, said=harness)
    made.session("daemon", finished=False, under_way="suites/daemon/test_soak.py::test_soak")
    ids |= {"sides": sides(made), "renders": renders(made)}
    made.session("rest", machine="laptop")
    medians = {"ours": 79.0, "pytest-postgresql": 799.0, "testcontainers": 2476.0}
    bars = tuple(Curve(name=name, points=((0.0, ms),)) for name, ms in medians.items())
    plot = Plot(title="PostgreSQL, ready", x="contender", y="median ms", curves=bars, style="bar")
    made.evidence.write_text("bench/postgres.jsonl", story_text([plot]))
    return ids


def schema_text():
    """The JSON schema of report.json; pythons differ in how they indent docstrings."""
    found = plain(msgspec.json.schema(Report))
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def plain(value):
    """A schema whose descriptions are not indented."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: inspect.cleandoc(each)
        if key == "description" and isinstance(each, str)
        else plain(each)
        for key, each in value.items()
    }


if __name__ == "__main__":
    (Path(__file__).parents[3] / "docs" / "reference" / "report.schema.json").write_text(
        schema_text()
    )
