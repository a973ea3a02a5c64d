"""The agent in real processes: silent unless asked, found from sandboxes, and what SIGKILL costs."""

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_core.assurance.agent import (
    VARIABLE,
    Damage,
    ask_for_coverage,
    ask_for_damage,
    find_environment,
    read_messages,
    sweep_agent,
)
from harness_core.assurance.agent._hub import Hub
from harness_core.assurance.agent._tests_plugin import take_before_signals
from harness_core.assurance.mutation._job import agent_folder
from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.base.wait import deadline, until, until_blocking
from harness_core.process import Child, open_run, start_time


@pytest.fixture
def environment(product_python):
    """The environment with the agent in it."""
    found = find_environment(product_python)
    with found.with_agent():
        yield found


@pytest.fixture
def code(tmp_path):
    """A product of one module."""
    path = tmp_path / "product.py"
    path.write_text("ANSWER = 42\n\n\ndef answer():\n    return ANSWER\n")
    return path


@pytest.fixture
def folder():
    """Where requests and messages are; its path is short enough for a socket."""
    path = agent_folder()
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=True)


def damage(code, *, old="42", text="43", sha256=None):
    """A change of the product."""
    content = code.read_bytes()
    start = content.index(old.encode())
    return Damage(
        id="m1",
        path=str(code),
        sha256=sha256 or hashlib.sha256(content).hexdigest(),
        start=start,
        end=start + len(old.encode()),
        text=text,
    )


