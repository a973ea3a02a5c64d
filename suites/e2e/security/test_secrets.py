"""Secrets reach neither logs, nor rows, nor evidence, nor command lines, whatever is sent in.

The failure is a refusal by the gateway, a stand-in for the model provider, which does not refuse on
request.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

from harness_core.base.evidence import REDACTED, Evidence
from harness_core.doubles.http import Answer, Rule, open_recorder
from harness_core.doubles.model import Fault
from harness_core.front.skips import not_run
from harness_core.ports import lease_port
from harness_core.process import command_line, descendants, redacted_lines
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.covers("E2E-SECRETS")

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED = 403

#: A session whose every call is refused.
SESSION_S = 90.0

#: A start that fails says so within this time.
FAILS_WITHIN_S = 30.0


def spellings(secret: str) -> set[str]:
    """A secret as a row, a log or a URL may hold it."""
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}


async def tables(ecosystem: Ecosystem, butler: str) -> Mapping[str, list[str]]:
    """Every table of a butler's database → its rows, each as text."""
    database = ecosystem[butler].database
    names = await database.rows(
        "SELECT table_name AS name FROM information_schema.tables "
        "WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    return {
        row["name"]: [
            str(found["text"])
            for found in await database.rows(
                f'SELECT to_jsonb(t)::text AS text FROM "{row["name"]}" t'
            )
        ]
        for row in names
    }


async def found_in_rows(
    ecosystem: Ecosystem, wanted: Mapping[str, str], *, but: tuple[str, ...] = ()
) -> list[str]:
    """Where in the databases of all butlers a secret stands, ``but`` in these ``butler.table``."""
    found = []
    for butler in ecosystem.butlers:
        for table, rows in (await tables(ecosystem, butler)).items():
            for name, secret in wanted.items():
                hit = any(spelling in row for row in rows for spelling in spellings(secret))
                if hit and f"{butler}.{table}" not in but:
                    found.append(f"{name} in a row of {butler}.{table}")
    return found


def files_below(directory: Path) -> Iterator[tuple[Path, str]]:
    """Every file of the evidence, as text."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path, path.read_text(encoding="utf-8", errors="replace")


async def test_what_is_sent_in_raw_stays_where_it_was_put(ecosystem: Ecosystem, token: str) -> None:
    """A password in a message's raw payload is stored with the message, and is nowhere else at all."""
    canary = f"raw-{secrets.token_hex(12)}"
    text = f"I have a headache, severity 3 ({token})"
    raw = {"text": text, "headers": {"cookie": canary}}
    sent = await ecosystem.send(text, payload={"raw": raw, "normalized_text": text})
    journey = await follow(ecosystem, sent)

    assert "completed" == journey.inbox[0]["lifecycle_state"], (
        f"a message with a raw payload is completed\n{journey.text()}"
    )
    assert canary in str(journey.inbox[0]["payload"]), "the payload was not stored as it came"
    wanted = {"the canary in the raw payload": canary}

    assert [] == await found_in_rows(ecosystem, wanted, but=("switchboard.message_inbox",)), (
        "a raw payload stands with its message alone"
    )
    logs = [
        name
        for name, butler in ecosystem.butlers.items()
        if canary in butler.child.log.read_text(encoding="utf-8", errors="replace")
    ]

    assert [] == logs, "the raw payload of a message stands in a log"


@pytest.mark.slow
async def test_no_secret_leaks_when_things_go_well_or_badly(
    ecosystem: Ecosystem, token: str
) -> None:
    """After a success, a failure and a refusal: no secret in any row or log of any butler.

    The failure is told in words that hold the key, as some providers do. The harness redacts the logs
    as it writes them; what it had to redact is on record beside them.
    """
    good = await ecosystem.send(f"I have a headache, severity 3 ({token})")
    await follow(ecosystem, good)
    refused = Fault(
        kind="status",
        status=REFUSED,
        times=20,
        contains=f"{token}-bad",
        also="symptom_log",
        text=f"the key {ecosystem.gateway.api_key} may not do this ({token})",
    )
    async with ecosystem.gateway.client.fault(refused):
        bad = await ecosystem.send(f"I have a headache, severity 3 ({token}-bad)")
        await follow(ecosystem, bad)
    answer = await ecosystem["health"].try_call("measurement_log", {"kind": 7, "value": token})

    assert answer.is_error, "an invalid call was accepted"
    assert [] == await found_in_rows(ecosystem, ecosystem.secrets), (
        "no secret stands in a row of any butler"
    )
    leaks = [
        f"{name}: {line.text}"
        for name, butler in ecosystem.butlers.items()
        for line in redacted_lines(butler.child.log)
        if line.known
    ]

    assert [] == leaks, "butlers wrote secrets into their logs"


