"""A product of two files in an environment of its own, and a suite of five tests that start it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness_core.assurance.mutation import Setting
from harness_core.system.suites import Suite, load_suite

#: Counts words, for whoever writes lines to it; a line ``quit`` ends it.
MAIN = '''
"""The product."""
import sys

from tally import count


def main():
    for line in sys.stdin:
        text = line.strip()
        if text == "quit":
            break
        try:
            print(count(text), flush=True)
        except ValueError:
            print("refused", flush=True)


if __name__ == "__main__":
    main()
'''

TALLY = '''
"""What it counts."""

LIMIT = 3


def count(text):
    words = text.split()
    if len(words) > LIMIT:
        raise ValueError(text)
    return len(words)


def unused(number):
    return number + 1
'''

TESTS = """
import subprocess

import pytest

from suites.words.words import open_words


@pytest.fixture(scope="module")
def product():
    with open_words() as ask:
        yield ask


def test_count(product):
    found = product("one two")
    assert found == "2", f"expected 2 words, found {found}"


def test_empty(product):
    found = product("")
    assert found == "0", f"expected no word, found {found}"


def test_refused(product):
    found = product("a b c d")
    assert found == "refused", f"expected a refusal, found {found}"


def test_quit():
    with open_words() as ask:
        pass
    assert ask.status == 0, f"expected status 0, found {ask.status}"


def test_red():
    assert False, "red in any case"
"""

ADAPTER = """
import os
import subprocess
from contextlib import contextmanager


class Ask:
    status = None

    def __init__(self, process):
        self.process = process

    def __call__(self, line):
        self.process.stdin.write(line + "\\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def open_words():
    # A sandbox that cleans the environment.
    argv = ["env", "-i", os.environ["HARNESS_SUBJECT_BIN"] + "/python", "-m", "words_main"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=os.environ["WORDS"]
    ) as process:
        ask = Ask(process)
        yield ask
        process.stdin.write("quit\\n")
        process.stdin.close()
        ask.status = process.wait(30)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The tree.

    Attributes:
        root: of it.
        suite: the suite.
        python: of the product.
        code: the folder of the product's two files.
    """

    root: Path
    suite: Suite
    python: Path
    code: Path

    @property
    def setting(self) -> Setting:
        """What a campaign is given."""
        return Setting(root=str(self.root), suite="words")

    def edit(self, name: str, old: str, new: str) -> None:
        """Change the product."""
        path = self.code / name
        text = path.read_text()
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new))


@pytest.fixture(scope="session")
def product_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def words(tmp_path: Path, product_python: Path, monkeypatch: pytest.MonkeyPatch) -> Words:
    """The tree, with the product's commands where a subject file expects them."""
    folder = tmp_path / "suites" / "words"
    code = folder / "reference-system"
    code.mkdir(parents=True)
    files = {
        tmp_path / "pyproject.toml": "[tool.pytest]\npythonpath = ['.']\n"
        "addopts = ['--import-mode=importlib']\n[dependency-groups]\ntest = []\n",
        folder / "suite.toml": '[suite]\nname = "words"\nsummary = "s"\ngroup = "test"\n'
        'subject = "reference-system/subject.toml"\n'
        '[[session]]\nname = "words"\nsummary = "s"\ndefault = true\n',
        folder / "test_words.py": TESTS,
        folder / "words.py": ADAPTER,
        code / "subject.toml": '[subject]\nname = "words"\nproject = "."\n'
        'argv = ["{bin}/python", "-m", "words_main"]\n',
        code / "words_main.py": MAIN,
        code / "tally.py": TALLY,
    }
    for path, text in files.items():
        path.write_text(textwrap.dedent(text).lstrip())
    monkeypatch.setenv("HARNESS_SUBJECT_BIN", str(product_python.parent))
    monkeypatch.setenv("WORDS", str(code))
    return Words(root=tmp_path, suite=load_suite(folder), python=product_python, code=code)
