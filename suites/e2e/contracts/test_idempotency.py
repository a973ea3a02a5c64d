"""One event is one message, however often and by whichever name it is delivered (``ingest.v1``).

Where sessions are to end as soon as they begin, the gateway refuses: a stand-in for the model provider,
which does not refuse on request.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
import trio

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import route, say, use
from suites.e2e.ecosystem.handle import REQUEST_IDS, Ecosystem, Sent, envelope
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing, expect_sessions
from suites.e2e.observe.journey import Journey, as_data, follow, parts_of
from suites.e2e.observe.sentences import expect_same, same_json

pytestmark = [pytest.mark.covers("E2E-IDEMPOTENCY"), pytest.mark.capability("ingest.v1")]

#: Enough callers at once to lose a race in any check-then-insert.
CALLERS = 50


@pytest.mark.covers("E2E-IDEMPOTENCY", "E2E-ROUTING")
@pytest.mark.slow
async def test_the_same_event_twice_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated event id is answered with the first request id and dispatched once."""
    event_id = _fresh("event")
    sent = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)
    first = await follow(ecosystem, sent)
    again = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)

    expect_same(
        "a repeated event is answered with the first request id",
        expected=(sent.request_id, False, True),
        found=(again.request_id, sent.answer["duplicate"], again.answer["duplicate"]),
    )
    await expect_one_dispatch(ecosystem, first)


