"""The network between nodes: a loopback proxy in front of each, which sees every vote and can misbehave one way only.

A link is (from, to). Who connected is found through /proc, so a fault holds from a connection's first byte on. One
thread serves all of it.
"""

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from fastquorum.errors import FastQuorumError
from fastquorum.node.io.sockets.listening import stop_listening
from fastquorum.wire import ApiKey, decode_request, decode_response
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, VoteRequest, VoteResponse
from tests.process.history import Ballots

Behaviour = Literal["pass", "blackhole", "trickle", "reset", "half-close"]
"""pass; swallow everything silently; one byte at a time; break off in the middle of a frame; end the stream one way."""
T = TypeVar("T")
_LINGER_0 = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class _Session:
    """One connection and the two streams of it."""

    source: int
    target: int
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    pending: dict[int, tuple[int, int, VoteRequest | None]] = field(default_factory=dict)


class _Frames:
    """Cuts a stream into frames, for looking only."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._data += data
        found = []
        while len(self._data) >= 4:
            (length,) = struct.unpack_from(">i", self._data)
            if length < 0 or len(self._data) < 4 + length:
                break
            found.append(bytes(self._data[4 : 4 + length]))
            del self._data[: 4 + length]
        return found


class Links:
    """Proxies for nodes; `public[n]` is the port peers know node n by. Close it."""

    def __init__(self, real_ports: dict[int, int], ballots: Ballots, pid_of: Callable[[int], int | None]) -> None:
        self.public: dict[int, int] = {}
        self.frames_seen = 0
        self._real = real_ports
        self._ballots = ballots
        self._pid_of = pid_of
        self._behaviours: dict[tuple[int, int], Behaviour] = {}
        self._sessions: list[_Session] = []
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        self._await(self._listen())

    # --- what tests do to it ------------------------------------------------------------------------------------------

    def set(self, behaviour: Behaviour, *links: tuple[int, int]) -> None:
        """How each link (from, to) behaves from now on; connections that stand are treated so too."""
        self._await(self._set(behaviour, links))

    def isolate(self, node_id: int, behaviour: Behaviour = "blackhole") -> None:
        """Both ways between the node and all others."""
        others = [other for other in self._real if other != node_id]
        self.set(behaviour, *[(node_id, other) for other in others], *[(other, node_id) for other in others])

    def heal(self) -> None:
        """All pass again. Connections that lost bytes are broken off: their streams have a hole."""
        self._await(self._heal())

    def close(self) -> None:
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- in the loop --------------------------------------------------------------------------------------------------

    def _await(self, work: Awaitable[T]) -> T:
        async def run() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(20)

    async def _listen(self) -> None:
        for node_id in self._real:
            # No coroutine: a task that is cancelled before it began would leave its connection open.
            def on_connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int = node_id) -> None:
                serving = self._loop.create_task(self._serve(reader, writer, target))
                serving.add_done_callback(lambda _: _abort(writer))

            server = await asyncio.start_server(on_connected, "127.0.0.1", 0)
            self._servers.append(server)
            self.public[node_id] = server.sockets[0].getsockname()[1]

    async def _set(self, behaviour: Behaviour, links: tuple[tuple[int, int], ...]) -> None:
        for link in links:
            self._behaviours[link] = behaviour

    async def _heal(self) -> None:
        damaged = {link for link, behaviour in self._behaviours.items() if behaviour != "pass"}
        self._behaviours.clear()
        for session in list(self._sessions):
            if {(session.source, session.target), (session.target, session.source)} & damaged:
                _break_off(session)

    async def _close(self) -> None:
        for server in self._servers:
            await stop_listening(server)
        me = asyncio.current_task()
        while rest := [task for task in asyncio.all_tasks() if task is not me]:
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close their sockets a turn later
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
        """One connection, from its beginning to its end; cancelled when all is closed."""
        source = self._owner(writer.get_extra_info("peername")[1])
        writers = [writer]
        try:
            server = await asyncio.open_connection("127.0.0.1", self._real[target])
            writers.append(server[1])
            session = _Session(source, target, (reader, writer), server)
            self._sessions.append(session)
            try:
                await asyncio.gather(
                    self._pump(session, reader, server[1], (source, target), is_request=True),
                    self._pump(session, server[0], writer, (target, source), is_request=False),
                )
            finally:
                self._sessions.remove(session)
        except (OSError, asyncio.CancelledError):
            pass  # nobody listens there, or all is over: asyncio would report a cancelled server task as an error
        finally:
            for each in writers:
                _abort(each)

    async def _pump(
        self,
        session: _Session,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        link: tuple[int, int],
        *,
        is_request: bool,
    ) -> None:
        frames = _Frames()
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                match self._behaviours.get(link, "pass"):
                    case "blackhole":
                        continue
                    case "reset":
                        writer.write(data[: len(data) // 2])
                        await writer.drain()
                        break
                    case "half-close":
                        writer.write_eof()
                        continue
                    case "trickle":
                        for at in range(len(data)):
                            writer.write(data[at : at + 1])
                            await writer.drain()
                            await asyncio.sleep(0)
                    case _:
                        writer.write(data)
                        await writer.drain()
                for frame in frames.feed(data):
                    self.frames_seen += 1
                    with contextlib.suppress(FastQuorumError):
                        self._look(session, frame, is_request)
        _break_off(session)

    def _look(self, session: _Session, frame: bytes, is_request: bool) -> None:
        """Votes and announcements, as they pass. A node that asks for votes has voted for itself."""
        if is_request:
            api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
            if api_key not in (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH):
                return
            _, message = decode_request(frame)
            where = f"wire, {session.source} to {session.target}"
            if isinstance(message, VoteRequest):
                session.pending[correlation_id] = (api_key, version, message)
                wanted = message.topics[0].partitions[0]
                if not wanted.pre_vote:
                    self._ballots.voted(wanted.replica_id, wanted.replica_epoch, wanted.replica_id, where)
            elif isinstance(message, BeginQuorumEpochRequest):
                begun = message.topics[0].partitions[0]
                self._ballots.led(begun.leader_epoch, begun.leader_id, where)
            return
        (correlation_id,) = struct.unpack_from(">i", frame)
        known = session.pending.pop(correlation_id, None)
        if known is None:
            return
        api_key, version, request = known
        _, response = decode_response(frame, api_key, version)
        if not isinstance(response, VoteResponse) or request is None or not response.topics:
            return
        wanted = request.topics[0].partitions[0]
        if response.topics[0].partitions[0].vote_granted and not wanted.pre_vote:
            where = f"wire, {session.target} to {session.source}"
            self._ballots.voted(session.target, wanted.replica_epoch, wanted.replica_id, where)

    def _owner(self, port: int) -> int:
        """The node whose process holds the socket with this local port; -1: nobody's."""
        with open("/proc/net/tcp") as table:
            lines = [line.split() for line in table]
        inodes = {f"socket:[{line[9]}]" for line in lines[1:] if int(line[1].rpartition(":")[2], 16) == port}
        for node_id in self._real:
            pid = self._pid_of(node_id)
            if pid is None:
                continue
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        if os.readlink(f"/proc/{pid}/fd/{name}") in inodes:
                            return node_id
        return -1


def _break_off(session: _Session) -> None:
    """Both ends get a reset."""
    for _, writer in (session.client, session.server):
        _abort(writer)


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.transport.is_closing():
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        writer.transport.abort()
