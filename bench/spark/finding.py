"""What the audits find of what was planted in generated clusters: precision and recall, each pipeline for itself.

A clock is no part of it: the figure says whether all that is wrong is found, and nothing that is right is called wrong.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.figures.figure import Goal, Measured, Setting, alone
from bench.spark.sessions import spark_with
from fastquorum.generate import FINDERS, GenerateOptions, Kind, Span, generate
from fastquorum.kernels import load
from fastquorum.spark.engines import jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTERS, QUICK_CLUSTERS = 200, 8
OF_EACH, QUICK_OF_EACH = 5, 1
"""Planted, of each kind, over all clusters."""
BROKERS, PARTITIONS, HOURS, SEED = Span(4, 12), Span(1, 100), 24, 20_261_124
EXACT: Final = Goal(at_least=1)

Place = tuple[Any, ...]


def measure(setting: Setting, directory: Path) -> Measured:
    clusters, of_each = setting.pick((CLUSTERS, OF_EACH), (QUICK_CLUSTERS, QUICK_OF_EACH))
    setting.say(f"findings: generating {clusters} clusters ...")
    wanted = GenerateOptions(
        brokers=BROKERS,
        partitions=PARTITIONS,
        hours=HOURS,
        seed=SEED,
        clusters=clusters,
        faults=dict.fromkeys(Kind, of_each),
    )
    root = directory / "logs"
    faults = generate(str(root), wanted, load("native"))["planted"]
    planted = _planted(faults)
    # Damage is also what it is called where another pipeline meets it.
    everything = {(each["cluster_id"], each["kind"], each["offset"]) for each in faults}
    with spark_with(2) as spark:
        found = _found(spark, f"{root}/*")
    rows = []
    for pipeline, places in planted.items():
        seen = found[pipeline] = found[pipeline] - (everything - places)
        right = len(places & seen)
        rows.append(alone(f"{pipeline}: recall", "", [right / len(places)], EXACT))
        rows.append(alone(f"{pipeline}: precision", "", [right / max(len(seen), 1)], EXACT))
    details = {
        name: {"missed": sorted(planted[name] - found[name]), "invented": sorted(found[name] - planted[name])}
        for name in planted
    }
    how = {
        "clusters": clusters,
        "planted": sum(map(len, planted.values())),
        "partitions": str(PARTITIONS),
        "seed": SEED,
    }
    return Measured(rows, how, details)


def _planted(faults: Iterable[Mapping[str, Any]]) -> dict[str, set[Place]]:
    """Return the places where each pipeline should find something."""
    places: dict[str, set[Place]] = {finder.pipeline: set() for finder in FINDERS.values()}
    for each in faults:
        pipeline = FINDERS[Kind(each["kind"])].pipeline
        what = each["node_id"] if pipeline == "audit-replicas" else each["kind"]
        offset = () if pipeline == "anomalies" else (each["offset"],)
        places[pipeline].add((each["cluster_id"], what, *offset))
    return places


def _found(spark: "SparkSession", path: str) -> dict[str, set[Place]]:
    replicas = jobs.audit_replicas(spark, path).where("verdict != 'same'").collect()
    broken = jobs.audit_invariants(spark, path).where("is_violation").collect()
    unusual = jobs.anomalies(spark, path).where("kind is not null").collect()
    return {
        "audit-replicas": {(row["cluster_id"], row["node_id"], row["offset"]) for row in replicas},
        "audit-invariants": {(row["cluster_id"], row["kind"], row["offset"]) for row in broken},
        "anomalies": {(row["cluster_id"], row["kind"]) for row in unusual},
    }
