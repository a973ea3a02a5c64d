"""Whether an environment is as it was handed over."""

import hashlib

import pytest
from workbench_planning.environment import belongs, disturbed

FILES = {
    "environment/geometry.py": b"from sizes import WALL\n",
    "environment/sizes.py": b"WALL = 5\n",
}
GIVEN = {path: hashlib.sha256(data).hexdigest() for path, data in FILES.items()}


def found(files, links=()):
    """The files that have findings, and what is found."""
    return {each.file: each.found for each in disturbed(files, set(links), GIVEN)}


def test_as_it_was():
    """What else lies in a session is the agent's own; caches of Python are no files of it."""
    beside = {"model.py": b"", "docs/environment.md": b"", "environments/a.py": b"", "my.environment": b""}

    assert {} == found(FILES | beside)


def test_nothing_given():
    """Who was handed no environment may have one of his own."""
    assert [] == disturbed(FILES, set(), {"plan.md": "1" * 64})


def test_changed_and_removed():
    """Each file is named, with the digest that it has to have."""
    findings = disturbed({"environment/sizes.py": b"WALL = 6\n"}, set(), GIVEN)

    assert ["environment/geometry.py", "environment/sizes.py"] == [each.file for each in findings]
    assert "no such file" == findings[0].found
    assert GIVEN["environment/sizes.py"] in findings[1].expected


def test_links():
    """A link is another file, whatever it leads to; one in place of the folder is told once."""
    assert {"environment/sizes.py"} == set(found(FILES, ["environment/sizes.py"]))
    assert {"environment"} == set(found({"environment": b"-> moved"}, ["environment"]))


@pytest.mark.parametrize(
    "path",
    [
        "environment.py",
        "environment.pyc",
        "environment.abi3.so",
        "environment",
        "lib/environment.py",
        "lib/environment/x.txt",
        "environment/more.py",
        "environment/sizes/__init__.py",
    ],
)
def test_in_its_place(path):
    """A file that Python would take for the environment, or for a module of it."""
    assert [path] == list(found(FILES | {path: b""}))


def test_belongs():
    """The folder alone, by its whole name."""
    assert belongs("environment/a/b.py")
    assert not belongs("environment.py")
    assert not belongs("environments/a.py")
