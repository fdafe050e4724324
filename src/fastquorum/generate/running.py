"""Generates all clusters, one after another, and the list of the clusters and of what is planted: `planted.json`.

An unfinished cluster has a name that no pattern takes for a directory of logs (`.cluster-001`), and is removed if it
fails; the list comes last. So after any early end of a run, a cluster with its own name is whole, and without a list
some clusters may be missing.
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from typing import Any, Final

from fastquorum.errnos import reason
from fastquorum.errors import DirectoryError
from fastquorum.generate.cluster import GeneratedCluster
from fastquorum.generate.options import GenerateOptions, check
from fastquorum.generate.plans import ClusterPlan, plan_clusters
from fastquorum.kernels import Kernels
from fastquorum.node.metadata.gc_pause import CollectorAtRest

LIST: Final = "planted.json"
FORMAT_VERSION: Final = 1
LARGE_PARTITIONS: Final = 50_000
"""Partitions from which on Python's garbage collector would take longer than the generation itself."""
Progress = Callable[[int], None]


def generate(
    path: str, options: GenerateOptions, kernels: Kernels, progress: Callable[[int], Progress] | None = None
) -> dict[str, Any]:
    """Generate all clusters below `path`, which is created, or is empty; return the list.

    `progress` takes the total amount of work, and returns a function that takes each finished amount.

    Raises:
        UsageError: the options cannot be satisfied; nothing was changed.
        DirectoryError: the directory is not empty, or cannot be created; nothing was changed.
        OSError, StorageFailed: the disk, as when it is full. A cluster with its own name is whole.
    """
    check(options)
    root = _claim(path)
    plans = plan_clusters(options)
    done = progress(2 * sum(plan.partitions for plan in plans)) if progress is not None else lambda _: None
    clusters = [_make(root, plan, options, kernels, done) for plan in plans]
    listed = {
        "format_version": FORMAT_VERSION,
        "options": _as_json(options),
        "clusters": [{key: value for key, value in each.items() if key != "planted"} for each in clusters],
        "planted": [planted for each in clusters for planted in each["planted"]],
    }
    with open(os.path.join(root, LIST), "w", encoding="ascii") as file:
        json.dump(listed, file, indent=1)
        file.write("\n")
    return listed


def whole_clusters(path: str) -> list[str]:
    """Return the names of the whole clusters of an interrupted run."""
    return sorted(name for name in os.listdir(path) if name.startswith("cluster-")) if os.path.isdir(path) else []


def _claim(path: str) -> str:
    """Create the directory, or check that it is empty. DirectoryError."""
    root = os.path.abspath(path)
    try:
        os.makedirs(root, exist_ok=True)
        is_empty = not os.listdir(root)
    except OSError as error:
        raise DirectoryError(f"nothing can be made there: {reason(error)}", path=root) from error
    if not is_empty:
        raise DirectoryError("it is not empty, and nothing in it was changed", "name a new directory", root)
    return root


def _make(
    root: str, plan: ClusterPlan, options: GenerateOptions, kernels: Kernels, progress: Progress
) -> dict[str, Any]:
    draft = os.path.join(root, f".{plan.directory}")
    try:
        os.mkdir(draft)
        if plan.partitions < LARGE_PARTITIONS:
            entry = GeneratedCluster(draft, plan, options, kernels).make(progress)
        else:
            with CollectorAtRest():
                entry = GeneratedCluster(draft, plan, options, kernels).make(progress)
        os.rename(draft, os.path.join(root, plan.directory))
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return entry


def _as_json(options: GenerateOptions) -> dict[str, Any]:
    values = {name: getattr(options, name) for name in (each.name for each in dataclasses.fields(options))}
    return values | {
        "brokers": str(options.brokers),
        "partitions": str(options.partitions),
        "faults": {str(kind): count for kind, count in options.faults.items()},
    }
