"""A program that joins, in a process of its own: `python -m tests.broker.program BOOTSTRAP BROKER_ID`.

It says what happens as JSON lines, and on the line `act` it does what a holder does: it checks, and says under which
epoch it acts, or why it may not. SIGTERM makes it leave its block, and so go in good order.
"""

import json
import signal
import sys
import threading

from fastquorum import sync
from fastquorum.errors import FastQuorumError
from tests.broker.clusters import join

_guard = threading.Lock()


def say(event: str, **fields: object) -> None:
    with _guard:
        print(json.dumps({"event": event, **fields}), flush=True)


def tell(membership: sync.Membership) -> None:
    for view in membership.changes():
        say("state", state=view.state, epoch=view.epoch, reason=view.reason)


def act(membership: sync.Membership, epoch: int) -> None:
    try:
        say("acted", epoch=membership.check(epoch))
    except FastQuorumError as error:
        say("refused", error=type(error).__name__, text=str(error))


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with join(sys.argv[1], int(sys.argv[2])) as membership:
        threading.Thread(target=tell, args=(membership,)).start()
        epoch = membership.wait_active()
        say("active", epoch=epoch)
        for line in sys.stdin:
            if line.strip() == "act":
                act(membership, epoch)


if __name__ == "__main__":
    main()
