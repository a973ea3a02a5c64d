"""A record is current as long as nothing that a design is made of has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench_contract.findings import Stage
from workbench_making.imports import sources_of
from workbench_making.validity import Record, bind, current

CONFIG = "c" * 64


class Files:
    """A session that is a mapping."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def paths(self) -> frozenset[str]:
        return frozenset(self._files)

    def links(self) -> frozenset[str]:
        return frozenset()

    def read(self, path: str) -> bytes:
        return self._files[path].encode()


#: Written by tools and not by the design's author.
_PASSED_OVER = frozenset({"__pycache__", ".git"})


class Folder:
    """A session that lies in a folder.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def paths(self) -> frozenset[str]:
        """All files and links below the folder; links are not followed."""
        return frozenset(self._walk(self._root))

    def links(self) -> frozenset[str]:
        """The links among them."""
        return frozenset(path for path in self.paths() if (self._root / path).is_symlink())

    def read(self, path: str) -> bytes:
        """The bytes of a file; of a link, where it leads."""
        found = self._root / path
        if found.is_symlink():
            return b"-> " + str(found.readlink()).encode("utf-8", "surrogateescape")
        return found.read_bytes()

    def _walk(self, folder: Path) -> Iterator[str]:
        for path in folder.iterdir():
            if path.name in _PASSED_OVER:
                continue
            if path.is_symlink() or path.is_file():
                yield path.relative_to(self._root).as_posix()
            elif path.is_dir():
                yield from self._walk(path)


#: A design of several files; `notes.py` and `plan.md` are no part of it.
DESIGN = {
    "model.py": "from build123d import *\nimport helper\nfrom parts import arm\n"
    "part = import_step('data/motor.step')\n",
    "helper.py": "import math\nfrom parts.sizes import WIDTH\n",
    "parts/__init__.py": "",
    "parts/arm.py": "from . import sizes\nfrom .deep.joint import pin\n",
    "parts/sizes.py": "WIDTH = 3\n",
    "parts/deep/joint.py": "pin = 1\n",
    "parts/unused.py": "",
    "data/motor.step": "ISO-10303-21;",
    "data/other.step": "ISO-10303-21;",
    "notes.py": "",
    "plan.md": "",
}
MADE_OF = {
    "model.py", "helper.py", "parts/__init__.py", "parts/arm.py", "parts/sizes.py",
    "parts/deep/joint.py", "data/motor.step",
}


def bound(files: dict[str, str], script: str = "model.py", config: str = CONFIG) -> Record:
    """The record of a design that is there."""
    found, findings = bind(script, Files(files), configuration_sha256=config)
    assert [] == findings
    assert found is not None
    return found


def stale(record: Record | None, files: dict[str, str], config: str = CONFIG) -> list[tuple[str, str]]:
    """What makes a record stale: file and first word."""
    found = current(record, "model.py", Files(files), configuration_sha256=config)
    assert {Stage.PRICE} >= {row.stage for row in found}
    return [(row.file, row.found.split(" ")[0]) for row in found]


def test_a_design_is_made_of_what_it_imports_and_names() -> None:
    """Directly or through others, relatively or not, packages included; nothing else."""
    record = bound(DESIGN)

    assert MADE_OF == {path for path, _ in record.files}
    assert record.whole is None


def test_unchanged_it_is_current() -> None:
    """Read once more, it is the same record."""
    assert bound(DESIGN).sha256 == bound(dict(reversed(DESIGN.items()))).sha256
    assert [] == stale(bound(DESIGN), DESIGN)


@pytest.mark.parametrize("path", sorted(MADE_OF))
def test_any_of_its_files_that_changes_ends_it(path: str) -> None:
    """One byte is enough."""
    assert [(path, "changed")] == stale(bound(DESIGN), DESIGN | {path: DESIGN[path] + "\n"})


@pytest.mark.parametrize("path", sorted(DESIGN.keys() - MADE_OF))
def test_a_file_that_it_is_not_made_of_may_change(path: str) -> None:
    """Ticking a box ends no verdict."""
    assert [] == stale(bound(DESIGN), DESIGN | {path: "changed = True\n"})


@pytest.mark.parametrize("path", sorted(MADE_OF - {"model.py"}))
def test_a_file_that_is_gone_ends_it(path: str) -> None:
    """What it had imported through that file is gone as well."""
    left = {name: text for name, text in DESIGN.items() if name != path}

    assert (path, "gone") in stale(bound(DESIGN), left)


def test_another_configuration_ends_it() -> None:
    """Prices may be others."""
    assert [("manufacturing_config.yaml", "changed")] == stale(bound(DESIGN), DESIGN, "d" * 64)


def test_a_file_that_comes_to_shadow_an_import_ends_it() -> None:
    """``import math`` was the standard library's."""
    assert [("math.py", "new")] == stale(bound(DESIGN), DESIGN | {"math.py": "pi = 3\n"})


