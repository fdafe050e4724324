"""Other projects' own test suites against Kafka's brokers on Kafka's controllers, and then on ours."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .brokers import cluster
from .kafka import Kafka
from .nodes import DIRECTORY_IDS
from .suites import SUITES, Results

ON_KAFKA: Final = "on Kafka's controllers"
ON_OURS: Final = "on ours"
SIDES: Final[Mapping[str, Sequence[int]]] = {ON_KAFKA: tuple(DIRECTORY_IDS), ON_OURS: ()}
"""Which controllers are Kafka's."""


def suites(
    kafka: Kafka, only: Sequence[str], tests: Sequence[str], directory: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Each suite on both sides, one side after the other. `problems`: what passes on Kafka's controllers alone.

    `only`: names of suites, `tests`: of their tests; all if empty. `directory`: where their sources and what they print
    are kept.
    """
    results: dict[str, dict[str, Results]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for side, theirs in SIDES.items():
            name = "ours" if not theirs else "kafka"
            with cluster(kafka, Path(scratch) / name, theirs=theirs, settings={}) as quorum:
                for suite in SUITES:
                    if only and suite.name not in only:
                        continue
                    place = (directory or Path(scratch)) / f"{suite.name}-{name}"
                    place.mkdir(parents=True)
                    found = suite.run(quorum.bootstrap, place, tests)
                    results.setdefault(suite.name, {})[side] = found
                    say(f"{suite.name} {side}: {_counts(found)}")
    return report(results)


def report(results: Mapping[str, Mapping[str, Results]]) -> dict[str, Any]:
    """Counts of each suite on each side, which tests differ, and which of these are problems."""
    different: dict[str, dict[str, str]] = {}
    problems = []
    for suite, sides in results.items():
        on_kafka, on_ours = sides[ON_KAFKA], sides[ON_OURS]
        for test in sorted({*on_kafka, *on_ours}):
            theirs, ours = on_kafka.get(test, "absent"), on_ours.get(test, "absent")
            if theirs != ours:
                different[f"{suite}: {test}"] = {ON_KAFKA: theirs, ON_OURS: ours}
                if theirs == "passed":
                    problems.append(f"{suite}: {test} passes on Kafka's controllers, and on ours it is {ours}")
    return {
        "suites": {suite: {side: _counts(found) for side, found in sides.items()} for suite, sides in results.items()},
        "failed_on_both": sorted(
            f"{suite}: {test}"
            for suite, sides in results.items()
            for test, verdict in sides[ON_KAFKA].items()
            if verdict == "failed" == sides[ON_OURS].get(test)
        ),
        "different": different,
        "problems": problems,
    }


def _counts(found: Results) -> dict[str, int]:
    verdicts = list(found.values())
    return {verdict: verdicts.count(verdict) for verdict in ("passed", "failed", "skipped")}
