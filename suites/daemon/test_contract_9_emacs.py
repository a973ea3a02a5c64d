"""Contract 9, Emacs: the client speaks to the daemon and inserts a Flight Plan's node into a file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness_core.base.wait import deadline
from harness_core.front.skips import not_run
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
    now = datetime.now(tz=UTC)
    days = {f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 1)}

    assert any(day in properties["CREATED"] for day in days), (
        f"contract 9: the node was created today, {now:%Y-%m-%d}; found {properties}"
    )
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
    """Colons, stars, numbers and letters of any script in a step belong to it; two may be alike."""
    plan = tmp_path / "plan.org"
    steps = [f"call Ann at 10:30: {token}", "see http://127.0.0.1:80/x", "naïve 日本 * 2", "a - b"]
    steps += [steps[0], "then rest", "then rest"]
    status, output = await emacs("insert", file=plan, text=f"Ship {token}: " + "; ".join(steps))
    assert status == 0, (
        f"contract 9: expected Emacs to end with status 0, found {status}:\n{output}"
    )
    text = plan.read_text(encoding="utf-8")
    found = re.findall(r"^\*\* (?:TODO )?(.+)$", text, re.MULTILINE)

    assert steps == found, f"contract 9: expected the steps {steps}, found {found}"


#: Steps of a plan in a list: more than nine, so that their numbers have one digit and two.
LISTED = 23


async def test_steps_of_a_list_are_its_steps(
    daemon: Daemon, emacs: Emacs, tmp_path: Path, token: str
) -> None:
    """A plan may be a list: each line is a step, and what marks it as one is no part of it."""
    ways = daemon.subject.table("emacs").get("steps") or ()
    if not ways:
        not_run("subject", f"{daemon.subject.path.name} does not say how a plan's steps are listed")
    steps = [f"step {number} of {token}" for number in range(1, LISTED)]
    steps[1:5] = ["3 apples", "call Ann at 10:30", "naïve 日本 * 2", "a - b; c"]
    steps[7] = steps[6]
    for number, way in enumerate(ways):
        plan = tmp_path / f"listed-{number}.org"
        lines = [
            way.replace("{number}", str(n)).replace("{step}", step)
            for n, step in enumerate(steps, 1)
        ]
        status, output = await emacs("insert", file=plan, text="\n".join([f"Ship {token}", *lines]))

        assert status == 0, (
            f"contract 9: steps that are listed as {way!r}: status {status}:\n{output}"
        )
        headings = re.findall(
            r"^(\*+) (?:TODO )?(.+)$", plan.read_text(encoding="utf-8"), re.MULTILINE
        )
        expected = [("*", f"Ship {token}"), *(("**", step) for step in steps)]
        wrong = [
            f"expected {a}, found {b}"
            for a, b in itertools.zip_longest(expected, headings)
            if a != b
        ]

        assert not wrong, f"contract 9: steps that are listed as {way!r}: {wrong[:3]}"


#: What a file holds before, the heading to go under, and what it holds after; ``@`` is the node, whose
#: steps stand below it.
PLACES = {
    "a new file": (None, "", "@"),
    "an empty file": ("", "", "@"),
    "no newline at its end": ("* Kept\nlast", "", "* Kept\nlast\n@"),
    "another script": ("* Größe 日本 😀\n", "", "* Größe 日本 😀\n@"),
    "blank lines": ("\n\n* Kept\n\n\n", "", "\n\n* Kept\n\n\n@"),
    "an inner heading": ("* One\n** In\ntext\n* Two\n", "In", "* One\n** In\ntext\n@* Two\n"),
    "a heading with more below it": (
        "* One\n** In\n*** Deep\nx\n** Next\n* Two\n",
        "In",
        "* One\n** In\n*** Deep\nx\n@** Next\n* Two\n",
    ),
    "a heading that begins alike": ("* One more\n* One\n* O\n", "One", "* One more\n* One\n@* O\n"),
    "a heading in another case": (
        "* one\n* ONE\n* One\n* Two\n",
        "One",
        "* one\n* ONE\n* One\n@* Two\n",
    ),
    "a heading that ends alike": (
        "* another One\n* One\n* O\n",
        "One",
        "* another One\n* One\n@* O\n",
    ),
    "a heading of signs": (
        "* C++ (a.b) [*] aXb\n* C++ (aXb) [*]?\n* C++ (a.b) [*]?\n* Two\n",
        "C++ (a.b) [*]?",
        "* C++ (a.b) [*] aXb\n* C++ (aXb) [*]?\n* C++ (a.b) [*]?\n@* Two\n",
    ),
    "a heading of another script": ("* Größe\n* Two\n", "Größe", "* Größe\n@* Two\n"),
    "the last heading": ("* One\n* Two\ntext\n", "Two", "* One\n* Two\ntext\n@"),
}


async def test_a_node_goes_where_it_belongs(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """Whatever the file holds, it holds it after as before, with the node where it was to go, whole."""
    for number, (what, (before, heading, after)) in enumerate(PLACES.items()):
        plan = tmp_path / f"plan-{number}.org"
        if before is not None:
            plan.write_text(before, encoding="utf-8")
        fields = {"file": plan, "text": f"Ship {token}: build it; test it"}
        if heading:
            status, output = await emacs("insert_under", heading=heading, **fields)
        else:
            status, output = await emacs("insert", **fields)

        assert status == 0, f"contract 9: {what}: expected status 0, found {status}:\n{output}"
        held = plan.read_text(encoding="utf-8") if plan.exists() else ""
        left, right = after.split("@")

        kept = held.startswith(left), held.endswith(right)

        assert kept == (True, True), (
            f"contract 9: {what}: the node stands where @ does in {after!r}, found:\n{held}"
        )
        node = held[len(left) : len(held) - len(right)]
        headings = re.findall(r"^(\*+) (?:TODO )?(.+)$", node, re.MULTILINE)
        above = [
            line for line in left.splitlines() if re.fullmatch(rf"\*+ {re.escape(heading)}", line)
        ]
        level = len(above[0].split()[0]) + 1 if heading else 1
        expected = [
            ("*" * level, f"Ship {token}"),
            ("*" * (level + 1), "build it"),
            ("*" * (level + 1), "test it"),
        ]

        assert headings == expected, (
            f"contract 9: {what}: the headings of the node: expected {expected}, found {headings}"
        )


async def test_what_cannot_be_inserted_leaves_the_file(emacs: Emacs, tmp_path: Path) -> None:
    """Without a plan, or the heading it is to go under, Emacs ends with an error and writes nothing."""
    plan = tmp_path / "plan.org"
    held = "* One\n* Two"
    plan.write_text(held, encoding="utf-8")
    rows = (
        ("insert", {"text": ""}),
        ("insert", {"text": " : ; ;"}),
        ("insert_under", {"text": "Ship: build", "heading": "Three"}),
        ("insert_under", {"text": "Ship: build", "heading": "O"}),
    )
    for key, fields in rows:
        status, output = await emacs(key, file=plan, **fields)

        assert status != 0, f"contract 9: {key} of {fields} claims success:\n{output}"
        assert output.strip(), f"contract 9: the error of {fields} has no text"
        assert plan.read_text(encoding="utf-8") == held, (
            f"contract 9: {fields} cannot be inserted, and the file is touched: expected {held!r}, "
            f"found {plan.read_text(encoding='utf-8')!r}"
        )


#: Plans that are longer than plans are: of many steps, and of a step of many letters.
LARGE = {
    "steps": [f"step {number}." for number in range(1, 401)],
    "letters": ["first", "x" * 3_000 + " end", "last"],
}


async def test_a_plan_is_inserted_whole_or_not_at_all(
    emacs: Emacs, tmp_path: Path, token: str
) -> None:
    """Of a plan of many steps, or of long ones, none is lost: it is refused, or all of it is there."""
    for what, steps in LARGE.items():
        plan = tmp_path / f"large-{what}.org"
        plan.write_text("* Kept\n", encoding="utf-8")
        text = f"Ship {token}: " + "; ".join(steps)
        status, output = await emacs("insert", file=plan, text=text)
        held = plan.read_text(encoding="utf-8")
        found = re.findall(r"^\*\* (?:TODO )?(.+)$", held, re.MULTILINE)
        expected = steps if status == 0 else []

        assert len(found) == len(expected), (
            f"contract 9: of {len(steps)} {what} all are inserted, or none and an error is told: status "
            f"{status}, expected {len(expected)} steps, found {len(found)}:\n{output[:500]}"
        )
        assert found == expected, (
            f"contract 9: steps are inserted whole, or refused ({what}): status {status}, found steps of "
            f"{[len(each) for each in found]} letters"
        )
        assert output.strip(), f"contract 9: it is said what became of a plan of many {what}"
        assert status == 0 or held == "* Kept\n", (
            f"contract 9: a plan that is refused leaves the file as it was, found {held[:300]!r}"
        )


@pytest.mark.capability("echo")
async def test_any_text_is_said_from_emacs(daemon: Daemon, emacs: Emacs, token: str) -> None:
    """Quotes, backslashes, lines and long texts come back to Emacs as they were sent."""
    for text in (
        f'"{token}" \\ (:quoted . "x") ; #.1',
        f"two\nlines {token}\tand a tab",
        f"<{'日' * 30_000}{token}>",
    ):
        escaped = daemon.echo_of(text).replace("\\", "\\\\").replace('"', '\\"')
        status, output = await emacs("say", text=escaped)

        assert status == 0, f"contract 9: Emacs ends with status {status}:\n{output[:2000]}"
        assert text in output, (
            f"contract 9: expected all {len(text)} characters of {text[:60]!r}, found {len(output)}: "
            f"{output[:300]!r}"
        )


async def test_two_plans_are_two_nodes(emacs: Emacs, tmp_path: Path, token: str) -> None:
    """Insertions leave nodes with IDs of their own, also where title or steps, or both, are the same."""
    plan = tmp_path / "plan.org"
    texts = [f"Plan 1 {token}: do it", f"Plan 2 {token}: do it", f"Plan 2 {token}: test it"]
    texts.append(texts[0])
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


#: IDs that are not each other's, each behind one that it is mistaken for: it begins or ends alike, is the
#: same in another case, or is what a pattern would match.
ALIKE = ("plan-10", "plan-1", "plan", "a-plan", "Plan", "a.b", "a:b", "aXb", "a.", "b")


async def test_a_node_is_held_by_its_whole_id(
    daemon: Daemon, emacs: Emacs, tmp_path: Path, token: str
) -> None:
    """A node is inserted unless the file holds one of its ID, however much another's looks like it."""
    if not daemon.subject.table("emacs").get("insert_node"):
        not_run(
            "subject", f"{daemon.subject.path.name} does not say how a node of an ID is inserted"
        )
    plan = tmp_path / "plan.org"
    plan.write_text(f"* Kept {token}\nsee {' '.join(ALIKE)}\n", encoding="utf-8")
    for number, wanted in enumerate((*ALIKE, *ALIKE), 1):
        again = number > len(ALIKE)
        status, output = await emacs("insert_node", file=plan, text=f"Ship {token}: do", id=wanted)

        assert status == 0, f"contract 9: expected status 0 for {wanted}, found {status}:\n{output}"
        held = re.findall(r"^:ID:\s+(\S+)$", plan.read_text(encoding="utf-8"), re.MULTILINE)
        expected = list(ALIKE[:number])

        assert expected == held, (
            f"contract 9: {wanted} {'is held and' if again else 'is not held, and'} is inserted "
            f"{'no second time' if again else 'whatever looks like it'}: expected the nodes {expected}, "
            f"found {held}"
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
