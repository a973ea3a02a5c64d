"""What is damaged: the files of a product's own code, and the Python that runs them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.assurance.agent import Environment, find_environment
from harness_core.assurance.mutation.operators._never import is_fault_module
from harness_core.base.errors import BadInput
from harness_core.system.subject import Subject, load_subject, subject_bin
from harness_core.system.suites import Suite

#: Folders and files of a project that are no part of what runs.
_ASIDE: Final = re.compile(
    r"\..*|tests?|testing|docs?|examples?|build|dist|node_modules|venv|site-packages|__pycache__"
)
_ASIDE_FILES: Final = re.compile(r"(test_.*|.*_test|conftest|setup|noxfile)\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product under test.

    Attributes:
        sources: the folders of its own code.
        files: its files, by what reports call them: relative to the tree, where they lie in it.
        environment: its Python; ``None`` for a library, which runs in that of its tests.
        in_tests: it is imported by the tests, so that pytest is one of its processes.
    """

    sources: tuple[Path, ...]
    files: dict[str, Path]
    environment: Environment | None
    in_tests: bool

    @property
    def fingerprint(self) -> str:
        """What its files are, in one word."""
        total = hashlib.sha256()
        for name, path in self.files.items():
            total.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()

    def switches(self) -> frozenset[str]:
        """Names of its modules that switch planted faults on."""
        return frozenset(
            path.stem
            for path in self.files.values()
            if is_fault_module(path.read_text(encoding="utf-8"))
        )


def find_product(
    suite: Suite,
    *,
    root: Path,
    subject: Path | None = None,
    sources: Sequence[Path] = (),
    python: Path | None = None,
) -> Product:
    """Find what a suite tests.

    Args:
        suite: the suite.
        root: of its tree.
        subject: a subject file instead of the suite's own.
        sources: folders of the product's code; those of its distribution when left out.
        python: the product's interpreter; found from its command line when left out.

    Raises:
        BadInput: there is no code to damage.
        Unavailable: its Python cannot be asked.
    """
    path = subject or suite.subject
    found = load_subject(path) if path is not None else None
    is_library = suite.library is not None and subject is None and found is None
    for number, source in enumerate(found.sources if found is not None else ()):
        if not source.is_dir():
            key = f"subject.sources[{number}]"
            raise BadInput(path or suite.folder, key=key, found=str(source), expected="a folder")
    chosen = [source.resolve() for source in sources] or _sources_of(suite, found)
    files = _files(chosen, root=root.resolve())
    if not files:
        raise BadInput(
            path or suite.folder / "suite.toml",
            key="subject.project",
            found=", ".join(map(str, chosen)) or None,
            expected="folders with the Python code of the product",
            next_step="Name them: --source DIR",
        )
    python = python or (_python_of(found) if found is not None else None)
    return Product(
        sources=tuple(chosen),
        files=files,
        environment=find_environment(python) if python is not None else None,
        in_tests=is_library or suite.library is not None,
    )


def _sources_of(suite: Suite, subject: Subject | None) -> list[Path]:
    folders = []
    if subject is not None:
        folders += [] if subject.project is None else [subject.project.resolve()]
        folders += [source.resolve() for source in subject.sources]
    if suite.library is not None:
        folders.append(suite.library.resolve())
    # One that lies in another is part of it.
    return [each for each in folders if not any(up in each.parents for up in folders if up != each)]


def _files(sources: Sequence[Path], *, root: Path) -> dict[str, Path]:
    files = {}
    for source in sources:
        for folder, inner, names in os.walk(source):
            inner[:] = sorted(name for name in inner if not _ASIDE.fullmatch(name))
            for name in sorted(names):
                if name.endswith(".py") and not _ASIDE_FILES.fullmatch(name):
                    path = Path(folder, name).resolve()
                    inside = root in path.parents
                    named = path.relative_to(root) if inside else path
                    files[named.as_posix()] = path
    return files


def _python_of(subject: Subject) -> Path:
    """The interpreter beside the product's command, or the one that its first line names."""
    if not subject.argv or "{bin}" in subject.argv[0]:
        return Path(subject_bin()) / "python"
    command = shutil.which(subject.argv[0]) or subject.argv[0]
    beside = Path(command).parent / "python"
    if beside.exists():
        return beside
    try:
        with Path(command).open("rb") as file:
            first = file.readline(1000).decode(errors="replace").strip()
    except OSError:
        first = ""
    named = first.removeprefix("#!").split()
    return Path(named[0]) if first.startswith("#!") and named else beside
