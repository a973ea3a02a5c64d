"""``name:port`` where there is no network of containers."""

from pathlib import Path

import pytest

from harness_core.base.errors import BadInput
from harness_core.system.compose._rewrite import Rewriter

PORTS = {"controller": (8000,), "controller-worker": (8002,), "worker": (8001, 9001), "seed": ()}
TRUTH = {
    "controller": "127.0.0.1:1000",
    "controller-worker": "127.0.0.1:1002",
    "worker": "127.0.0.1:1001",
    "seed": "",
}
REWRITER = Rewriter(Path("compose.yaml"), ports=PORTS, addresses=TRUTH)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("worker:8001", "127.0.0.1:1001"),
        ("http://controller-worker:8002/x", "http://127.0.0.1:1002/x"),
        ("http://controller:8000", "http://127.0.0.1:1000"),
        ("pg://worker:worker@worker:8001/worker", "pg://worker:worker@127.0.0.1:1001/worker"),
        ("worker:8001,controller:8000", "127.0.0.1:1001,127.0.0.1:1000"),
        ("coworker:8001", "coworker:8001"),
        ("my.worker:8001", "my.worker:8001"),
        ("worker", "worker"),
        ("worker:8001.5", "worker:8001.5"),
    ],
)
def test_whole_host_tokens_are_rewritten(given, wanted):
    """The longest name wins; what only contains a name stays."""
    assert wanted == REWRITER.text(given, key="k")


@pytest.mark.parametrize("given", ["worker:8003", "worker:9001", "seed:1"])
def test_a_port_that_the_service_does_not_have_is_a_mistake(given):
    """It would be silently left as a name that resolves nowhere."""
    with pytest.raises(BadInput, match=r"compose\.yaml: services\.a\.environment\.B"):
        REWRITER.text(f"http://{given}/", key="services.a.environment.B")
