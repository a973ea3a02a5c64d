"""Contract 8: a command that reads what is known of the daemon's process finds no key there.

Nobody listens at the provider's address: that the daemon has a key is all that counts.
"""

from __future__ import annotations

import re

import pytest

from suites.daemon.daemon import Provider, Settings
from suites.daemon.messages import ANSWER_S, ask, expect_health, expect_message, shell, user_input

pytestmark = [
    pytest.mark.covers("CONTRACT-8-PROVIDERS"),
    pytest.mark.capability("providers", "shell-reply", "shell-text"),
]

#: The key of a provider, and the password in its address.
SECRETS = ("zq7ownKeyXk41Wm", "vv9addrPwRt82Lp")

#: What shows the environment and the command line of processes; ``PID`` is the daemon's.
LOOKING = (
    "env; printenv; export -p; declare -x",
    "cat /proc/self/environ",
    "cat /proc/$$/environ",
    "cat /proc/$PPID/environ",
    "cat /proc/PID/environ",
    "cat /proc/PID/task/PID/environ",
    "head -c 99999 /proc/PID/environ",
    "strings -a /proc/PID/environ",
    "tr '\\0' '\\n' < /proc/PID/environ",
    "cat < /proc/PID/environ",
    "cat /proc/PID/cmdline /proc/$PPID/cmdline",
    "ps eww -p PID",
    "ps -ef",
)


async def test_no_command_reads_a_key(start, token: str) -> None:
    """Whatever a command reads of the daemon's process, by each route, a secret is not in its answer.

    A command that is refused has read nothing.
    """
    key, password = SECRETS
    away = Provider(
        name="alpha",
        shape="openai",
        url=f"http://u:{password}@127.0.0.1:1",
        key=key,
        model="m",
        timeout_s=5,
    )
    async with start(Settings(providers=(away,))) as daemon, daemon.connect() as connection:
        asking = daemon.subject.table("texts")["shell"]
        leaked: list[str] = []
        for looking in LOOKING:
            command = re.sub(r"\bPID\b", str(daemon.pid), looking)
            for form in (shell(command), user_input(asking.replace("{command}", command))):
                answer = await ask(connection, form, seconds=ANSWER_S)
                leaked += [
                    f"{secret} by {command!r}" for secret in SECRETS if secret in answer.payload
                ]
        said = expect_message(await ask(connection, user_input(f"after {token}")), connection)
        expect_health(await daemon.health())

    assert said.strip(), "contract 2: a text is answered after all of that"
    assert not leaked, f"contract 8: a secret is in no frame: found {leaked[:4]}"
