"""Read barriers a second over commits a second, as many in flight: tasks on asyncio, or blocking threads.

Beside it, on asyncio: awaits of its own futures with nothing behind them.
"""

from pathlib import Path
from typing import Any, Final

from bench.figures.figure import Goal, Measured, Row, Setting, folder, over
from bench.figures.trio import Node, Trio

IN_FLIGHT: Final = 64
CALLERS: Final = (("asyncio", "tasks"), ("blocking", "threads"))
GOAL: Final = Goal(at_least=5.0)
Slice = dict[str, Any]


def measure(setting: Setting, directory: Path) -> Measured:
    rounds, seconds = setting.pick(9, 1), setting.pick(0.7, 0.1)
    measured = Measured(how={"in_flight": IN_FLIGHT, "rounds": rounds, "slice_s": seconds})
    for api, caller in setting.pick(CALLERS, CALLERS[1:]):
        with Trio(f"barriers, {api}", folder(directory, api), api) as trio:
            taken = _rounds(trio, caller, rounds, seconds)
        measured.details[api] = taken
        measured.rows += _rows(api, caller, taken)
    return measured


def _rounds(trio: Trio, caller: str, rounds: int, seconds: float) -> dict[str, list[Slice]]:
    taken: dict[str, list[Slice]] = {"append": [], "read_barrier": []}
    taken["window" if caller == "threads" else "bare_await"] = []
    leader = trio.await_leader()
    for what in taken:
        _slice(leader, caller, what, seconds)  # warm
    for turn in range(rounds):
        for what in taken if turn % 2 == 0 else reversed(taken):
            taken[what].append(_slice(leader, caller, what, seconds))
    return taken


def _slice(leader: Node, caller: str, what: str, seconds: float) -> Slice:
    if what == "window":
        return leader.ask("window", in_flight=IN_FLIGHT, appends=int(20_000 * seconds), batch=1)
    return leader.ask(caller, what=what, in_flight=IN_FLIGHT, seconds=seconds)


def _rows(api: str, caller: str, taken: dict[str, list[Slice]]) -> list[Row]:
    rates = {what: [float(each["per_s"]) for each in slices] for what, slices in taken.items()}
    name = f"read barriers, {api}, {IN_FLIGHT} {caller}"
    rows = [over(name, "/s", rates["read_barrier"], f"commits, {IN_FLIGHT} {caller}", rates["append"], GOAL)]
    if "window" in rates:
        yardstick = f"commits, a thread's window of {IN_FLIGHT}"
        rows.append(over(name, "/s", rates["read_barrier"], yardstick, rates["window"]))
    if "bare_await" in rates:
        rows.append(over(name, "/s", rates["read_barrier"], "awaits with nothing behind them", rates["bare_await"]))
    return rows
