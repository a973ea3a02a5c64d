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

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct, field, structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import Misfit, Table, Text, convert, did_you_mean, load_toml, nearest

__all__ = ["Subject", "SubjectTable", "Tables", "Variables", "load_subject", "subject_bin"]

_FIELD: Final = re.compile(r"\{(\w+)\}")

#: Names and values of environment variables, with ``{fields}`` in both.
Variables = dict[str, str]

#: What every program may need of the machine's own environment. Nothing else reaches the subject
#: but what its file says: a developer's keys and settings must not change what is tested.
_INHERITED: Final = (
    "PATH",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "HARNESS_AGENT",  # the request of `harness mutate` (docs/how-to/mutation.md)
    "SSL_CERT_*",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)


class Tables(Table, frozen=True):
    """The base of what a suite reads of a subject file: every table but these two is its own."""

    subject: Any = None
    env: Any = None

    @classmethod
    def of_the_contract(cls) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
        """What a file may have to name of the contract, for its page: a title, heads and rows each."""
        yield from ()


T = TypeVar("T", bound=Tables)


class SubjectTable(Table, frozen=True):
    """``[subject]``.

    Attributes:
        name: what reports call it.
        summary: what it is, for people.
        project: the folder of its distribution, which nox installs into an environment of its own;
            left out when the product is installed already.
        sources: folders of its code besides, for `harness mutate`.
        argv: command line with ``{fields}``; none for a system that has a ``[stack]``.
        cwd: the folder that the command runs in, relative to the file, with ``{fields}``; where the
            suite starts it when left out.
        inherit: patterns of environment variables that are passed on besides the usual few.
        capabilities: what it can do; tests of what it cannot are skipped by name.
    """

    name: Text
    summary: Text | None = None
    project: Path | None = None
    sources: tuple[Path, ...] = ()
    argv: tuple[str, ...] = ()
    cwd: Text | None = None
    inherit: tuple[str, ...] = ()
    capabilities: frozenset[str] = frozenset()


class _File(Struct, frozen=True):
    """A subject file, without the tables of a suite."""

    subject: SubjectTable
    env: Variables = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.env:
            if not key or "=" in key:
                raise Misfit("env", found=key, expected="the name of a variable")


class Subject(SubjectTable, frozen=True, kw_only=True):
    """A system under test: what the table ``[subject]`` says, besides the following.

    Attributes:
        path: the file.
        env: environment with ``{fields}`` in names and values.
        tables: every other table, for the suite's adapter.
    """

    path: Path
    env: Mapping[str, str]
    tables: Mapping[str, Any]

    def command(self, **fields: str | int) -> tuple[str, ...]:
        """The command line with its fields filled in.

        Raises:
            BadInput: a field that the adapter does not offer.
        """
        return self.words(self.argv, key="argv", **fields)

    def words(self, argv: Sequence[str], *, key: str, **fields: str | int) -> tuple[str, ...]:
        """Any command line of the file, as :meth:`command`.

        Args:
            argv: as it is written.
            key: where it stands.
            fields: what may stand in it besides ``{bin}``.

        Raises:
            BadInput: a field that the adapter does not offer.
        """
        offered = {"bin": subject_bin(), **fields}
        return tuple(
            self._fill(word, offered, key=f"{key}[{number}]") for number, word in enumerate(argv)
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

    def folder(self, **fields: str | int) -> Path | None:
        """The folder that the command runs in, with its fields filled in; ``None`` for any.

        Raises:
            BadInput: a field that the adapter does not offer, or no such folder.
        """
        if self.cwd is None:
            return None
        folder = self.resolve(self._fill(self.cwd, fields, key="subject.cwd"))
        if not folder.is_dir():
            expected = "a folder that is there, relative to the file"
            raise BadInput(self.path, key="subject.cwd", found=self.cwd, expected=expected)
        return folder

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the suite's own; empty when the file has none.

        Raises:
            BadInput: there is such a key, and it is no table.
        """
        found = self.tables.get(name, {})
        if not isinstance(found, Mapping):
            raise BadInput(self.path, key=name, found=found, expected="a table")
        return found

    def read_tables(self, kind: type[T]) -> T:
        """The tables of the suite's own, of which the file may have no others.

        Raises:
            BadInput: a table or key that is unknown, missing, or of another kind: misspelt, it
                would do nothing.
        """
        return convert(self.tables, kind, where=self.path)

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
    content = load_toml(path, expected="a subject file (TOML)")
    file = convert(content, _File, where=path)
    own = {key: table for key, table in content.items() if key not in {"subject", "env"}}
    # A system of several processes says in a compose file how each of them is started.
    if not file.subject.argv and "stack" not in own:
        near = nearest("stack", own)
        raise BadInput(
            path,
            key=near or "subject.argv",
            found=own.get(near),
            expected="a command line, or a table [stack] that names a compose file",
            next_step=did_you_mean(near, ["stack"]),
        )
    if file.subject.cwd is not None and not file.subject.argv:
        expected = "none without argv: a compose file says where each service runs"
        raise BadInput(path, key="subject.cwd", found=file.subject.cwd, expected=expected)
    keys = structs.asdict(file.subject)
    if file.subject.project is not None:
        keys["project"] = file.subject.project.resolve()
    keys["sources"] = tuple(source.resolve() for source in file.subject.sources)
    return Subject(**keys, path=path.resolve(), env=file.env, tables=own)
