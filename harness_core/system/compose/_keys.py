"""The keys of a compose file that servers of ours demand, looked at before anything is started.

A key that is missing, too short or not the one that its users hold comes out otherwise as a server
that does not start, or as a product that fails for reasons of its own an hour later. Each is one error
here that names file, service and variable; values are never told.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterator
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
        external: S3 is a server of somebody else, whose keys are part of its URL.

    Raises:
        BadInput: the first key that is missing, too short, malformed, or not the one that a service
            holds which uses the server.
    """
    for gateway in compose.of_kind("gateway"):
        users = tuple(_users(compose, gateway))
        # One that no service is told of is asked by tests alone, who are told the key that is made up.
        if users or KEY_VARIABLE in gateway.environment:
            _check_value(compose, gateway, _GATEWAY)
        _check_token(compose, gateway)
        for user in users:
            _check_held(compose, gateway, user, _GATEWAY)
    if external:
        return
    for server in compose.of_kind("s3"):
        for key in _S3:
            _check_value(compose, server, key)
        _check_rclone(compose, server)
        for user in _users(compose, server):
            for key in _S3:
                _check_held(compose, server, user, key)


def _check_value(compose: Compose, server: ComposeService, key: _Key) -> None:
    value = server.environment.get(key.variable, "")
    pattern, allowed = key.barred
    expected = f"a key of at least {key.shortest} characters, {allowed}"
    if not value:
        raise _bad(compose, server, key.variable, found="nothing", expected=expected)
    if len(value) < key.shortest:
        raise _bad(
            compose, server, key.variable, found=f"{len(value)} characters", expected=expected
        )
    if re.search(pattern, value):
        found = "a key with other characters"
        raise _bad(compose, server, key.variable, found=found, expected=expected)


def _check_token(compose: Compose, gateway: ComposeService) -> None:
    """It may be left out: whoever steers the gateway is told the one that is made up."""
    if TOKEN_VARIABLE not in gateway.environment:
        return
    _check_value(compose, gateway, _TOKEN)
    if gateway.environment[TOKEN_VARIABLE] == gateway.environment.get(KEY_VARIABLE):
        raise _bad(
            compose,
            gateway,
            TOKEN_VARIABLE,
            found=f"the same as {KEY_VARIABLE}",
            expected="another one: the system under test must not steer its own model",
        )


def _check_rclone(compose: Compose, server: ComposeService) -> None:
    value = server.environment.get(_RCLONE)
    if value is None:
        return
    pair = next(csv.reader([value]), [])
    if pair != [",".join(s3_keys(server))]:
        raise _bad(
            compose,
            server,
            _RCLONE,
            found="another pair" if len(pair) == 1 and "," in pair[0] else "no pair in quotes",
            expected=f"'\"{S3_KEY_VARIABLES[0]},{S3_KEY_VARIABLES[1]}\"' with their values",
        )


def _users(compose: Compose, server: ComposeService) -> Iterator[ComposeService]:
    """The services that are told where a server is."""
    named = re.compile(rf"(?<![\w.-]){re.escape(server.name)}:\d")
    for service in compose.services.values():
        told = [*service.environment.values(), *service.recipe.command]
        if service.name != server.name and any(map(named.search, told)):
            yield service


def _check_held(compose: Compose, server: ComposeService, user: ComposeService, key: _Key) -> None:
    """Some variable of a user is the key, or has it in it as a URL has."""
    value = server.environment[key.variable]
    whole = re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])")
    if any(map(whole.search, user.environment.values())):
        return
    likely = [name for name in user.environment if key.held_as.fullmatch(name)]
    if not likely and user.env_file:
        return  # it may stand there
    expected = f"the {key.variable} of {server.name}, which {user.name} is to use"
    if len(likely) != 1:
        found = f"none that is it ({', '.join(likely)})" if likely else "no variable that is it"
        raise _bad(compose, user, "", found=found, expected=expected)
    given = user.environment[likely[0]]
    found = f"another key ({len(given)} characters)" if given else "nothing"
    raise _bad(compose, user, likely[0], found=found, expected=expected)


def _bad(
    compose: Compose, service: ComposeService, variable: str, *, found: str, expected: str
) -> BadInput:
    where = f"services.{service.name}.environment"
    key = f"{where}.{variable}" if variable else where
    return BadInput(compose.path, key=key, found=found, expected=expected)