@pytest.mark.capability("session-process", "own-process")
@pytest.mark.disturbs
async def test_a_key_that_has_to_be_quoted_does_not_leak(
    ecosystem: Ecosystem, token: str, evidence: Evidence
) -> None:
    """A key with a quotation mark and a backslash, told by its provider, stands in no row and no log.

    It begins with another secret, the database's password: nothing of what follows is left over. The
    provider that tells it is a recorder of ours, which refuses everything.
    """
    general = ecosystem["general"]
    rest = secrets.token_hex(12)
    key = f'{urlsplit(general.database.url).password or "sk-"}"\\{rest}'
    words = f"the key {key} may not do this ({token})"
    told = {"type": "error", "error": {"type": "permission_error", "message": words}}
    refuses = Rule(answer=Answer(status=REFUSED, json=told))
    before = dict(general.environment)
    async with open_recorder("provider", evidence=evidence, rules=[refuses]) as provider:
        changed = {
            value: new
            for value, new in (
                (ecosystem.gateway.url, provider.url),
                (ecosystem.gateway.api_key, key),
            )
            if value in before.values()
        }
        if len(changed) < 2:
            not_run("subject", "its environment does not name the model's address and key alone")
        try:
            general.environment.update(
                {name: changed.get(value, value) for name, value in before.items()}
            )
            await general.restart()
            answer = await general.try_call(
                "trigger", {"prompt": f"say {token}"}, seconds=SESSION_S
            )
            log = general.child.log.read_text(encoding="utf-8", errors="replace")
        finally:
            general.environment.update(before)
            await general.restart()
    asked = [request for request in provider.requests if request.method == "POST"]

    assert asked, f"a session asks the model where it is told to; the answer was {answer.text}"
    assert rest not in answer.text, f"the answer to a caller holds a part of the key: {answer.text}"
    assert [] == [line for line in log.splitlines() if rest in line], (
        "no part of a key stands in a log"
    )
    assert [] == await found_in_rows(ecosystem, {"the end of a key": rest}), (
        "no part of a key stands in a row"
    )


async def test_no_secret_stands_in_a_command_line(ecosystem: Ecosystem) -> None:
    """Every user of the machine can read command lines."""
    found = [
        f"{what} in the command line of {name} (pid {pid})"
        for name, butler in ecosystem.butlers.items()
        for pid in (butler.pid, *descendants(butler.pid))
        for what, secret in ecosystem.secrets.items()
        if any(secret in argument for argument in command_line(pid))
    ]

    assert [] == found, f"no secret stands in a command line; found {found}"


async def test_a_password_does_not_leak_when_the_database_refuses_it(ecosystem: Ecosystem) -> None:
    """A butler whose database refuses its password says what failed, without the password."""
    health = ecosystem["health"]
    password = f"wrong-{secrets.token_hex(8)}"
    url = urlsplit(health.database.url)
    bad = urlunsplit(url._replace(netloc=f"{url.username}:{password}@{url.hostname}:{url.port}"))
    own = [name for name, value in health.environment.items() if value == str(health.port)]
    if not own:
        not_run(
            "subject", "its port is not in its environment: a second process could have no other"
        )
    port = own[0]
    changed = {
        name: bad for name, value in health.environment.items() if value == health.database.url
    }

    assert changed, "the subject's environment names no database"
    with lease_port() as lease:
        changed[port] = str(lease.hand_over())
        status, output = await health.attempt(seconds=FAILS_WITHIN_S, environment=changed)

    assert status != 0, f"a start that cannot succeed has a status other than 0\n{output}"
    # The harness has redacted what looked like a password in a URL; that is a leak as well.
    assert [] == [line for line in output.splitlines() if password in line or REDACTED in line], (
        "no password stands in what a failed start wrote"
    )
    assert output.strip(), "the butler ended without a word"


async def test_the_evidence_of_this_run_holds_no_secret(ecosystem: Ecosystem) -> None:
    """Logs, ledgers, spans and journeys are for people to read and to keep."""
    directory = ecosystem["switchboard"].child.log.parent
    seen = dict(files_below(directory))
    found = [
        f"{name} in {path.relative_to(directory)}"
        for path, text in seen.items()
        for name, secret in ecosystem.secrets.items()
        if any(spelling in text for spelling in spellings(secret))
    ]

    assert [] == found, f"no secret stands in the evidence; found {found}"
    assert len(seen) > len(ecosystem.butlers), f"only {sorted(seen)} were read"
