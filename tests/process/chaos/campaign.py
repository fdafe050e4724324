"""Histories of chaos, one after the other, each of a cluster of its own and a seed of its own; the report as JSON.

    python -m tests.process.campaign chaos --histories 20 --seconds 30 --report FILE

Exit code 0 if every history is linearizable, nothing acknowledged is lost, doubled or moved, all replicas are the same,
nobody voted twice, no node crashed or ended by itself without a fault that explains it (`ends`), and each cluster
commits again once everything has healed. Needs root, network namespaces and loop mounts. A history that fails keeps
its directories where --directory says.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.process.chaos.run import Report, one_history


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30, help="how long each is hurt")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the next ones count up")
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--directory", type=Path, help="keep the nodes' directories here")


def run(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="fastquorum-chaos-") as temporary:
        for seed in range(arguments.seed, arguments.seed + arguments.histories):
            report = one_history((arguments.directory or Path(temporary)) / f"history{seed}", seed, arguments.seconds)
            reports.append(report)
            verdict = "; ".join(report.problems[:3]) or "linearizable, nothing lost"
            print(
                f"{len(reports)}/{arguments.histories}, seed {seed}: {report.operations} operations, {verdict}",
                flush=True,
            )
    figures = summary(reports) | {"took_s": round(time.monotonic() - began, 1)}
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.report is not None:
        arguments.report.write_text(text + "\n")
    return 1 if figures["failed"] else 0


def summary(reports: list[Report]) -> dict[str, Any]:
    faults: Counter[str] = Counter()
    for report in reports:
        faults.update(report.faults)
    return {
        "histories": len(reports),
        "operations": sum(report.operations for report in reports),
        "acknowledged": sum(report.acknowledged for report in reports),
        "unknown": sum(report.unknown for report in reports),
        "barriers": sum(report.barriers for report in reports),
        "epochs_with_leader": sum(report.epochs for report in reports),
        "given_up": sum(report.given_up for report in reports),
        "faults": dict(sorted(faults.items())),
        "failed": [report.as_json() for report in reports if report.problems],
    }
