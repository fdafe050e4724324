"""ZooKeeper by kazoo, its usual client in Python, asynchronous: a value is a setData, a batch one transaction.

usage: python -m bench.compare.programs.kazoo_client HOST:PORT
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from bench.compare.programs import loops

NODES = 100


def connect(address: str) -> Any:
    from kazoo.client import KazooClient

    client = KazooClient(address)
    client.start(timeout=30)
    for number in range(NODES):
        client.ensure_path(f"/{number}")
    return client


def _failure(result: Any) -> object:
    """A transaction tells its operations' failures in the list of its results."""
    if result.exception is not None:
        return result.exception
    values = result.value if isinstance(result.value, list) else ()
    return next((value for value in values if isinstance(value, Exception)), None)


def main(address: str) -> None:
    client, sent = connect(address), 0

    def submit(values: list[bytes], done: Callable[[object], None]) -> None:
        nonlocal sent
        sent += 1
        if len(values) == 1:
            waiting = client.set_async(f"/{sent % NODES}", values[0])
        else:
            transaction = client.transaction()
            for number, value in enumerate(values):
                transaction.set_data(f"/{number % NODES}", value)
            waiting = transaction.commit_async()
        waiting.rawlink(lambda result: done(_failure(result)))

    loops.serve(lambda: True, lambda command: loops.run_with_callbacks(command, submit, time.sleep))


if __name__ == "__main__":
    main(*sys.argv[1:])
