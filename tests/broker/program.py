"""A program that joins, in a process of its own: `python -m tests.broker.program BOOTSTRAP BROKER_ID [told]`.

It says what happens as JSON lines, and on the line `act` it does what a holder does: it checks, and says under which
epoch it acts, or why it may not; on `held`, which partitions it leads and which it follows. `told`: it is told that by
control requests. SIGTERM and SIGINT make it leave its block, and so go in good order.
"""

import json
import signal
import sys
import threading
from typing import Any

from fastquorum import sync
from fastquorum.errors import FastQuorumError
from fastquorum.types import Uuid
from tests.broker.clusters import join

DIRECTORY = Uuid(b"d" * 16)
"""The same in every run: what lay there is there again."""
OPTIONS: dict[str, Any] = {"control_requests": True, "host": "127.0.0.1", "port": 0, "log_dirs": [DIRECTORY]}
_guard = threading.Lock()


def say(event: str, **fields: object) -> None:
    with _guard:
        print(json.dumps({"event": event, **fields}), flush=True)


def tell(membership: sync.Membership) -> None:
    for view in membership.changes():
        say("state", state=view.state, epoch=view.epoch, reason=view.reason)
        if view.told is not None:
            held(membership, "told")


def held(membership: sync.Membership, event: str = "held") -> None:
    named: dict[bool, list[str]] = {True: [], False: []}
    for each in membership.partitions():
        named[each.is_leader].append(f"{each.topic}-{each.partition}")
    say(event, leads=named[True], follows=named[False])


def act(membership: sync.Membership, epoch: int) -> None:
    try:
        say("acted", epoch=membership.check(epoch))
    except FastQuorumError as error:
        say("refused", error=type(error).__name__, text=str(error))


def main() -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: sys.exit(0))
    is_pushed = "told" in sys.argv[3:]
    with join(sys.argv[1], int(sys.argv[2]), **(OPTIONS if is_pushed else {})) as membership:
        threading.Thread(target=tell, args=(membership,)).start()
        epoch = membership.wait_active()
        say("active", epoch=epoch, ports=[each.port for each in membership.listeners])
        for line in sys.stdin:
            if line.strip() == "act":
                act(membership, epoch)
            elif line.strip() == "held":
                held(membership)


if __name__ == "__main__":
    main()
