"""Generated clusters of so many partitions, for the pipelines to look at.

One cluster has MANY at most; of more there are more clusters. Only one of them is generated: the others are its files
by other names, with a cluster's id of their own, and without the elections' state, which knows the id of the first. To
a pipeline, which tells clusters by their ids, they are clusters.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.generate import GenerateOptions, Span, generate
from fastquorum.kernels import load
from fastquorum.storage.identity import CLUSTER_ID
from fastquorum.storage.names import META_PROPERTIES, OWN_PROPERTIES, QUORUM_STATE
from fastquorum.storage.properties import parse_properties

MANY: Final = 1_000_000
"""Partitions of one cluster, at most. So large a one has 1,000 brokers, and others have 10."""
HOURS: Final = 24
REPLICAS: Final = 3


class Clusters(NamedTuple):
    """What was made."""

    generated: str
    """The directory of the one that was."""
    count: int
    start_offset: int
    """First offset of each log."""
    end_offset: int


NONE: Final = Clusters("", 0, 0, 0)


def make(root: Path, partitions: int) -> Clusters:
    """One, of so many partitions, in a directory below `root`."""
    brokers = 10 if partitions < MANY else 1000
    wanted = GenerateOptions(
        brokers=Span(brokers, brokers), partitions=Span(partitions, partitions), hours=HOURS, seed=1, replicas=REPLICAS
    )
    (cluster,) = generate(str(root), wanted, load("native"))["clusters"]
    return Clusters(str(root / cluster["directory"]), 1, cluster["start_offset"], cluster["end_offset"])


def many(made: Clusters, root: Path, count: int) -> Clusters:
    """So many clusters like the one that was generated, each in a directory below `root`."""
    for number in range(count):
        _again(Path(made.generated), root / f"cluster-{number:03}", number)
    return made._replace(count=count)


def _again(source: Path, target: Path, number: int) -> None:
    """The same cluster with another id, whose files take no room."""
    for file in sorted(each for each in source.rglob("*") if each.is_file() and each.name != QUORUM_STATE):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.name not in (META_PROPERTIES, OWN_PROPERTIES):
            os.link(file, copy)
            continue
        properties = file.read_bytes()
        cluster_id = parse_properties(properties)[CLUSTER_ID]
        copy.write_bytes(properties.replace(cluster_id.encode(), f"{number:03}{cluster_id[3:]}".encode()))
