"""A daemon of the same wire with fewer capabilities: a proxy of the reference that removes some.

A test subject for the suite itself (``test_foreign.py``). Against the reference it

- writes its prefixes in lower case, and a newline after every frame;
- never reports the outcome of a shell command;
- does not answer user input without META;
- takes its port from its command line, knows no shutdown command, and has none of the reference's settings.

Usage: ``lesser.py PORT COMMAND …``, where COMMAND starts the reference on a free port and prints it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys

ADDRESS = re.compile(rb"listening on 127\.0\.0\.1:(\d+)")
CHUNK_BYTES = 65_536


async def read_frame(reader: asyncio.StreamReader) -> str:
    """The payload of one frame of the reference."""
    count = int(await reader.readexactly(6), 16)
    raw = b""
    while len(raw.decode(errors="ignore")) < count or _cut(raw):
        raw += await reader.readexactly(1)
    return raw.decode()


def _cut(raw: bytes) -> bool:
    """Whether the last character is not whole yet."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """From the reference to the client, less what this daemon does not do."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            payload = await read_frame(reader)
            if ":SHELL-RESPONSE" in payload or ":SOURCE :UNKNOWN" in payload:
                continue
            writer.write(f"{len(payload):06x}{payload}\n".encode())
            await writer.drain()
    writer.close()


async def requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """From the client to the reference, as it comes."""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def main(port: int, command: list[str]) -> int:
    """Serve until SIGTERM or SIGINT."""
    reference = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert reference.stdout is not None
    line = await reference.stdout.readline()
    match = ADDRESS.search(line)
    if match is None:
        return 1
    upstream = int(match[1])

    serving = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # asyncio itself holds its tasks weakly, and would lose a connection to the collector.
        serving.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            back, forth = await asyncio.open_connection("127.0.0.1", upstream)
            sending = asyncio.create_task(requests(reader, forth))
            await answers(back, writer)
            sending.cancel()
            forth.close()
        serving.discard(asyncio.current_task())

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        print(f"lesser: cannot listen: {error}", file=sys.stderr, flush=True)  # noqa: T201 - a command line
        reference.terminate()
        await reference.wait()
        return 1
    print(f"lesser: serving on {port}", flush=True)  # noqa: T201
    await stopped.wait()
    server.close()
    reference.terminate()
    await reference.wait()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]), sys.argv[2:])))
