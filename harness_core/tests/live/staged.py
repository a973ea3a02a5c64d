"""The environment of the suite that tests of the page hold: a shop of three, a double and a gateway."""

import itertools
import secrets
import sys
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Link, Message
from harness_core.doubles.http import HttpClient, Unanswered
from harness_core.doubles.telemetry import open_collector
from harness_core.ports import Stage, lease_port
from harness_core.system.parts import DoublePart, ProcessPart, ProcessPlan, healthy, open_parts
from harness_core.system.parts.gateway import GatewayPart
from harness_core.system.staging import Offer, Way

SHOP = Path(__file__).with_name("shop.py")

#: Who passes orders on to whom.
NEXT = {"front": ["orders"], "orders": ["stock"], "stock": []}

TEXTS = {
    "tea": ("A pound of tea", "one pound of tea, please", "groceries"),
    "rope": ("A rope", "twelve yards of rope", "hardware"),
    "hostile": ("Something odd", "<img src=x onerror=window.hit=1><script>hit=2</script>", "odd"),
    "flood": ("More than anyone reads", "flood", "odd"),
}


@asynccontextmanager
async def open_environment(run, subject, *, options, evidence, say):
    """``environment`` of the suite."""
    with ExitStack() as leases:
        ports = {name: leases.enter_context(lease_port()) for name in (*NEXT, "model", "otlp")}
        collector = DoublePart(
            "otlp",
            kind="collector",
            opener=lambda port: open_collector(evidence=evidence, port=port),
            lease=ports["otlp"],
            evidence=evidence,
        )
        gateway = GatewayPart(
            "model",
            run,
            lease=ports["model"],
            evidence=evidence,
            mode="rehearsed",
            budget_usd=options.budget_usd,
        )

        def plan(name):
            next_ = [f"http://127.0.0.1:{ports[each].port}/" for each in NEXT[name]]
            argv = [sys.executable, str(SHOP), name, str(ports[name].port)]
            client = HttpClient(f"http://127.0.0.1:{ports[name].port}", name=name)
            return ProcessPlan(
                argv=[*argv, f"http://127.0.0.1:{ports['otlp'].port}", *next_],
                environment={"PASSWORD": "hunter2secret"},
                stages=[Stage(name="health", probe=partial(healthy, client, "/"), seconds=30)],
            )

        shops = [
            ProcessPart(name, run, partial(plan, name), leases=[ports[name]], evidence=evidence)
            for name in NEXT
        ]
        for shop in shops:
            shop.urls = {"database": "postgresql://me:hunter2secret@127.0.0.1:1/x"}
            shop.secrets = {"KEY": "sk-hunter2secret"}
        waits = {shop.name: ("otlp",) for shop in shops}
        async with open_parts(
            [collector, gateway, *shops], waits, title="shop", evidence=evidence, say=say
        ) as parts:
            yield parts


class Orders:
    """Orders to the front of the shop."""

    def __init__(self, parts):
        self.parts = parts
        self.free_text = False
        self.sent = {}

    def offers(self):
        """All of them."""
        return [
            Offer(id=name, title=title, text=text, group=group)
            for name, (title, text, group) in TEXTS.items()
        ]

    async def send(self, offer, text):
        """Send one, which the front takes as long as the shop takes."""
        if offer not in TEXTS:
            raise BadInput("send", key="offer", found=offer, expected="one of the shop's")
        order = secrets.token_hex(16)
        self.sent[order] = TEXTS[offer][1]
        client = HttpClient(self.parts.url("front"), name="front", seconds=60)
        trio.lowlevel.spawn_system_task(self.post, client, order)
        return order

    async def post(self, client, order):
        """One order."""
        with suppress(Unanswered):  # the front was taken away meanwhile: its way shows that
            await client.post("/", {"id": order, "text": self.sent[order]})

    async def way(self, message):
        """By the logs of the shop."""
        text = self.sent[message]
        seen = [name for name in NEXT if any(message in line for line in self.parts.logs(name))]
        stuck = [
            name for name in seen if any("stuck" in line for line in self.lines(name, message))
        ]
        names = ["you", *NEXT]
        links = [
            Link(
                message=message,
                source=source,
                target=target,
                label="order",
                state="held" if target in seen else "broken" if source in stuck else "missing",
            )
            for source, target in itertools.pairwise(names)
        ]
        ended = len(seen) == len(NEXT) or bool(stuck)
        return Way(story=(Message(id=message, text=text, names=(message,)), *links), ended=ended)

    def lines(self, name, message):
        """What a service logged of an order."""
        return [line for line in self.parts.logs(name) if message in line]


def orders(parts, subject):
    """``messages`` of the suite."""
    return Orders(parts)
