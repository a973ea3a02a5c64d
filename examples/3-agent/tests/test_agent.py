"""What the agent makes of a model that does as it is told, that fails, that never ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import say, use

QUESTION, TAKE = "Take three screws, please.", use("take", item="screw", count=3)


@pytest.fixture
def stock(tmp_path):
    """The stock, as a file."""
    (tmp_path / "stock.json").write_text('{"screw": 5}')
    return tmp_path / "stock.json"


@pytest.fixture
def ask(model_gateway, stock):
    """Runs the agent, whose model is the gateway."""
    env = {**os.environ, **model_gateway.environment, "STOCK": str(stock)}
    command = [sys.executable, Path(__file__).parents[1] / "agent.py", QUESTION]
    return lambda: subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_it_does_what_the_model_wants(ask, model_gateway, stock):
    """Tools are called over MCP, and what they answered reaches the model."""
    model_gateway.sync.rehearse(QUESTION, use("look", item="screw"), TAKE, say("Taken."))
    done = ask()

    assert "Taken.\n" == done.stdout, done.stderr
    assert {"screw": 2} == json.loads(stock.read_text())


def test_a_tool_that_refuses_changes_nothing(ask, model_gateway, stock):
    """The model is told: a rehearsed one then says that it failed, whatever else was rehearsed."""
    model_gateway.sync.rehearse(QUESTION, use("take", item="screw", count=9), say("Taken."))

    assert "Taken.\n" != ask().stdout
    assert {"screw": 5} == json.loads(stock.read_text())


@pytest.mark.parametrize(("refusals", "status"), [(2, 0), (3, 1)])
def test_a_provider_that_is_overloaded_is_asked_three_times(ask, model_gateway, refusals, status):
    """Then it is said in one sentence."""
    model_gateway.sync.rehearse(QUESTION, say("There are enough."))
    with model_gateway.sync.fault(Fault(kind="status", status=529, times=refusals)):
        done = ask()

    assert (status, 3) == (done.returncode, len(model_gateway.sync.calls())), done.stderr
    assert status == done.stderr.startswith("the model cannot be asked: ")


def test_a_model_that_never_ends_costs_no_more_than_its_budget(ask, model_gateway):
    """It is stopped after four calls, which cost less than a cent at the provider's prices."""
    with model_gateway.sync.fault(Fault(kind="answer", tool="look", input={"item": "x"}, times=9)):
        done = ask()

    assert "no answer after 4 calls of the model\n" == done.stderr
    assert 0 < sum(call.usd for call in model_gateway.sync.calls()) < 0.01
