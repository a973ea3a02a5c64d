"""Tattle: a daemon that speaks framed s-expressions, by a thread per client. Plain Python, no packages.

    TATTLE_HOME=DIR TATTLE_PORT=0 tattle.py     writes its port to DIR/port, and takes it away again
    tattle.py skills | gateways                 prints what it has

It has one home for one life, no settings but these, and no frame for an error: what it cannot read ends
the connection, what means nothing is not answered. TATTLE_FAULT names a planted fault (faults.toml).
"""

import codecs
import contextlib
import os
import queue
import re
import shlex
import signal
import socket  # lint: allow driver: a product, not a test
import string
import subprocess  # lint: allow driver: a product, not a test
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

LONGEST, DEPTH, CLIENTS = 65_536, 50, 64
IDLE_S, FRAME_S, WRITE_S, COMMAND_S = 12.0, 3.0, 10.0, 20.0
SKILLS = {"ping": "0.3", "weather": "2.0"}
BLANK = b" \t\r\n\f\v"
FAULT = os.environ.get("TATTLE_FAULT", "")


class MalformedError(Exception):
    """What is no message: the connection ends."""


class Key(str):
    """A keyword, without its colon."""

    __slots__ = ()


TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]+|;[^\n]*)|(?P<open>\()|(?P<close>\))|(?P<quote>')
    |"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>(?:[^ \t\r\n\f\v()"'`,;|\\]|\\.|\|(?:[^|\\]|\\.)*\|)+)""",
    re.VERBOSE | re.DOTALL,
)
NUMBER = re.compile(
    r"[+-]?(\d+\.?|\d+/\d+|\d*\.\d+(e[+-]?\d+)?|\d+(\.\d*)?e[+-]?\d+)", re.ASCII | re.IGNORECASE
)


def word(raw):
    """What a word stands for."""
    if raw.startswith("#"):
        raise MalformedError
    if NUMBER.fullmatch(raw):
        if re.search(r"/0+$", raw):
            raise MalformedError
        plain = re.fullmatch(r"[+-]?\d{1,9}(\.\d{0,9}|/\d{1,9})?", raw, re.ASCII)
        return Fraction(raw) if plain else Fraction(0)
    plain = re.fullmatch(r"[^|\\]+", raw)
    if plain:
        name = "".join(c.upper() if len(c.upper()) == 1 else c for c in raw)
    else:
        name = re.sub(r"\\(.)|\|", r"\1", raw, flags=re.DOTALL)
    if plain and name == "NIL":
        return []
    if plain and (name.strip(".") == "" or name.strip(":") == "" or name[1:].count(":") > 1):
        raise MalformedError
    return Key(name[1:]) if raw.startswith(":") else (name,)


def read(payload):  # noqa: C901 - one loop over tokens
    """The one form of a payload: lists, texts, keywords; of numbers and names that they are there."""
    at, stack, done = 0, [[]], []
    kinds = ["whole"]
    while at < len(payload):
        match = TOKEN.match(payload, at)
        if match is None:
            raise MalformedError
        at, kind = match.end(), match.lastgroup
        if kind == "blank" or (kind is None and match[0].isspace()):
            continue
        if kind in {"open", "quote"}:
            if len(stack) > DEPTH:
                raise MalformedError
            stack.append([])
            kinds.append(kind)
            continue
        if kind == "close":
            if kinds[-1] != "open":
                raise MalformedError
            done, _ = undotted(stack.pop()), kinds.pop()
        elif kind == "text":
            done = "text:" + re.sub(r"\\(.)", r"\1", match["text"], flags=re.DOTALL)
        elif match[0] == ".":
            done = None
        else:
            done = word(match[0])
        while kinds[-1] == "quote" and done is not None:
            kinds.pop()
            stack.pop()
            done = ("QUOTE", done)
        stack[-1].append(done)
    if len(stack) != 1 or len(stack[0]) != 1 or stack[0][0] is None:
        raise MalformedError
    return stack[0][0]


def undotted(items):
    """A list whose end may stand behind a dot."""
    if None not in items:
        return items
    if items.index(None) != len(items) - 2 or items.count(None) > 1 or len(items) < 3:
        raise MalformedError
    return [*items[:-2], *items[-1]] if isinstance(items[-1], list) else tuple(items)


