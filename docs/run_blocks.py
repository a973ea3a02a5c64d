"""Runs the code blocks of pages: a pytest plugin on top of Sybil. `nox -s docs`, decision 0152.

Each page has a folder of its own, in which its blocks are tried from top to bottom:

- A block whose first line is a comment with a file's name (``# test_shop.py``) becomes that file.
- ``python`` else is run by this environment's Python; ``toml``, ``yaml`` and ``json`` must be well formed, and
  with ``of="suite.toml"`` every key must be one of that file.
- ``console``: what follows ``$`` is run, and prints what stands below: ``...`` is any number of lines, ``…`` any
  text. ``status=1``: the last command ends so. ``sh``: each line is run.
- ``text`` is no code.

What cannot be run says so, with the reason: ``not-run="needs a container engine"``. It is looked up all the same: names
that it imports, subcommands and options of ``harness``, sessions of nox. ``run-by="FILE"`` names the test that runs it.
What a page takes as given lies in ``docs/given/PAGE/``; its ``bin`` is on the PATH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from collections import Counter
from pathlib import Path
from typing import Any, Final
from unittest import SkipTest

import yaml
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from docs.look_up import check_command, check_imports, check_keys

ROOT: Final = Path(__file__).resolve().parent.parent
GIVEN: Final = ROOT / "docs" / "given"

#: Most that one command may take; the slowest, a test run that boots a stack, takes 6 s on a calm machine.
COMMAND_S: Final = 180.0

_FENCE: Final = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\s{]*)(?P<more>[^\n]*)\n"))
_MORE: Final = re.compile(r'([\w-]+)=(?:"([^"]*)"|(\S+))')
_FILE: Final = re.compile(r"(?:#|//|--) ([\w./-]+\.\w+)$")

#: Parse, with ``await`` outside of a function too: a block may be a part of one.
_AS_TREE: Final = PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT

_READERS: Final = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
#: Languages of files that are only written.
_WRITTEN: Final = frozenset({*_READERS, "ini", "javascript", "python", "sql"})

counts: Counter[str] = Counter()


class Page:
    """The folder in which the blocks of one page are tried."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(ROOT).with_suffix("").as_posix()
        self.folder = Path(tempfile.mkdtemp(prefix=f"page-{path.stem}-"))
        # PostgreSQL of root runs as an ordinary user, who has to get in.
        self.folder.chmod(0o755)
        given = GIVEN / self.name.removeprefix("docs/")
        if given.is_dir():
            shutil.copytree(given, self.folder, dirs_exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        folders = [str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        # Runs of a page are its own: what it sweeps and lists is nobody else's.
        state = {"HARNESS_STATE_DIR": str(self.folder / "state")}
        plain = {"NO_COLOR": "1", "COLUMNS": "120"}
        self.environment = kept | state | plain | {"PATH": ":".join(folders)}

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder)

    def run(self, command: str) -> tuple[int, str]:
        """Run a command line in the folder; its status, and what it printed."""
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            return -1, f"{printed}\n(ended after {COMMAND_S:g} s)"
        return process.returncode, printed


def blocks(document: Document) -> list[Region]:
    """The code blocks of a page; directives of Sphinx are none."""
    found = []
    for region in _FENCE(document):
        if region.lexemes["language"] or not region.lexemes["more"].strip().startswith("{"):
            region.evaluator = evaluate
            region.parsed = region.lexemes["source"]
            found.append(region)
    return found


def evaluate(example: Example) -> str | None:
    """Try a block; what is wrong with it, ``None`` when nothing is."""
    lexemes = example.region.lexemes
    language, source = lexemes["language"], str(example.parsed)
    more = {name: quoted or plain for name, quoted, plain in _MORE.findall(lexemes["more"])}
    unknown = set(more) - {"not-run", "of", "run-by", "status"}
    if unknown:
        return f"unknown words behind {language}: {', '.join(sorted(unknown))}"
    if language == "text":
        counts["no code"] += 1
        return None
    if "page" not in example.namespace:
        example.namespace["page"] = Page(Path(example.path))
    page: Page = example.namespace["page"]
    if "run-by" in more:
        return _run_elsewhere(more["run-by"], page)
    if "not-run" in more:
        return _not_run(language, source, page, reason=more["not-run"])
    counts["run"] += 1
    if language in {"console", "sh"}:
        return _commands(language, source, page, status=int(more.get("status", 0)))
    return _file_or_script(language, source, page, of=more.get("of", ""))


def _run_elsewhere(test: str, page: Page) -> str | None:
    """A test runs it: one that is there, and names the page."""
    counts[f"run by {test}"] += 1
    path = ROOT / test
    if not path.is_file() or Path(page.name).name not in path.read_text(encoding="utf-8"):
        return f"expected {test} to run a block of {page.name}, found no word of it there"
    return None


def _not_run(language: str, source: str, page: Page, *, reason: str) -> str | None:
    if len(reason.split()) < 2:
        return f"expected a reason why it is not run, found {reason!r}"
    if language == "python":
        if wrong := check_imports(compile(source, "block", "exec", flags=_AS_TREE)):
            return wrong
    elif language in _READERS:
        _READERS[language](source)
    elif language in {"console", "sh"}:
        wrong = [
            check_command(command, folder=page.folder) for command, _ in _split(language, source)
        ]
        if any(wrong):
            return "\n".join(filter(None, wrong))
    counts[f"not run: {reason}"] += 1
    raise SkipTest(reason)


def _file_or_script(language: str, source: str, page: Page, *, of: str) -> str | None:
    if language not in _WRITTEN:
        return f"expected a language out of {', '.join(sorted(_WRITTEN))}, console, sh, text; found {language!r}"
    if language in _READERS:
        value = _READERS[language](source)
        if of and (wrong := check_keys(of, value)):
            return wrong
    if named := _FILE.match(source.partition("\n")[0]):
        path = page.folder / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    elif language == "python":
        (page.folder / "block.py").write_text(source, encoding="utf-8")
        status, printed = page.run("python block.py")
        return None if status == 0 else printed
    elif language not in _READERS:
        return f"expected the name of a file in the first line of a block of {language}"
    return None


def _commands(language: str, source: str, page: Page, *, status: int) -> str | None:
    commands = _split(language, source)
    for number, (command, wanted) in enumerate(commands, start=1):
        expected = status if number == len(commands) else 0
        found, printed = page.run(command)
        if found != expected:
            return f"$ {command}\nexpected status {expected}, found {found}:\n{printed}"
        if wanted and not _matches(wanted, printed):
            return f"$ {command}\nexpected:\n{wanted}\nfound:\n{printed}"
    return None


def _split(language: str, source: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that is shown for it."""
    source = source.replace("\\\n", "")
    if language == "sh":
        return [(line, "") for line in source.splitlines() if line.strip()]
    parts = re.split(r"(?m)^\$ ", source)[1:]
    return [
        (command, shown.strip("\n")) for command, _, shown in (p.partition("\n") for p in parts)
    ]


def _matches(wanted: str, found: str) -> bool:
    """Whether a text is what is shown, in which ``...`` and ``…`` stand for any."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace("…", ".*?") + r"\n"
        for line in wanted.splitlines()
    )
    lines = [line.rstrip() for line in found.strip("\n").splitlines()]
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None


def _close(namespace: dict[str, Any]) -> None:
    if "page" in namespace:
        namespace["page"].close()


_SYBIL: Final = Sybil([blocks], patterns=["*.md"], teardown=_close)
_SYBIL.path = ROOT  # README.md lies beside docs
pytest_collect_file = _SYBIL.pytest()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what became of the blocks, those that were not run with their reasons."""
    terminalreporter.section("code blocks")
    for kind, count in sorted(counts.items()):
        terminalreporter.write_line(f"{count:4} {kind}")
