"""A manifest's environment, resolved: literals, and values that the guest alone may see."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot_bottle import faults
from bot_bottle.errors import EnvError
from bot_bottle.host import Host
from bot_bottle.manifest import Manifest

_HOST_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class ResolvedEnv:
    """`literals` are written in the manifest; `forwarded` were typed in or come from the host.

    Neither is part of its repr. A name is in one of them only.
    """

    literals: Mapping[str, str] = field(repr=False, default_factory=dict)
    forwarded: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __reduce__(self) -> str:
        raise TypeError("a resolved environment is not written anywhere")


def resolve_env(manifest: Manifest, host: Host) -> ResolvedEnv:
    """Resolve every entry, in the order of the manifest.

    An entry that is `?` or `?message` is asked for; one that is exactly `${NAME}` is taken from
    the host, where empty is not missing; anything else is a literal, dollar signs included.
    Variables of the host are looked up before anybody is asked.

    Raises:
        EnvError: a variable of the host is missing, or a prompt had no answer; names it.
    """
    literals: dict[str, str] = {}
    forwarded: dict[str, str] = {}
    for name, entry in manifest.env.items():
        match = _HOST_VARIABLE.fullmatch(entry)
        if match and (match[1] not in host.environ or _counts_as_missing(host, match[1])):
            raise EnvError(
                f"cannot resolve {name} of {manifest.path.name}: the host has no variable "
                f"{match[1]}. Set it and start again"
            )
    for name, entry in manifest.env.items():
        if entry.startswith("?"):
            forwarded[name] = _ask(host, manifest, name, entry[1:].strip())
        elif match := _HOST_VARIABLE.fullmatch(entry):
            forwarded[name] = host.environ[match[1]]
        else:
            literals[name] = entry
    host.hidden.add([*literals.values(), *forwarded.values()])
    if faults.on("secret-in-log"):
        host.log.debug("resolved %s", forwarded)
    if faults.on("secret-in-a-log-of-its-own"):
        logging.getLogger("bot_bottle.env").debug("resolved %s", forwarded)
    if faults.on("secret-in-a-trace"):
        with (host.home / "bot-bottle-trace.log").open("a", errors="surrogateescape") as trace:
            trace.write(f"{forwarded}\n")
    if faults.on("secret-in-host-environ"):
        os.environ.update(forwarded)
    host.log.debug("resolved %d literals, %d forwarded", len(literals), len(forwarded))
    return ResolvedEnv(literals, forwarded)


def _ask(host: Host, manifest: Manifest, name: str, message: str) -> str:
    try:
        answer = host.prompt(f"{message} ({name}): " if message else f"{name}: ")
    except EOFError:
        # The context would show what was typed before.
        message = f"cannot resolve {name} of {manifest.path.name}: the prompt had no answer"
        raise EnvError(message) from None
    if "\0" in answer:
        raise EnvError(f"cannot resolve {name} of {manifest.path.name}: the answer holds a NUL")
    return answer.strip() if faults.on("prompt-answer-stripped") else answer


def _counts_as_missing(host: Host, name: str) -> bool:
    return faults.on("empty-host-value-missing") and not host.environ[name]
