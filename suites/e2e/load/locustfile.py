"""What one simulated connector does; Locust starts many of them.

Started by ``test_load.py`` with a plan in ``HARNESS_LOAD_PLAN``; each process writes every sending
to a file of its own beside the plan, before and after, so that a lost answer is on record too.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import queue
import secrets
import time
from pathlib import Path

import gevent
from locust import User, constant_pacing, events, task
from locust.exception import StopUser

from harness_core.assertions import new_token
from suites.e2e.load.connector import Broken, Connector

PLAN = json.loads(Path(os.environ["HARNESS_LOAD_PLAN"]).read_text(encoding="utf-8"))
LOG = Path(os.environ["HARNESS_LOAD_PLAN"]).with_name(f"sendings-{os.getpid()}.jsonl")

#: Numbers the messages of this process; each n-th is sent twice.
NUMBERS = itertools.count(1)

#: Counts the users of this process that have nothing left to send.
DONE = itertools.count(1)


class Ingesting(User):
    """What every user can do: send a message in, and write down what was answered."""

    abstract = True

    def ingest(self, message: dict, connector: Connector, **more: object) -> bool:
        """Send a message in and write down what was answered; whether it was."""
        event = message["event"]["external_event_id"]
        record({"event": event, "sent_at": time.time(), **more})
        began = time.perf_counter()
        try:
            answer = connector.call("ingest", message)
            if answer.get("status") != "accepted" or not answer.get("request_id"):
                raise Broken(f"not accepted: {answer}")  # noqa: TRY301 - one way to fail
        except Broken as error:
            record({"event": event, "error": str(error)})
            self.report("ingest", began, error)
            return False
        record(
            {
                "event": event,
                "request": answer["request_id"],
                "duplicate": answer.get("duplicate") is True,
                "took_ms": (time.perf_counter() - began) * 1000,
            }
        )
        self.report("ingest", began)
        return True

    def report(self, name: str, began: float, error: Exception | None = None) -> None:
        """Into Locust's own statistics."""
        events.request.fire(
            request_type="MCP",
            name=name,
            response_time=(time.perf_counter() - began) * 1000,
            response_length=0,
            exception=error,
            context={},
        )


class Arrivals(Ingesting):
    """An open loop: each message is sent when its time has come, beside those before it."""

    abstract = "arrivals" not in PLAN

    @task
    def send(self) -> None:
        """All of them, then the end."""
        free: queue.SimpleQueue = queue.SimpleQueue()
        began, sending = time.time(), []
        for number, (at_s, step) in enumerate(PLAN["arrivals"]):
            wait_s = max(0.0, began + at_s - time.time())
            gevent.sleep(wait_s)  # lint: allow sleep: an open loop is ruled by the clock
            message = fresh_message(PLAN["texts"][number % len(PLAN["texts"])])
            times = 2 if PLAN["resend_every"] and number % PLAN["resend_every"] == 1 else 1
            due_at = began + at_s
            sending.append(gevent.spawn(self.send_one, message, free, times, due_at, step))
        gevent.joinall(sending, timeout=PLAN["timeout_s"] * 2)
        gevent.spawn(self.environment.runner.quit)
        raise StopUser

    def send_one(
        self, message: dict, free: queue.SimpleQueue, times: int, due_at: float, step: int
    ) -> None:
        """One message, on a session that is free; a new one when there is none."""
        try:
            connector = free.get_nowait()
        except queue.Empty:
            connector = Connector(PLAN["url"], timeout_s=PLAN["timeout_s"])
            began = time.perf_counter()
            try:
                connector.open()
            except Broken as error:
                event = message["event"]["external_event_id"]
                record({"event": event, "sent_at": time.time(), "due_at": due_at, "step": step})
                record({"event": event, "error": f"connect: {error}"})
                self.report("connect", began, error)
                return
            self.report("connect", began)
        if all(self.ingest(message, connector, due_at=due_at, step=step) for _ in range(times)):
            free.put(connector)
        else:
            connector.close()


class ChannelConnector(Ingesting):
    """Sends its messages, one after the other, and keeps its session open."""

    abstract = "arrivals" in PLAN
    wait_time = constant_pacing(PLAN.get("pace_s", 0))

    def on_start(self) -> None:
        """Connect; a user that cannot is a failure of the run."""
        self.left = PLAN["messages_each"]
        self.connector = Connector(PLAN["url"], timeout_s=PLAN["timeout_s"])
        began = time.perf_counter()
        try:
            self.connector.open()
        except Broken as error:
            record({"event": f"connect-{secrets.token_hex(4)}", "error": f"connect: {error}"})
            self.report("connect", began, error)
            raise StopUser from error
        self.report("connect", began)

    def on_stop(self) -> None:
        """Leave."""
        self.connector.close()

    @task
    def send(self) -> None:
        """One message, now and then twice, then a pause."""
        number = next(NUMBERS)
        message = fresh_message(PLAN["texts"][number % len(PLAN["texts"])])
        self.ingest(message, self.connector)
        if PLAN["resend_every"] and number % PLAN["resend_every"] == 0:
            self.ingest(message, self.connector)
        self.left -= 1
        if self.left <= 0:
            # Workers are stopped by their master, which alone knows of all users.
            if next(DONE) == PLAN["users"] and not PLAN["workers"]:
                gevent.spawn(self.environment.runner.quit)
            raise StopUser


def fresh_message(text: str) -> dict:
    """An envelope like the suite's own, with ids that no other message has."""
    message = copy.deepcopy(PLAN["envelope"])
    filled = text.replace("{token}", new_token())
    message["event"]["external_event_id"] = f"load-{secrets.token_hex(8)}"
    message["payload"] = {"raw": {"text": filled}, "normalized_text": filled}
    traceparent = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
    message["control"] = {"trace_context": {"traceparent": traceparent}}
    return message


def record(line: dict) -> None:
    """One line, written out at once: a process that is killed has recorded what it did."""
    with LOG.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
