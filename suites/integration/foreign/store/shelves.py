"""Sessions' files: every path is opened folder by folder, and no link is followed."""

import contextlib
import hashlib
import os
import re
import secrets
import stat
import threading
import time
from collections import defaultdict
from pathlib import Path

from web import FAULT, Refused, text_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
PATH = (str, 1, 1000, None)
TEXT = (str, 0, 2_000_000, None)
ENTRIES, MATCHES = 5000, 600


class Shelves:
    """The files of all sessions below one folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        (self.folder / "aside").mkdir(parents=True, exist_ok=True)
        self.locks = defaultdict(threading.RLock)

    def routes(self):
        """What the worker does with them."""
        here = (str, 1, 1000, ".")
        return {
            ("POST", "/fs/ls"): (self.listed, {"path": here, "recursive": (bool, 0, 0, False)}),
            ("POST", "/fs/read"): (self.read, {"path": PATH}),
            ("POST", "/fs/write"): (self.write, {"path": PATH, "content": TEXT}),
            ("POST", "/fs/edit"): (self.edit, {"path": PATH, "old": (str, 1, 2_000_000, None), "new": TEXT}),
            ("POST", "/fs/grep"): (self.grep, {"path": here, "pattern": (str, 1, 500, None)}),
            ("POST", "/fs/delete"): (self.delete, {"path": PATH}),
            ("GET", "/assets/"): (self.asset, None),
        }

    def listed(self, asked):
        """The entries of a folder."""
        with self.opened(asked) as root:
            parts = split(asked.body["path"])
            with folder_of(root, parts) as folder:
                found = []
                for each in entries(folder, "".join(f"{part}/" for part in parts), asked.body["recursive"]):
                    if len(found) == ENTRIES:
                        return {"entries": found, "truncated": True}
                    found.append(dict(zip(("path", "kind", "size_bytes"), each, strict=True)))
        return {"entries": found, "truncated": False}

    def read(self, asked):
        """A file's text."""
        with self.opened(asked) as root:
            data = content(root, asked.body["path"])
        return {"content": text(data), **about(asked.body["path"], data)}

    def write(self, asked):
        """A file is made, or replaced."""
        with self.opened(asked) as root:
            return self.put(root, asked.body["path"], asked.body["content"].encode(), make=True)

    def edit(self, asked):
        """A text that occurs once is replaced."""
        path, old, new = (asked.body[name].encode() for name in ("path", "old", "new"))
        lock = contextlib.nullcontext() if FAULT == "edits-side-by-side" else self.locks[asked.headers["x-session-id"]]
        with lock, self.opened(asked, locked=False) as root:
            data = content(root, path.decode())
            if FAULT == "edits-side-by-side":
                time.sleep(0.05)
            if data.count(old) != 1 or data.find(old, data.find(old) + 1) >= 0:
                raise Refused(409, "the text must occur exactly once")
            return self.put(root, path.decode(), data.replace(old, new), make=False)

    def grep(self, asked):
        """Lines that a pattern matches."""
        try:
            pattern = re.compile(asked.body["pattern"])
        except (re.error, OverflowError, RecursionError) as error:
            raise Refused(422, "the pattern is no regular expression") from error
        found, parts = [], split(asked.body["path"])
        with self.opened(asked) as root:
            if parts and is_file(root, parts):
                files = ["/".join(parts)]
            else:
                with folder_of(root, parts) as folder:
                    before = "".join(f"{part}/" for part in parts)
                    files = [path for path, kind, _ in entries(folder, before, True) if kind == "file"]
            for path in files:
                try:
                    lines = text(content(root, path)).split("\n")
                except Refused:
                    continue
                found += [{"path": path, "line": number, "text": line}
                          for number, line in enumerate(lines, 1) if pattern.search(line)]
        return {"matches": found[:MATCHES], "truncated": len(found) > MATCHES}

    def delete(self, asked):
        """A file or a folder goes."""
        parts = split(asked.body["path"])
        if not parts:
            raise Refused(422, "that is the session itself")
        with self.opened(asked) as root, folder_of(root, parts[:-1]) as folder:
            remove(folder, parts[-1])
        return {"path": asked.body["path"]}

    def asset(self, asked):
        """A file's bytes."""
        try:
            path = text_of(asked.rest.replace("+", "%2b"))
        except UnicodeDecodeError as error:
            raise Refused(400, "the path is no UTF-8") from error
        with self.opened(asked) as root:
            return content(root, path)

    @contextlib.contextmanager
    def opened(self, asked, locked=True):
        """The folder of the session, for one at a time."""
        name = asked.headers.get("x-session-id", "")
        if not NAME.fullmatch(name):
            raise Refused(422, "X-Session-ID is missing, or no name of a session")
        with self.locks[name] if locked else contextlib.nullcontext():
            place = self.folder / "of" / name
            place.mkdir(parents=True, exist_ok=True)
            root = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                yield root
            finally:
                os.close(root)

    def put(self, root, path, data, *, make):
        """Write aside, then into its place in one step."""
        parts = split(path)
        if not parts:
            raise Refused(422, "that is the session itself")
        aside = self.folder / "aside" / secrets.token_hex(8)
        aside.write_bytes(data)
        try:
            with folder_of(root, parts[:-1], make=make) as folder:
                if is_folder(folder, parts[-1]):
                    raise Refused(409, "there is a folder of that name")
                with naming():
                    os.rename(aside, parts[-1], dst_dir_fd=folder)
        finally:
            aside.unlink(missing_ok=True)
        return about(path, data)


