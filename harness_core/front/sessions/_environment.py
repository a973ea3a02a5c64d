"""What is installed into the environment of a session: the harness, groups, a reference system."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import nox
from nox import Session
from nox.virtualenv import UV

from harness_core.front.sessions._tree import Suite, Tree
from harness_core.front.sessions._words import subject_given

__all__ = ["groups_of", "harness_words", "install", "needs_of", "reference_env", "subject_env"]

_HARNESS: Final = "staging-harness"


def needs_of(tree: Tree, session: Session, suite: Suite) -> dict[str, Any]:
    """What the tests of a suite need; a library under test unless ``--subject`` names another.

    One that they import themselves, for its schemas, they need whatever is tested.
    """
    needed = suite.get("may_import") or not subject_given(session)
    library = suite.get("library") if needed else None
    libraries = [tree.root / "suites" / suite["name"] / library] if library else []
    return {
        "extras": sorted({*suite.get("extras", []), "report"}),  # for --report
        "groups": [suite["group"]],
        "libraries": libraries,
    }


def groups_of(suite: Suite) -> list[str]:
    """The dependency groups of all its sessions."""
    return sorted(
        {suite["group"], *(row.get("group") or suite["group"] for row in suite["sessions"])}
    )


def install(
    tree: Tree,
    session: Session,
    *,
    extras: Iterable[str] = (),
    groups: Iterable[str] = (),
    libraries: Iterable[Path] = (),
) -> None:
    """Install the harness and what a session needs, unless exactly that is installed already.

    Args:
        tree: of the session.
        session: whose environment.
        extras: of the harness.
        groups: dependency groups of the tree.
        libraries: folders of distributions.
    """
    words = harness_words(tree, list(extras))
    words += nox.project.dependency_groups(dict(tree.pyproject), *groups)
    contents = []
    for library in libraries:
        words += ["-e", str(library)]
        contents.append((library / "pyproject.toml").read_text(encoding="utf-8"))
    stamp = Path(session.virtualenv.location) / ".installed"
    wanted = _fingerprint(tree.root / "pyproject.toml", *words, *contents)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    # None means that nox ran with an option against installing: the stamp stays what it was.
    if session.run_install(*_installer(session, "python"), *words, silent=True) is not None:
        stamp.write_text(wanted, encoding="utf-8")


def harness_words(tree: Tree, extras: Sequence[str]) -> list[str]:
    """The harness as an installer is to be asked for it.

    From the tree where that is the harness itself; elsewhere what nox itself runs with: the same version,
    or the same file or folder where it did not come from an index.
    """
    brackets = f"[{','.join(extras)}]" if extras else ""
    if tree.is_harness:
        return ["-e", f"{tree.root}{brackets}"]
    try:
        ours = importlib.metadata.distribution(_HARNESS)
    except importlib.metadata.PackageNotFoundError:
        return [f"{_HARNESS}{brackets}"]
    origin = json.loads(ours.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if not url:
        return [f"{_HARNESS}{brackets}=={ours.version}"]
    if origin.get("dir_info", {}).get("editable"):
        return ["-e", f"{unquote(urlsplit(url).path)}{brackets}"]
    return [f"{_HARNESS}{brackets} @ {url}"]


def subject_env(session: Session, suite: Suite, *, options: Sequence[str] = ()) -> dict[str, str]:
    """See to it that the suite's reference system is installed; return where its commands are.

    A suite without a subject, or a run with --subject, needs no such environment.
    """
    return {} if subject_given(session, options) else reference_env(session, suite)


def reference_env(session: Session, suite: Suite) -> dict[str, str]:
    """The same, whatever the run tests."""
    if "subject" not in suite:
        return {}
    into = Path(session.virtualenv.location).parent
    command = ["harness", "reference", suite["name"], "--into", str(into)]
    uv: Mapping[str, str] = {"UV": UV} if session.venv_backend == "uv" else {}
    printed = session.run_install(*command, env=uv, silent=True)
    if printed is None:  # nox -R installs nothing
        printed = session.run(*command, "--as-it-is", silent=True)
    if not printed:  # nor does it run anything with --install-only
        return {}
    *notes, commands = str(printed).splitlines()
    for note in notes:
        session.log(note)
    return {"HARNESS_SUBJECT_BIN": commands}


def _installer(session: Session, python: str) -> list[str]:
    """The command that installs into the environment of ``python``."""
    uv = ["uv", "pip", "install", "--python", python]
    return uv if session.venv_backend == "uv" else [python, "-m", "pip", "install"]


def _fingerprint(pyproject: Path, *more: str) -> str:
    """What an environment was built from, in one word."""
    text = "\n".join([pyproject.read_text(encoding="utf-8"), *more])
    return hashlib.sha256(text.encode()).hexdigest()
