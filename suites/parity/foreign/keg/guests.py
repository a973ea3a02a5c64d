"""Containers and machines, one class each; what they have in common is in `Guest`."""

import asyncio
import json
import os
import re

import home
from home import No

#: What would steer docker, or any program, goes by a file that only its owner reads.
STEERS = re.compile(
    r"(?i)PATH|HOME|TMPDIR|USER|SHELL|NO_COLOR|(?:LD|DOCKER|BUILDKIT|COMPOSE|XDG|SSL|OTEL)_.*"
    r"|GO(?:DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|COVERDIR|RACE)|(?:HTTPS?|NO|ALL)_PROXY"
)


async def run(*argv, env=None):
    """Run a command to its end: status as a shell has it, output, errors."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env={**os.environ, **(env or {})},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError:
        raise No(f"{argv[0]} is not installed, or not on PATH") from None
    except OSError as error:
        raise No(f"{argv[0]} cannot be run: {error.strerror}") from None
    except ValueError:
        raise No(f"{argv[0]} cannot be run: a word or a value holds a NUL") from None
    out, err = await process.communicate()
    status = process.returncode
    return (status if status >= 0 else 128 - status), out, err


async def must(what, *argv, env=None):
    status, out, err = await run(*argv, env=env)
    if status:
        raise No(f"{what}: {argv[0]} says: {home.unsaid(err) or status}")
    return out.decode(errors="replace")


class Guest:
    """The guest of one bottle."""

    tool = ""
    is_anothers = False

    def __init__(self, identity):
        self.identity = identity
        self.name = f"bot-bottle-{identity}"
        self.literals, self.hidden = {}, {}

    async def launch(self, image, literals, hidden):
        self.literals, self.hidden = literals, hidden
        try:
            await self.make(image)
        except No:
            # It may be there all the same.
            if not self.is_anothers:
                await self.remove()
            raise

    async def remove(self):
        """Until its tool says that it is gone; what looks like an empty list may be no answer at all."""
        try:
            if await self.there() or await self.there():
                await self.delete()
                if await self.there():
                    raise No(f"{self.tool} has not removed it")
        except No as no:
            raise No(f"{self.name} may still be there: {no}") from None


class Docker(Guest):
    tool = "docker"

    @staticmethod
    async def names(*flags):
        """This home's containers: name → identity."""
        template = '{{.Label "keg.identity"}} {{.Names}}'
        condition = f"label=keg.home={home.OWNER}"
        text = await must("list containers", "docker", "ps", *flags, "--filter", condition, "--format", template)
        rows = [line.split(" ") for line in text.splitlines()]
        if not all(len(row) == 2 and all(row) for row in rows):
            raise No("list containers: docker says something else")
        return {name: identity for identity, name in rows}

    @classmethod
    async def active(cls):
        return sorted((await cls.names()).values())

    async def there(self):
        return (await self.names("-a")).get(self.name) == self.identity

    async def make(self, image):
        labels = {"keg.identity": self.identity, "keg.home": home.OWNER}
        flags = [word for pair in labels.items() for word in ("--label", "=".join(pair))]
        lines, env = [], {}
        for name, value in {**self.literals, **self.hidden}.items():
            try:
                is_line = len(value.encode()) < 60_000 and "\n" not in value and value[-1:] != "\r"
            except UnicodeEncodeError:
                is_line = False
            if STEERS.fullmatch(name) and not is_line:
                raise No(f"{name} steers docker itself, and its value is no line of a file")
            if is_line and (name in self.literals or STEERS.fullmatch(name)):
                lines.append(f"{name}={value}\n")
            else:
                flags += ["-e", name]
                env[name] = value
        with home.disk(f"hand variables to {self.name}"):
            (home.ROOT / "handed").mkdir(exist_ok=True)
            file = home.ROOT / "handed" / f"{self.identity}.env"
            file.unlink(missing_ok=True)
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handed:
                handed.write("".join(lines).encode())
        try:
            argv = ["docker", "run", "-d", "--name", self.name, *flags, "--env-file", str(file)]
            await must(f"start {self.name} on docker", *argv, image, "sleep", "infinity", env=env)
        finally:
            file.unlink(missing_ok=True)

    async def delete(self):
        await must("remove it", "docker", "rm", "--force", self.name)

    def command(self, words, *, user, flags=()):
        if not user:
            raise No("a script needs a user; docker would take that of the image")
        return ["docker", "exec", *flags, "--user", user, self.name, *words], {}

    async def copy(self, source, target):
        await must(f"copy {source}", "docker", "cp", source, f"{self.name}:{target}")

    async def apply(self, image):
        raise No(f"{image} is not applied to {self.identity}: keg changes no image of a docker bottle that runs")


class Machine(Guest):
    tool = "smolvm"

    @staticmethod
    async def states():
        """Every machine there is: name → state."""
        text = await must("list machines", "smolvm", "machine", "ls", "--json")
        try:
            return {row["name"]: row["state"] for row in json.loads(text)}
        except (ValueError, TypeError, LookupError):
            raise No("list machines: smolvm says something else") from None

    @classmethod
    async def active(cls):
        states = await cls.states()
        return [each for each in home.identities() if states.get(f"bot-bottle-{each}") == "running"]

    async def there(self):
        return self.name in await self.states()

    async def make(self, image):
        flags, env = self.flags()
        # One that is there already is not ours.
        self.is_anothers = True
        await must(f"create {self.name}", "smolvm", "machine", "create", "--name", self.name, "--image", image, *flags, env=env)
        self.is_anothers = False
        await must(f"start {self.name}", "smolvm", "machine", "start", "--name", self.name)

    def flags(self):
        written = [word for name, value in self.literals.items() for word in ("-e", f"{name}={value}")]
        mapped = [word for name in self.hidden for word in ("--secret-env", f"{name}=KEG_{name}")]
        return written + mapped, {f"KEG_{name}": value for name, value in self.hidden.items()}

    async def delete(self):
        await must("remove it", "smolvm", "machine", "delete", "--name", self.name, "--force")

    def command(self, words, *, user, flags=()):
        given, env = self.flags()
        other = [] if user == "root" else ["runuser", "-u", user, "--"]
        return ["smolvm", "machine", "exec", "--name", self.name, *flags, *given, "--", *other, *words], env

    async def copy(self, source, target):
        await must(f"copy {source}", "smolvm", "machine", "cp", source, f"{self.name}:{target}")

    async def apply(self, image):
        if home.fault("ends-before-it-refuses"):
            await self.delete()
        raise No(f"{image} is not applied to {self.identity}: smolmachines has no way to; start it anew")


KINDS = {"docker": Docker, "smolmachines": Machine}


def shell(script):
    return ["sh", "-c", script]
