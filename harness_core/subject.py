"""How to start what is tested: a TOML file, so that a real product can take the reference's place.

``--subject FILE`` swaps it. The tables ``[subject]`` and ``[env]`` are the same for every suite;
any other table belongs to the suite's adapter, which reads it through :meth:`Subject.table`.

    [subject]
    name = "butlers (reference)"
    project = "butlers"                 # a distribution that nox installs in its own environment
    argv = ["{bin}/butlers", "run", "--config", "{config_dir}"]
    capabilities = ["ingest.v1", "route.v1"]

    inherit = ["BUTLERS_*"]             # more of the machine's environment to pass on

    [env]
    "BUTLERS_{NAME}_PORT" = "{port}"    # {…} are filled in by the suite's adapter
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from harness_core.errors import BadInput

__all__ = ["Subject", "load_subject", "subject_bin"]

_FIELD: Final = re.compile(r"\{(\w+)\}")
_KEYS: Final = frozenset({"name", "project", "argv", "capabilities", "inherit", "summary"})

#: What every program may need of the machine's own environment. Nothing else reaches the subject
#: but what its file says: a developer's keys and settings must not change what is tested.
_INHERITED: Final = (
    "PATH",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "SSL_CERT_*",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A system under test, as its TOML file describes it.

    Attributes:
        path: the file.
        name: what reports call it.
        project: the folder of its distribution, for one that is to be installed; ``None`` otherwise.
        argv: command line with ``{fields}``; none for a system that has a ``[stack]``.
        env: environment with ``{fields}`` in names and values.
        inherit: patterns of environment variables that are passed on besides the usual few.
        capabilities: what it can do; tests of what it cannot are skipped by name.
        tables: every other table, for the suite's adapter.
    """

    path: Path
    name: str
    project: Path | None
    argv: tuple[str, ...]
    env: Mapping[str, str]
    inherit: tuple[str, ...]
    capabilities: frozenset[str]
    tables: Mapping[str, Any]

    def command(self, **fields: str | int) -> tuple[str, ...]:
        """The command line with its fields filled in.

        Raises:
            BadInput: a field that the adapter does not offer.
        """
        offered = {"bin": subject_bin(), **fields}
        return tuple(
            self._fill(word, offered, key=f"argv[{number}]")
            for number, word in enumerate(self.argv)
        )

    def environment(self, **fields: str | int) -> dict[str, str]:
        """The whole environment of the subject: what it inherits, and its own with fields filled in.

        Raises:
            BadInput: a field that the adapter does not offer.
        """
        offered = {"bin": subject_bin(), **fields}
        inherited = {
            key: value
            for key, value in os.environ.items()
            if any(fnmatchcase(key, pattern) for pattern in (*_INHERITED, *self.inherit))
        }
        own = {
            self._fill(key, offered, key=f"env.{key}"): self._fill(value, offered, key=f"env.{key}")
            for key, value in self.env.items()
        }
        return inherited | own

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the suite's own; empty when the file has none.

        Raises:
            BadInput: there is such a key, and it is no table.
        """
        found = self.tables.get(name, {})
        if not isinstance(found, Mapping):
            raise BadInput(self.path, key=name, found=found, expected="a table")
        return found

    def resolve(self, path: str) -> Path:
        """A path written in the file: relative to the file itself."""
        return (self.path.parent / path).resolve()

    def _fill(self, text: str, fields: Mapping[str, str | int], *, key: str) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[1] not in fields:
                raise BadInput(
                    self.path,
                    key=key,
                    found="{" + match[1] + "}",
                    expected="one of " + ", ".join("{" + name + "}" for name in sorted(fields)),
                )
            return str(fields[match[1]])

        return _FIELD.sub(replace, text)


def subject_bin() -> str:
    """Where the subject's commands are: its own environment (nox sets it), or ours."""
    return os.environ.get("HARNESS_SUBJECT_BIN") or str(Path(sys.executable).parent)


def load_subject(path: Path) -> Subject:
    """Read and check a subject file.

    Raises:
        BadInput: with file and key (or line) of the first mistake.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput(path, found="no such file", expected="a subject file (TOML)") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, found=str(error), expected="a readable TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(path, found=str(error), expected="valid TOML") from error
    subject = content.pop("subject", None)
    if not isinstance(subject, dict):
        raise BadInput(path, key="subject", found=subject, expected="a [subject] table")
    for key in sorted(subject.keys() - _KEYS):
        raise BadInput(
            path, key=f"subject.{key}", found=key, expected=f"one of {', '.join(sorted(_KEYS))}"
        )
    env = _environment(path, content.pop("env", {}))
    if "summary" in subject:
        _text(path, subject, "summary")
    project = _text(path, subject, "project") if "project" in subject else None
    return Subject(
        path=path.resolve(),
        name=_text(path, subject, "name"),
        project=(path.parent / project).resolve() if project else None,
        # A system of several processes says in a compose file how each of them is started.
        argv=_texts(path, subject, "argv", at_least_one="stack" not in content),
        env=env,
        inherit=_texts(path, subject, "inherit"),
        capabilities=frozenset(_texts(path, subject, "capabilities")),
        tables=content,
    )


def _environment(path: Path, env: object) -> dict[str, str]:
    if not isinstance(env, dict):
        raise BadInput(path, key="env", found=env, expected="a table of texts")
    for key, value in env.items():
        if not isinstance(value, str):
            raise BadInput(path, key=f"env.{key}", found=value, expected="a text")
        if not key or "=" in key:
            raise BadInput(path, key="env", found=key, expected="the name of a variable")
    return env


def _text(path: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise BadInput(path, key=f"subject.{key}", found=value, expected="a text")
    return value


def _texts(
    path: Path, table: Mapping[str, Any], key: str, *, at_least_one: bool = False
) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(path, key=f"subject.{key}", found=value, expected="a list of texts")
    if at_least_one and not value:
        raise BadInput(path, key=f"subject.{key}", found=value, expected="at least one word")
    return tuple(value)
