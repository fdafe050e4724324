"""Records a second in batches of 1,000 over three C processes that ship, write and sync the same bytes.

The rounds of `bench compare`, with ours alone.
"""

from pathlib import Path
from typing import Final

from bench.compare.contenders import CONTENDERS
from bench.compare.goals import ASYNCIO, BLOCKING
from bench.compare.run import Comparison, Lengths
from bench.compare.workload import BATCHES
from bench.figures.figure import Goal, Measured, Setting, alone, over

OVER_FLOOR, A_SECOND = Goal(at_least=0.6), Goal(at_least=1_000_000.0)
FLOOR: Final = "C floor"


def measure(setting: Setting, directory: Path) -> Measured:
    rounds = setting.pick(5, 1)
    lengths = Lengths(*setting.pick((2.0, 0.5), (0.15, 0.05)), 0.1 if setting.is_quick else 1.0, not setting.is_quick)
    contenders = [each for each in CONTENDERS if each.name in setting.pick((ASYNCIO, BLOCKING), (BLOCKING,))]
    comparison = Comparison(str(directory), setting.has_compiler, lengths, counts_syncs=False)
    taken = comparison.run(contenders, [BATCHES], rounds)
    measured = Measured(how={"rounds": rounds, "slice_s": lengths.slice_s, "batches_in_flight": BATCHES.in_flight})
    measured.notes += taken.failures
    for contender in contenders:
        slices = taken.slices.get((contender.name, BATCHES.name), [])
        what = f"records in batches of 1,000, {contender.name}"
        rates = [each.figures.commits_per_s for each in slices]
        floors = [each.floor.commits_per_s for each in slices if each.floor is not None]
        if rates:
            measured.rows.append(alone(what, "/s", rates, A_SECOND))
        if floors:
            measured.rows.append(over(what, "/s", rates, FLOOR, floors, OVER_FLOOR))
    if not setting.has_compiler:
        measured.notes.append("left out: C floor: no C compiler; Debian, Ubuntu: apt install gcc")
    return measured
