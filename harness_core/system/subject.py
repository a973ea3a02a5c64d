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

from harness_core.base.errors import BadInput
from harness_core.system.suites import Shape, check_shape, closest

__all__ = ["Subject", "load_subject", "subject_bin"]

_FIELD: Final = re.compile(r"\{(\w+)\}")
#: Of the table ``[subject]``.
_SHAPE: Final[Shape] = {
    "name!": str,
    "project": str,
    "argv": [str],
    "capabilities": [str],
    "inherit": [str],
    "summary": str,
}

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

    def check_tables(self, shape: Shape) -> None:
        """Check that the file has no tables, and these no keys, but those that a suite reads.

        Raises:
            BadInput: a table or key that is unknown, missing, or of another kind: misspelt, it
                would do nothing.
        """
        known = {"subject": {}, "env": {}, **shape}
        check_shape(self.tables, known, where=self.path)

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
        near = "" if subject is not None else closest("subject", content)
        raise BadInput(
            path,
            key=near or "subject",
            found=content.get(near, subject),
            expected="a [subject] table",
            next_step="Did you mean subject?" if near else "",
        )
    check_shape({"subject": subject}, {"subject": _SHAPE}, where=path)
    if "argv" not in subject and "stack" not in content:
        near = closest("stack", content)
        raise BadInput(
            path,
            key=near or "subject.argv",
            found=content.get(near),
            expected="a command line, or a table [stack] that names a compose file",
            next_step="Did you mean stack?" if near else "",
        )
    for key in ("name", "project", "summary", "argv"):
        # A system of several processes says in a compose file how each of them is started.
        if key in subject and not subject[key] and not (key == "argv" and "stack" in content):
            raise BadInput(
                path, key=f"subject.{key}", found=subject[key], expected="at least one word"
            )
    return Subject(
        path=path.resolve(),
        name=subject["name"],
        project=(path.parent / subject["project"]).resolve() if "project" in subject else None,
        argv=tuple(subject.get("argv", ())),
        env=_environment(path, content.pop("env", {})),
        inherit=tuple(subject.get("inherit", ())),
        capabilities=frozenset(subject.get("capabilities", ())),
        tables=content,
    )


def _environment(path: Path, env: object) -> dict[str, str]:
    check_shape({"env": env}, {"env": {"*": str}}, where=path)
    assert isinstance(env, dict)
    for key in env:
        if not key or "=" in key:
            raise BadInput(path, key="env", found=key, expected="the name of a variable")
    return env