def about(path, data):
    return {"path": path, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def text(data):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(415, "the file is no text") from error


def split(path):
    """The parts of a path that stays inside."""
    if path.startswith("/") or "\0" in path:
        raise Refused(403, "the path is none of the session")
    parts = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise Refused(403, "the path leads out of the session")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


@contextlib.contextmanager
def naming():
    try:
        yield
    except FileNotFoundError as error:
        raise Refused(404, "there is no such file") from error
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        raise Refused(409, "the path is of another kind") from error
    except OSError as error:
        raise Refused(422 if error.errno in (36, 22) else 409, "the path cannot be used") from error


@contextlib.contextmanager
def folder_of(root, parts, *, make=False):
    at = os.dup(root)
    try:
        for part in parts:
            with naming():
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                following = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = following
        yield at
    finally:
        os.close(at)


def mode_of(folder, name):
    with contextlib.suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    return 0


def is_folder(folder, name):
    return stat.S_ISDIR(mode_of(folder, name))


def is_file(root, parts):
    with folder_of(root, parts[:-1]) as folder:
        if not mode_of(folder, parts[-1]):
            raise Refused(404, "there is no such file")
        return stat.S_ISREG(mode_of(folder, parts[-1]))


def content(root, path):
    parts = split(path)
    if not parts:
        raise Refused(409, "that is a folder")
    with folder_of(root, parts[:-1]) as folder:
        with naming():
            file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise Refused(409, "that is no file")
        with open(file, "rb") as stream:
            return stream.read()


def entries(folder, before, recursive):
    for name in sorted(os.listdir(folder)):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "link" if stat.S_ISLNK(found.st_mode) else "file"
        yield before + name.encode("utf-8", "surrogateescape").decode(errors="replace"), kind, found.st_size
        if kind == "directory" and recursive:
            with folder_of(folder, [name]) as inner:
                yield from entries(inner, f"{before}{name}/", True)


def remove(folder, name):
    if not is_folder(folder, name):
        with naming():
            os.unlink(name, dir_fd=folder)
        return
    with folder_of(folder, [name]) as inner:
        for each in os.listdir(inner):
            remove(inner, each)
    os.rmdir(name, dir_fd=folder)
