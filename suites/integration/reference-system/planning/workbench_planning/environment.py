"""The environment of a benchmark: who works in it leaves it as it was handed over.

Its geometry is the folder ``environment/``, each file of it by its sha256. A link is another file, whatever
it leads to; a file more can take the place of one when Python looks for a module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import PurePosixPath

from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import ENVIRONMENT
from workbench_planning.text import finding, sha256_of, shortened

#: What Python imports, besides folders.
_IMPORTED = (".py", ".pyc", ".so", ".zip")


def belongs(path: str) -> bool:
    """Whether a path is one of the environment's."""
    return path.startswith(f"{ENVIRONMENT}/")


def disturbed(
    files: Mapping[str, bytes], links: Set[str], given: Mapping[str, str]
) -> list[Finding]:
    """All in which an environment is no longer the one that was handed over.

    Args:
        files: of the session, path to bytes; what stands in place of the bytes of a link does not matter.
        links: paths of ``files`` that are no plain files.
        given: path to sha256 of what was handed over; what is no environment in it is left alone.
    """
    fixed = {path: digest for path, digest in given.items() if belongs(path)}
    if not fixed:
        return []
    first = [each for path, digest in fixed.items() for each in _of(path, digest, files, links)]
    # A link in place of the folder is told once.
    findings = list({each.file: each for each in first}.values())
    told = {each.file for each in findings}
    for path in sorted(set(files) - set(fixed) - told):
        if belongs(path):
            expected = "the files that were handed over, and none beside them"
            findings.append(_finding(path, "a file that the environment does not have", expected))
        elif _shadows(path):
            found = f"{shortened(path)}, which can be imported in place of the environment"
            findings.append(_finding(path, found, "another name, or none of it"))
    return findings


def _of(
    path: str, digest: str, files: Mapping[str, bytes], links: Set[str]
) -> Iterator[Finding]:
    expected = f"the file as it was handed over, sha256 {digest}"
    above = [str(each) for each in PurePosixPath(path).parents][:-1]
    linked = next((each for each in (path, *above) if each in links), None)
    if linked is not None:
        yield _finding(linked, "a link, or no plain file, in its place", expected)
    elif path not in files:
        yield _finding(path, "no such file", expected)
    elif sha256_of(files[path]) != digest:
        yield _finding(path, f"bytes with sha256 {sha256_of(files[path])}", expected)


def _shadows(path: str) -> bool:
    """Whether a file, or a folder that it is in, is a module of the environment's name."""
    *folders, name = path.split("/")
    stem, dot, _ = name.partition(".")
    is_module = stem == ENVIRONMENT and (not dot or name.endswith(_IMPORTED))
    return ENVIRONMENT in folders or is_module


def _finding(path: str, found: str, expected: str) -> Finding:
    return finding(path, "", found, expected, stage=Stage.AGREE)
