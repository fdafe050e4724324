"""Consumers that ask and do not read, and what a process has resident."""

import socket
import struct
from types import TracebackType
from typing import Final, Self

from fastquorum.types import Endpoint
from fastquorum.wire import encode_request, request_header
from fastquorum.wire.messages.fetch import FetchRequest
from tests.process.load import FETCH_VERSION, TOPIC

RECEIVE_BYTES: Final = 4096
ESTABLISHED: Final = "01"
"""In /proc/net/tcp."""


def resident_bytes(pid: int) -> int:
    """What the process has in memory now."""
    with open(f"/proc/{pid}/status") as text:
        line = next(line for line in text if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def peak_resident_bytes(pid: int) -> int:
    """The most since `forget_peak`."""
    with open(f"/proc/{pid}/status") as text:
        line = next(line for line in text if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def forget_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w") as control:
        control.write("5")


def fetch_frame(correlation_id: int, fetch_offset: int, bytes_max: int) -> bytes:
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(partition=0, fetch_offset=fetch_offset, partition_max_bytes=bytes_max)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=bytes_max,
        session_epoch=-1,
        topics=[topic(topic=TOPIC, partitions=[wanted])],
    )
    frame = encode_request(request_header(request, FETCH_VERSION, correlation_id, "test"), request)
    return struct.pack(">i", len(frame)) + frame


class StoppedConsumer:
    """Asks for `count` answers of `bytes_max` each, all at once, and reads none of them."""

    def __init__(self, endpoint: Endpoint, count: int, bytes_max: int, fetch_offset: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.settimeout(10.0)
        self._socket.connect((endpoint.host, endpoint.port))
        self._socket.sendall(b"".join(fetch_frame(each, fetch_offset, bytes_max) for each in range(count)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def wait_answered(self) -> None:
        """Return once the first answer has begun to come, without taking it."""
        self._socket.recv(1, socket.MSG_PEEK)

    def is_hung_up_on(self) -> bool:
        """Has the node closed its end? Its bytes still wait in the kernel: nobody reads them."""
        try:
            own, peer = self._socket.getsockname()[1], self._socket.getpeername()[1]
        except OSError:  # the kernel has given the connection up
            return True
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in list(table)[1:]]
        ends = [(_port(row[1]), _port(row[2]), row[3]) for row in rows]
        return (peer, own, ESTABLISHED) not in ends


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
