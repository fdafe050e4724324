"""A node of PySyncObj with its journal, as it comes or tuned. Its journal is a mapped file that it does not sync.

usage: python -m bench.compare.programs.pysyncobj_node default|tuned ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from bench.compare.programs import loops

TUNED: dict[str, Any] = {
    "autoTickPeriod": 0.001,
    "appendEntriesPeriod": 0.003,
    "appendEntriesBatchSizeBytes": 1 << 20,
    "sendBufferSize": 1 << 20,
    "recvBufferSize": 1 << 20,
    "commandsQueueSize": 1_000_000,
}


def start(kind: str, number: int, directory: str, addresses: list[str]) -> Any:
    from pysyncobj import SyncObj, SyncObjConf, replicated

    class Values(SyncObj):  # type: ignore[misc]
        @replicated  # type: ignore[misc]
        def put(self, values: list[bytes]) -> None:
            """Nothing is kept but the log."""

    conf = SyncObjConf(journalFile=f"{directory}/journal", **(TUNED if kind == "tuned" else {}))
    others = [address for at, address in enumerate(addresses, 1) if at != number]
    return Values(addresses[number - 1], others, conf)


def main(kind: str, number: str, directory: str, *addresses: str) -> None:
    node = start(kind, int(number), directory, list(addresses))

    def submit(values: list[bytes], done: Callable[[object], None]) -> None:
        node.put(values, callback=lambda result, error: done(None if error == 0 else f"PySyncObj's error {error}"))

    def leads() -> bool:
        leader = node.getStatus()["leader"]
        return bool(node.isReady() and leader is not None and str(leader) == addresses[int(number) - 1])

    loops.serve(leads, lambda command: loops.run_with_callbacks(command, submit, time.sleep))


if __name__ == "__main__":
    main(*sys.argv[1:])
