"""What it takes to await: a turn's worth of tasks are told in one callback of their loop, and wait again."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Any, Final

from bench.cases.setting import Setting
from bench.measure import MICROSECONDS, Case, Contender, Role

TASKS: Final = 64


def cases(setting: Setting) -> Iterator[Case]:
    contenders = [_contender(each.NAME, Role(each.NAME), each.Outcome, each.settle_all) for each in setting.kernels]
    contenders.append(_contender("asyncio's Future", Role.PEER, _future, _resolve_all))
    yield Case("an await, told in a callback", f"{TASKS} tasks", MICROSECONDS, contenders)


def _future(loop: asyncio.AbstractEventLoop) -> "asyncio.Future[int]":
    return loop.create_future()


def _resolve_all(futures: "Iterable[asyncio.Future[int]]", result: int) -> None:
    for future in futures:
        if not future.done():
            future.set_result(result)


def _contender(
    name: str, role: Role, new: Callable[[Any], Any], settle_all: Callable[[Iterable[Any], int], None]
) -> Contender:
    def run(repeat: int) -> float:
        turns = max(repeat // TASKS, 1)
        began = perf_counter_ns()
        asyncio.run(_awaited(new, settle_all, turns))
        return (perf_counter_ns() - began) / (turns * TASKS)

    return Contender(name, role, run, lambda: asyncio.run(_awaited(new, settle_all, 3)))


async def _awaited(
    new: Callable[[Any], Any], settle_all: Callable[[Iterable[Any], int], None], turns: int
) -> list[int]:
    """The sum of what each of the tasks was told."""
    loop = asyncio.get_running_loop()
    waiting: list[Any] = []

    def tell() -> None:
        settled = waiting[:]
        waiting.clear()
        settle_all(settled, 1)

    async def wait() -> int:
        total = 0
        for _ in range(turns):
            outcome = new(loop)
            if not waiting:
                loop.call_soon(tell)
            waiting.append(outcome)
            total += await outcome
        return total

    return list(await asyncio.gather(*(wait() for _ in range(TASKS))))