def properties(form):
    """A property list as a dictionary; of equal keys the first counts. None for anything else."""
    if (
        not isinstance(form, list)
        or len(form) % 2
        or not all(isinstance(k, Key) for k in form[::2])
    ):
        return None
    return dict(reversed(list(zip(form[::2], form[1::2], strict=True))))


class Client(threading.Thread):
    """One connection: a request, its answer, the next request."""

    def __init__(self, house, sock):
        super().__init__(daemon=True)
        self.house, self.sock, self.buffer = house, sock, b""
        self.until = 0.0

    def run(self):
        """Greet, and answer until the end."""
        with contextlib.suppress(MalformedError, OSError):
            self.say(
                '(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE :VERSION "tattle 2" :CAPABILITIES (:TEXT)))'
            )
            while (payload := self.payload()) is not None:
                message = properties(read(payload))
                if not message:
                    raise MalformedError
                if answer := self.house.answer(message):
                    self.say(answer)
        self.house.left(self)

    def say(self, payload):
        """Send a frame."""
        self.sock.settimeout(WRITE_S)
        self.sock.sendall(f"{len(payload):06X}{payload}".encode())

    def some(self, most):
        """At most so many bytes; none at the end."""
        while not self.buffer:
            self.sock.settimeout(max(0.001, self.until - time.monotonic()))
            if not (data := self.sock.recv(65_536)):
                return b""
            self.buffer = data
        taken, self.buffer = self.buffer[:most], self.buffer[most:]
        return taken

    def payload(self):
        """The next payload; None at the end between two frames."""
        idle_s = 1e6 if FAULT == "never-idle" else IDLE_S
        self.until = time.monotonic() + idle_s
        while (first := self.some(1)) and first in BLANK:
            pass
        if not first:
            return None
        self.until = time.monotonic() + FRAME_S
        prefix = first
        while len(prefix) < 6:
            if not (more := self.some(6 - len(prefix))):
                raise MalformedError
            prefix += more
        return self.characters(length_of(prefix))

    def characters(self, count):
        """The text of a payload of so many characters."""
        if count > LONGEST:
            raise MalformedError
        decoder, text = codecs.getincrementaldecoder("utf-8")(), []
        have = 0
        while have < count:
            if not (more := self.some(count - have)):
                raise MalformedError
            try:
                text.append(decoder.decode(more))
            except UnicodeDecodeError as error:
                raise MalformedError from error
            have += len(text[-1])
        return "".join(text)


def length_of(prefix):
    """The number that six digits stand for."""
    if FAULT != "reads-other-digits" and not set(prefix) <= set(string.hexdigits.encode()):
        raise MalformedError
    try:
        return int(prefix, 16)
    except ValueError as error:
        raise MalformedError from error