def test_a_package_that_comes_beside_a_module_ends_it() -> None:
    """A folder goes before a file of the same name."""
    assert [("helper/__init__.py", "new")] == stale(
        bound(DESIGN), DESIGN | {"helper/__init__.py": ""}
    )


def test_data_that_was_missing_and_comes_ends_it() -> None:
    """A script may ask first whether it is there."""
    without = {path: text for path, text in DESIGN.items() if path != "data/motor.step"}

    assert [("data/motor.step", "new")] == stale(bound(without), DESIGN)


def test_back_to_what_it_was_it_is_current_again() -> None:
    """A record is about bytes and not about times."""
    record = bound(DESIGN)
    assert stale(record, DESIGN | {"helper.py": ""})

    assert [] == stale(record, DESIGN)


def test_without_a_record_nothing_is_current() -> None:
    """Nor with that of another script."""
    assert [("model.py", "no")] == stale(None, DESIGN)
    assert [("model.py", "no")] == stale(bound(DESIGN, script="helper.py"), DESIGN)


def test_a_script_that_is_not_there_has_no_record() -> None:
    """One finding of the first stage."""
    found, (row,) = bind("gone.py", Files(DESIGN), configuration_sha256=CONFIG)

    assert found is None
    assert (Stage.PRESENT, "gone.py") == (row.stage, row.file)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import numpy", "imports numpy"),
        ("import os", "imports os"),
        ("from pathlib import Path", "imports pathlib"),
        ("import importlib; importlib.import_module('helper')", "imports importlib"),
        ("__import__('hel' + 'per')", "names __import__"),
        ("exec(open('plan.md').read())", "names"),
        ("from build123d import os", "names os"),
        ("import build123d; build123d.sys.path.insert(0, 'x')", "names"),
        ("().__class__.__mro__[1].__subclasses__()", "names __"),
        ("from build123d import import_step\nname = 'a'\nimport_step(name + '.step')",
         "calls import_step with a name that is made at run time"),
        ("from build123d import import_step as f\nf('a' + '.step')", "renames import_step"),
        ("from build123d import *\ntake = import_step\ntake('a' + '.step')", "passes import_step on"),
        ("from build123d import *\nText('x', 3, font_path='a' + '.ttf')",
         "calls Text with a name that is made at run time"),
        ("import typing; typing.get_type_hints(f)", "names get_type_hints"),
        ("from .. import outside", "imports from above the session"),
        ("def (", "is no Python that can be read"),
        ("(" * 5000, "is no Python that can be read"),
        ("\0", "is no Python that can be read"),
    ],
)
def test_of_a_script_that_is_not_plain_the_whole_session_counts(line: str, why: str) -> None:
    """What it might read cannot be told; the reason can."""
    files = DESIGN | {"model.py": f"import helper\n{line}\n"}
    found = sources_of("model.py", Files(files))

    assert frozenset(files) == found.paths
    assert found.whole is not None
    assert why in found.whole
    assert [("plan.md", "changed")] == stale(bound(files), files | {"plan.md": "x"})


