"""A worker of a Dask cluster on a machine of its own: its network namespace has a loopback and no more.

Run as ``cluster_worker.py SCHEDULER_PORT WORKER_PORT FOLDER``. Sockets with a path reach across
network namespaces: in FOLDER one leads to the scheduler, and one from there to this worker. With a
last word ``outside`` it is the other end of both, on the machine of the scheduler. Without a FOLDER it
is an ordinary worker.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def loopback_up() -> None:
    """What a new network namespace lacks."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


async def relay(listen: int | Path, target: int | Path) -> asyncio.Server:
    """Pass on every connection to a port or a path to another, both ways."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        with suppress(OSError):
            writer.close()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(target, int):
                there = await asyncio.open_connection("127.0.0.1", target)
            else:
                there = await asyncio.open_unix_connection(target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    if isinstance(listen, int):
        return await asyncio.start_server(accepted, "127.0.0.1", listen)
    return await asyncio.start_unix_server(accepted, listen)


async def outside(scheduler: int, port: int, folder: Path) -> None:
    """Pass on what comes, until it is killed."""
    ways = [
        await relay(port, folder / f"worker-{port}.sock"),
        await relay(folder / "scheduler.sock", scheduler),
    ]
    await asyncio.gather(*(way.serve_forever() for way in ways))


async def main(scheduler: int, port: int, folder: Path | None) -> None:
    """Work until it is killed."""
    from distributed import Worker

    if folder is not None:
        loopback_up()
        await relay(scheduler, folder / "scheduler.sock")
        await relay(folder / f"worker-{port}.sock", port)
    address = f"tcp://127.0.0.1:{scheduler}"
    async with Worker(
        address, host="127.0.0.1", port=port, nthreads=1, dashboard_address=":0", name=str(port)
    ) as worker:
        await worker.finished()


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[3:]:
        asyncio.run(outside(int(words[0]), int(words[1]), Path(words[2])))
    asyncio.run(main(int(words[0]), int(words[1]), Path(words[2]) if words[2:] else None))
