"""The keys of a compose file that servers of ours demand, checked before anything is started.

A key that is missing, too short or not the one that its users hold comes out otherwise as a server
that does not start, or as a product that fails for reasons of its own an hour later. Each is one error
here that names file, service and variable; values are never shown.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterable
from itertools import product
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.doubles.model import KEY_VARIABLE, SHORTEST_KEY, TOKEN_VARIABLE
from harness_core.system.compose._compose import Compose, ComposeService

__all__ = ["S3_KEY_VARIABLES", "check_keys", "s3_keys"]

#: Where an S3 server's keys are read: MinIO's own names.
S3_KEY_VARIABLES: Final = ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD")

#: Where rclone in a container reads the same: a pair, as comma-separated values.
_RCLONE: Final = "RCLONE_AUTH_KEY"

#: What MinIO demands of them; ``rclone serve s3`` takes any length but none, and then lets all in.
_SHORTEST_S3: Final = (3, 8)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """A key that a server of ours demands.

    Attributes:
        variable: of the server's environment.
        shortest: characters it must have.
        barred: a class of characters that it cannot have, and what they are called.
        held_as: what the variable of a service that uses the server is likely called.
    """

    variable: str
    shortest: int
    barred: tuple[str, str]
    held_as: re.Pattern[str]


_GATEWAY: Final = _Key(
    variable=KEY_VARIABLE,
    shortest=SHORTEST_KEY,
    barred=(r"[^!-~]", "printable ASCII without spaces"),
    held_as=re.compile(r"(.*_)?(ANTHROPIC|OPENAI|CLAUDE|LLM|MODEL|GATEWAY).*(KEY|TOKEN)"),
)
_TOKEN: Final = dataclasses.replace(_GATEWAY, variable=TOKEN_VARIABLE)
#: A comma or a quote would end the pair, a slash the scope that the access key stands in.
_S3: Final = (
    _Key(
        variable=S3_KEY_VARIABLES[0],
        shortest=_SHORTEST_S3[0],
        barred=(r"[^!-~]|[\",/]", "printable ASCII without spaces, commas, quotes and slashes"),
        held_as=re.compile(r"(?!.*SECRET)(.*_)?(S3|AWS|MINIO)_.*(ACCESS_KEY|ACCESS_KEY_ID|USER)"),
    ),
    _Key(
        variable=S3_KEY_VARIABLES[1],
        shortest=_SHORTEST_S3[1],
        barred=(r"[^!-~]|[\",]", "printable ASCII without spaces, commas and quotes"),
        held_as=re.compile(r"(.*_)?(S3|AWS|MINIO)_.*(SECRET_KEY|SECRET_ACCESS_KEY|PASSWORD)"),
    ),
)


def s3_keys(service: ComposeService) -> tuple[str, str]:
    """Access key and secret key of an S3 server of the file."""
    access, secret = (service.environment.get(name, "") for name in S3_KEY_VARIABLES)
    return access, secret


def check_keys(compose: Compose, *, external: bool) -> None:
    """Refuse keys with which the stack could not work.

    Args:
        compose: the file.
        external: S3 is a server outside of the run, whose keys are part of its URL.

    Raises:
        BadInput: the first key that is missing, too short, malformed, or not the one that a service
            holds which uses the server.
    """
    for gateway in compose.of_kind("gateway"):
        users = _users(compose, gateway)
        # One that no service uses is asked by tests alone, which get the key that is made up.
        needed = [_GATEWAY] if users or KEY_VARIABLE in gateway.environment else []
        # The token may be left out: whatever steers the gateway gets the one that is made up.
        needed += [_TOKEN] if TOKEN_VARIABLE in gateway.environment else []
        _check_values(compose, gateway, needed)
        if {_GATEWAY, _TOKEN} == set(needed):
            _check_token(compose, gateway)
        _check_held(compose, gateway, users, [_GATEWAY])
    for server in compose.of_kind("s3") if not external else ():
        _check_values(compose, server, _S3)
        _check_rclone(compose, server)
        _check_held(compose, server, _users(compose, server), _S3)


def _check_values(compose: Compose, server: ComposeService, keys: Iterable[_Key]) -> None:
    for key in keys:
        value = server.environment.get(key.variable, "")
        pattern, allowed = key.barred
        found = "a key with other characters" if re.search(pattern, value) else ""
        if len(value) < key.shortest:
            found = f"{len(value)} characters" if value else "nothing"
        if found:
            expected = f"a key of at least {key.shortest} characters, {allowed}"
            raise _bad(compose, server, key.variable, found=found, expected=expected)


def _check_token(compose: Compose, gateway: ComposeService) -> None:
    if gateway.environment[TOKEN_VARIABLE] == gateway.environment[KEY_VARIABLE]:
        expected = "another one: the system under test must not steer its own model"
        found = f"the same as {KEY_VARIABLE}"
        raise _bad(compose, gateway, TOKEN_VARIABLE, found=found, expected=expected)


def _check_rclone(compose: Compose, server: ComposeService) -> None:
    pair = next(csv.reader([server.environment.get(_RCLONE, "")]), [])
    if _RCLONE in server.environment and pair != [",".join(s3_keys(server))]:
        found = "another pair" if len(pair) == 1 and "," in pair[0] else "no pair in quotes"
        expected = f"'\"{','.join(S3_KEY_VARIABLES)}\"' with their values"
        raise _bad(compose, server, _RCLONE, found=found, expected=expected)


def _users(compose: Compose, server: ComposeService) -> list[ComposeService]:
    """The services that know where a server is."""
    return [
        service
        for service in compose.services.values()
        if service.name != server.name and service.names(server.name)
    ]


def _check_held(
    compose: Compose,
    server: ComposeService,
    users: Iterable[ComposeService],
    keys: Iterable[_Key],
) -> None:
    """Some variable of each user is the key, or has it in it as a URL has."""
    for user, key in product(users, keys):
        value = server.environment[key.variable]
        whole = re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])")
        likely = [name for name in user.environment if key.held_as.fullmatch(name)]
        may_be_in_a_file = not likely and user.env_file
        if may_be_in_a_file or any(map(whole.search, user.environment.values())):
            continue
        variable, found = "", "no variable that is it"
        if len(likely) == 1:
            (variable,) = likely
            given = user.environment[variable]
            found = f"another key ({len(given)} characters)" if given else "nothing"
        elif likely:
            found = f"none that is it ({', '.join(likely)})"
        expected = f"the {key.variable} of {server.name}, which {user.name} is to use"
        raise _bad(compose, user, variable, found=found, expected=expected)


def _bad(
    compose: Compose, service: ComposeService, variable: str, *, found: str, expected: str
) -> BadInput:
    key = ".".join(filter(None, ("services", service.name, "environment", variable)))
    return BadInput(compose.path, key=key, found=found, expected=expected)
