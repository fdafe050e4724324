"""A program that joins, in a process of its own: `python -m tests.broker.program BOOTSTRAP BROKER_ID`.

It says what happens as JSON lines, and on the line `act` it does what a holder does: it checks, and says under which
epoch it acts, or why it may not.
"""

import json
import signal
import sys
import threading

from fastquorum.broker import State
from fastquorum.errors import FastQuorumError
from tests.broker.clusters import join

_guard = threading.Lock()


def say(event: str, **fields: object) -> None:
    with _guard:
        print(json.dumps({"event": event, **fields}), flush=True)


def main() -> None:
    membership = join(sys.argv[1], int(sys.argv[2]))

    def tell() -> None:
        for view in membership.changes():
            say("state", state=view.state, epoch=view.epoch, reason=view.reason)
            if view.state is State.GONE:
                say("gone")

    telling = threading.Thread(target=tell)
    telling.start()
    signal.signal(signal.SIGTERM, lambda *_: membership.request_stop())
    epoch = membership.wait_active()
    say("active", epoch=epoch)
    for line in sys.stdin:
        if line.strip() == "act":
            try:
                say("acted", epoch=membership.check(epoch))
            except FastQuorumError as error:
                say("refused", error=type(error).__name__, text=str(error))
    telling.join()


if __name__ == "__main__":
    main()
