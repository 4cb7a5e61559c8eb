"""Lets machines reach the sandbox's API server: a TCP forwarder from their world to loopback.

A program of its own, started by `world`: `forward.py HOLDER ADDRESS PORT LOOPBACK_PORT`. A child enters the
namespaces of the process HOLDER, listens there and hands the socket back; who has entered cannot leave.
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import sys

_LOOPBACK = "127.0.0.1"


def listen_inside(holder: int, address: str, port: int) -> socket.socket:
    """Return a socket that listens in the user and network namespaces of another process."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for kind in ("user", "net"):
            descriptor = os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY)
            if libc.setns(descriptor, 0) != 0:
                os.write(
                    2, f"cannot enter the {kind} namespace: {os.strerror(ctypes.get_errno())}\n".encode()
                )
                os._exit(1)
        server = socket.create_server((address, port), backlog=128)
        socket.send_fds(theirs, [b"here"], [server.fileno()])
        os._exit(0)
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    os.waitpid(child, 0)
    if not descriptors:
        sys.exit("the child could not listen")
    return socket.socket(fileno=descriptors[0])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def _serve(server: socket.socket, port: int) -> None:
    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(_LOOPBACK, port)
        except OSError:  # the API server may be away for a moment
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    serving = await asyncio.start_server(join, sock=server)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    await serving.serve_forever()


if __name__ == "__main__":
    holder, address, port, loopback_port = sys.argv[1:]
    asyncio.run(_serve(listen_inside(int(holder), address, int(port)), int(loopback_port)))
