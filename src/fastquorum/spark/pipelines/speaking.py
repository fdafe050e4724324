"""Which directory speaks for a cluster, where several of its replicas are there and one image is wanted.

The one whose log is the longest that a majority of the directories reach: whatever it holds was committed, if the
replicas hold the same (`audit-replicas` tells) and all voters' directories are there. Of equal ones, one in which no
bytes are damaged or missing, if there is any; then the first by name.
"""

import pyarrow as pa


def speaking_directories(ends: pa.Table) -> dict[str, str | None]:
    """One directory for each cluster, with the cluster's id; by cluster. `ends`: cluster_id, directory, end_offset and
    is_damaged of each directory."""
    by_cluster: dict[str | None, list[tuple[int, bool, str]]] = {}
    for row in ends.to_pylist():
        found = (-(row["end_offset"] or 0), bool(row["is_damaged"]), row["directory"])
        by_cluster.setdefault(row["cluster_id"], []).append(found)
    chosen = {}
    for cluster_id, logs in sorted(by_cluster.items(), key=lambda item: (item[0] is not None, item[0] or "")):
        logs.sort()
        end = logs[len(logs) // 2][0]
        _, _, directory = min(each for each in logs if each[0] == end)
        chosen[directory] = cluster_id
    return chosen
