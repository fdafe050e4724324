"""The leader's process killed under load, until somebody else acknowledges a commit, over many kills.

Each node appends by itself, at a fixed pace, for as long as it leads, as a program does that embeds it. The time is
from just before SIGKILL to the return of the next leader's first append, on the clock that all processes share. The
yardstick is two election timeouts, the longest that one lost election takes: nobody waits for the fetch timeout when a
process is gone. The killed node is started again, and the next kill waits until it has caught up.
"""

import time
from pathlib import Path
from typing import Any, Final

from bench.compare.cluster import ContenderFailed
from bench.facts import percentile
from bench.figures.figure import Goal, Measured, Row, Setting
from bench.figures.trio import LOOK_S, Node, Trio
from bench.measure import Spread
from fastquorum.config import QuorumConfig

APPENDS_PER_MS: Final = 4
COMMITS_BEFORE: Final = 200
"""Commits of a leader before it is killed."""
PATIENCE_S: Final = 60.0
QUICK: Final = {"fetch_timeout_us": 400_000, "election_timeout_us": 200_000, "election_backoff_us_max": 200_000}


def measure(setting: Setting, directory: Path) -> Measured:
    options: dict[str, Any] = setting.pick({}, QUICK)
    config = QuorumConfig(**options)
    bound_s = 2 * config.election_timeout_us / 1e6
    kills = setting.pick(setting.kills, 2)
    taken: list[dict[str, Any]] = []
    interrupted = False
    with Trio("failover", directory, options=options) as trio:
        for node in trio.nodes:
            node.ask("pump", appends_per_ms=APPENDS_PER_MS)
        for number in range(kills):
            try:
                taken.append(_kill_once(trio))
            except KeyboardInterrupt:
                if not taken:
                    raise
                interrupted = True
                break
            _tell(setting, number + 1, kills, taken)
    return _measured(taken, bound_s, interrupted)


def _kill_once(trio: Trio) -> dict[str, Any]:
    leader = trio.await_leader()
    epoch = _await_commits(leader)
    others = [node for node in trio.nodes if node is not leader]
    killed_ns = leader.kill()
    heir, led, found = _await_first_commit(others, epoch)
    leader.start_again()
    leader.ask("pump", appends_per_ms=APPENDS_PER_MS)
    _await_caught_up(leader, heir.ask("who")["high_watermark"])
    return {
        "seconds": (found["first_ns"] - killed_ns) / 1e9,
        "until_elected_s": (found["led_ns"] - killed_ns) / 1e9,
        "epochs": led - epoch,
    }


def _await_commits(leader: Node) -> int:
    """The epoch in which it has committed enough."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        epochs = leader.ask("pumped")["epochs"]
        if epochs:
            epoch = max(map(int, epochs))
            if epochs[str(epoch)]["commits"] >= COMMITS_BEFORE:
                return epoch
        time.sleep(LOOK_S)  # between two looks
    raise ContenderFailed(f"failover: the leader does not commit within {PATIENCE_S:.0f} s")


def _await_first_commit(nodes: list[Node], epoch: int) -> tuple[Node, int, dict[str, int]]:
    """Return the node that acknowledged the first commit of a later epoch, that epoch, and the node's notes on it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for node in nodes:
            epochs = node.ask("pumped")["epochs"]
            later = [int(led) for led in epochs if int(led) > epoch]
            if later:
                return node, min(later), epochs[str(min(later))]
        time.sleep(LOOK_S)  # between two looks: the nodes note the time themselves
    raise ContenderFailed(f"failover: nobody commits within {PATIENCE_S:.0f} s after the leader was killed")


def _await_caught_up(node: Node, offset: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while node.ask("who")["high_watermark"] < offset:
        if time.monotonic() > deadline:
            raise ContenderFailed(f"failover: a restarted node does not catch up within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)  # between two looks


def _tell(setting: Setting, done: int, kills: int, taken: list[dict[str, Any]]) -> None:
    if done % 10 == 0 or done == kills:
        slowest = max(each["seconds"] for each in taken)
        setting.say(f"failover: {done} of {kills} kills, the slowest {slowest:.2f} s ...")


def _measured(taken: list[dict[str, Any]], bound_s: float, interrupted: bool) -> Measured:
    micros = [round(each["seconds"] * 1e6) for each in taken]
    name = f"2 x election timeout, {bound_s:g} s"
    bound = Spread(bound_s, bound_s, bound_s)
    rows = [
        Row(what, "s", _same(seconds), name, bound, _same(seconds / bound_s), goal)
        for what, seconds, goal in (
            ("killed until the next commit, p50", percentile(micros, 50) / 1e6, None),
            ("killed until the next commit, p99", percentile(micros, 99) / 1e6, Goal(at_most=1.0)),
            ("killed until the next commit, the slowest", max(micros) / 1e6, None),
        )
    ]
    how = {"kills": len(taken), "bound_s": bound_s, "appends_per_ms": APPENDS_PER_MS}
    notes = ["interrupted: fewer kills than were asked for"] if interrupted else []
    return Measured(rows, how, {"kills": taken}, notes)


def _same(value: float) -> Spread:
    return Spread(value, value, value)