def ran(environment, code, *words, request=None, before=(), status=0):
    """What a process of the product prints; ``before`` are words of a command around it."""
    env = {"PATH": os.environ["PATH"]} | ({VARIABLE: str(request)} if request else {})
    done = subprocess.run(
        [*before, environment.python, *words],
        env=env,
        cwd=code.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    return done.stdout.strip(), done.stderr


ASK = ("-c", "import product; print(product.answer())")
_LOADED = "m = u.module_from_spec(s); s.loader.exec_module(m); print(m.answer())"
BY_FILE = (
    "-c",
    f"import importlib.util as u; s = u.spec_from_file_location('o', 'product.py'); {_LOADED}",
)
BY_RUNPY = ("-c", "import runpy; print(runpy.run_module('product')['answer']())")


def test_nothing_happens_unless_it_is_asked(environment, code):
    """A process of the environment that belongs to no campaign is as it was."""
    found, said = ran(environment, code, *ASK)

    assert ("42", "") == (found, said)


@pytest.mark.parametrize("words", [ASK, BY_FILE, BY_RUNPY], ids=["import", "by-file", "runpy"])
@pytest.mark.parametrize("before", [(), ("env", "-i")], ids=["environment", "cleaned"])
def test_the_file_is_damaged_however_it_is_loaded(environment, code, folder, words, before):
    """By every way of import, also where the environment was cleaned; bytecode is not written."""
    ran(environment, code, *ASK)  # leaves bytecode of the code as it is
    request = ask_for_damage(folder, damage(code))
    # The variable is that of the process above.
    script = 'code=$("$@"); echo "$code"'
    env = {VARIABLE: str(request), "PATH": os.environ["PATH"]}
    argv = ["sh", "-c", script, "sh", *before, environment.python, *words]
    done = subprocess.run(
        argv, env=env, cwd=code.parent, capture_output=True, text=True, check=True, timeout=60
    )

    assert ("43", "") == (done.stdout.strip(), done.stderr)
    assert ["m1"] == [message["loaded"] for message in read_messages(folder)]
    assert ("42", "") == ran(environment, code, *ASK), "bytecode of the mutant was kept"


def test_a_product_is_told_to_keep_nothing_beside_its_code(environment, code, folder):
    """Where it keeps what its code made, the code of a mutant would never be run."""
    words = ("-c", "import sys; print(sys.dont_write_bytecode)")
    request = ask_for_damage(folder, damage(code))

    assert ("True", "") == ran(environment, code, *words, request=request)
    assert ("False", "") == ran(environment, code, *words)


@pytest.mark.parametrize(
    ("change", "key", "expected"),
    [
        ({"text": "("}, "stillborn", "does not compile: SyntaxError"),
        ({"text": "missing"}, "stillborn", "does not import: NameError"),
        ({"sha256": "0" * 64}, "stale", "expected 000000000000 as in the index"),
    ],
    ids=["syntax", "import", "stale"],
)
def test_a_change_that_cannot_be_made_is_reported(environment, code, folder, change, key, expected):
    """What is no mutant is not taken for one that a test killed."""
    request = ask_for_damage(folder, damage(code, **change))

    ran(environment, code, *ASK, request=request, status=0 if key == "stale" else 1)

    said, *_ = [message[key] for message in read_messages(folder) if key in message]
    assert expected in said


def test_a_folder_that_cannot_be_written_is_no_obstacle(environment, code, folder):
    """Then the message goes over the socket: a sandbox shows most of the machine read-only."""
    request = ask_for_damage(folder, damage(code))
    hub = patient_hub(folder)
    messages = folder / "messages.jsonl"
    messages.unlink()
    messages.mkdir()  # what no one can write to, root included

    ran(environment, code, *ASK, request=request)
    hub.close()
    messages.rmdir()

    said = [message["loaded"] for message in read_messages(folder) if "loaded" in message]
    assert ["m1"] == said


def test_the_environment_is_left_as_it_was(product_python):
    """The last of several campaigns removes what the first one brought."""
    found = find_environment(product_python)
    before = sorted(path for path in found.packages.rglob("*") if path.is_file())

    with found.with_agent():
        with found.with_agent():
            subprocess.run([product_python, "-c", "pass"], check=True)
        inside = {path.name for path in found.packages.iterdir()}

    assert "harness_agent.pth" in inside
    assert before == sorted(path for path in found.packages.rglob("*") if path.is_file())


def test_what_a_killed_campaign_left_is_swept(product_python):
    """While one is at work the agent stays; of one that is gone the sweep removes it, once."""
    found = find_environment(product_python)
    before = sorted(path for path in found.packages.rglob("*") if path.is_file())
    entry = {"kind": "agent", "packages": str(found.packages)}
    program = (
        "import sys; from pathlib import Path\n"
        "from harness_core.assurance.agent import find_environment\n"
        "with find_environment(Path(sys.argv[1])).with_agent():\n"
        "    print('there', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, product_python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as campaign:
        assert campaign.stdout is not None
        assert "there" == campaign.stdout.readline().strip()

        assert "" == sweep_agent(entry)
        assert (found.packages / "harness_agent.pth").exists()
        campaign.kill()
    assert (found.packages / "harness_agent.pth").exists()
    assert f"the agent in {found.packages}" == sweep_agent(entry)
    assert before == sorted(path for path in found.packages.rglob("*") if path.is_file())
    assert "" == sweep_agent(entry)
    assert before == sorted(path for path in found.packages.rglob("*") if path.is_file())


async def test_the_ledger_of_a_run_says_where_its_agent_is(product_python, tmp_path):
    """Before it is there."""
    found = find_environment(product_python)
    async with open_run(evidence=open_evidence(tmp_path)) as run:
        with found.with_agent(run):
            kinds = [(each["kind"], each.get("packages")) for each in run.ledger.entries()]

    assert ("agent", str(found.packages)) in kinds


def test_a_python_that_is_none_is_named(tmp_path):
    """With the option that names another."""
    with pytest.raises(Unavailable, match=r"cannot use .*python.*--python PATH"):
        find_environment(tmp_path / "python")


# --- coverage ---------------------------------------------------------------------------------------

LIVING = """
import ctypes
import os
import subprocess
import sys
import product

NEW_USER, NEW_MOUNTS, NEW_PROCESSES, PRIVATE = 1 << 28, 1 << 17, 1 << 29, 1 << 14 | 1 << 18


def first():
    return product.answer()


def second():
    return product.answer() + 1


def forked(leave=sys.exit):
    child = os.fork()
    if not child:
        second()
        leave(0)
    os.waitpid(child, 0)


def forked_by_multiprocessing():
    forked(os._exit)


def forked_then_another_program():
    forked(lambda _: os.execv("/bin/true", ["true"]))


def prepared_then_another_program():
    subprocess.run(["/bin/true"], preexec_fn=second, check=True)


def warm(inside):
    # A fork whose number 0 is free, and its fork whose standard streams lead nowhere.
    child = os.fork()
    if not child:
        os.close(0)
        pid = os.fork()
        if not pid:
            nothing = os.open("/dev/null", os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nothing, standard)
            inside()
            os._exit(0)
        os.waitpid(pid, 0)
        os._exit(0)
    os.waitpid(child, 0)


def warm_job():
    warm(second)


def closing_all():
    def inside():
        os.closerange(3, 4096)
        second()

    warm(inside)


def taking_all():
    # Every number is that of a file of the product's own.
    def inside():
        mine = os.open("mine.txt", os.O_RDWR | os.O_CREAT, 0o600)
        for number in os.listdir("/proc/self/fd"):
            if int(number) != mine:
                os.dup2(mine, int(number))
        second()

    warm(inside)


def walled(of_user=True, unshare=None):
    # Behind walls as root makes them, or an ordinary user: the harness's folder is not there.
    libc = ctypes.CDLL(None, use_errno=True)
    unshare = unshare or libc.unshare

    def check(status):
        if status:
            os.write(2, f"no walls: {os.strerror(ctypes.get_errno())}".encode())
            os._exit(1)

    def inside():
        user, group = os.getuid(), os.getgid()
        if of_user:
            check(unshare(NEW_USER))
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        check(unshare(NEW_MOUNTS | NEW_PROCESSES))
        pid = os.fork()
        if not pid:
            check(libc.mount(b"none", b"/", None, PRIVATE, None))
            check(libc.mount(b"none", os.environ["HIDDEN"].encode(), b"tmpfs", 0, None))
            if not of_user:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            os.environ.clear()
            second()
            # What its forks execute, from behind the walls on.
            forked_by_multiprocessing()
            os._exit(0)
        os.waitpid(pid, 0)

    warm(inside)


def walled_by_whoever_may():
    walled(os.getuid() != 0, getattr(os, "unshare", None))


for line in sys.stdin:
    globals()[line.strip()]()
    print("done", flush=True)
"""


@contextmanager
def living(environment, code, folder, tmp_path):
    """A process of the product that is told what to execute, with its coverage measured."""
    script = code.with_name("living.py")
    script.write_text(LIVING)
    request = ask_for_coverage(
        folder, sources=[code.parent], libraries=environment.libraries(tmp_path / "libraries")
    )
    env = {"PATH": os.environ["PATH"], VARIABLE: str(request), "HIDDEN": str(folder)}
    argv = [environment.python, "-c", "import living"]
    with subprocess.Popen(
        argv,
        env=env,
        cwd=code.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:

        def execute(name):
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n", process.stderr.read()

        try:
            yield process, execute
        finally:
            process.kill()


def patient_hub(folder):
    """One that waits as long as a busy machine needs."""
    return Hub(folder / "hub.sock", folder / "hub.jsonl", answer_s=60)


def lines_of(folder, context):
    """Names of files with the lines that a test executed, those of import aside."""
    return lines_in(read_messages(folder), context)


def lines_in(messages, context):
    """The same of some messages."""
    found = set()
    for message in messages:
        if message.get("context") == context and "arcs" in message:
            for file, arcs in message["arcs"].items():
                found |= {(Path(file).name, line) for _, line in arcs if line > 0}
    return found


FIRST, SECOND = ("living.py", 12), ("living.py", 16)
ANSWER = ("product.py", 5)


def test_a_living_process_is_told_of_each_test(environment, code, folder, tmp_path):
    """What it executes belongs to the test that was running, also when it did so before."""
    hub = patient_hub(folder)
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("first")
        assert hub.switch("two") == 0, "the process did not answer"
        execute("second")
        hub.switch("three")
        execute("first")
        process.stdin.close()
        assert process.wait(30) == 0
    hub.close()

    assert {FIRST, ANSWER} <= lines_of(folder, "one")
    assert {SECOND, ANSWER} <= lines_of(folder, "two")
    assert FIRST not in lines_of(folder, "two")
    assert {FIRST, ANSWER} <= lines_of(folder, "three")
    boots = {(m["context"], m["boot"]) for m in read_messages(folder) if "arcs" in m}
    assert {("one", True), ("two", False), ("three", False)} == boots


def test_sigkill_costs_little(environment, code, folder, tmp_path):
    """What was executed a second ago is there, though the process could not say goodbye."""
    hub = patient_hub(folder)
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("second")
        until_blocking(
            lambda: SECOND in lines_of(folder, "one"), seconds=10, action="wait for a piece"
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    hub.close()

    assert {SECOND, ANSWER} <= lines_of(folder, "one")


def test_what_is_taken_before_sigkill_is_not_lost(environment, code, folder, tmp_path):
    """Asked for what it executed so far, a process has said it; the test goes on, and so does its boot."""
    hub = patient_hub(folder)
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("first")
        assert hub.take() == 0, "the process did not answer"
        execute("second")
        assert hub.take() == 0, "the process did not answer"
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    hub.close()

    assert {FIRST, SECOND, ANSWER} <= lines_of(folder, "one")
    assert {True} == {m["boot"] for m in read_messages(folder) if "arcs" in m}


async def test_the_harness_asks_before_it_kills(
    environment, code, folder, tmp_path, evidence, monkeypatch
):
    """A test that starts a process, asks it something and kills it in a moment covers what it asked."""
    for name in ("signal", "kill", "pause"):
        monkeypatch.setattr(Child, name, getattr(Child, name))  # put back at the end
    hub = patient_hub(folder)
    hub.switch("one")
    take_before_signals(hub)
    request = ask_for_coverage(
        folder, sources=[code.parent], libraries=environment.libraries(tmp_path / "libraries")
    )
    script = "import product, time; product.answer(); print('done', flush=True); time.sleep(60)"
    argv = [str(environment.python), "-c", script]
    env = {"PATH": os.environ["PATH"], VARIABLE: str(request)}
    async with (
        open_run(evidence=evidence) as run,
        run.child(argv, name="asked", env=env, cwd=code.parent) as child,
    ):

        async def asked():
            return "done" in child.tail()

        with deadline("see it do what it is asked", seconds=30):
            await until(asked)
        child.kill()
        await child.wait()
    hub.close()

    assert ANSWER in lines_of(folder, "one")


def test_a_stopped_process_holds_up_no_test(environment, code, folder, tmp_path):
    """It is told, and answers when it goes on."""
    hub = Hub(folder / "hub.sock", folder / "hub.jsonl")
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("second")
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert hub.switch("two") == 1
        process.send_signal(signal.SIGCONT)
        until_blocking(lambda: hub.switch("three") == 0, seconds=60, action="wait for the process")
        execute("first")
        process.stdin.close()
        process.wait(30)
    hub.close()

    assert FIRST in lines_of(folder, "three")


@pytest.mark.parametrize(
    "fork",
    [
        "forked",
        "forked_by_multiprocessing",
        "forked_then_another_program",
        "prepared_then_another_program",
    ],
)
def test_a_fork_is_a_process_of_its_own(environment, code, folder, tmp_path, fork):
    """Its coverage is not lost, however it ends, and not taken for that of its parent."""
    hub = patient_hub(folder)
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute(fork)
        process.stdin.close()
        process.wait(30)
    hub.close()

    of = {m["process"] for m in read_messages(folder) if m.get("arcs")}
    assert len(of) == 2
    assert SECOND in lines_of(folder, "one")


@pytest.mark.parametrize(
    "job",
    [
        "warm_job",
        "closing_all",
        "taking_all",
        pytest.param("walled", marks=pytest.mark.requires("namespaces")),
        pytest.param("walled_by_whoever_may", marks=pytest.mark.requires("namespaces")),
    ],
)
def test_a_job_of_a_fork_server_is_not_lost(environment, code, folder, tmp_path, job):
    """Wherever it goes, and whatever it does with descriptors; nor does it find our words in its own."""
    hub = patient_hub(folder)
    hub.switch("one")
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute(job)
        process.stdin.close()
        assert process.wait(30) == 0
        said = process.stderr.read()
    hub.close()

    mine = code.with_name("mine.txt")
    jobs = [m for m in read_messages(folder) if SECOND in lines_in([m], "one")]
    assert said == ""
    assert len({m["process"] for m in jobs}) == (2 if job.startswith("walled") else 1)
    assert not mine.exists() or mine.read_text() == ""


@pytest.mark.requires("namespaces")
def test_a_mutant_behind_walls_is_reported(environment, code, folder):
    """A fork that imports the damaged file when it sees nothing of the harness any more."""
    request = ask_for_damage(folder, damage(code))
    script = code.with_name("late.py")
    text = LIVING.partition("for line in")[0].replace("import product\n", "")
    script.write_text(text + "\ndef second():\n    import product\n\n\nwalled()\n")
    env = {VARIABLE: str(request), "PATH": os.environ["PATH"], "HIDDEN": str(folder)}
    done = subprocess.run(
        [environment.python, "-c", "import late"],
        env=env,
        cwd=code.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert "" == done.stderr
    assert ["m1"] == [message["loaded"] for message in read_messages(folder)]


def test_who_was_heard_of_is_written_down(environment, code, folder, tmp_path):
    """By the pid and the start that others see of it."""
    hub = patient_hub(folder)
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("first")
        heard = [process.pid, start_time(process.pid)]
        process.stdin.close()
        process.wait(30)
    hub.close()

    assert heard in [message.get("heard") for message in read_messages(folder)]


def test_a_process_that_cannot_be_measured_says_so(environment, code, folder, tmp_path):
    """What it executes is missing then; the product goes on."""
    request = ask_for_coverage(folder, sources=[code.parent], libraries=[tmp_path / "nothing"])

    found, said = ran(environment, code, *ASK, request=request)

    reasons = [message["failed"] for message in read_messages(folder)]
    assert ("42", ["ModuleNotFoundError(\"No module named 'coverage'\")"]) == (found, reasons)
    assert "harness agent: cannot do what" in said


def test_without_a_hub_the_data_is_left_in_files(environment, code, folder, tmp_path):
    """A process that outlives the tests, or cannot reach them."""
    with living(environment, code, folder, tmp_path) as (process, execute):
        execute("first")
        process.stdin.close()
        process.wait(30)

    assert FIRST in lines_of(folder, "")


def test_the_agents_import_nothing_of_the_harness():
    """They run where it is not installed."""
    from harness_core.assurance import agent

    for name in ("_harness_agent.py", "_harness_agent_coverage.py"):
        assert "harness_core" not in Path(agent.__file__).with_name(name).read_text()


def test_the_agent_costs_a_start_little(environment, code):
    """A process that is not asked imports neither json nor coverage because of it."""
    probe = textwrap.dedent("""
        import sys
        print(sorted({"json", "coverage", "typing", "socket"} & set(sys.modules)))
    """)

    assert ("[]", "") == ran(environment, code, "-c", probe)


async def test_the_harness_own_environment_is_not_touched_unasked(words, tmp_path):
    """A product that is installed beside the harness needs a word from whoever runs it."""
    from contextlib import ExitStack

    from harness_core.assurance.mutation import Setting, enter_environment

    setting = Setting(root=str(words.root), suite="words", python=sys.executable)
    product = setting.product()

    async with open_run(evidence=open_evidence(tmp_path)) as run:
        with ExitStack() as stack, pytest.raises(BadInput, match="With --here the agent"):
            enter_environment(product, setting, stack, run)
