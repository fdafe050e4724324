"""Which directory speaks for a cluster, where several of its replicas are there and one image is wanted.

The one whose log is the longest that a majority of the directories reach: whatever it holds was committed, if the
replicas hold the same (`audit-replicas` tells) and all voters' directories are there. Of equal ones, the first by name.
"""

import pyarrow as pa


def speaking_directories(ends: pa.Table) -> dict[str, str | None]:
    """One directory for each cluster, with the cluster's id; by cluster. `ends`: cluster_id, directory, end_offset, of
    each directory."""
    by_cluster: dict[str | None, list[tuple[int, str]]] = {}
    for row in ends.to_pylist():
        by_cluster.setdefault(row["cluster_id"], []).append((row["end_offset"] or 0, row["directory"]))
    chosen = {}
    for cluster_id, found in sorted(by_cluster.items(), key=lambda item: (item[0] is not None, item[0] or "")):
        found.sort(key=lambda each: (-each[0], each[1]))
        end = found[len(found) // 2][0]
        chosen[min(directory for each, directory in found if each == end)] = cluster_id
    return chosen
