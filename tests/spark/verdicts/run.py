"""Many worlds, one after the other; each that something is wrong in is printed, with the seed that shows it again."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from fastquorum.spark.engines.engine import Engine
from fastquorum.spark.engines.opening import engine
from tests.spark.verdicts.worlds import faults

_REPORT_EVERY: Final = 50
_SPARK: Final = "local[2]"


def verdicts(root: Path, worlds: int, *, seed: int, by_spark: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Worlds `seed`, `seed` + 1 and so on, checked. `by_spark`: Spark must say the same of each.

    AssertionError: something is wrong in some; it says what, and how to see that again.
    """
    failures: dict[int, list[str]] = {}
    with _others(by_spark=by_spark) as others:
        for number, at in enumerate(range(seed, seed + worlds), start=1):
            try:
                found = list(faults(at, root / "world", others))
            except Exception as error:
                error.add_note(f"in world {at}: {_again(at)}")
                raise
            if found:
                failures[at] = found
                say(f"world {at}: {json.dumps(found, indent=2)}")
                say(_again(at))
            if number % _REPORT_EVERY == 0:
                say(f"{number} of {worlds} worlds, {len(failures)} with a wrong verdict")
    assert not failures, (
        f"wrong verdicts in worlds {', '.join(map(str, failures))}: --seed N --worlds 1 shows one again"
    )
    return {"worlds": worlds, "seed": seed, "by_spark": by_spark}


def _again(seed: int) -> str:
    return f"again: python -m tests.spark.campaign verdicts --seed {seed} --worlds 1"


@contextlib.contextmanager
def _others(*, by_spark: bool) -> Iterator[dict[str, Engine]]:
    if not by_spark:
        yield {}
        return
    with engine(_SPARK) as spark:
        yield {"Spark": spark}
