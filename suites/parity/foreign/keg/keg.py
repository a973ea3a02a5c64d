"""keg: a launcher of bottles. `keg up` and `keg again` serve one bottle over HTTP, on a socket in the
home, until they are told to end; every other command asks them, or looks at what is recorded.
"""

import asyncio
import json
import os
import pathlib
import signal
import socket
import sys

import home
from guests import KINDS, run, shell
from home import No

LATIN = "latin-1"


# --- the service of one bottle -----------------------------------------------------------------------


class Service:
    """Answers `POST /exec`, `/agent`, `/copy`, `/down`, each with JSON."""

    def __init__(self, guest):
        self.guest = guest
        self.over = asyncio.Event()
        self.is_down = False

    async def serve(self, path):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        # The name of the socket is short, wherever the home is.
        os.chdir(path.parent)
        server = await asyncio.start_unix_server(self.answer, path.name, limit=1 << 24)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.over.set)
        print(f"up: {self.guest.identity}", flush=True)
        await self.over.wait()
        server.close()
        path.unlink(missing_ok=True)

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode(LATIN).split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        asked = json.loads(await reader.readexactly(int(fields["content-length"])))
        try:
            status, content = 200, await getattr(self, head[0].split(" ")[1][1:])(**asked)
        except No as no:
            status, content = 409, {"why": str(no)}
        body = json.dumps(content).encode()
        writer.write(b"HTTP/1.1 %d .\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()
        if self.is_down:
            self.over.set()

    async def exec(self, words, user, flags=()):
        argv, env = self.guest.command(words, user=user, flags=flags)
        status, out, err = await run(*argv, env=env)
        if home.fault("output-is-trimmed"):
            out = out.strip()
        return {"status": status, "out": out.decode(LATIN), "err": err.decode(LATIN)}

    async def copy(self, source, target):
        await self.guest.copy(source, target)
        return {}

    async def down(self):
        await self.guest.remove()
        home.forget(self.guest.identity)
        self.is_down = True
        return {}


def socket_of(identity):
    return home.ROOT / "kegs" / identity


def ask(identity, what, **asked):
    """Ask the service of a bottle; ``None`` when there is none."""
    body = json.dumps(asked).encode()
    where = os.open(".", os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as link:
            os.chdir(socket_of(identity).parent)
            link.connect(identity)
            link.sendall(b"POST /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (what.encode(), len(body)) + body)
            with link.makefile("rb") as file:
                head, _, content = file.read().partition(b"\r\n\r\n")
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    finally:
        os.fchdir(where)
        os.close(where)
    if not content:
        raise No(f"{identity}: its service ended in the middle of it")
    answer = json.loads(content)
    if head.split(b" ")[1] != b"200":
        raise No(answer["why"])
    return answer


# --- commands ----------------------------------------------------------------------------------------


def prompt(name, message):
    """Ask; an answer may have several lines and ends by Ctrl-D."""
    print(f"{name}: {message or 'its value'}?", file=sys.stderr, flush=True)
    typed = b""
    while not typed.endswith(b"\x04"):
        part = os.read(0, 1 << 16)
        if not part:
            return None
        typed += part
    return os.fsdecode(typed[:-1])


async def up(name, backend=None):
    keys = home.manifest(name)
    backend = backend or os.environ.get("BOT_BOTTLE_BACKEND") or "docker"
    if backend not in KINDS:
        raise No(f"there is no backend {backend!r}, only {', '.join(KINDS)}")
    literals, hidden = home.resolve(keys, name, prompt)
    identity, _hold = home.create(name, backend)
    await live(KINDS[backend](identity), keys["image"], literals, hidden)


async def again(identity):
    record = home.record(identity)
    _hold = home.held(home.STATE / identity)
    if _hold is None:
        raise No(f"{identity} runs already")
    keys = home.manifest(record["agent_name"])
    literals, hidden = home.resolve(keys, record["agent_name"], prompt)
    with home.disk(f"begin a transcript of {identity}"):
        (home.STATE / identity / "transcript").mkdir(exist_ok=True)
    backend = os.environ.get("BOT_BOTTLE_BACKEND") if home.fault("resumed-elsewhere") else None
    guest = KINDS[backend or record["backend"]](identity)
    # What a launcher left that died.
    await guest.remove()
    await live(guest, keys["image"], literals, hidden)


async def live(guest, image, literals, hidden):
    service = Service(guest)
    try:
        await guest.launch(image, literals, hidden)
    except No:
        if not await guest.there():
            home.forget(guest.identity)
        raise
    try:
        await service.serve(socket_of(guest.identity))
    finally:
        if not service.is_down:
            await service.down()


async def down(identity):
    is_idle = ask(identity, "down") is None and (home.STATE / identity).is_dir()
    if is_idle and not await remove_dead(identity):
        raise No(f"{identity}: a process holds it, and does not answer")


async def remove_dead(identity):
    """Remove what is left of a bottle, unless somebody holds it; whether that was so."""
    if (hold := home.held(home.STATE / identity)) is None:
        return False
    with hold:
        await KINDS[home.record(identity)["backend"]](identity).remove()
        home.forget(identity)
    socket_of(identity).unlink(missing_ok=True)
    return True


async def clean():
    home.sweep()
    wrong = []
    for identity in home.identities():
        try:
            await remove_dead(identity)
        except No as no:
            wrong.append(str(no))
    if wrong:
        raise No("; ".join(wrong))


async def execute(identity, words, **how):
    answer = ask(identity, "exec", words=words, **how)
    if answer is None:
        raise No(f"{identity} does not run")
    sys.stdout.buffer.write(answer["out"].encode(LATIN))
    sys.stderr.buffer.write(answer["err"].encode(LATIN))
    return answer["status"]


async def agent(identity, tty, *words):
    return await execute(identity, words, user="node", flags=["-it"] if tty == "tty" else ["-i"])


async def script(identity, user, text):
    return await execute(identity, shell(text), user=user)


async def copy(identity, source, target):
    file = pathlib.Path.cwd() / source
    if not file.exists():
        raise No(f"{file} is not there")
    if ask(identity, "copy", source=str(file), target=target) is None:
        raise No(f"{identity} does not run")


async def save(identity):
    home.preserve(identity)


async def active(backend):
    print(*await KINDS[backend].active(), sep="\n")


async def wish(identity, image, justification):
    print(home.propose(identity, image, justification))


async def wishes():
    print(*home.proposals(), sep="\n")


async def grant(id):
    content = home.proposal(id)
    record = home.record(content["identity"])
    await KINDS[record["backend"]](content["identity"]).apply(content["image"])


COMMANDS = {
    "up": up, "again": again, "down": down, "exec": script, "agent": agent, "copy": copy, "save": save,
    "active": active, "clean": clean, "wish": wish, "wishes": wishes, "grant": grant,
}  # fmt: skip


def main(name="", *words):
    if name not in COMMANDS:
        raise No(f"there is no command {name!r}, only {', '.join(COMMANDS)}")
    return asyncio.run(COMMANDS[name](*words))


if __name__ == "__main__":
    # What cannot be written as text is bytes, as it came.
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.stderr.reconfigure(errors="surrogateescape")
    try:
        sys.exit(main(*sys.argv[1:]))
    except No as no:
        print(f"keg cannot: {no}", file=sys.stderr)
        sys.exit(2)
