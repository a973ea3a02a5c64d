"""Contract 9, Emacs: the client speaks to the daemon and inserts a Flight Plan's node into a file."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness_core.base.wait import deadline
from suites.daemon.daemon import Daemon

pytestmark = [
    pytest.mark.covers("CONTRACT-9-EMACS"),
    pytest.mark.requires("emacs"),
    pytest.mark.capability("emacs"),
]

#: A batch Emacs that loads one file: 0.3 s; a loaded machine needs more.
EMACS_S = 60.0

#: What runs a form of the client in a batch Emacs; returns its status and output.
Emacs = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def emacs(run, daemon: Daemon) -> Emacs:
    """The client of the subject file, in a batch Emacs without a user's configuration."""
    environment = daemon.environment()

    async def output(argv: list[str], name: str) -> tuple[int, str]:
        async with run.child(argv, name=name, env=environment) as child:
            with deadline(f"see {name} end", seconds=EMACS_S, tail=child.tail):
                status = await child.wait()
            return status, child.log.read_text(encoding="utf-8")

    status, library = await output(daemon.client("emacs", "library"), "library")

    assert status == 0, f"contract 9: the path of the library: status {status}, {library}"
    numbers = iter(range(1, 100))

    async def evaluate(key: str, **fields: object) -> tuple[int, str]:
        form = daemon.fill(daemon.subject.table("emacs")[key], **fields)
        argv = ["emacs", "--batch", "-Q", "-l", library.strip(), "--eval", form]
        return await output(argv, f"emacs-{next(numbers)}")

    return evaluate


@pytest.mark.capability("echo")
async def test_speaks_to_the_daemon(daemon: Daemon, emacs: Emacs, token: str) -> None:
    """Text sent from Emacs is answered by the daemon, counted in characters like any other."""
    text = daemon.echo_of(f"naïve 日本 {token}")
    status, output = await emacs("say", text=text)

    assert status == 0, (
        f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
    )
    assert f"naïve 日本 {token}" in output, f"contract 9: Emacs was answered {output!r}"


async def test_inserts_a_flight_plan(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """A Flight Plan becomes a node at the end of the file: title, ID, creation, steps; the rest stays."""
    plan = tmp_path / "plan.org"
    plan.write_text("#+TITLE: Plans\n\n* Kept\nas it was\n", encoding="utf-8")
    status, output = await emacs(
        "insert", file=plan, text=f"Ship {token}: build it; test it; tag it"
    )
    text = plan.read_text(encoding="utf-8")

    assert status == 0, (
        f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
    )
    assert text.startswith("#+TITLE: Plans\n\n* Kept\nas it was\n"), (
        f"contract 9: what the file held stays, found:\n{text}"
    )
    node = text[len("#+TITLE: Plans\n\n* Kept\nas it was\n") :]

    assert re.search(rf"^\* (TODO )?Ship {token}$", node, re.MULTILINE), (
        f"contract 9: the node has the plan's title, found:\n{node}"
    )
    steps = re.findall(r"^\*\* (?:TODO )?(.+)$", node, re.MULTILINE)

    assert ["build it", "test it", "tag it"] == steps, f"contract 9: the steps are {steps}"
    drawer = re.search(r"^:PROPERTIES:\n(.*?)^:END:$", node, re.MULTILINE | re.DOTALL)

    assert drawer is not None, f"contract 9: the node has no properties:\n{node}"
    properties = dict(re.findall(r"^:([A-Z_]+):\s+(.+)$", drawer[1], re.MULTILINE))

    assert properties.get("ID"), f"contract 9: the node has no ID: {properties}"
    assert properties.get("CREATED"), f"contract 9: the node has no date: {properties}"
    assert properties["ID"] in output, (
        f"the ID {properties['ID']} is not the one reported: {output!r}"
    )


async def test_inserts_under_a_heading(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """Under a heading, the node goes one level down and before what follows that heading."""
    plan = tmp_path / "plan.org"
    plan.write_text("* One\n* Two\n", encoding="utf-8")
    status, output = await emacs(
        "insert_under", file=plan, text=f"Ship {token}: build it", heading="One"
    )
    headings = re.findall(r"^\*+ .+$", plan.read_text(encoding="utf-8"), re.MULTILINE)

    assert status == 0, (
        f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
    )
    expected = ["* One", f"** TODO Ship {token}", "*** TODO build it", "* Two"]

    assert expected == headings, (
        f"contract 9: the headings of the file: expected {expected!r}, found {headings!r}"
    )


async def test_steps_are_kept_as_they_are_written(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """Colons, stars, numbers and letters of any script in a step belong to it."""
    plan = tmp_path / "plan.org"
    steps = [f"call Ann at 10:30: {token}", "see http://127.0.0.1:80/x", "naïve 日本 * 2", "a - b"]
    status, output = await emacs("insert", file=plan, text=f"Ship {token}: " + "; ".join(steps))
    assert status == 0, (
        f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
    )
    text = plan.read_text(encoding="utf-8")
    found = re.findall(r"^\*\* (?:TODO )?(.+)$", text, re.MULTILINE)

    assert steps == found, f"contract 9: expected the steps {steps}, found {found}"


async def test_two_plans_are_two_nodes(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """Insertions leave nodes with IDs of their own, also where title or steps are the same."""
    plan = tmp_path / "plan.org"
    texts = [f"Plan 1 {token}: do it", f"Plan 2 {token}: do it", f"Plan 2 {token}: test it"]
    for text in texts:
        status, output = await emacs("insert", file=plan, text=text)

        assert status == 0, (
            f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
        )
    held = plan.read_text(encoding="utf-8")
    found = re.findall(r"^:ID:\s+(\S+)$", held, re.MULTILINE)

    assert len(texts) == len(set(found)), (
        f"contract 9: expected {len(texts)} nodes with IDs of their own, found {found}:\n{held}"
    )


async def test_a_daemon_that_is_not_there(emacs: Emacs, tmp_path: Path) -> None:
    """Without a daemon Emacs ends with an error that says so, and the file is not touched."""
    plan = tmp_path / "plan.org"
    plan.write_text("* Kept\n", encoding="utf-8")
    status, output = await emacs("insert", file=plan, text="Ship: build", port=1)

    assert status != 0, "it claims success"
    assert output.strip(), "the error has no text"
    assert "* Kept\n" == plan.read_text(encoding="utf-8"), (
        "contract 9: without a daemon the file is not touched: expected "
        + repr("* Kept\n")
        + ", found "
        + repr(plan.read_text(encoding="utf-8"))
    )