async def test_the_same_idempotency_key_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated idempotency key counts as the same message, even when the event id differs."""
    control = {"idempotency_key": _fresh("key")}
    text = f"My weight is 80 kg today ({token})"
    first = await ecosystem.send(text, control=control)
    again = await ecosystem.send(text, control=control)

    assert first.request_id == again.request_id, "one key names two messages"
    expect_same(
        "the second delivery is the duplicate, not the first",
        expected=[False, True],
        found=[first.answer["duplicate"], again.answer["duplicate"]],
    )
    journey = await follow(ecosystem, first)
    expect_routing(journey, ["health"])
    await ecosystem.switchboard.database.expect_count(
        "message_inbox", where={"request_id": first.request_id}, count=1
    )


async def test_event_and_key_name_the_same_message(ecosystem: Ecosystem, token: str) -> None:
    """A message is known again by either of its two names, alone or beside a name that is new.

    What came beside a known name is a name of that message as well, from then on.
    """
    event_id, key = _fresh("event"), _fresh("key")
    other_event, other_key = _fresh("event"), _fresh("key")
    text = f'Put "tea {token}" on the shopping list'
    deliveries: list[Mapping[str, Any]] = [
        {"event_id": event_id, "control": {"idempotency_key": key}},
        {"event_id": event_id},
        {"event_id": event_id, "control": {"idempotency_key": other_key}},
        {"event_id": other_event, "control": {"idempotency_key": key}},
        {"event_id": other_event},
        {"event_id": _fresh("event"), "control": {"idempotency_key": other_key}},
    ]
    sent = [await ecosystem.send(text, **delivery) for delivery in deliveries]

    expect_same(
        "event id and key each name the same message",
        expected=[(sent[0].request_id, number > 0) for number in range(len(sent))],
        found=[(message.request_id, message.answer["duplicate"]) for message in sent],
    )
    journey = await follow(ecosystem, sent[0])
    expect_routing(journey, ["general"])


@pytest.mark.slow
@pytest.mark.parametrize("by", ["event", pytest.param("key", marks=pytest.mark.corpus)])
async def test_fifty_callers_at_once_are_one_message(
    ecosystem: Ecosystem, token: str, by: str
) -> None:
    """Concurrent deliveries of one event make one row, one dispatch and one honest first answer."""
    text = f"I have a headache, severity 5 ({token})"
    trace_id = secrets.token_hex(16)
    name = _fresh(by)
    sent: list[Sent] = []

    async def deliver() -> None:
        if by == "event":
            sent.append(await ecosystem.send(text, event_id=name, trace_id=trace_id))
            return
        control = envelope(text, trace_id=trace_id)["control"] | {"idempotency_key": name}
        sent.append(await ecosystem.send(text, trace_id=trace_id, control=control))

    async with trio.open_nursery() as nursery:
        for _ in range(CALLERS):
            nursery.start_soon(deliver)

    ids = {message.request_id for message in sent}

    assert 1 == len(ids), f"deliveries at once became several: {len(ids)} request ids"
    expect_same(
        f"of {CALLERS} deliveries at once one is the first",
        expected={False: 1, True: CALLERS - 1},
        found=dict(Counter(message.answer["duplicate"] for message in sent)),
    )
    # Which of them was the first is the product's to say; its traces begin with the earliest.
    first = next(message for message in sent if not message.answer["duplicate"])
    first = dataclasses.replace(
        first,
        since=min(message.since for message in sent),
        mark=min(message.mark for message in sent),
    )
    await expect_one_dispatch(ecosystem, await follow(ecosystem, first))


@pytest.mark.slow
async def test_different_channels_do_not_collide(ecosystem: Ecosystem, token: str) -> None:
    """The same event id on two channels names two messages, and both are handled."""
    event_id = _fresh("event")
    texts = [f"I have a cough, severity {n} ({token}{n})" for n in (2, 3)]
    sent = []
    for text, channel in zip(texts, ["telegram", "email"], strict=True):
        source = {"channel": channel, "provider": "staging-harness", "endpoint_identity": "e2e"}
        sent.append(await ecosystem.send(text, event_id=event_id, source=source))

    assert 2 == len({message.request_id for message in sent}), "the two channels collide"
    expect_same(
        "neither of two channels is a duplicate of the other",
        expected=[False, False],
        found=[message.answer["duplicate"] for message in sent],
    )
    for message in sent:
        journey = await follow(ecosystem, message)
        expect_inbox(journey, ["health"])
        expect_routing(journey, ["health"])


@pytest.mark.corpus
async def test_events_that_resemble_each_other_are_several(
    ecosystem: Ecosystem, token: str
) -> None:
    """Ids that differ in their last letter, or in case alone, name messages of their own."""
    begin = f"{_fresh('event')}-{'x' * 100}-"
    sent = [
        await ecosystem.send(f"I have a rash, severity {n} ({token}{n})", event_id=f"{begin}{end}")
        for n, end in enumerate("abA", start=1)
    ]

    assert 3 == len({message.request_id for message in sent}), "ids that resemble are taken for one"
    expect_same(
        "an id that differs in a letter is no duplicate",
        expected=[False] * 3,
        found=[message.answer["duplicate"] for message in sent],
    )
    for message in sent:
        expect_inbox(await follow(ecosystem, message), ["health"])


@pytest.mark.corpus
async def test_every_part_of_an_event_tells_it_apart(ecosystem: Ecosystem, token: str) -> None:
    """Channel, provider, account and event id name an event; keys are another name, of their own.

    What differs in one of them alone, by case, a blank or the way a letter is composed, is another
    message; where one part ends and the next begins, makes a difference too.
    """
    event_id = _fresh("event")
    source = {"channel": "telegram", "provider": "bot", "endpoint_identity": f"a-{token}"}
    events: dict[str, Mapping[str, Any]] = {
        "first": {},
        "channel": {"source": {**source, "channel": "email"}},
        "provider": {"source": {**source, "provider": "bot2"}},
        "account": {"source": {**source, "endpoint_identity": f"b-{token}"}},
        "account-composed": {"source": {**source, "endpoint_identity": f"a-{token}\u0301"}},
        "parts-moved": {
            "source": {**source, "provider": f"bota-{token}", "endpoint_identity": event_id},
            "event_id": event_id,
        },
        "key-like-the-id": {
            "event_id": _fresh("event"),
            "control": {"idempotency_key": event_id},
        },
        "key-case": {"event_id": _fresh("event"), "control": {"idempotency_key": event_id.upper()}},
        "id-blank": {"event_id": f" {event_id}"},
        "key-blank": {
            "event_id": _fresh("event"),
            "control": {"idempotency_key": f"{event_id} "},
        },
        "account-blank": {"source": {**source, "endpoint_identity": f"a-{token} "}},
        **{
            f"parts joined by {joint!r}": {"source": {**source, **parts}}
            for joint, parts in _joined(token).items()
        },
    }
    sent: dict[str, Sent] = {}
    again: dict[str, Sent] = {}
    # A session that is refused ends at once: what is asked here is which messages there are.
    refusal = Fault(kind="status", status=403, contains=token, times=1000)
    async with ecosystem.gateway.client.fault(refusal):
        for turn in (sent, again):
            for name, changes in events.items():
                turn[name] = await ecosystem.send(
                    f"say {token}", **{"event_id": event_id, "source": source} | changes
                )
        for one in sent.values():
            await follow(ecosystem, one)
    ids = {name: one.request_id for name, one in sent.items()}

    expect_same(
        "what differs in one part of its name is a message of its own",
        expected=len(events),
        found=len(set(ids.values())),
        story=str(ids),
    )
    expect_same(
        "what was never delivered before is no duplicate, and afterwards it is",
        expected=dict.fromkeys(events, (False, True)),
        found={
            name: (sent[name].answer["duplicate"], again[name].answer["duplicate"])
            for name in events
        },
    )
    expect_same(
        "a repeated event is answered with its own request id",
        expected=ids,
        found={name: one.request_id for name, one in again.items()},
    )


@pytest.mark.slow
async def test_a_long_message_is_kept_whole_or_refused(ecosystem: Ecosystem, token: str) -> None:
    """However long a message and its raw payload are: kept to the last letter, or refused in words."""
    taken = []
    for chars in (8_000, 31_000, 65_537):
        text = f"say {token} " + "long " * (chars // 5) + f"{chars} {token}"
        raw = {"parts": [text[::-1], {"é": "茶" * 20_000}]}
        message = envelope(text, trace_id=secrets.token_hex(16))
        message["payload"]["raw"] = raw
        await ecosystem.rehearse(text, [route("general", f"say {token}"), say("Very well.")])
        answer = await ecosystem.switchboard.try_call("ingest", message)
        rows = await ecosystem.switchboard.database.rows(
            "SELECT * FROM message_inbox WHERE normalized_text LIKE %s", (f"%{chars} {token}%",)
        )
        if answer.is_error:
            assert "normalized_text" in answer.text, (
                f"a message of {len(text)} characters was refused for another reason than its "
                f"length: {answer.text[:300]}"
            )
            assert not rows, f"what was refused leaves nothing; found {len(rows)} rows"
            continue
        taken.append(answer.value["request_id"])
        ecosystem.sent_ids.append(str(answer.value["request_id"]))

        expect_same("an accepted message has one row", expected=1, found=len(rows))
        assert rows[0]["normalized_text"] == text, (
            f"a message of {len(text)} characters is kept with {len(rows[0]['normalized_text'])}"
        )
        assert any(same_json(raw, part) for part in parts_of(as_data(rows[0]["payload"]))), (
            f"the raw payload of a message of {len(text)} characters is not kept whole"
        )
    assert taken, "a message of 8000 characters is no message to refuse"


async def test_a_duplicate_changes_nothing(ecosystem: Ecosystem, token: str) -> None:
    """What is delivered again with another text is the first message: the text stays as it was.

    It is kept as it came, blanks and all.
    """
    event_id = _fresh("event")
    text = f"  I have a fever,\n\tseverity 3 ({token}) \n"
    fever = use("symptom_log", name="fever", severity=3, notes=token)
    first = await ecosystem.send(text, [route("health"), fever], event_id=event_id)
    again = await ecosystem.send(f"Add {token} to my list of books", event_id=event_id)

    expect_same(
        "an event that comes again with another text is the first one",
        expected=first.request_id,
        found=again.request_id,
    )
    journey = await follow(ecosystem, first)
    expect_inbox(journey, ["health"])
    expect_sessions(journey, ["health"])


#: What a careless product puts between two parts, so that where one ends is lost.
JOINTS: Final = ("", ":", "/", "|", "-", " ", ".")


def _joined(token: str) -> dict[str, dict[str, str]]:
    """Provider and account, moved into each other, by what they would be joined with.

    Joined by that, each is the same text as the first one, which has each of them in its provider.
    """
    whole = f"p{token}" + "".join(f"{joint}{number}" for number, joint in enumerate(JOINTS))
    found = {"nothing at all": {"provider": whole, "endpoint_identity": "z"}}
    for number, joint in enumerate(JOINTS):
        at = whole.index(f"{joint}{number}", len(token))
        found[joint] = {
            "provider": whole[:at],
            "endpoint_identity": f"{whole[at + len(joint) :]}{joint}z",
        }
    return found


def _fresh(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(8)}"


async def expect_one_dispatch(ecosystem: Ecosystem, settled: Journey) -> None:
    """After it settled, and after a second message went all the way, there is still one of all."""
    sent = settled.sent
    expect_inbox(settled, ["health"])
    expect_routing(settled, ["health"])
    # A later message that has gone all the way proves that a second dispatch had time to happen:
    # the switchboard and the butler both work in order.
    cough = use("symptom_log", name="cough", severity=2)
    # Of the same sender at the same account: what is between two of them is kept in order.
    same = {name: sent.arguments[name] for name in ("source", "sender")}
    second = await ecosystem.send(
        "I have a cough, severity 2", model=[route("health"), cough], **same
    )
    later = await follow(ecosystem, second)
    again = await follow(ecosystem, sent)
    # Of both together, so that it makes no difference whether a hop says whose it is.
    hops = {repr(sorted(row.items())) for row in (*again.routing, *later.routing)}

    assert 2 == len(hops), f"one message was dispatched {len(hops) - 1} times\n{again.text()}"
    expect_sessions(again, ["health"])
    if REQUEST_IDS not in sent.accounts:
        return
    sessions = await ecosystem["health"].database.rows(
        "SELECT id FROM sessions WHERE request_id::text = %s", (sent.request_id,)
    )

    assert 1 == len(sessions), f"one message ran {len(sessions)} sessions on health"
