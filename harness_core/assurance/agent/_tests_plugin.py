"""A pytest plugin: names the running test to every process of the product, and takes what they say.

Loaded with ``-p harness_core.assurance.agent._tests_plugin`` by ``harness mutate`` alone, in the
controller and in each xdist worker; a worker has a hub of its own. Where the product is a library, the
pytest process is one of its processes and has the agent too, before anything of the product is
imported.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assurance.agent import VARIABLE
from harness_core.assurance.agent._hub import Hub
from harness_core.process import Child

_HUB: Final = pytest.StashKey[Hub]()
_NAMES: Final = pytest.StashKey[Hub]()

_AGENT: Final = Path(__file__).with_name("_harness_agent.py")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Open the hub; its address is in the request that children of this process find."""
    named = os.environ.get(VARIABLE)
    if not named:
        return
    base = Path(named).with_name("agent.json")
    request: dict[str, Any] = json.loads(base.read_text(encoding="utf-8"))
    if hasattr(config, "workerinput"):
        pid = os.getpid()
        request["socket"] = str(base.with_name(f"hub-{pid}.sock"))
        own = base.with_name(f"agent-{pid}.json")
        own.write_text(json.dumps(request), encoding="utf-8")
        os.environ[VARIABLE] = str(own)
    socket = Path(request["socket"])
    config.stash[_HUB] = Hub(socket, socket.with_suffix(".jsonl"))
    if request["mode"] == "coverage":
        config.stash[_NAMES] = config.stash[_HUB]
        take_before_signals(config.stash[_HUB])
    if request["own"]:
        _agent().activate(request)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """From its first fixture to its last, everything belongs to this test."""
    hub = item.config.stash.get(_NAMES, None)
    if hub is not None:
        hub.switch(item.nodeid)
    try:
        return (yield)
    finally:
        if hub is not None:
            hub.switch("")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the hub."""
    hub = config.stash.get(_HUB, None)
    if hub is not None:
        hub.close()


def take_before_signals(hub: Hub) -> None:
    """What a process executed is not lost with it: a signal, or whom it reaches, may be SIGKILL."""

    def after_taking(plain: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(plain)
        def call(child: Child, *arguments: Any) -> None:
            hub.take()
            plain(child, *arguments)

        return call

    for name in ("signal", "kill", "pause"):
        setattr(Child, name, after_taking(getattr(Child, name)))


def _agent() -> Any:
    """The agent as the product's processes have it: a module of no package."""
    spec = importlib.util.spec_from_file_location("_harness_agent", _AGENT)
    assert spec is not None, _AGENT
    assert spec.loader is not None, _AGENT
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
