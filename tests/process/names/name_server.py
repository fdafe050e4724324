"""A name server for a test: it answers as it is told, late, wrongly, or not at all. Source: RFC 1035."""

import ipaddress
import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import Final

NO_ERROR: Final = 0
SERVER_FAILURE: Final = 2
NO_SUCH_NAME: Final = 3
_TYPES: Final = {1: 4, 28: 6}
"""A and AAAA, and the IP version of each."""
_TTL_S: Final = 0
_HEADER_BYTES: Final = 12


@dataclass(frozen=True)
class Entry:
    """The response for a name."""

    addresses: tuple[str, ...] = ()
    code: int = NO_ERROR
    delay_s: float = 0.0
    is_silent: bool = False


SILENT: Final = Entry(is_silent=True)
FAILING: Final = Entry(code=SERVER_FAILURE)
UNKNOWN: Final = Entry(code=NO_SUCH_NAME)


class NameServer:
    """Serves `zone`, which may change at any time, on 127.0.0.1:53; other names are unknown."""

    def __init__(self, zone: dict[str, Entry]) -> None:
        self.zone = zone
        self.is_silent = False
        """For every name."""
        self.questions: dict[str, int] = {}
        """How often each name was asked for."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self._serve, name="name-server", daemon=True).start()

    def wait_queried(self, name: str, within_s: float) -> None:
        """Until somebody asks for it."""
        until = time.monotonic() + within_s
        while name not in self.questions:
            assert time.monotonic() < until, f"nobody asks for {name}"
            time.sleep(0.02)

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(512)
            name, end = _name(query)
            self.questions[name] = self.questions.get(name, 0) + 1
            entry = self.zone.get(name, UNKNOWN)
            if entry.is_silent or self.is_silent:
                continue
            response = _response(query, end, entry)
            if entry.delay_s:
                threading.Timer(entry.delay_s, self._socket.sendto, (response, client)).start()
            else:
                self._socket.sendto(response, client)


def _name(query: bytes) -> tuple[str, int]:
    """The name in the question, and where that ends."""
    labels = []
    at = _HEADER_BYTES
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(labels).lower(), at + 1


def _response(query: bytes, end: int, entry: Entry) -> bytes:
    version = _TYPES.get(int.from_bytes(query[end : end + 2], "big"))
    addresses = [ipaddress.ip_address(each) for each in entry.addresses]
    packed = [each.packed for each in addresses if each.version == version]
    header = query[:2] + struct.pack(">HHHHH", 0x8180 | entry.code, 1, len(packed), 0, 0)
    question = query[_HEADER_BYTES : end + 4]
    answers = [b"\xc0\x0c" + query[end : end + 4] + struct.pack(">IH", _TTL_S, len(each)) + each for each in packed]
    return header + question + b"".join(answers)
