"""Faults at length, on real processes under load, and what they cost: ratios measured in one run, as JSON.

    python -m tests.process.faults.campaign --report FILE
    python -m tests.process.faults.campaign --only slow-follower --seconds 10 --rounds 5

Fails if anything acknowledged is lost, somebody votes twice, or a fault deposes a leader that it must not depose.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastquorum.errors import FastQuorumError
from tests.process.faults import scenarios
from tests.process.faults.scenarios import Plan, Report


def overload(plan: Plan) -> Report:
    """`fastquorum load --sweep`, which ends with twice the knee: throughput over the knee's, memory, elections."""
    words = ["load", "--sweep", "--seconds", str(plan.seconds), "--data", str(plan.root), "--format", "json"]
    plan.root.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "fastquorum.cli", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["overload"] is not None, "no knee was found"
    last = max(report["steps"], key=lambda step: step["started"])
    plan.tell(f"twice the knee: {report['overload']['achieved_over_knee']:.2f} of the knee's throughput")
    assert report["overload"]["elections"] == [], "twice the knee cost an election"
    assert report["overload"]["errors"].keys() <= {"overloaded", "not_sent", "in_flight_bound"}, report["overload"][
        "errors"
    ]
    return {
        "knee": report["knee"],
        "overload": report["overload"],
        "resident_mib_max": max(node["resident_bytes_max"] for node in last["nodes"]) >> 20,
        "ratios": [
            {"of": "twice the knee", "to": "the knee", "achieved_per_s": report["overload"]["achieved_over_knee"]}
        ],
    }


SCENARIOS: Mapping[str, Callable[[Plan], Report]] = {
    "slow-follower": scenarios.slow_follower,
    "hung-leader": scenarios.hung_leader,
    "late-voter": scenarios.late_voter,
    "stopped-consumers": scenarios.stopped_consumers,
    "observers": scenarios.joining_observers,
    "pauses": scenarios.pauses,
    "computing": scenarios.computing,
    "overload": overload,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.process.faults.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="this scenario; may be given again")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measured stretch (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="alternations of each scenario (default: 5)")
    parser.add_argument("--megabytes", type=int, default=300, help="that a late voter has to fetch (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--directory", type=Path, help="keep the nodes' directories here")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="fastquorum-faults-") as temporary:
        for name in arguments.only or SCENARIOS:
            results[name] = _run(name, arguments, (arguments.directory or Path(temporary)) / name)
    text = json.dumps({"seed": arguments.seed, "scenarios": results}, indent=2)
    print(text)
    if arguments.report is not None:
        arguments.report.write_text(text + "\n")
    return 1 if any(each["failure"] for each in results.values()) else 0


def _run(name: str, arguments: argparse.Namespace, root: Path) -> Report:
    """One scenario; a failure is part of the report, and the others go on."""
    began_s, report, failure = time.monotonic(), Report(), ""
    print(f"== {name}: {(SCENARIOS[name].__doc__ or '').strip()}", file=sys.stderr, flush=True)
    plan = Plan(root, arguments.seconds, arguments.rounds, arguments.megabytes, arguments.seed, _tell)
    try:
        report = SCENARIOS[name](plan)
    except (AssertionError, FastQuorumError) as error:
        failure = f"{type(error).__name__}: {error}"
        _tell(failure)
    return {**report, "took_s": round(time.monotonic() - began_s, 1), "failure": failure}


def _tell(text: str) -> None:
    """Progress, beside the figures."""
    print(f"   {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
