"""One of the demo's brokers: `python -m fastquorum.cli.demo.cluster.member OPTIONS`, the options of `join` as JSON.

It holds no data, and says how it stands whenever that changes, as JSON lines. SIGTERM, or the end of stdin, makes it go
in good order.
"""

import json
import signal
import sys

from fastquorum import sync
from fastquorum.broker import View
from fastquorum.broker.partitions import held_partitions
from fastquorum.cli.terminal.stdin_end import terminate, when_stdin_ends


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    when_stdin_ends(terminate)
    membership = sync.join(**json.loads(sys.argv[1]))
    try:
        for view in membership.changes():
            _say(membership.broker_id, view)
    finally:
        membership.close()
        _say(membership.broker_id, membership.view)


def _say(broker_id: int, view: View) -> None:
    held = list(held_partitions(view.image.topics, broker_id))
    standing = {
        "state": view.state,
        "epoch": view.epoch,
        "reason": view.reason,
        "controller": view.controller.id if view.controller is not None else None,
        "holds": len(held),
        "leads": sum(each.is_leader for each in held),
    }
    print(json.dumps(standing), flush=True)


if __name__ == "__main__":
    main()
