"""What the pages say of the command line, the plugin and the files is all that there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from harness_core.front.cli import cli
from harness_core.front.cli._commands import commands_text
from harness_core.front.pages._files import FILES
from harness_core.front.pages._plugin import fixtures_text, marks_text, options_text

ROOT = Path(__file__).parents[3]


def commands(group, *names):
    """The words of every command of a tree."""
    for name, command in group.commands.items():
        yield (*names, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


def test_every_command_and_option_is_on_the_page():
    """With its usage, and no option of another command."""
    _, *sections = re.split(r"(?m)^## ", commands_text(cli))
    said = {section.splitlines()[0]: section for section in sections}

    assert {" ".join(("harness", *words)) for words, _ in commands(cli)} == set(said)
    for words, command in commands(cli):
        section = said[" ".join(("harness", *words))]
        declared = {name for each in command.params for name in each.opts if name.startswith("-")}
        listed = set(re.findall(r"(?m)^\| `(?:[^`]*, )?(-[\w-]+)", section))
        if words != ("gateway",):
            assert listed <= declared, words
        assert all(name in section for name in declared), words


def test_the_gateway_has_the_options_of_its_process():
    """Its command takes any words and hands them on."""
    _, _, section = commands_text(cli).partition("\n## harness gateway\n")

    assert "| `--turns FILE` |  | what the model does" in section.partition("\n## ")[0]


def test_what_pytest_prints_of_the_plugin_is_on_the_page(tmp_path):
    """`pytest --fixtures`, `--markers` and `--help` are asked what there is."""
    done = [
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                flag,
                f"--rootdir={tmp_path}",
                "-c/dev/null",
                tmp_path,
            ],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for flag in ("--fixtures", "--markers", "--help")
    ]
    fixtures = set(re.findall(r"(?m)^(\w+)(?: \[.*\])? -- .*harness_core", done[0]))
    marks = set(re.findall(r"(?m)^@pytest\.mark\.(\w+)", done[1]))
    ours = done[2].partition("staging harness:")[2].partition("\n\n")[0]
    options = set(re.findall(r"(?m)^  (--[\w-]+)", ours))

    assert {"token", "harness_run"} <= fixtures
    assert fixtures == set(re.findall(r"(?m)^\| `(\w+)` ", fixtures_text()))
    assert set(re.findall(r"(?m)^\| `(\w+)", marks_text())) <= marks
    assert "--services" in options
    assert options == set(re.findall(r"(?m)^\| `(--[\w-]+)", options_text()))


@pytest.mark.parametrize("name", FILES)
def test_every_key_of_a_file_is_said_once(name):
    """By its name, with a type and a meaning."""
    keys = FILES[name]()

    assert keys
    assert len({key.name for key in keys}) == len(keys)
    assert [] == [key.name for key in keys if not key.kind or not key.meaning]


def test_every_variable_that_is_read_is_on_its_page():
    """``docs/reference/environment.md`` names those of the code, and no other."""
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    code = [
        path.read_text()
        for path in (ROOT / "harness_core").rglob("*.py")
        if "tests" not in path.relative_to(ROOT).parts
    ]
    read = {name for text in code for name in re.findall(r"\"(HARNESS_[A-Z0-9_]+)\"", text)}

    # A name of pytest_plugin, no variable.
    assert read - {"HARNESS_ERROR_EXIT"} == set(re.findall(r"`(HARNESS_[A-Z0-9_]+)`", page))
