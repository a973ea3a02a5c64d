"""The page of subject files says of every key and capability what their declarations say."""

import subprocess
import sys

import pytest

from harness_core.base.errors import BadInput
from harness_core.front.pages import END, begin, check_pages, keys_of, pages_of
from harness_core.system.staging import subject_of
from harness_core.system.suites import load_suite

PAGE = "docs/reference/subject.md"
BEGIN = begin("subject files")

SUITE = """
[suite]
name = "@name@"
summary = "a demo of keys"
group = "test"
subject = "subject.toml"
tables = "keys:DemoTables"
[[session]]
name = "@name@"
summary = "s"
[[capability]]
name = "echo"
demands = "It says a | b."
shown_by = ["test_demo.py::test_echo"]
needs = ["texts.echo"]
"""

KEYS = '''
"""Keys."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from harness_core.base.reading import Table
from harness_core.system.subject import Tables, Variables


class Port(Table, frozen=True):
    """``[port]``.

    Attributes:
        line: a pattern, or
            ``file`` instead.
        first: the least.
        way: how it is told.
    """

    line: str
    first: Annotated[int, Meta(ge=1, description="from 1 on")] = 9000
    way: Literal["line", "file"] = "line"


class Row(Table, frozen=True):
    """A row.

    Attributes:
        path: where it lies.
        words: what it says.
    """

    path: Path
    words: tuple[str, ...] = ("a", "b")


class DemoTables(Tables, frozen=True, kw_only=True):
    """Every table.

    Fields: ``{port}``.

    Attributes:
        port: where it listens.
        row: what lies around.
        named: rows by name.
        knobs: what turns a knob.
        quiet: says nothing.
    """

    port: Port
    row: tuple[Row, ...] = ()
    named: dict[str, Row] = field(default_factory=dict)
    knobs: dict[str, Variables] = field(default_factory=dict)
    quiet: bool | None = None
'''

GENERATED = """
## @name@: a demo of keys
Fields: `{port}`.

| key | type | default | meaning |
|---|---|---|---|
| `[port]` | table | required | where it listens. |
| `[port] line` | text | required | a pattern, or `file` instead. |
| `[port] first` | from 1 on | `9000` | the least. |
| `[port] way` | `file` or `line` | `"line"` | how it is told. |
| `[[row]]` | list of tables |  | what lies around. |
| `[[row]] path` | path | required | where it lies. |
| `[[row]] words` | list of texts | `["a", "b"]` | what it says. |
| `[named.NAME]` | table of tables |  | rows by name. |
| `[named.NAME] path` | path | required | where it lies. |
| `[named.NAME] words` | list of texts | `["a", "b"]` | what it says. |
| `[knobs]` | table of tables of texts |  | what turns a knob. |
| `quiet` | true or false |  | says nothing. |

### Capabilities of @name@
| capability | what it demands | needs |
|---|---|---|
| `echo` | It says a \\| b. | `texts.echo` |
"""


@pytest.fixture
def tree(tmp_path, request):
    """A tree with one suite, whose name no other test has, and a page."""
    name = f"page{abs(hash(request.node.name)) % 10**8}"
    folder = tmp_path / "suites" / name
    files = {
        "pyproject.toml": "[dependency-groups]\ntest = []\n",
        PAGE: f"# Mine\n{BEGIN}\nstale words\n{END}\n\nMore.\n",
        f"suites/{name}/suite.toml": SUITE.replace("@name@", name),
        f"suites/{name}/README.md": "# demo\n",
        f"suites/{name}/keys.py": KEYS,
        f"suites/{name}/subject.toml": '[subject]\nname = "x"\nargv = ["x"]\n[port]\nline = "x"\n',
        f"suites/{name}/test_demo.py": 'import pytest\n\n@pytest.mark.capability("echo")\n'
        "def test_echo():\n    assert f()\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path, folder


def test_keys_and_capabilities_are_those_declared(tree):
    """Type, default and meaning of every key, of tables in lists and under names too."""
    root, folder = tree
    page = pages_of(root)[root / PAGE]

    assert page.startswith(f"# Mine\n{BEGIN}\n")
    assert page.endswith(f"{END}\n\nMore.\n")
    assert "| `[subject] argv` | list of texts |" in page
    assert "| `[env]` | table of texts |" in page
    assert "stale words" not in page
    _, heading, rest = page.partition("\n## @name@".replace("@name@", folder.name))
    expected = GENERATED.replace("@name@", folder.name).splitlines()
    assert expected == f"{heading}{rest}".partition(END)[0].rstrip().splitlines()


def test_the_command_writes_it_and_the_lint_holds_it(tree):
    """A page that is not what is declared is a finding at its first wrong line."""
    root, _ = tree

    found = [(each.rule, each.path, each.line) for each in check_pages(root)]
    assert [("stale-page", PAGE, 3)] == found

    command = (sys.executable, "-m", "harness_core.front.cli", "docs", f"--root={root}")
    subprocess.run(command, check=True, capture_output=True)

    assert {root / PAGE: (root / PAGE).read_text()} == pages_of(root)
    assert () == check_pages(root)


def test_a_key_without_a_meaning_is_a_finding(tree):
    """It names the key, the type and its file."""
    root, folder = tree
    (folder / "keys.py").write_text(KEYS.replace("        first: the least.\n", ""))
    findings = [each for each in check_pages(root) if each.rule == "undocumented-key"]

    (only,) = findings
    assert f"suites/{folder.name}/keys.py" == only.path
    assert "class Port" in KEYS.splitlines()[only.line - 1]
    assert "of Port what `[port] first` means" in only.advice


def test_a_tree_without_a_page_keeps_none(tree):
    """Nothing is asked of it."""
    root, _ = tree
    (root / PAGE).unlink()

    assert {} == pages_of(root)
    assert () == check_pages(root)


def test_a_block_without_an_end_is_refused(tree):
    """What is written by hand is not written over."""
    root, _ = tree
    (root / PAGE).write_text(f"# Mine\n{BEGIN}\n")

    with pytest.raises(BadInput, match="no end"):
        pages_of(root)


def test_a_block_that_there_is_not_is_refused(tree):
    """It names those that there are, and the nearest."""
    root, _ = tree
    (root / PAGE).write_text(f"# Mine\n{begin('suites.toml')}\n{END}\n")

    with pytest.raises(BadInput, match=r"Did you mean suite\.toml\?"):
        pages_of(root)


def test_tables_of_a_suite_are_read_whole(tree):
    """A table that its type does not have is refused, also without a reader."""
    root, folder = tree
    suite = load_suite(folder)
    assert "x" == subject_of(suite, None, root=root).name
    with (folder / "subject.toml").open("a") as file:
        file.write("[prot]\nline = 'x'\n")

    with pytest.raises(BadInput, match=r"found .*, expected one of subject, env, port"):
        subject_of(suite, None, root=root)


@pytest.mark.parametrize("named", ["keys:Path", "keys:Gone", "gone:DemoTables"])
def test_what_is_no_type_of_tables_is_refused(tree, named):
    """With the key of the suite.toml."""
    root, folder = tree
    suite = folder / "suite.toml"
    suite.write_text(suite.read_text().replace("keys:DemoTables", named))

    with pytest.raises(BadInput, match=r"suite\.tables"):
        subject_of(load_suite(folder), None, root=root)


def test_keys_of_this_tree_have_distinct_names():
    """No key is written like another one."""
    from harness_core.system.subject import SubjectTable

    names = [key.name for key in keys_of(SubjectTable, at="subject")]

    assert len(set(names)) == len(names) > 6
