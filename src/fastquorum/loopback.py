"""Where nodes listen that run on this machine for a while: of the demo, the load generator, tests, benchmarks."""

import random
import socket
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
PORTS: Final = range(20_000, 32_000)
"""Below the ports that the system assigns by itself: one of those could be taken before it is listened on."""


def free_ports(count: int) -> list[int]:
    """Return free ports, all different. OSError if there are not so many."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        with socket.socket() as each, suppress(OSError):  # taken: the next
            each.bind((HOST, port))
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports on {HOST} from {PORTS.start} to {PORTS.stop - 1}")
    return found