class House:
    """All clients, and the one pipeline that answers their texts in turn."""

    def __init__(self, home):
        self.home, self.clients, self.kept = home, set(), []
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.texts, self.commands = queue.Queue(), set()
        threading.Thread(target=self.pipeline, daemon=True).start()

    def pipeline(self):
        """Answer texts, one after the other."""
        while (asked := self.texts.get()) is not None:
            text, answered = asked
            said = "pong" if text == "ping" else f"I was told {len(text)} characters."
            answered.put(
                "(:META (:SOURCE :TUI) :TYPE :REQUEST :PAYLOAD "
                f'(:ACTION :MESSAGE :TEXT "{said}" :EXPLANATION "that is all I know"))'
            )

    def answer(self, message):
        """What is answered to a message; nothing, to one that means nothing."""
        kind, payload = message.get("TYPE"), properties(message.get("PAYLOAD")) or {}
        if not isinstance(kind, Key):
            return None
        if kind == "HEALTH-CHECK":
            return "(:TYPE :HEALTH-RESPONSE :STATUS :HEALTHY :CHECKED-P T)"
        if kind == "EVENT":
            return self.event(payload, message.get("META", []))
        if kind == "REQUEST":
            return self.request(message.get("TARGET"), payload)
        return None

    def event(self, payload, meta):
        """What is answered to an event."""
        sensor, text = payload.get("SENSOR"), payload.get("TEXT")
        if sensor == Key("USER-INPUT") and is_text(text) and properties(meta) is not None:
            answered = queue.Queue()
            self.texts.put((text.removeprefix("text:"), answered))
            return answered.get()
        if sensor == Key("HEARTBEAT") and FAULT == "answers-heartbeats":
            return "(:TYPE :EVENT :PAYLOAD (:SENSOR :HEARTBEAT))"
        if sensor != Key("HEARTBEAT") and FAULT == "stops-at-odd-events":
            self.texts.put(None)
        return None

    def request(self, target, payload):
        """What is answered to a request."""
        action, command = payload.get("ACTION"), payload.get("CMD")
        if (target, action) == ("DAEMON", "SHUTDOWN"):
            self.stopping.set()
            return "(:TYPE :EVENT :PAYLOAD (:SENSOR :SHUTTING-DOWN))"
        if (target, action) == ("SHELL", "EXECUTE") and is_text(command):
            return self.execute(command.removeprefix("text:"), payload.get("TIMEOUT"))
        return None

    def execute(self, command, seconds):
        """Run one of few programs, without a shell, and answer its outcome; anything else is blocked."""
        known = re.fullmatch(
            r"(echo|sleep|pwd|true)((?: [\w.:-]+)*)(?: > ([\w-]+\.txt))?", command, re.ASCII
        )
        if not known:
            return '(:TYPE :LOG :PAYLOAD (:LEVEL :ERROR :TEXT "blocked: no such command is run"))'
        box = self.home / "box"
        into = Path(box / known[3]).open("wb") if known[3] else subprocess.PIPE
        child = subprocess.Popen(
            shlex.split(known[1] + known[2]), cwd=box, stdout=into, stderr=subprocess.PIPE
        )
        if known[3]:
            into.close()
        with self.lock:
            self.commands.add(child)
        limit = seconds if isinstance(seconds, Fraction) and 0 < seconds < COMMAND_S else COMMAND_S
        try:
            output = child.communicate(timeout=float(limit))
        except subprocess.TimeoutExpired:
            child.kill()
            output = child.communicate()
        with self.lock:
            self.commands.discard(child)
        stdout, stderr = (re.sub(r'([\\"])', r"\\\1", (each or b"").decode()) for each in output)
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
        return (
            f'(:TYPE :EVENT :PAYLOAD (:SENSOR :SHELL-RESPONSE :CMD "{command}" :STDOUT "{stdout}" '
            f':STDERR "{stderr}" :EXIT-CODE {status}))'
        )

    def came(self, sock):
        """A client has connected."""
        client = Client(self, sock)
        with self.lock:
            self.clients.add(client)
        client.start()

    def left(self, client):
        """A client has gone."""
        with self.lock:
            self.clients.discard(client)
            if FAULT == "keeps-sockets":
                self.kept.append(client.sock.dup())
        with contextlib.suppress(OSError):
            client.sock.shutdown(socket.SHUT_RDWR)
        client.sock.close()

    def stop(self):
        """End all connections and commands."""
        with self.lock:
            for client in self.clients:
                with contextlib.suppress(OSError):
                    client.sock.shutdown(socket.SHUT_RDWR)
            for child in self.commands:
                child.kill()


def is_text(form):
    """Whether a form is a text."""
    return type(form) is str


def serve(home):
    """Until SIGTERM, SIGINT or a client's request."""
    (home / "life").mkdir()  # one home for one life
    (home / "box").mkdir(exist_ok=True)
    wanted = int(os.environ.get("TATTLE_PORT", "9105"))
    try:
        listener = socket.create_server(("127.0.0.1", wanted), backlog=256)
    except OSError as error:
        return f"tattle: no port {wanted}: {error}"
    house, port_file = House(home), home / "port"
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: house.stopping.set())
    port_file.write_text(f"{listener.getsockname()[1]}\n")
    listener.settimeout(0.1)
    while not house.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            sock, _ = listener.accept()
            if len(house.clients) < CLIENTS:
                house.came(sock)
            else:
                sock.close()
    listener.close()
    house.stop()
    if FAULT != "keeps-its-port-file":
        port_file.unlink()
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["skills"]:
        print("\n".join(f"{name:<12} version {version}" for name, version in SKILLS.items()))  # noqa: T201
    elif sys.argv[1:] == ["gateways"]:
        print("terminal (TUI): keyboard and screen")  # noqa: T201
    else:
        sys.exit(serve(Path(os.environ["TATTLE_HOME"])))
