"""The environment of a reference system: made once, found again, made anew when it must be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.system.staging import reference_commands
from harness_core.system.suites import Suite, load_suites

#: Stands in for uv: writes down how it was called, and makes what it would have made.
INSTALLER = """#!{python}
import pathlib, sys
calls = pathlib.Path({calls!r})
with calls.open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "venv":
    (pathlib.Path(sys.argv[-1]) / "bin").mkdir(parents=True, exist_ok=True)
elif pathlib.Path({broken!r}).exists():
    print("No matching distribution found for counter")
    sys.exit(2)
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite with a reference system, and an installer that writes down how it was called."""
    folder = tmp_path / "tree" / "suites" / "toy"
    project = folder / "reference-system" / "counter"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text('[project]\nname = "counter"\nversion = "1"\n')
    (folder / "reference-system" / "subject.toml").write_text(
        '[subject]\nname = "counter"\nproject = "counter"\nargv = ["{bin}/counter"]\n'
    )
    (folder / "suite.toml").write_text(
        '[suite]\nname = "toy"\nsummary = "a toy"\ngroup = "test"\n'
        'subject = "reference-system/subject.toml"\n'
        '[[session]]\nname = "toy"\nsummary = "Play."\n'
    )
    (tmp_path / "tree" / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    installer = tmp_path / "uv"
    installer.write_text(
        INSTALLER.format(
            python=sys.executable, calls=str(calls(folder)), broken=str(tmp_path / "broken")
        )
    )
    installer.chmod(0o755)
    (tmp_path / "state").mkdir(mode=0o711)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("UV", str(installer))
    return load_suites(tmp_path / "tree")[0]


def calls(folder: Path) -> Path:
    """Where the installer writes down how it was called."""
    return folder.parents[2] / "calls.txt"


def called(suite: Suite) -> list[str]:
    """How the installer was called so far."""
    return calls(suite.folder).read_text().splitlines()


async def commands_of(suite: Suite, said: list[str] | None = None, **more) -> Path | None:
    """The folder of its commands."""
    say = [] if said is None else said
    return await reference_commands(suite, root=suite.folder.parents[1], say=say.append, **more)


async def test_it_is_made_once_where_nox_has_its_environments(suite: Suite) -> None:
    """Installed as it is written in its subject file; the second time nothing is run."""
    said: list[str] = []
    first = await commands_of(suite, said)
    second = await commands_of(suite, said)
    env = suite.folder.parents[1] / ".nox" / "toy-subject"

    assert first == second == env / "bin"
    assert [
        f"venv --clear -p {sys.executable} {env}",
        f"pip install --python {env}/bin/python -e {suite.folder}/reference-system/counter",
    ] == called(suite)
    assert [f"installing the reference system of toy into {env}, once"] == said


async def test_it_is_made_anew_when_its_distribution_changes(suite: Suite) -> None:
    """A changed ``pyproject.toml`` is installed again."""
    await commands_of(suite)
    pyproject = suite.folder / "reference-system" / "counter" / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + 'dependencies = ["more"]\n')
    await commands_of(suite)

    assert 4 == len(called(suite))


async def test_what_its_own_tests_need_is_there(suite: Suite) -> None:
    """A distribution with an extra ``tests`` is installed with it."""
    project = suite.folder / "reference-system" / "counter"
    pyproject = project / "pyproject.toml"
    pyproject.write_text(
        pyproject.read_text() + '[project.optional-dependencies]\ntests = ["pytest"]\n'
    )
    await commands_of(suite)

    assert called(suite)[-1].endswith(f" -e {project}[tests]")


async def test_two_at_once_make_it_once(suite: Suite) -> None:
    """The second one waits for the first, and finds what that made."""
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(commands_of, suite)

    assert 2 == len(called(suite))


async def test_what_cannot_be_installed_is_reported_in_the_installers_words(suite: Suite) -> None:
    """An error with its last lines; and half made, it is not taken for whole later."""
    broken = suite.folder.parents[2] / "broken"
    broken.touch()
    with pytest.raises(HarnessError, match="uv ended with 2") as caught:
        await commands_of(suite)
    broken.unlink()

    assert ("No matching distribution found for counter",) == caught.value.tail
    assert await commands_of(suite) is not None
    assert 4 == len(called(suite))


async def test_as_it_is_makes_nothing(suite: Suite) -> None:
    """Refused where there is none; what was made from something else is used, and reported."""
    with pytest.raises(Unavailable, match="harness reference toy"):
        await commands_of(suite, make=False)
    await commands_of(suite)
    pyproject = suite.folder / "reference-system" / "counter" / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + 'dependencies = ["more"]\n')
    said: list[str] = []
    found = await commands_of(suite, said, make=False)

    assert suite.folder.parents[1] / ".nox" / "toy-subject" / "bin" == found
    assert 2 == len(called(suite))
    assert "made from something else" in said[0]


async def test_a_subject_that_is_not_installed_needs_none(suite: Suite) -> None:
    """Without ``project`` there is nothing to install; a wrong one is named with file and key."""
    subject = suite.folder / "reference-system" / "subject.toml"
    whole = subject.read_text()
    subject.write_text(whole.replace('project = "counter"\n', ""))

    assert await commands_of(suite) is None
    subject.write_text(whole.replace('project = "counter"', 'project = "cuonter"'))
    with pytest.raises(BadInput) as caught:
        await commands_of(suite)
    assert (str(subject), "subject.project") == (caught.value.where, caught.value.key)


async def test_with_neither_uv_nor_pip_the_other_way_is_named(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence that says what is missing, and the command that needs neither."""
    monkeypatch.delenv("UV")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match=r"no uv .* no pip .* nox -s staging -- toy"):
        await commands_of(suite)
