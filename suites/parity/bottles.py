"""Bottles that differ in everything that could be mixed up, and values of every class.

A scenario that starts one of these looks at all of it: at every variable, by value, and at every
place where a value could be read that only the guest may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from suites.parity.compare import exposures
from suites.parity.launcher import Bottle, Launcher
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import IMAGE, Refusal, World

__all__ = [
    "AROUND",
    "LONG",
    "OF_THE_HOST",
    "SHAPES",
    "WELL_KNOWN",
    "Rich",
    "images",
    "look",
    "of_every_shape",
    "of_the_manifest",
    "try_to_start",
]

#: What can stand around the middle of a value: class → before, behind.
AROUND: Final[Mapping[str, tuple[str, str]]] = {
    "plain": ("", ""),
    "spaces": ("  ", "  "),
    "tabs": ("\t", "\t"),
    "newlines": ("\n", "\n\n"),
    "carriage": ("\r", "\r"),
    "crlf": ("one\r\n", "\r\n"),
    "double": ('"', '"'),
    "single": ("'", "'"),
    "shell": ("$HOME `id` $(id) ", "; id | cat > /tmp/x && id # "),
    "equals": ("=", "=="),
    "pair": ("EVIL=1\nINJECTED=", ""),
    "backslash": ("\\", "\\n\\"),
    "flag": ("-e EVIL=1 ", " --rm"),
    "hash": ("# ", " # "),
    "percent": ("%s %d ", "%(a)s{0}{{.Id}}"),
    "glob": ("*", "?[a-z]{a,b}"),
    "yaml": ("- a: ", " # no: [x], {y}"),
    "umlaut": ("Zürich ", " ß"),
    "nepali": ("नेपाल ", " काठमाडौं"),
    "emoji": ("🍾", "🏔️"),
    "marks": ("e\u0301", "\u2028\u0085\ufeff"),
    "control": ("\x1b[31m", "\x07\x7f"),
    "json": ('{"a": "', '"}\\u0041'),
    "case": ("AbC", "aBc"),
}

#: Lengths in bytes: about what a line, a pipe or an argument takes, and beyond it.
LONG: Final = (4_097, 59_000, 65_530, 65_536, 65_537, 100_001, 120_000)

#: What a value would set if its lines were taken for entries of their own.
_SPLIT_OFF: Final = ("EVIL", "INJECTED", "LINE_TWO")

#: A value of this name can reach a container by a file alone.
_STEERING: Final = ("DOCKER_HOST",)

#: Variables that a host often has, and an agent could use; and what they hold here.
WELL_KNOWN: Final = (
    *("SSH_AUTH_SOCK", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG"),
    *("GIT_AUTHOR_NAME", "GIT_SSH_COMMAND", "EDITOR", "COLORTERM", "CI", "NO_PROXY", "no_proxy"),
)
OF_THE_HOST: Final = "of-the-host-alone"

SHAPES: Final = (*AROUND, *(f"long_{size}" for size in LONG))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rich:
    """A manifest with literals, secrets that are typed in and variables of the host.

    Attributes:
        name: of the manifest.
        image: what it is made of.
        literals: guest name → value.
        typed: guest name → what is typed in at each start.
        given: guest name → value of the host's variable, which is called ``H_`` and that name.
    """

    name: str
    image: str = IMAGE
    literals: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def marked(cls, name: str, mark: str, *, image: str = IMAGE) -> Rich:
        """One whose variables are called as those of every other, and whose values are its own."""
        return cls(
            name=name,
            image=image,
            literals={
                "GREETING": f"canary-hello-{mark}",
                "LINES": f"canary-one-{mark}\nLINE_TWO=canary-{mark}\n",
                "EMPTY": "",
                "SPACES": f"  canary-spaces-{mark}  ",
            },
            typed={"TOKEN": f"canary-typed-{mark}", "KEY": f"canary-key={mark}\nof 'two' lines "},
            given={
                "GIVEN": f"canary-given-{mark}",
                "DOCKER_HOST": f"tcp://canary-{mark}:1",
                "BLANK": "",
            },
        )

    @property
    def env(self) -> dict[str, str]:
        """What the guest must see."""
        return {**self.literals, **self.typed, **self.given}

    @property
    def hidden(self) -> dict[str, str]:
        """The values that only the guest may see."""
        return {name: value for name, value in {**self.typed, **self.given}.items() if value}

    def write(self, world: World) -> None:
        """Write the manifest, and set the host's variables."""
        entries = dict(self.literals)
        entries |= {name: f"?Value of {name}" for name in self.typed}
        entries |= {name: f"${{H_{name}}}" for name in self.given}
        self.set_variables(world)
        world.write_bottle(self.name, {"image": self.image, "env": entries})

    def set_variables(self, world: World) -> None:
        """Set the host's variables."""
        world.environ |= {f"H_{name}": value for name, value in self.given.items()}

    def type_in(self, world: World) -> None:
        """Answer the prompts of the next start or resume."""
        world.answers += self.typed.values()

    def exposed(self, world: World) -> dict[str, tuple[str, ...]]:
        """Where its hidden values can be read outside the guest: place → variables.

        The env file of a container is for literals, but for what would steer docker itself.
        """
        for_literals = {name: value for name, value in self.hidden.items() if name not in _STEERING}
        env_files = {"env files": [text for _, text in world.docker.env_files]}
        return {
            **exposures(self.hidden, world.readable()),
            **exposures(for_literals, env_files),
        }


def of_every_shape(kind: str, *, shapes: tuple[str, ...] = SHAPES) -> dict[str, str]:
    """Values of each class: a variable named after the class → a value with a canary in it."""
    values: dict[str, str] = {}
    for shape in shapes:
        name = f"{kind}_{shape}".upper()
        middle = f"canary-{kind}-{shape}"
        if shape in AROUND:
            before, behind = AROUND[shape]
            values[name] = f"{before}{middle}{behind}"
        else:
            values[name] = middle.ljust(
                int(shape.rpartition("_")[2]), "0123456789"[len(middle) % 10]
            )
    return values


def try_to_start(
    world: World, launcher: Launcher, name: str = "dev"
) -> tuple[Refusal, dict[str, str]]:
    """Start a bottle on this world's backend, and end it: what became of it, what its guest saw."""
    inside: dict[str, str] = {}
    with (
        world.may_refuse(launcher.errors) as outcome,
        launcher.start(name, backend=world.backend) as bottle,
    ):
        inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
    return outcome, inside


def look(bottle: Bottle, rich: Rich, *, user: str = "node") -> dict[str, Any]:
    """What a script in a guest sees of its manifest's variables, and which others hold a value of it."""
    return of_the_manifest(read_environment(bottle.exec(ENVIRONMENT, user=user).stdout), rich)


def of_the_manifest(inside: Mapping[str, str], rich: Rich) -> dict[str, Any]:
    """What an environment has of a manifest's variables, and which others hold one of its values."""
    values = {value for value in rich.env.values() if value}
    return {
        "env": {name: inside[name] for name in rich.env if name in inside},
        "elsewhere": sorted(
            name
            for name, value in inside.items()
            if name not in rich.env and (value in values or name in _SPLIT_OFF)
        ),
    }


def images(world: World, identities: list[str]) -> list[str]:
    """What the running guests of these bottles are made of; none for a tool without guests."""
    return [
        guest.image
        for identity in identities
        for name, guest in world.guests().items()
        if guest.is_running and name.split()[1].endswith(identity)
    ]
