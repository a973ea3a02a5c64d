"""A terminal of a test's own: what a command writes to it, and what a person then sees."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

ROWS, COLUMNS = 40, 100

_CODE = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])")


class Terminal:
    """A process on a terminal.

    Attributes:
        process: what runs on it.
    """

    def __init__(self, command, *, cwd):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        env = {key: value for key, value in os.environ.items() if key not in {"CI", "NO_COLOR"}}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours
        self._pieces = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self._ours, 65_536)
            except OSError:  # the last process has left it
                piece = b""
            if not piece:
                os.close(self._ours)
                return
            self._pieces.append(piece)

    @property
    def written(self):
        """All that was written so far."""
        return b"".join(self._pieces).decode("utf-8", "replace")

    def wait(self, seconds):
        """Its end: status, and what was written."""
        status = self.process.wait(seconds)
        self._reader.join(seconds)
        return status, self.written


def seen(written):
    """The lines that stand there, once cursor movements and erasures are done."""
    lines, row, column, at = [[]], 0, 0, 0
    while at < len(written):
        if code := _CODE.match(written, at):
            count, letter = code.groups()
            if letter == "A":
                row = max(0, row - int(count or 1))
            elif letter == "K":
                lines[row] = [] if count == "2" else lines[row][:column]
            at = code.end()
            continue
        character = written[at]
        at += 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
        else:
            lines[row] += " " * (column - len(lines[row]))
            lines[row][column : column + 1] = character
            column += 1
        lines += [[] for _ in range(row + 1 - len(lines))]
    return ["".join(line).rstrip() for line in lines]
