"""A campaign on a cluster: two workers, one of which dies in the middle of it."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness_core.assurance.mutation import Choice, Plan, Verdict, load_index, run_campaign
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.wait import until_blocking
from harness_core.ports import lease_port

pytest.importorskip("distributed")

WORKER = Path(__file__).with_name("cluster_worker.py")
NAMESPACES = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
if os.geteuid() != 0:
    NAMESPACES[1:1] = ["--user", "--map-root-user"]


@contextmanager
def process(argv, log):
    """A process that does not outlive the test."""
    with log.open("wb") as file:
        child = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)
        try:
            yield child
        finally:
            child.kill()
            child.wait(30)


@pytest.fixture
def cluster(request, tmp_path, monkeypatch):
    """A scheduler and two workers; with ``namespaces`` each on a machine of its own."""
    with ExitStack() as stack:
        known = tmp_path / "scheduler.json"
        argv = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        argv += ["--port", "0", "--no-dashboard", "--scheduler-file", str(known)]
        stack.enter_context(process(argv, tmp_path / "scheduler.log"))
        until_blocking(known.exists, seconds=60, action="start a scheduler")
        address = json.loads(known.read_text())["address"]
        port = int(address.rpartition(":")[2])
        apart = request.param == "namespaces"
        workers = []
        for number in range(0 if request.param == "no workers" else 2):
            with lease_port() as lease:
                own = lease.port
            argv = [sys.executable, str(WORKER), str(port), str(own)]
            if apart:
                folder = stack.enter_context(short_folder())
                ways = [sys.executable, str(WORKER), str(port), str(own), str(folder), "outside"]
                stack.enter_context(process(ways, tmp_path / f"relay-{number}.log"))
                until_blocking(
                    (folder / "scheduler.sock").exists, seconds=60, action="start a relay"
                )
                argv = [*NAMESPACES, *argv, str(folder)]
            log = tmp_path / f"worker-{number}.log"
            workers.append(stack.enter_context(process(argv, log)))
        yield address, workers


@contextmanager
def short_folder():
    """The path of a socket is short."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="relay-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cluster",
    ["processes", pytest.param("namespaces", marks=pytest.mark.requires("namespaces"))],
    indirect=True,
)
async def test_a_worker_that_dies_loses_its_mutant_to_another(words, tmp_path, cluster):
    """Every mutant has its verdict at the end, though one of two machines is gone."""
    address, workers = cluster
    mutants = load_index(words.setting.product(), tmp_path / "index.json")
    wanted = ("check-left-out", "limit-off-by-one", "return-value", "condition-negated")
    only = [mutant.id for mutant in mutants if mutant.operator in wanted][:5]
    said = []

    def kill_one(_done, _of):
        workers[0].kill()  # with the first result, while the other mutants wait or run

    plan = Plan(setting=words.setting, choice=Choice(only=only), scheduler=address)
    store = await run_campaign(words.suite, plan, say=said.append, count=kill_one)

    results = store.results()
    store.close()
    assert set(only) == set(results)
    verdicts = {result.verdict for result in results.values()}
    assert Verdict.NO_VERDICT not in verdicts, [result.detail for result in results.values()]
    assert Verdict.KILLED in verdicts
    assert workers[0].poll() is not None


@pytest.mark.parametrize("cluster", ["no workers"], indirect=True)
async def test_a_cluster_without_workers_is_not_waited_for(words, tmp_path, cluster, monkeypatch):
    """The error names the command that starts one."""
    from harness_core.assurance.mutation import _dask
    from harness_core.assurance.mutation._job import Job

    monkeypatch.setattr(_dask, "_WITHOUT_WORKERS_S", 1.0)
    monkeypatch.setattr(_dask, "_LOOK_S", 0.3)
    address, _ = cluster
    mutant = load_index(words.setting.product(), tmp_path / "index.json")[0]
    job = Job(setting=words.setting, mutant=mutant, tests=("a",), covering=1, limit_s=1.0)
    with pytest.raises(HarnessError, match="it has had no worker for 1 s") as caught:
        async for _ in _dask.run_on_dask(address, [job]):
            pass

    assert f"dask worker {address} --nthreads 1" in str(caught.value)


async def test_a_scheduler_that_is_not_there_is_named(words, tmp_path, monkeypatch):
    """With how to start one."""
    from harness_core.assurance.mutation import _dask

    monkeypatch.setattr(_dask, "_CONNECT_S", 1)
    with pytest.raises(Unavailable, match=r"cannot reach the scheduler tcp://127\.0\.0\.1:9"):
        async for _ in _dask.run_on_dask("tcp://127.0.0.1:9", []):
            pass
