"""Bottles over their lives, against a small model: start, use, resume, remediate, crash, clean up.

The model knows which bottles are recorded, which run, which guests were left by a crash, and what
each guest must see. Everything else is asked of the launcher, of the tools and of the guests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from suites.parity.bottles import AROUND, Rich, look
from suites.parity.compare import exposures
from suites.parity.launcher import Bottle
from suites.parity.sides import Sides
from suites.parity.tools.guest import USER, Guest, script_that_answers, script_that_reads
from suites.parity.world import IMAGE, OTHER_IMAGE, THIRD_IMAGE

__all__ = ["Lives", "check_lives"]

#: Names that are easily taken for one another, and one that is too long for any column.
NAMES: Final = ("dev", "Dev", "dev-new", "dev-old", "de", "dev_2", "bot-bottle-dev", "d" * 61)

_TEXT: Final = st.sampled_from([before + "x" + behind for before, behind in AROUND.values()])


@dataclass(slots=True, kw_only=True)
class Life:
    """What the model knows of one bottle.

    Attributes:
        rich: its manifest, with the values of the last launch.
        backend: the one it was started on.
        image: what it is made of, proposals applied.
        bottle, block: while it runs.
        is_preserved: its owner said so.
        is_stray: a guest of it was left by a launcher that died or could not remove it.
        files: what was copied into the guest that runs.
        proposals: ids of those that wait.
        transcript: what was written there.
    """

    rich: Rich
    backend: str
    image: str
    bottle: Bottle | None = None
    block: AbstractContextManager[Bottle] | None = None
    is_preserved: bool = False
    is_stray: bool = False
    files: dict[str, str] = field(default_factory=dict)
    proposals: list[str] = field(default_factory=list)
    transcript: str = ""


def check_lives(sides: Sides, chosen: settings) -> None:
    """Live some lives; the shortest that breaks one of the rules is shown.

    Raises:
        AssertionError: a bottle is not what the model says.
    """
    run_state_machine_as_test(lambda: Lives(sides), settings=chosen)


class Lives(RuleBasedStateMachine):
    """The machine; all its bottles live in one home, on all backends at once.

    Args:
        sides: the backends, in simulated worlds.
    """

    def __init__(self, sides: Sides) -> None:
        super().__init__()
        self._sides = sides
        self._backends = {backend.name: backend for backend in sides.backends}
        home = sides.homes / f"lives {next(sides.numbers):05}"
        self._world = sides.make_world(sides.backends[0].name, home)
        self._launcher = sides.open(self._world)
        self._lives: dict[str, Life] = {}
        self._launches = 0
        self._hidden: dict[str, str] = {}
        self._foreign: dict[str, Guest] = {}

    @initialize()
    def others_have_guests_too(self) -> None:
        """Guests that the launcher did not make."""
        for name in ("bot-bottle-dev", "bot-bottle", "dev", "postgres"):
            self._world.docker.adopt(name, Guest(image=IMAGE))
            self._world.smolvm.guests[name] = Guest(image=IMAGE)
        self._foreign = dict(self._world.guests())

    # --- What is done ---------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 99), by_variable=st.booleans())
    def start(self, name: str, which: int, *, by_variable: bool) -> None:
        """A bottle is started on a backend that is named by the flag, or by the variable."""
        backend = list(self._backends)[which % len(self._backends)]
        rich = self._next(name)
        rich.write(self._world)
        other = list(self._backends)[(which + 1) % len(self._backends)]
        self._world.environ["BOT_BOTTLE_BACKEND"] = backend if by_variable else other
        block = self._launcher.start(name, backend=None if by_variable else backend)
        with self._goes_well(f"start of {name} on {backend}"):
            bottle = block.__enter__()
        assert bottle.identity not in self._lives, (
            f"a bottle that is started gets an identity of its own: expected none of "
            f"{sorted(self._lives)}, found {bottle.identity}"
        )
        life = Life(rich=rich, backend=backend, image=rich.image, bottle=bottle, block=block)
        self._lives[bottle.identity] = life
        record = self._world.metadata(bottle.identity)
        expected = {"identity": bottle.identity, "agent_name": name, "backend": backend}
        for key, value in expected.items():
            self._holds(
                value, record.get(key), f"{key} in the record of a started {backend} bottle"
            )
        self._ran_in_its_guest(bottle.identity)

    @precondition(lambda self: self._preserved())
    @rule(which=st.integers(0, 99))
    def resume(self, which: int) -> None:
        """A preserved bottle comes back: its backend, its image, the values of now."""
        identity = self._choice(self._preserved(), which)
        life = self._lives[identity]
        life.rich = self._next(life.rich.name)
        life.rich.set_variables(self._world)
        before = self._world.metadata(identity)
        block = self._launcher.resume(identity)
        with self._goes_well(f"resume of {identity} on {life.backend}"):
            bottle = block.__enter__()
        life.bottle, life.block, life.files = bottle, block, {}
        self._holds(identity, bottle.identity, "a resumed bottle keeps its identity")
        after = self._world.metadata(identity)
        for key, value in before.items():
            self._holds(value, after.get(key), f"{key} in the record after a resume")
        self._holds(life.transcript, self._transcript(identity), f"transcript of {identity}")
        self._ran_in_its_guest(identity)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99))
    def resume_what_runs(self, which: int) -> None:
        """A bottle that runs is not launched again."""
        identity = self._choice(self._running(), which)
        with (
            self._world.may_refuse(self._launcher.errors) as outcome,
            self._launcher.resume(identity),
        ):
            pass
        self._holds("refused", outcome.happened, f"a second launch of {identity}, which runs")
        self._holds({identity: True}, outcome.mentions(identity), "the refusal names the bottle")

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99), out=_TEXT, err=_TEXT, code=st.integers(0, 255))
    def use(self, which: int, out: str, err: str, code: int) -> None:
        """A script answers in its own guest, as its own user."""
        identity = self._choice(self._running(), which)
        life = self._lives[identity]
        assert life.bottle is not None
        script = script_that_answers(out, err, code)
        with self._goes_well(f"a script in {identity} on {life.backend}"):
            result = life.bottle.exec(script)
            agent = life.bottle.exec_agent(["sh", "-c", script], tty=False)
            user = life.bottle.exec(USER).stdout
        found = {
            "stdout": result.stdout,
            "stderr": result.stderr,
            "exit status": result.returncode,
            "exit status of the agent": agent,
            "user": user,
        }
        expected = dict(zip(found, (out, err, code, code, "node\n"), strict=True))
        for what, value in expected.items():
            self._holds(value, found[what], f"{what} of a script in {identity} on {life.backend}")

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99), text=_TEXT, number=st.integers(1, 2))
    def copy(self, which: int, text: str, number: int) -> None:
        """A file is copied in; the same path is another file in another bottle."""
        identity = self._choice(self._running(), which)
        life = self._lives[identity]
        assert life.bottle is not None
        source = self._world.home / "to copy.txt"
        source.write_bytes(text.encode())
        with self._goes_well(f"copying into {identity} on {life.backend}"):
            life.bottle.cp_in(source, f"/tmp/file {number}")
        life.files[f"/tmp/file {number}"] = text

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99))
    def preserve(self, which: int) -> None:
        """Its owner says that the state of a bottle is kept; something was said in it."""
        identity = self._choice(self._running(), which)
        life = self._lives[identity]
        with self._goes_well(f"preserve {identity}"):
            self._launcher.preserve(identity)
        life.is_preserved = True
        life.transcript += f"turn {len(life.transcript)}\n"
        (self._world.state / identity / "transcript" / "turns").write_text(life.transcript)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99), fails=st.booleans())
    def end(self, which: int, *, fails: bool) -> None:
        """A bottle ends; when its guest cannot be removed, it stays on record."""
        identity = self._choice(self._running(), which)
        life = self._lives[identity]
        assert life.block is not None
        calls = len(self._world.commands.calls)
        if fails:
            self._world.stub.fail_at(1)
        with self._world.may_refuse(self._launcher.errors) as outcome:
            life.block.__exit__(None, None, None)
        failed = fails and len(self._world.commands.calls) > calls
        self._world.stub.revive()
        # A backend may try again by itself.
        life.is_stray = failed and identity in self._guests()
        expected = "refused" if life.is_stray else outcome.happened if failed else "done"
        self._holds(expected, outcome.happened, f"the end of {identity} on {life.backend}")
        life.bottle = life.block = None
        if not life.is_preserved and not life.is_stray:
            self._forgotten(identity)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, 99), image=st.sampled_from([OTHER_IMAGE, THIRD_IMAGE]))
    def propose(self, which: int, image: str) -> None:
        """A change of a bottle's image waits for approval."""
        identity = self._choice(self._running(), which)
        with self._goes_well(f"a proposal for {identity}"):
            proposal = self._launcher.propose(identity, image=image, justification=f"for {image}")
        self._lives[identity].proposals.append(f"{proposal}\0{image}")

    @precondition(lambda self: self._proposed())
    @rule(which=st.integers(0, 99))
    def approve(self, which: int) -> None:
        """It is applied to that bottle, or refused with nothing changed."""
        identity = self._choice(self._proposed(), which)
        life = self._lives[identity]
        waiting = life.proposals[which % len(life.proposals)]
        proposal, _, image = waiting.partition("\0")
        with self._world.may_refuse(self._launcher.errors) as outcome:
            self._launcher.approve(proposal)
        applies = self._backends[life.backend].applies_proposals
        expected = "done" if applies else "refused"
        self._holds(expected, outcome.happened, f"approving {image} for {identity}")
        if applies:
            life.image, life.files = image, {}
            life.proposals.remove(waiting)
        else:
            self._holds(
                {life.backend: True, identity: True},
                outcome.mentions(life.backend, identity),
                "the refusal names backend and bottle",
            )

    @rule()
    def clean_up(self) -> None:
        """What was left behind goes, and nothing else."""
        with self._goes_well("cleanup"):
            self._launcher.cleanup()
        for identity in [each for each, life in self._lives.items() if life.bottle is None]:
            self._lives[identity].is_stray = False
            if not self._lives[identity].is_preserved:
                self._forgotten(identity)

    @precondition(lambda self: self._running())
    @rule()
    def crash(self) -> None:
        """The launcher dies with all its bottles; another one takes its place."""
        self._world.stub.crash_at(1)
        for identity in self._running():
            life = self._lives[identity]
            assert life.block is not None
            with self._world.may_refuse(self._launcher.errors):
                life.block.__exit__(None, None, None)
            life.bottle = life.block = None
            life.is_stray = identity in self._guests()
            if not life.is_stray and not life.is_preserved and identity not in self._recorded():
                self._forgotten(identity)
        self._world.stub.revive()
        self._launcher = self._sides.open(self._world)

    @rule()
    def another_process(self) -> None:
        """The next steps are those of another launcher in the same home."""
        self._launcher = self._sides.open(self._world)

    # --- What holds after each step -------------------------------------------------------------

    @invariant()
    def the_records_are_those_of_the_bottles(self) -> None:
        """A bottle is recorded while it runs, while it is preserved, and while a guest is left."""
        expected = {
            identity
            for identity, life in self._lives.items()
            if life.bottle is not None or life.is_preserved or life.is_stray
        }
        # A launcher that died may have left a record without a guest.
        dead = {identity for identity in self._recorded() if self._is_idle(identity)}
        self._holds(
            sorted(expected), sorted(self._recorded() - (dead - expected)), "recorded bottles"
        )

    @invariant()
    def the_guests_are_those_of_the_bottles(self) -> None:
        """No guest outlives its bottle, and those of others are as they were."""
        tools = {"docker", "smolvm"}
        expected = sorted(
            identity
            for identity, life in self._lives.items()
            if (life.bottle is not None and self._backends[life.backend].tool in tools)
            or life.is_stray
        )
        self._holds(expected, sorted(self._guests()), "bottles with a guest")
        for name, guest in self._foreign.items():
            assert self._world.guests().get(name) is guest, (
                f"guests of others stay: expected {name} as it was, found "
                f"{sorted(self._world.guests())}"
            )

    @invariant()
    def each_backend_lists_its_own(self) -> None:
        """What runs is listed by its backend alone, whole and once."""
        strays = {identity for identity, life in self._lives.items() if life.is_stray}
        for name in self._backends:
            running = [each for each in self._running() if self._lives[each].backend == name]
            with self._goes_well(f"listing the bottles of {name}"):
                listed = [each for each in self._launcher.active(name) if each not in strays]
            self._holds(sorted(running), sorted(listed), f"bottles that {name} lists as running")

    @invariant()
    def each_guest_is_its_own(self) -> None:
        """Environment, files and image of every bottle that runs are its own."""
        for identity in self._running():
            life = self._lives[identity]
            assert life.bottle is not None
            with self._goes_well(f"a look into {identity} on {life.backend}"):
                seen = look(life.bottle, life.rich)
                files = {
                    path: life.bottle.exec(script_that_reads(path)).stdout for path in life.files
                }
            where = f"in {identity} on {life.backend}"
            for name, value in life.rich.env.items():
                self._holds(value, seen["env"].get(name), f"{name} {where}")
            self._holds([], seen["elsewhere"], f"variables with a value of another {where}")
            for path, text in life.files.items():
                self._holds(text, files[path], f"{path} {where}")
            for guest in self._guests().get(identity, []):
                self._holds(life.image, guest.image, f"image of {identity} on {life.backend}")

    @invariant()
    def the_proposals_are_those_that_wait(self) -> None:
        """Each waits until it is applied."""
        expected = [
            each.partition("\0")[0] for life in self._lives.values() for each in life.proposals
        ]
        with self._goes_well("listing proposals"):
            pending = set(self._launcher.pending())
        self._holds(set(), set(expected) - pending, "proposals that wait and are not listed")

    def teardown(self) -> None:
        """At the end of all, what was preserved is left, and no value was seen outside a guest."""
        for identity in self._running():
            block = self._lives[identity].block
            assert block is not None
            with self._goes_well(f"the end of {identity}"):
                block.__exit__(None, None, None)
            self._lives[identity].bottle = None
        self._launcher = self._sides.open(self._world)
        with self._goes_well("the last cleanup"):
            self._launcher.cleanup()
        kept = sorted(identity for identity, life in self._lives.items() if life.is_preserved)
        self._holds(kept, sorted(self._recorded()), "recorded bottles after all have ended")
        self._holds([], sorted(self._guests()), "bottles with a guest after all have ended")
        seen = exposures(self._hidden, self._world.readable())
        self._holds({}, seen, "places outside the guests where a value can be read")
        self._world.check()

    # --- The model ------------------------------------------------------------------------------

    def _next(self, name: str) -> Rich:
        """The bottle of a name with values that were never used before; they are typed in."""
        self._launches += 1
        marked = Rich.marked(name, f"{self._launches:03}")
        kept = Rich.marked(name, f"of-{name}").literals
        rich = Rich(name=name, literals=kept, typed=marked.typed, given=marked.given)
        self._hidden |= {f"{key} of {self._launches}": each for key, each in rich.hidden.items()}
        self._world.answers.clear()
        rich.type_in(self._world)
        return rich

    def _running(self) -> list[str]:
        return [identity for identity, life in self._lives.items() if life.bottle is not None]

    def _preserved(self) -> list[str]:
        """Those that can be resumed: kept, not running, and no guest in the way."""
        return [
            identity
            for identity, life in self._lives.items()
            if life.is_preserved and life.bottle is None and not life.is_stray
        ]

    def _proposed(self) -> list[str]:
        return [each for each in self._running() if self._lives[each].proposals]

    def _is_idle(self, identity: str) -> bool:
        return identity not in self._running()

    def _recorded(self) -> set[str]:
        """Identities of which something is recorded."""
        state = self._world.state
        return {path.name for path in state.iterdir() if path.is_dir()} if state.is_dir() else set()

    def _guests(self) -> dict[str, list[Guest]]:
        """Identity → the guests of it; a name without one is that of another."""
        found: dict[str, list[Guest]] = {}
        for name, guest in self._world.guests().items():
            if self._foreign.get(name) is guest:
                continue
            ours = [each for each in self._lives if name.split()[1] == f"bot-bottle-{each}"]
            found.setdefault(ours[0] if ours else name, []).append(guest)
        return found

    def _transcript(self, identity: str) -> str:
        path = self._world.state / identity / "transcript" / "turns"
        return path.read_text() if path.is_file() else ""

    def _forgotten(self, identity: str) -> None:
        """Nothing is known of a bottle any more, its proposals included."""
        self._lives.pop(identity)

    def _ran_in_its_guest(self, identity: str) -> None:
        backend = self._backends[self._lives[identity].backend]
        tool = self._world.commands.calls[-1].tool
        self._holds(backend.tool, tool, f"the tool that launches {identity}")

    def _choice(self, identities: list[str], which: int) -> str:
        return identities[which % len(identities)]

    def _holds(self, expected: Any, found: Any, what: str) -> None:
        assert expected == found, f"{what}: expected {expected!r}, found {found!r}"

    @contextmanager
    def _goes_well(self, what: str) -> Iterator[None]:
        """Nothing of this may be refused, or break."""
        with self._world.may_refuse(self._launcher.errors) as outcome:
            yield
        assert outcome.happened == "done", f"{what}: expected no refusal, found {outcome.text}"