def test_a_helper_that_is_not_plain_counts_too() -> None:
    """The reason names it."""
    files = DESIGN | {"parts/sizes.py": "import json\n"}

    assert "parts/sizes.py imports json" == bound(files).whole


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import parts.deep.joint", {"parts/__init__.py", "parts/deep/joint.py"}),
        ("import parts.deep", {"parts/__init__.py"}),
        ("from parts import *", {"parts/__init__.py", "parts/arm.py", "parts/sizes.py",
                                 "parts/unused.py", "parts/deep/joint.py"}),
        ("from parts.sizes import WIDTH", {"parts/__init__.py", "parts/sizes.py"}),
        ("def f():\n    import notes", {"notes.py"}),
        ("try:\n    import notes\nexcept ImportError:\n    notes = None", {"notes.py"}),
        ("x = 'data/other.step'", {"data/other.step"}),
        ("x = './data/../data/other.step'", {"data/other.step"}),
        ("x = '../../etc/passwd'", set()),
    ],
)
def test_each_way_to_import_is_read(line: str, found: set[str]) -> None:
    """Whatever stands between."""
    files = DESIGN | {"model.py": line + "\n"}
    more = {"parts/deep/joint.py", "parts/sizes.py"} if "parts/arm.py" in found else set()

    assert {"model.py", *found, *more} == sources_of("model.py", Files(files)).paths


def test_circles_of_imports_end() -> None:
    """Two modules that import each other."""
    files = {"model.py": "import a\n", "a.py": "import b\n", "b.py": "import a\nimport model\n"}

    assert frozenset(files) == sources_of("model.py", Files(files)).paths


def test_a_script_in_a_folder_finds_what_lies_beside_it() -> None:
    """As Python does, which puts a script's folder first."""
    files = {"cad/model.py": "import helper\n", "cad/helper.py": "", "other/helper.py": ""}

    assert {"cad/model.py", "cad/helper.py"} == sources_of("cad/model.py", Files(files)).paths


def test_a_folder_is_a_session(tmp_path: Path) -> None:
    """Of real files; caches are no part of it."""
    for path, text in DESIGN.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "helper.cpython-311.pyc").write_bytes(b"x")
    found, _ = bind("model.py", Folder(tmp_path), configuration_sha256=CONFIG)

    assert bound(DESIGN) == found


def test_with_links_the_whole_session_counts(tmp_path: Path) -> None:
    """Where one leads is what is read of it, and a link that leads elsewhere is a change."""
    (tmp_path / "model.py").write_text("import helper\n")
    (tmp_path / "helper.py").symlink_to("/etc/hostname")
    (tmp_path / "notes.txt").write_text("x")
    session = Folder(tmp_path)
    record, _ = bind("model.py", session, configuration_sha256=CONFIG)
    assert record is not None
    assert "the session has symbolic links" == record.whole
    assert {"model.py", "helper.py", "notes.txt"} == {path for path, _ in record.files}
    (tmp_path / "helper.py").unlink()
    (tmp_path / "helper.py").symlink_to("/etc/passwd")

    found = current(record, "model.py", session, configuration_sha256=CONFIG)
    assert ["helper.py"] == [row.file for row in found]


def test_names_that_are_no_text_are_told_nevertheless(tmp_path: Path) -> None:
    """A file whose name is no UTF-8 is a file; a finding about it can be sent."""
    (tmp_path / "model.py").write_text("import os\n")
    session = Folder(tmp_path)
    record, _ = bind("model.py", session, configuration_sha256=CONFIG)
    assert record is not None
    (tmp_path / os.fsdecode(b"a\xff.txt")).write_text("x")
    (row,) = current(record, "model.py", session, configuration_sha256=CONFIG)

    assert "a\\udcff.txt" == row.file
    assert row.model_dump_json()
