"""Reports of pipelines that find things wrong, as large as somebody may have them."""

import random
from typing import Any

import pyarrow as pa

from fastquorum.controller.planning import Limits
from fastquorum.spark.pages.placement import LOSSES_MAX, MOVES_MAX
from fastquorum.spark.pipelines.image_diff import SCHEMA as CHANGES
from fastquorum.spark.pipelines.image_diff import as_report as as_diff_report
from fastquorum.spark.pipelines.invariants.findings import SCHEMA as FINDINGS
from fastquorum.spark.pipelines.invariants.findings import as_report as as_invariants_report
from fastquorum.spark.pipelines.placement import as_report as as_placement_report
from fastquorum.spark.pipelines.placement import placement
from tests.spark.pipelines.test_placement import real, schema

TOPIC = "orders <&> \u202ereturns"


def real_placement() -> dict[str, Any]:
    """Return the placement of the real cluster, after a broker was killed."""
    found = real("c1", Limits())
    return as_placement_report([("usACA5tBSrKS64DhDt4jig", found)], moves_max=MOVES_MAX, losses_max=LOSSES_MAX)


def large_placement(brokers: int = 1000, partitions: int = 20_000) -> dict[str, Any]:
    """A third of the partitions crowd on few brokers; some brokers are fenced."""
    chance = random.Random(7)
    rows = []
    for number in range(partitions):
        crowded = [number % 40, 40 + number % 50, 90 + number % 900]
        replicas = crowded if number % 3 == 0 else chance.sample(range(brokers), 3)
        rows.append(
            {
                "topic": f"{TOPIC}-{number // 100}",
                "partition": number % 100,
                "leader": next((each for each in replicas if each % 250), -1),
                "replicas": replicas,
                "isr": replicas if number % 17 else replicas[:1],
                "elr": [],
                "adding_replicas": [],
                "removing_replicas": [],
                "end_offset": 70,
            }
        )
    things = [
        {"broker_id": each, "rack": f"rack{each % 12}", "fenced": each % 250 == 0, "in_controlled_shutdown": False}
        for each in range(brokers)
    ]
    least = {"resource_type": "broker", "resource_name": "", "name": "min.insync.replicas", "value": "2"}
    tables = zip(("partitions", "brokers", "configs"), (rows, things, [least]), strict=True)
    found = placement(*(pa.Table.from_pylist(each, schema(name)) for name, each in tables))
    return as_placement_report([("large", found)], moves_max=MOVES_MAX, losses_max=LOSSES_MAX)


def invariants(count: int, clusters: int = 1) -> dict[str, Any]:
    """So many violations in each of so many clusters, and a note."""
    kinds = ("partition-epoch-jump", "fenced-leads", "partition-epoch-jump")
    rows = [
        {
            "cluster_id": f"cluster-{cluster}",
            "node_ids": [1, 2, None],
            "directories": ["/a", "/b", "/c"],
            "kind": kinds[number % 3],
            "is_violation": True,
            "promise": f"what {kinds[number % 3]} breaks",
            "offset": number * 7,
            "topic": TOPIC,
            "topic_id": "id",
            "partition": number,
            "says": f"epoch {number}",
            "before": "epoch 2",
            "before_offset": 1,
        }
        for cluster in range(clusters)
        for number in range(count)
    ]
    note = {"kind": "torn-end", "is_violation": False, "promise": "an end may be torn", "says": "9 bytes"}
    rows.append({"cluster_id": "cluster-0", "node_ids": [1], "directories": ["/a"], **note})
    return {"logs": 3 * clusters, **as_invariants_report(pa.Table.from_pylist(rows, FINDINGS))}


def image_diff(count: int, clusters: int = 1) -> dict[str, Any]:
    """So many changes in each of so many clusters; the last could not be compared whole."""
    sides = {"from_offset": 10, "to_offset": 99}
    rows = [
        {
            "cluster_id": f"cluster-{cluster}",
            "other_cluster_id": f"cluster-{cluster}",
            **sides,
            "kind": ("topic", "broker")[number % 2],
            "name": f"{TOPIC}-{number}",
            "change": ("created", "gone", "changed")[number % 3],
            "fields": [],
            "after": '{"partitions": 3}',
            "words": f"{TOPIC}-{number} is another",
        }
        for cluster in range(clusters)
        for number in range(count)
    ]
    last = f"cluster-{clusters - 1}"
    rows.append({"cluster_id": last, "other_cluster_id": last, **sides, "error": "bytes are damaged"})
    return as_diff_report(pa.Table.from_pylist(rows, CHANGES))
