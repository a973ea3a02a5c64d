"""Every accepted message held against what was found of it: none lost, none done twice.

Sans-I/O: a suite says what was sent and answered, and what it found; this says what is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Account", "Found", "Sending", "settle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One time a message was sent.

    Attributes:
        event: the sender's id of the message; a message sent again has the same.
        request: the receiver's id from its answer; empty without an answer.
        duplicate: the answer calls it known.
        took_ms: until the answer, in milliseconds.
        error: why there was no answer that accepts it.
    """

    event: str
    request: str = ""
    duplicate: bool = False
    took_ms: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found of one message.

    Attributes:
        states: the state of each row of it; one row is right.
        wanted: how many pieces of work it was divided into.
        done: how many pieces were really done, successfully.
        trouble: anything else that is wrong with it.
    """

    states: tuple[str, ...]
    wanted: int = 0
    done: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The result.

    Attributes:
        sent: messages sent, each counted once.
        accepted: messages that at least one answer accepted.
        resent: times a message was sent again.
        problems: what is wrong, message by message; empty when every accepted message reached its
            good end exactly once.
    """

    sent: int
    accepted: int
    resent: int
    problems: tuple[str, ...]


def settle(
    sendings: Sequence[Sending], found: Mapping[str, Found], *, good: str = "completed"
) -> Account:
    """Hold what was answered against what was found.

    Args:
        sendings: every time something was sent.
        found: request id → what was found of it, also of requests that were not sent.
        good: the one state in which a message has been handled.
    """
    by_event: defaultdict[str, list[Sending]] = defaultdict(list)
    for sending in sendings:
        by_event[sending.event].append(sending)
    problems: list[str] = []
    owner: dict[str, str] = {}
    for event, times in by_event.items():
        problems.extend(f"{event}: {time.error}" for time in times if time.error)
        answered = [time for time in times if not time.error]
        requests = sorted({time.request for time in answered})
        if len(requests) > 1:
            problems.append(f"{event}: one message was given {len(requests)} ids: {requests}")
        fresh = sum(not time.duplicate for time in answered)
        if answered and len(answered) == len(times) and fresh != 1:
            problems.append(f"{event}: accepted as new {fresh} times in {len(answered)} answers")
        for request in requests:
            if owner.setdefault(request, event) != event:
                problems.append(f"{event}: shares request {request} with {owner[request]}")
            problems.extend(_judged(event, request, found.get(request), good=good))
    unknown = sorted(found.keys() - owner.keys())
    unanswered = any(sending.error for sending in sendings)
    if unknown and not unanswered:  # a message without an answer may have been stored all the same
        problems.append(f"{len(unknown)} messages that were not sent: {', '.join(unknown[:3])}")
    accepted = {sending.event for sending in sendings if not sending.error}
    return Account(
        sent=len(by_event),
        accepted=len(accepted),
        resent=len(sendings) - len(by_event),
        problems=tuple(problems),
    )


def _judged(event: str, request: str, found: Found | None, *, good: str) -> list[str]:
    if found is None or not found.states:
        return [f"{event}: lost, request {request} was accepted and is nowhere"]
    if len(found.states) > 1:
        return [f"{event}: request {request} has {len(found.states)} rows"]
    if found.states != (good,):
        return [f"{event}: request {request} ended as {found.states[0]!r}, not {good!r}"]
    if found.wanted != found.done or not found.wanted:
        return [f"{event}: request {request} has {found.wanted} parts, {found.done} were done"]
    return [f"{event}: request {request}: {found.trouble}"] if found.trouble else []
